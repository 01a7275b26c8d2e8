//! The grants of a box, between its session, the broker and the records.

mod holders;
mod private;
mod trust;
mod watched;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use h5i_broker::{
    Broker, HostEndpoint, HostSources, Issue, IssueError, Service, Setup, StartError, Which,
};
use h5i_confine::{Layout, Plan, Session, SocketSlot};
use h5i_export::GrantChange;
use h5i_net::{Network, SocketRequest, Sockets, sockets_request};
use h5i_policy::{Grant, ResolvedPolicy, Via};
use serde::{Deserialize, Serialize};

use crate::approved_start::{HEADER, Terms};
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::receipt_log::Recorder;
use crate::seeded_home::{log_in, placeholders};
use crate::store::{HostId, Manifest, StoredBox};
use holders::{Holders, ToBroker};
pub(crate) use private::check_private;
pub(crate) use trust::Trust;
use watched::Watched;

/// The mechanism's name in the list of what is enforced.
pub(crate) const BROKER: &str = "grants";

/// What the grants of a box need of its session.
#[derive(Debug)]
pub(crate) struct Mouths {
    grants: BTreeMap<String, (Grant, Option<SocketSlot>)>,
    diag: SocketSlot,
    trust: Option<Trust>,
    policy: ResolvedPolicy,
    home: Home,
    terms: Option<Terms>,
}

/// The home whose runtimes are to find the broker.
#[derive(Debug)]
struct Home {
    path: PathBuf,
    owner: Option<HostId>,
}

impl Mouths {
    /// Has the plan make what the policy's grants need; none where it has no grants.
    pub(crate) fn ask(
        plan: &mut Plan,
        (stored, manifest, policy): (&StoredBox, &Manifest, &ResolvedPolicy),
        trust: Option<Trust>,
    ) -> Option<Self> {
        let (grants, diag) = sockets(plan, policy)?;
        let home = Home { path: stored.box_dir().join("home"), owner: manifest.host_id };
        let terms = Terms::of(stored, manifest);
        Some(Self { grants, diag, trust, policy: policy.clone(), home, terms })
    }

    /// Serves the grants, in a box that is made. Nobody holds one before its run is told.
    ///
    /// # Errors
    /// Why they can't be served.
    pub(crate) fn open(
        self,
        session: &mut Session,
        caller: &Caller,
        recorder: &Arc<Recorder>,
    ) -> Result<LiveGrants, Failure> {
        let no_socket = || Failure::told(Kind::Unavailable, "the box has no sockets for grants");
        let diag = session.take_socket(self.diag).ok_or_else(no_socket)?;
        let surroundings = caller.surroundings.clone();
        let home = surroundings.home.clone();
        let sources = HostSources::new(&home, move |name| {
            surroundings.variable(name).map(std::ffi::OsStr::to_owned)
        });
        let sources = match HostEndpoint::new() {
            Ok(endpoint) => sources.endpoint(Arc::new(endpoint)),
            // Logins that hold are good without.
            Err(_) => sources,
        };
        let mut services = Vec::new();
        let mut intercepted = BTreeMap::new();
        for (name, (grant, mouth)) in self.grants {
            let credentials = sources.credentials(&grant);
            let service = match mouth {
                Some(slot) => {
                    let socket: OwnedFd = session.take_socket(slot).ok_or_else(no_socket)?;
                    Service::reverse(&name, grant, socket)
                }
                None => {
                    intercepted.insert((grant.host.clone(), grant.port), name.clone());
                    Service::intercept(&name, grant)
                }
            };
            let service = match credentials {
                Some(source) => {
                    let name = service.name.clone();
                    service.with(Arc::new(Watched::new(&name, source, recorder)))
                }
                None => service,
            };
            services.push(match &self.terms {
                Some(terms) => service.stamped(HEADER, terms.bundle()),
                None => service,
            });
        }
        let mut setup = Setup::new(services);
        setup.peers = Arc::new(Holders::new(Sockets::new(diag), Arc::clone(recorder)));
        let sink: Arc<dyn h5i_broker::EventSink> = Arc::<Recorder>::clone(recorder);
        let broker = Arc::new(Broker::start(setup, sink).map_err(|e| start_failure(&e))?);
        let trust = match (self.trust, broker.authority()) {
            (Some(trust), Some(authority)) => {
                trust.write(authority)?;
                Some(trust)
            }
            _ => None,
        };
        let home = Mutex::new(Some(self.home));
        Ok(LiveGrants { broker, intercepted, trust, policy: self.policy, home, terms: self.terms })
    }
}

