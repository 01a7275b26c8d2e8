//! Which addresses listed names have resolved to, and for how long that holds.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;

use h5i_policy::HostName;

use crate::address::{canonical, is_never_carried};
use crate::rules::is_public;

/// Addresses kept for one name; a name that has more forgets those that end first.
const PER_NAME: usize = 64;
/// Addresses kept in all.
const IN_ALL: usize = 4096;

/// An address that the resolver gave for a name. Holding one proves that the name was listed, that
/// the address is public and that it was not the host's own, or that it is one to which nobody
/// connects: it stands for a service whose flows are diverted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PinnedAddress {
    name: HostName,
    address: IpAddr,
}

impl PinnedAddress {
    /// Checks an address of an answer for a listed name; `hosts_own` says whether it is the host's.
    pub(crate) fn check(name: &HostName, address: IpAddr, hosts_own: bool) -> Option<Self> {
        let address = canonical(address);
        let public = is_public(address) && !is_never_carried(address) && !hosts_own;
        public.then(|| Self { name: name.clone(), address })
    }

    /// An address that stands for a service whose flows are diverted.
    pub(crate) fn stand_in(name: &HostName, address: IpAddr) -> Self {
        Self { name: name.clone(), address }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &HostName {
        &self.name
    }

    /// The address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }
}

/// The pinned addresses of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pins {
    until: BTreeMap<IpAddr, BTreeMap<HostName, Instant>>,
}

impl Pins {
    /// Keeps an address until `until`, or longer where it is kept longer.
    pub(crate) fn keep(&mut self, pinned: &PinnedAddress, until: Instant) {
        let names = self.until.entry(pinned.address).or_default();
        let end = names.entry(pinned.name.clone()).or_insert(until);
        *end = until.max(*end);
        let mut of_name: Vec<(Instant, IpAddr)> = self
            .until
            .iter()
            .filter_map(|(address, names)| Some((*names.get(&pinned.name)?, *address)))
            .collect();
        if of_name.len() > PER_NAME {
            of_name.sort_unstable();
            for (_, address) in of_name.iter().take(of_name.len() - PER_NAME) {
                self.forget(*address, &pinned.name);
            }
        }
        while self.until.len() > IN_ALL {
            let first = self.iter().min_by_key(|(_, _, until)| *until);
            let Some((address, name)) = first.map(|(a, n, _)| (a, n.clone())) else { break };
            self.forget(address, &name);
        }
    }

    fn forget(&mut self, address: IpAddr, name: &HostName) {
        if let Some(names) = self.until.get_mut(&address) {
            names.remove(name);
            if names.is_empty() {
                self.until.remove(&address);
            }
        }
    }

    /// Forgets what has ended.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.until.retain(|_, names| {
            names.retain(|_, until| *until > now);
            !names.is_empty()
        });
    }

    /// Forgets the names that `keep` says no to.
    pub(crate) fn retain(&mut self, keep: impl Fn(&HostName) -> bool) {
        self.until.retain(|_, names| {
            names.retain(|name, _| keep(name));
            !names.is_empty()
        });
    }

    /// When the next one ends.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.until.values().flat_map(BTreeMap::values).min().copied()
    }

    /// The names that resolved to an address and have not ended.
    pub(crate) fn names(&self, address: IpAddr, now: Instant) -> impl Iterator<Item = &HostName> {
        let names = self.until.get(&address).into_iter().flatten();
        names.filter(move |(_, until)| **until > now).map(|(name, _)| name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (IpAddr, &HostName, Instant)> {
        self.until
            .iter()
            .flat_map(|(address, names)| names.iter().map(|(name, until)| (*address, name, *until)))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;

    fn pinned(name: &str, address: u32) -> PinnedAddress {
        let name = HostName::new(name).unwrap();
        PinnedAddress::check(&name, Ipv4Addr::from_bits(address).into(), false).unwrap()
    }

    #[test]
    fn only_public_addresses_that_are_not_the_hosts_own_are_pinned() {
        let name = HostName::new("a.example").unwrap();
        let check = |text: &str, own| PinnedAddress::check(&name, text.parse().unwrap(), own);
        assert!(check("8.8.8.8", false).is_some());
        assert!(check("8.8.8.8", true).is_none());
        for text in ["10.0.0.1", "::ffff:10.0.0.1", "127.0.0.1", "169.254.169.254", "fe80::1"] {
            assert!(check(text, false).is_none(), "{text}");
        }
        let mapped = check("::ffff:8.8.8.8", false).unwrap();
        assert_eq!(mapped.address(), "8.8.8.8".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn a_pin_ends_and_what_is_kept_is_bounded() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let mut pins = Pins::default();
        pins.keep(&pinned("a.example", 0x0808_0808), now + second);
        let address = Ipv4Addr::new(8, 8, 8, 8).into();
        assert_eq!(pins.names(address, now).count(), 1);
        assert_eq!(pins.names(address, now + second).count(), 0);
        for n in 0..200 {
            pins.keep(&pinned("a.example", 0x0909_0000 + n), now + 2 * second + n * second);
        }
        assert_eq!(pins.iter().count(), PER_NAME);
        assert_eq!(pins.names(address, now).count(), 0);
        for n in 0..4200_u32 {
            pins.keep(
                &pinned(&format!("n{n}.example"), 0x0a0a_0000 + 0x1000_0000 + n),
                now + second,
            );
        }
        assert_eq!(pins.until.len(), IN_ALL);
        pins.expire(now + second);
        assert!(pins.iter().all(|(_, name, _)| name.as_str() == "a.example"));
        pins.retain(|_| false);
        assert_eq!(pins.next_end(), None);
    }
}
