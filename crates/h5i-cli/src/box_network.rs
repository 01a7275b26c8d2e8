//! The private network of a box at tier supervised, between its session and the records.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use h5i_confine::{Plan, Session, SocketSlot, SpawnError};
use h5i_export::NetworkChange;
use h5i_net::{Budgets, EventSink, HostResolver, Network, StartError, requests};
use h5i_policy::{LiveError, NetMode, NetPolicy, NetRule, ResolvedPolicy, Tier, Via};
use serde::{Deserialize, Serialize};

use crate::box_grants::check_private;
use crate::failure::{Failure, Kind};
use crate::receipt_log::Recorder;
use crate::running::spawn_failure;
use crate::shown::Shown;

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

    /// Starts the box's network while the rest of the box is built, and waits for that. Nothing of
    /// the box runs before both stand.
    ///
    /// # Errors
    /// Why the box could not be made, or which step of its network failed.
    pub(crate) fn open(
        self,
        session: &mut Session,
        policy: &ResolvedPolicy,
        sink: Arc<dyn EventSink>,
    ) -> Result<Network, Failure> {
        let sockets: Vec<OwnedFd> =
            self.0.into_iter().filter_map(|slot| session.take_socket(slot)).collect();
        let (budgets, resolver) = (Budgets::from(&policy.net.budget), Arc::new(HostResolver));
        let network = Network::start(sockets, &served(policy), budgets, resolver, sink);
        // Of a box that could not be made there may be no sockets either: its own failure comes first.
        session.handle().wait_ready().map_err(|e| spawn_failure(&SpawnError::Session(e)))?;
        network.map_err(|error| start_failure(&error))
    }
}

/// The network of a session that is alive, and the policy that holds.
#[derive(Debug)]
pub(crate) struct LiveNetwork {
    network: Network,
    policy: ResolvedPolicy,
}

/// A change that a person asks for, until the session ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Wish {
    /// One rule more.
    Allow { rule: NetRule },
    /// One rule less; what only it allowed is closed.
    Revoke { rule: NetRule },
    /// Everything is closed.
    Cut,
}

impl LiveNetwork {
    pub(crate) const fn new(network: Network, policy: ResolvedPolicy) -> Self {
        Self { network, policy }
    }

    /// What may be reached.
    pub(crate) fn rules(&self) -> &NetPolicy {
        &self.policy.net
    }

    /// Brings to record what was counted so far.
    pub(crate) fn report(&self) {
        // One that has ended has told all.
        self.network.report().ok();
    }

    /// Puts a change on record and in force; when it returns, open flows are judged by it as well.
    /// Yields the digest of the policy that holds from here on.
    ///
    /// # Errors
    /// A refusal, when the change means nothing; an I/O failure of the log or the gate, where
    /// nothing more is allowed than before.
    pub(crate) fn change(&mut self, wish: &Wish, recorder: &Recorder) -> Result<String, Failure> {
        let mut policy = self.policy.clone();
        let net = &mut policy.net;
        let (change, rule) = match wish {
            Wish::Allow { .. } if net.mode == NetMode::Open => {
                let message = "the box's network is open, where rules have no meaning";
                let name = recorder.box_name();
                return Err(Failure::told(Kind::Refused, message).hint(format!(
                    "h5i box cut {name} closes it; what it may reach can be given after that"
                )));
            }
            Wish::Allow { rule } => {
                net.mode = NetMode::Allow;
                net.allow.insert(rule.clone());
                if policy.rule_over_stand_in().is_some() {
                    let error = LiveError::StandIn { rule: rule.clone() };
                    return Err(Failure::new(Kind::Refused, &error)
                        .hint("allow ranges without 198.18.0.0/24"));
                }
                check_private(&policy, &HostResolver)?;
                (NetworkChange::Allow, Some(rule))
            }
            Wish::Revoke { rule } => {
                if !net.allow.remove(rule) {
                    let message = format!("the box has no rule `{rule}`");
                    return Err(Failure::told(Kind::NotFound, message)
                        .hint("a rule as `h5i box status` has it, or h5i box cut"));
                }
                (NetworkChange::Revoke, Some(rule))
            }
            Wish::Cut => {
                net.mode = NetMode::None;
                net.allow.clear();
                (NetworkChange::Cut, None)
            }
        };
        let digest = policy.digest().to_string();
        let rule = rule.map(ToString::to_string);
        recorder.network_changes(change, rule, &digest, policy.net.mode)?;
        let net = if *wish == Wish::Cut { policy.net.clone() } else { served(&policy) };
        self.network.replace(&net).map_err(|e| {
            Failure::new(Kind::Io, &e).hint(format!(
                "its network is closed; h5i box stop {} ends the session",
                recorder.box_name()
            ))
        })?;
        self.policy = policy;
        Ok(digest)
    }
}

fn start_failure(error: &StartError) -> Failure {
    Failure::new(Kind::Unavailable, error).hint("h5i box probe --tier supervised")
}

/// What the network lets pass: the policy's rules, and the services of grants by `intercept`, to
/// which nothing passes but what the broker takes.
fn served(policy: &ResolvedPolicy) -> NetPolicy {
    let mut net = policy.net.clone();
    let intercepted = policy.grants.values().filter(|grant| grant.via == Via::Intercept);
    // A host name and a port always make a rule.
    let rules = intercepted
        .filter_map(|grant| NetRule::new(&format!("{}:{}", grant.host, grant.port)).ok());
    let rules: Vec<NetRule> = rules.collect();
    if net.mode == NetMode::Open || rules.is_empty() {
        return net;
    }
    net.mode = NetMode::Allow;
    net.allow.extend(rules);
    net
}

/// What stands between the box and the networks of the host, in a few words.
pub(crate) const GATE_WORDS: &str = "nftables, resolver and relay, held by the host";

/// What the box may reach by its rules and by its grants, in words.
pub(crate) fn rules_words(net: &NetPolicy, grants: &[&str]) -> String {
    let mut reach: Vec<String> = match net.mode {
        NetMode::None => Vec::new(),
        NetMode::Allow => net.allow.iter().map(ToString::to_string).collect(),
        _ => vec!["every public address".to_owned()],
    };
    match (reach.is_empty(), grants) {
        (true, []) => return "nothing".to_owned(),
        (false, []) => {}
        (true, _) => reach.push(only_grants(grants)),
        (false, _) => reach.push(format!("and by grants {}", names(grants))),
    }
    reach.join(" ")
}

/// `only grants github npm`
pub(crate) fn only_grants(grants: &[&str]) -> String {
    format!("only grants {}", names(grants))
}

fn names(grants: &[&str]) -> String {
    let names: Vec<String> = grants.iter().map(|name| Shown::text(name).to_string()).collect();
    names.join(" ")
}
