//! What the broker observes, as records, and what is kept of it for a run's summary.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::time::SystemTime;

use h5i_broker::{self as broker, End, Program};
use h5i_export::{ByteText, Event, GrantEnd};
use h5i_policy::{Grant, ResolvedPolicy};
use serde::{Deserialize, Serialize};

use crate::json_bytes::JsonBytes;

/// Kinds of refusals that are told with a run; the log has all.
const TOLD: usize = 256;

/// What a run did with its grants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantDeeds {
    /// Its grants.
    pub used: Vec<GrantUsed>,
    /// What it was refused; equal ones counted together.
    pub refused: Vec<GrantRefused>,
}

/// How a run used a grant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantUsed {
    /// The grant's name.
    pub grant: String,
    /// Requests that passed.
    pub uses: u64,
    /// Bytes of their bodies.
    pub sent: u64,
    /// Bytes of the bodies of their answers.
    pub received: u64,
}

/// Requests that a grant did not let pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantRefused {
    /// The grant's name.
    pub grant: String,
    /// Method and path, as far as they were understood.
    pub request: Option<String>,
    /// The program, where it is known.
    pub program: Option<JsonBytes>,
    /// Why.
    pub reason: String,
    /// How often.
    pub count: u64,
}

/// The deeds of the runs that go.
#[derive(Debug, Default)]
pub(crate) struct GrantRecord {
    runs: BTreeMap<u64, GrantDeeds>,
    /// The run of each request under way.
    under_way: BTreeMap<u64, u64>,
    /// Where each grant leads.
    services: BTreeMap<String, (String, u16)>,
}

impl GrantRecord {
    /// For a box of this policy.
    pub(crate) fn new(policy: &ResolvedPolicy) -> Self {
        let service = |grant: &Grant| (grant.host.to_string(), grant.port);
        let services = policy.grants.iter().map(|(name, grant)| (name.clone(), service(grant)));
        Self { services: services.collect(), ..Self::default() }
    }

    /// What a run did; told once.
    pub(crate) fn take(&mut self, run: u64) -> GrantDeeds {
        self.runs.remove(&run).unwrap_or_default()
    }

    /// Takes an observation in; yields its run and its record.
    pub(crate) fn take_in(&mut self, event: broker::Event) -> Option<(Option<u64>, Event)> {
        match event {
            broker::Event::Issued { grant, run, until } => {
                self.used(run, &grant);
                let lasts_ms = until.map(|until| {
                    let left = until.duration_since(SystemTime::now()).unwrap_or_default();
                    u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
                });
                let (host, port) = self.services.get(&grant).cloned().unwrap_or_default();
                Some((Some(run), Event::GrantIssued { grant, host, port, lasts_ms }))
            }
            broker::Event::Used(used) => {
                self.under_way.insert(used.request, used.run);
                self.used(used.run, &used.grant).uses += 1;
                let (pid, program) = opener(used.program);
                let event = Event::GrantUse {
                    grant: used.grant,
                    request: used.request,
                    via: used.way.to_string(),
                    method: used.method,
                    path: ByteText::new(used.path.into_bytes()),
                    pid,
                    program,
                };
                Some((Some(used.run), event))
            }
            broker::Event::Finished {
                grant,
                request,
                status,
                sent,
                received,
                duration,
                end,
                scrubbed,
            } => {
                let run = self.under_way.remove(&request);
                // That of a run which has been told is on record only.
                let deeds = run.and_then(|run| self.runs.get_mut(&run));
                let used = deeds.and_then(|d| d.used.iter_mut().find(|used| used.grant == grant));
                if let Some(used) = used {
                    used.sent = used.sent.saturating_add(sent);
                    used.received = used.received.saturating_add(received);
                }
                let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
                let end = end_of(end);
                let event = Event::GrantUseEnd {
                    grant,
                    request,
                    status,
                    sent,
                    received,
                    duration_ms,
                    end,
                    scrubbed,
                };
                Some((run, event))
            }
            broker::Event::Refused { grant, run, token_of, program, request, denial, count } => {
                let (pid, program) = opener(program);
                let reason = match token_of {
                    Some(of) => format!("{denial}; the token is that of run {of}"),
                    None => denial.to_string(),
                };
                if let Some(run) = run {
                    let program = program.as_ref().map(|p| JsonBytes(p.as_bytes().to_vec()));
                    let told = GrantRefused {
                        grant: grant.clone(),
                        request: request.clone(),
                        program,
                        reason: reason.clone(),
                        count,
                    };
                    self.refused(run, told);
                }
                let request = request.map(|request| ByteText::new(request.into_bytes()));
                Some((run, Event::GrantRefused { grant, reason, request, pid, program, count }))
            }
            broker::Event::Withdrawn { grant, run, end } => {
                Some((run, Event::GrantEnded { grant, end: end_of(end) }))
            }
            _ => None,
        }
    }