type Asked = (BTreeMap<String, (Grant, Option<SocketSlot>)>, SocketSlot);

/// Has the plan make the sockets that a policy's grants need; none where it has no grants.
pub(crate) fn sockets(plan: &mut Plan, policy: &ResolvedPolicy) -> Option<Asked> {
    if policy.grants.is_empty() {
        return None;
    }
    let listener = SocketRequest { domain: INET, kind: STREAM, protocol: 0 };
    let mut ask = |one: SocketRequest| plan.request_socket(one.domain, one.kind, one.protocol);
    let grants = policy.grants.iter().map(|(name, grant)| {
        let mouth = (grant.via == Via::Reverse).then(|| ask(listener));
        (name.clone(), (grant.clone(), mouth))
    });
    Some((grants.collect(), ask(sockets_request())))
}

const INET: i32 = rustix::net::AddressFamily::INET.as_raw() as i32;
const STREAM: i32 = rustix::net::SocketType::STREAM.as_raw() as i32;

/// The grants of a session that is alive.
#[derive(Debug)]
pub(crate) struct LiveGrants {
    broker: Arc<Broker>,
    intercepted: BTreeMap<(h5i_policy::HostName, u16), String>,
    trust: Option<Trust>,
    policy: ResolvedPolicy,
    /// Until the first run, with which it is known where the broker is.
    home: Mutex<Option<Home>>,
    /// What an approval leaves of the grants.
    terms: Option<Terms>,
}

/// A change that a person asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum GrantWish {
    /// It is taken back, for the rest of the session.
    Revoke { grant: String },
    /// It holds longer.
    Extend { grant: String, by_ms: u64 },
}

/// A grant as it is in the hands of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LiveGrant {
    pub(crate) grant: String,
    pub(crate) run: u64,
    pub(crate) uses: u64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) requests_left: Option<u64>,
    pub(crate) left_ms: Option<u64>,
    /// How it ended, if it has.
    pub(crate) ended: Option<String>,
}

impl LiveGrants {
    /// Has the network hand over the flows to services whose grants are by `intercept`.
    ///
    /// # Errors
    /// When the network has ended.
    pub(crate) fn divert(
        &self,
        network: &Network,
        recorder: &Arc<Recorder>,
    ) -> Result<(), Failure> {
        if self.intercepted.is_empty() {
            return Ok(());
        }
        let services = self.intercepted.keys().cloned().collect();
        let to =
            ToBroker::new(Arc::clone(&self.broker), self.intercepted.clone(), Arc::clone(recorder));
        network.divert(services, Arc::new(to)).map_err(|e| Failure::new(Kind::Io, &e))
    }

