//! The private network of a box at tier supervised, between its session and the records.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use h5i_confine::{Plan, Session, SocketSlot, SpawnError};
use h5i_net::{Budgets, EventSink, HostResolver, Network, StartError, requests};
use h5i_policy::{NetMode, ResolvedPolicy, Tier};

use crate::failure::{Failure, Kind};
use crate::running::spawn_failure;

/// The mechanism's name in the list of what is enforced.
pub(crate) const GATE: &str = "network gate";

/// The sockets of a network that its plan was asked for.
#[derive(Debug)]
pub(crate) struct Doors(Vec<SocketSlot>);

impl Doors {
    /// Has the plan make what the policy's network needs; none below tier supervised.
    ///
    /// # Errors
    /// A refusal, for a policy that can't be served.
    pub(crate) fn ask(plan: &mut Plan, policy: &ResolvedPolicy) -> Result<Option<Self>, Failure> {
        if policy.tier < Tier::Supervised {
            return Ok(None);
        }
        let wanted = requests(&policy.net).map_err(|e| Failure::new(Kind::Refused, &e))?;
        let slots = wanted.map(|one| plan.request_socket(one.domain, one.kind, one.protocol));
        Ok(Some(Self(slots.into())))
    }

    /// Waits for the box, and starts its network. Nothing of the box runs before that.
    ///
    /// # Errors
    /// Why the box could not be made, or which step of its network failed.
    pub(crate) fn open(
        self,
        session: &mut Session,
        policy: &ResolvedPolicy,
        sink: Arc<dyn EventSink>,
    ) -> Result<Network, Failure> {
        session.handle().wait_ready().map_err(|e| spawn_failure(&SpawnError::Session(e)))?;
        let sockets: Vec<OwnedFd> =
            self.0.into_iter().filter_map(|slot| session.take_socket(slot)).collect();
        let resolver = Arc::new(HostResolver);
        Network::start(sockets, &policy.net, Budgets::default(), resolver, sink)
            .map_err(|error| start_failure(&error))
    }
}

fn start_failure(error: &StartError) -> Failure {
    Failure::new(Kind::Unavailable, error).hint("h5i box probe --tier supervised")
}

/// What stands between the box and the networks of the host, in a few words.
pub(crate) fn gate_words(policy: &ResolvedPolicy) -> String {
    let allowed = match policy.net.mode {
        NetMode::None => "nothing is let out".to_owned(),
        NetMode::Allow => match policy.net.allow.len() {
            1 => "1 rule".to_owned(),
            rules => format!("{rules} rules"),
        },
        _ => "public addresses only".to_owned(),
    };
    format!("nftables, resolver and relay, held by the host: {allowed}")
}

/// What the box may reach, in words.
pub(crate) fn rules_words(policy: &ResolvedPolicy) -> String {
    match policy.net.mode {
        NetMode::None => "nothing".to_owned(),
        NetMode::Allow => {
            let rules: Vec<String> = policy.net.allow.iter().map(ToString::to_string).collect();
            rules.join(" ")
        }
        _ => "every public address".to_owned(),
    }
}
