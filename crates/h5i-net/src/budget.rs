//! Budgets of a box's network.

use std::time::{Duration, Instant};

use h5i_policy::NetBudget;

use crate::event::{Refusal, Spent};

/// What all flows of a session may use together; `None` is no budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budgets {
    /// Bytes carried, both directions. The flow that spends the last one is closed; it may have
    /// carried up to four mebibytes more.
    pub bytes: Option<u64>,
    /// Listed names looked up on the host; an answer that is remembered is none. Labels below a
    /// listed domain can carry data to its name servers.
    pub lookups: Option<u64>,
    /// Connections.
    pub connections: Option<u64>,
    /// Connections within one second.
    pub connections_per_second: Option<u32>,
    /// Connections at once; never more than the caller's limit of open files allows.
    pub connections_at_once: Option<u32>,
}

impl From<&NetBudget> for Budgets {
    /// What a policy says; it has no word about lookups, nor about connections at once.
    fn from(policy: &NetBudget) -> Self {
        Self {
            bytes: policy.bytes.map(|bytes| bytes.count()),
            connections: policy.connections.map(u64::from),
            connections_per_second: policy.connections_per_second,
            ..Self::default()
        }
    }
}

/// What is left of the budgets.
#[derive(Debug)]
pub(crate) struct Spending {
    budgets: Budgets,
    at_once: usize,
    bytes: u64,
    connections: u64,
    second: (Instant, u32),
}

/// Connections at once where the limit of open files allows more.
const AT_ONCE: usize = 8192;
/// Descriptors that are left to the rest of the caller's process.
const LEFT: u64 = 256;

impl Spending {
    /// `open_files` is how many descriptors the process may have, of which flows get half: a broker
    /// and a record of programs stand beside this in many processes. A flow needs two, and two more
    /// while bytes of it are under way.
    pub(crate) fn new(budgets: Budgets, open_files: u64, now: Instant) -> Self {
        let fit = usize::try_from(open_files.saturating_sub(LEFT) / 8).unwrap_or(AT_ONCE);
        let asked = budgets.connections_at_once.map_or(AT_ONCE, |n| n as usize);
        Self {
            budgets,
            at_once: asked.min(fit.clamp(16, AT_ONCE)),
            bytes: 0,
            connections: 0,
            second: (now, 0),
        }
    }

    /// Takes one connection more; `open` of them are there.
    pub(crate) fn connection(&mut self, open: usize, now: Instant) -> Result<(), Refusal> {
        self.within_bytes()?;
        if open >= self.at_once {
            let spent = Spent { used: open as u64, allowed: self.at_once as u64 };
            return Err(Refusal::AtOnce(spent));
        }
        if let Some(allowed) = self.budgets.connections.filter(|most| self.connections >= *most) {
            return Err(Refusal::Connections(Spent { used: self.connections, allowed }));
        }
        if now.saturating_duration_since(self.second.0) >= Duration::from_secs(1) {
            self.second = (now, 0);
        }
        let rate = self.budgets.connections_per_second;
        if let Some(allowed) = rate.filter(|most| self.second.1 >= *most) {
            let (used, allowed) = (self.second.1.into(), allowed.into());
            return Err(Refusal::Rate(Spent { used, allowed }));
        }
        self.second.1 += 1;
        self.connections += 1;
        Ok(())
    }

    /// Counts bytes; refuses more of them once the budget is spent.
    pub(crate) fn carried(&mut self, bytes: u64) -> Result<(), Refusal> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.within_bytes()
    }

    fn within_bytes(&self) -> Result<(), Refusal> {
        match self.budgets.bytes.filter(|most| self.bytes >= *most) {
            Some(allowed) => Err(Refusal::Bytes(Spent { used: self.bytes, allowed })),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_budget_refuses_by_its_name_and_not_before() {
        let now = Instant::now();
        let take = |budgets: Budgets, open| {
            let mut spending = Spending::new(budgets, 4096, now);
            let results = [0, 0, 0].map(|_: i32| spending.connection(open, now));
            (results, spending)
        };
        assert_eq!(take(Budgets::default(), 0).0, [Ok(()); 3]);
        let two = Budgets { connections: Some(2), ..Budgets::default() };
        let spent = |used, allowed| Spent { used, allowed };
        assert_eq!(take(two, 0).0, [Ok(()), Ok(()), Err(Refusal::Connections(spent(2, 2)))]);
        let rate = Budgets { connections_per_second: Some(2), ..Budgets::default() };
        let (results, mut spending) = take(rate, 0);
        assert_eq!(results, [Ok(()), Ok(()), Err(Refusal::Rate(spent(2, 2)))]);
        assert_eq!(spending.connection(0, now + Duration::from_secs(1)), Ok(()));
        let at_once = Budgets { connections_at_once: Some(5), ..Budgets::default() };
        assert_eq!(take(at_once, 4).0, [Ok(()); 3]);
        assert_eq!(take(at_once, 5).0, [Err(Refusal::AtOnce(spent(5, 5))); 3]);
        assert_eq!(take(Budgets::default(), 480).0, [Err(Refusal::AtOnce(spent(480, 480))); 3]);
        let mut bytes = Spending::new(Budgets { bytes: Some(10), ..Budgets::default() }, 4096, now);
        assert_eq!(bytes.carried(9), Ok(()));
        assert_eq!(bytes.connection(0, now), Ok(()));
        assert_eq!(bytes.carried(2), Err(Refusal::Bytes(spent(11, 10))));
        assert_eq!(bytes.connection(0, now), Err(Refusal::Bytes(spent(11, 10))));
    }
}