    /// Gives a run its grants: the variables by which its programs find them. Those of an approval
    /// are given once in the life of the box; that a later run has none is put on record.
    ///
    /// # Errors
    /// A refusal, as for a box that is frozen; an I/O failure.
    pub(crate) fn issue(
        &self,
        run: u64,
        recorder: &Recorder,
    ) -> Result<Vec<(String, String)>, Failure> {
        let issue = match &self.terms {
            Some(terms) => terms.issue(run)?,
            None => Some(Issue::to(run)),
        };
        let mut variables = match issue {
            Some(issue) => self.issue_what_holds(issue)?,
            None => {
                let why = "an earlier run had the approval";
                recorder.note(&format!("run {run} holds no grant: {why}"))?;
                Vec::new()
            }
        };
        variables.extend(placeholders(&self.policy));
        let home = self.home.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Home { path, owner }) = home {
            let set_up = log_in(&path, &self.policy, owner, |name| {
                let wanted = self.policy.grants.get(name)?.variables.base_url.iter().next()?;
                let found = variables.iter().find(|(name, _)| name == wanted);
                found.map(|(_, url)| url.clone())
            });
            // The box may have put something odd there, which only a run of it can repair.
            if let Err(failure) = set_up {
                recorder.note(&format!("a runtime was not set up: {}", failure.message))?;
                let repair = "move that away in the box, and start its session again";
                crate::command_line::say(&format!("note     {}; {repair}", failure.message));
            }
        }
        variables.extend(self.terms.iter().map(Terms::variable));
        variables.extend(self.trust.iter().flat_map(Trust::variables));
        Ok(variables)
    }

    /// Gives a run what was not taken back; the broker gives all that it is asked for, or nothing.
    fn issue_what_holds(&self, mut issue: Issue) -> Result<Vec<(String, String)>, Failure> {
        let mut left: BTreeSet<String> = self.policy.grants.keys().cloned().collect();
        loop {
            match self.broker.issue(&issue) {
                Ok(variables) => return Ok(variables),
                Err(IssueError::Revoked { name }) if left.remove(&name) => {
                    issue.which = Which::Only(left.clone());
                }
                Err(error) => return Err(Failure::new(Kind::Refused, &error)),
            }
        }
    }

    /// A run is over.
    pub(crate) fn end(&self, run: u64) {
        self.broker.end(run);
    }

    /// The box stands still: what is open is cut, and every token is worth nothing from now on.
    pub(crate) fn suspend(&self) {
        self.broker.suspend();
    }

    /// The box goes on.
    pub(crate) fn resume(&self) {
        self.broker.resume();
    }

    /// Takes every grant back.
    pub(crate) fn revoke_all(&self) {
        for grant in self.policy.grants.keys() {
            // One that is revoked already needs nothing.
            self.broker.revoke(grant, None).ok();
        }
    }

    /// Puts a change on record and in force.
    ///
    /// # Errors
    /// A refusal when it means nothing; an I/O failure of the log, with nothing changed.
    pub(crate) fn change(&self, wish: &GrantWish, recorder: &Recorder) -> Result<(), Failure> {
        let (grant, change, by_ms) = match wish {
            GrantWish::Revoke { grant } => (grant, GrantChange::Revoke, None),
            GrantWish::Extend { grant, by_ms } => (grant, GrantChange::Extend, Some(*by_ms)),
        };
        if self.terms.is_some() && matches!(wish, GrantWish::Extend { .. }) {
            let message = "the grants of a box that was made by an approval end with it";
            return Err(Failure::told(Kind::Refused, message)
                .hint("approve the bundle again, and make another box"));
        }
        let ls = || format!("h5i grant ls {}", recorder.box_name());
        // One that no run holds yet can be taken back as well.
        let held = || self.broker.state().iter().any(|state| state.grant == *grant);
        if matches!(wish, GrantWish::Extend { .. }) && !held() {
            return Err(Failure::told(
                Kind::NotFound,
                format!("no run of the box holds a grant `{grant}`"),
            )
            .hint(ls()));
        }
        recorder.grant_changes(grant, change, by_ms)?;
        let failed = |e| Failure::new(Kind::Refused, &e).hint(ls());
        match wish {
            GrantWish::Revoke { grant } => self.broker.revoke(grant, None).map_err(failed),
            GrantWish::Extend { grant, by_ms } => {
                let by = Duration::from_millis(*by_ms);
                self.broker.extend(grant, by).map(drop).map_err(failed)
            }
        }
    }

    /// The grants as they are.
    pub(crate) fn state(&self) -> Vec<LiveGrant> {
        let now = SystemTime::now();
        let told = |state: h5i_broker::GrantState| LiveGrant {
            grant: state.grant,
            run: state.run,
            uses: state.uses,
            sent: state.sent,
            received: state.received,
            requests_left: state.left.requests,
            left_ms: state.until.map(|until| {
                let left = until.duration_since(now).unwrap_or_default();
                u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
            }),
            ended: state.ended.map(|end| crate::grant_record::end_of(end).name().to_owned()),
        };
        self.broker.state().into_iter().map(told).collect()
    }
}

/// The layout of a box whose programs are to trust the broker in the place of some services.
pub(crate) fn with_trust(
    layout: Layout,
    stored: &StoredBox,
    policy: &ResolvedPolicy,
) -> Result<(Layout, Option<Trust>), Failure> {
    if !policy.grants.values().any(|grant| grant.via == Via::Intercept) {
        return Ok((layout, None));
    }
    let trust = Trust::prepare(&stored.host_dir())?;
    Ok((trust.shown_in(layout), Some(trust)))
}

fn start_failure(error: &StartError) -> Failure {
    Failure::new(Kind::Unavailable, error).hint("h5i box probe --tier supervised")
}