    fn used(&mut self, run: u64, grant: &str) -> &mut GrantUsed {
        let all = &mut self.runs.entry(run).or_default().used;
        let at = all.iter().position(|used| used.grant == grant).unwrap_or_else(|| {
            all.push(GrantUsed { grant: grant.to_owned(), ..GrantUsed::default() });
            all.len() - 1
        });
        &mut all[at]
    }

    fn refused(&mut self, run: u64, refused: GrantRefused) {
        let all = &mut self.runs.entry(run).or_default().refused;
        let what = |one: &GrantRefused| {
            let GrantRefused { grant, request, program, reason, .. } = one.clone();
            (grant, request, program, reason)
        };
        match all.iter().position(|told| what(told) == what(&refused)) {
            Some(at) => all[at].count += refused.count,
            None if all.len() < TOLD => all.push(refused),
            None => {}
        }
    }
}

fn opener(program: Option<Program>) -> (Option<u32>, Option<ByteText>) {
    let Some(program) = program else { return (None, None) };
    let path = program.path.as_os_str();
    let known = !path.is_empty();
    (Some(program.pid), known.then(|| ByteText::new(path.as_bytes())))
}

/// The record's word for how something ended.
pub(crate) const fn end_of(end: End) -> GrantEnd {
    match end {
        End::Client => GrantEnd::Client,
        End::Service => GrantEnd::Service,
        End::Expired => GrantEnd::Expired,
        End::Revoked => GrantEnd::Revoked,
        End::Budget => GrantEnd::Budget,
        End::Suspended => GrantEnd::Suspended,
        End::RunEnded => GrantEnd::RunEnded,
        End::Ended => GrantEnd::Ended,
        _ => GrantEnd::Done,
    }
}

#[cfg(test)]
mod tests {
    use h5i_broker::Denial;

    use super::*;

    /// The run and the reason of a refusal on record.
    fn recorded(
        record: &mut GrantRecord,
        run: Option<u64>,
        token_of: Option<u64>,
    ) -> (Option<u64>, String) {
        let refused = broker::Event::Refused {
            grant: "api".into(),
            run,
            token_of,
            program: Some(Program { pid: 7, path: "/usr/bin/curl".into() }),
            request: None,
            denial: Denial::Token,
            count: 1,
        };
        match record.take_in(refused) {
            Some((run, Event::GrantRefused { reason, .. })) => (run, reason),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_refusal_is_of_the_run_that_asked_and_names_the_tokens() {
        let mut record = GrantRecord::new(&ResolvedPolicy::default());
        let plain = Denial::Token.to_string();
        let others = format!("{plain}; the token is that of run 1");
        assert_eq!(recorded(&mut record, Some(2), Some(1)), (Some(2), others.clone()));
        assert_eq!(recorded(&mut record, Some(2), None), (Some(2), plain.clone()));
        assert_eq!(recorded(&mut record, None, None), (None, plain.clone()));
        let refused = record.take(2).refused.into_iter();
        let told: Vec<(String, u64)> = refused.map(|one| (one.reason, one.count)).collect();
        assert_eq!(told, [(others, 1), (plain, 1)]);
    }
}
