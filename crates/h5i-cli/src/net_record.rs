//! What a box's network did, as records, and what of it is told at the end of a run.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use h5i_confine::SocketHolder;
use h5i_export::{ByteText, Event, FlowVerdict};
use h5i_net::{self as net, Basis, HOST_V4, RefusedProtocol, Verdict};
use h5i_policy::{NetMode, NetRule, Protocol};
use serde::{Deserialize, Serialize};

/// Flows and kinds of refusals that are told with a run; the log has all.
const TOLD: usize = 1024;
/// Addresses whose names are remembered, for the words of a refusal.
const NAMED: usize = 1024;
/// Programs that are told with a kind of refusal.
const PROGRAMS: usize = 16;

/// What a run did on the network, as far as it is told at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetDeeds {
    /// Its flows, in the order of their beginning.
    pub flows: Vec<Flow>,
    /// What it was refused; equal ones counted together.
    pub refused: Vec<NetRefused>,
    /// Flows and kinds of refusals that are not told.
    pub more: u64,
}

/// A flow that was let out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Its number in the session.
    pub flow: u64,
    /// `tcp` or `udp`.
    pub protocol: String,
    /// Where the box wanted to go.
    pub address: String,
    /// At which port.
    pub port: u16,
    /// The names that are why it is allowed.
    pub names: Vec<String>,
    /// The rules that allow it.
    pub rules: Vec<String>,
    /// The process that opened it, by its id in the box, where that is known.
    pub pid: Option<u32>,
    /// Its executable.
    pub program: Option<ByteText>,
    /// The name that the client named in TLS or HTTP.
    pub named: Option<String>,
    /// Bytes from the box.
    pub sent: u64,
    /// Bytes to the box.
    pub received: u64,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// How it ended: a word of the record, or `open`.
    pub verdict: String,
    /// Why it was refused.
    pub reason: Option<String>,
}

/// A kind of thing that a run was refused on the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetRefused {
    /// What it was.
    pub kind: RefusedKind,
    /// The name, or the destination as a rule would have it.
    pub what: String,
    /// How often.
    pub count: u64,
    /// Why.
    pub reason: String,
    /// The rule that would have allowed it, where one would.
    pub allowed_by: Option<String>,
    /// The executables that tried, as far as is known: of names and connections those that were the
    /// first to.
    pub programs: Vec<ByteText>,
}

/// What was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RefusedKind {
    /// The resolver's answer to a name.
    Name,
    /// A packet to a destination, at the gate.
    Connection,
    /// A connection that the relay closed.
    Flow,
}

impl RefusedKind {
    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Connection => "connection",
            Self::Flow => "flow",
        }
    }
}

/// What a record says was refused on the network, in words.
pub(crate) fn refused_place(event: &Event) -> Option<String> {
    let place = |address: &Option<String>, port: &Option<u16>, protocol: &str| {
        let address = address.as_deref().unwrap_or("others");
        let port = port.map_or_else(String::new, |port| format!(" port {port}"));
        format!("{protocol} to {address}{port}")
    };
    match event {
        Event::RefusedName { name: Some(name), .. } => Some(format!("the name {name}")),
        Event::RefusedName { name: None, .. } => Some("other names".to_owned()),
        Event::RefusedAddress { protocol, address, port, .. }
        | Event::RefusedFlow { protocol, address, port, .. } => {
            Some(place(address, port, protocol))
        }
        Event::FlowEnd { reason: Some(reason), flow, .. } => Some(format!("flow {flow}: {reason}")),
        _ => None,
    }
}

/// The network of a session, run by run.
#[derive(Debug)]
pub(crate) struct NetRecord {
    mode: NetMode,
    runs: BTreeMap<u64, NetDeeds>,
    /// Of each flow that goes, the run that had it.
    going: BTreeMap<u64, Option<u64>>,
    names: BTreeMap<IpAddr, String>,
}

const NOT_LISTED: &str = "no rule lists it";
const NOT_PUBLIC: &str = "it is not public";
const NOT_TCP: &str = "an open network lets out TCP alone";

impl NetRecord {
    /// For a network of this mode.
    pub(crate) fn new(mode: NetMode) -> Self {
        let (runs, going, names) = Default::default();
        Self { mode, runs, going, names }
    }

    /// The network is of another mode from here on.
    pub(crate) fn is_of(&mut self, mode: NetMode) {
        self.mode = mode;
    }

    /// What a run did; told once.
    pub(crate) fn take(&mut self, run: u64) -> NetDeeds {
        self.runs.remove(&run).unwrap_or_default()
    }

    /// The record of an observation, and the run that it belongs to: the one of `holder`, the process
    /// that holds the box's socket, or else `alone`, the one that goes, if it is only one.
    pub(crate) fn take_in(
        &mut self,
        event: net::Event,
        alone: Option<u64>,
        holder: Option<SocketHolder>,
    ) -> Option<(Option<u64>, Event)> {
        let run = holder.as_ref().and_then(|holder| holder.run).or(alone);
        let (pid, program) = opener(holder);
        let event = match event {
            net::Event::FlowOpened { flow, destination, protocol, basis, .. } => {
                let event = self.opened((flow, destination, protocol), &basis, run, (pid, program));
                return Some((run, event));
            }
            net::Event::FlowEnded(ended) => return Some(self.ended(ended)),
            net::Event::FlowRefused { destination, protocol, reason, .. } => {
                let what = match destination {
                    Some(to) => self.rule(to.ip(), to.port(), protocol_name(protocol)),
                    None => "the relay".to_owned(),
                };
                let kind = RefusedKind::Flow;
                self.refuse(run, kind, (what, 1), (&reason.to_string(), None), program.as_ref());
                let event = Event::RefusedFlow {
                    protocol: protocol_name(protocol).to_owned(),
                    address: destination.map(|to| to.ip().to_string()),
                    port: destination.map(|to| to.port()),
                    reason: reason.to_string(),
                    pid,
                    program,
                    used: reason.spent().map(|spent| spent.used),
                    allowed: reason.spent().map(|spent| spent.allowed),
                };
                return Some((run, event));
            }
            net::Event::RefusedAddress { address, protocol, count, .. } => {
                let (word, port) = refused_protocol(protocol);
                let (what, rule) = match port {
                    Some(port) => {
                        let rule = self.rule(address, port, &word);
                        (rule.clone(), Some(rule))
                    }
                    None => (format!("{address} {word}"), None),
                };
                let kind = RefusedKind::Connection;
                self.refuse_unlisted(run, kind, (what, count), rule, program.as_ref());
                let address = Some(address.to_string());
                let event =
                    Event::RefusedAddress { protocol: word, address, port, count, pid, program };
                return Some((run, event));
            }
            net::Event::MoreRefusedAddresses { protocol, count } => {
                let (protocol, _) = refused_protocol(protocol);
                let what = format!("others {protocol}");
                self.refuse_unlisted(alone, RefusedKind::Connection, (what, count), None, None);
                let (address, port) = (None, None);
                Event::RefusedAddress { protocol, address, port, count, pid, program }
            }
            net::Event::RefusedName { name, record, count, .. } => {
                let told = (name.clone(), count);
                // In full: a rule without a port means 443, and `host` has none without one.
                let rule = NetRule::new(&name).ok().map(|rule| rule.to_string());
                self.refuse_unlisted(run, RefusedKind::Name, told, rule, program.as_ref());
                let name = Some(ByteText::new(name));
                return Some((run, Event::RefusedName { name, record, count, pid, program }));
            }
            net::Event::MoreRefusedNames { count } => {
                let told = ("others".to_owned(), count);
                self.refuse_unlisted(alone, RefusedKind::Name, told, None, None);
                Event::RefusedName { name: None, record: 0, count, pid, program }
            }
            net::Event::Resolved { name, pinned, withheld } => {
                for address in &pinned {
                    if self.names.len() < NAMED {
                        self.names.insert(*address, name.to_string());
                    }
                }
                let texts = |all: &[IpAddr]| all.iter().map(ToString::to_string).collect();
                let (addresses, withheld) = (texts(&pinned), texts(&withheld));
                Event::Resolved { name: name.to_string(), addresses, withheld }
            }
            net::Event::Unresolved { name } => {
                let (addresses, withheld) = (Vec::new(), Vec::new());
                Event::Resolved { name: name.to_string(), addresses, withheld }
            }
            _ => return None,
        };
        Some((alone, event))
    }

    fn opened(
        &mut self,
        (flow, destination, protocol): (u64, SocketAddr, Protocol),
        basis: &Basis,
        run: Option<u64>,
        (pid, program): (Option<u32>, Option<ByteText>),
    ) -> Event {
        let (names, rules) = match basis {
            Basis::Address(rule) => (Vec::new(), vec![rule.to_string()]),
            Basis::Host(rule) => (vec!["host".to_owned()], vec![rule.to_string()]),
            Basis::Names(all) => {
                all.iter().map(|(name, rule)| (name.to_string(), rule.to_string())).unzip()
            }
            Basis::Open(names) => (names.iter().map(ToString::to_string).collect(), Vec::new()),
            _ => (Vec::new(), Vec::new()),
        };
        self.going.insert(flow, run);
        let protocol = protocol_name(protocol).to_owned();
        let (address, port) = (destination.ip().to_string(), destination.port());
        let deeds = run.map(|run| self.runs.entry(run).or_default());
        match deeds {
            Some(deeds) if deeds.flows.len() < TOLD => deeds.flows.push(Flow {
                flow,
                protocol: protocol.clone(),
                address: address.clone(),
                port,
                names: names.clone(),
                rules: rules.clone(),
                pid,
                program: program.clone(),
                named: None,
                sent: 0,
                received: 0,
                duration_ms: 0,
                verdict: "open".to_owned(),
                reason: None,
            }),
            Some(deeds) => deeds.more += 1,
            None => {}
        }
        Event::FlowStart { flow, protocol, address, port, names, rules, pid, program }
    }

    fn ended(&mut self, ended: net::FlowEnded) -> (Option<u64>, Event) {
        let (verdict, reason, errno) = match ended.verdict {
            Verdict::Done => (FlowVerdict::Done, None, None),
            Verdict::Unreachable(errno) => (FlowVerdict::Unreachable, None, Some(errno)),
            Verdict::Refused(net::Refusal::Ended) => (FlowVerdict::Ended, None, None),
            Verdict::Refused(why) => (FlowVerdict::Refused, Some(why.to_string()), None),
            _ => (FlowVerdict::Reset, None, None),
        };
        let spent = match ended.verdict {
            Verdict::Refused(why) => why.spent(),
            _ => None,
        };
        let (used, allowed) = (spent.map(|spent| spent.used), spent.map(|spent| spent.allowed));
        let run = self.going.remove(&ended.flow).flatten();
        let named = ended.name.map(|name| name.to_string());
        let duration_ms = u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX);
        // That of a run which has been told is on record only.
        let deeds = run.and_then(|run| self.runs.get_mut(&run));
        let told = deeds.and_then(|deeds| deeds.flows.iter_mut().find(|f| f.flow == ended.flow));
        let mut program = None;
        if let Some(told) = told {
            program.clone_from(&told.program);
            told.named.clone_from(&named);
            (told.sent, told.received) = (ended.sent, ended.received);
            told.duration_ms = duration_ms;
            verdict.name().clone_into(&mut told.verdict);
            told.reason.clone_from(&reason);
        }
        if let Some(reason) = &reason {
            let port = ended.destination.port();
            let what = self.rule(ended.destination.ip(), port, protocol_name(ended.protocol));
            self.refuse(run, RefusedKind::Flow, (what, 1), (reason, None), program.as_ref());
        }
        let (flow, sent, received) = (ended.flow, ended.sent, ended.received);
        let event = Event::FlowEnd {
            flow,
            named,
            sent,
            received,
            duration_ms,
            verdict,
            reason,
            errno,
            used,
            allowed,
        };
        (run, event)
    }

    /// The rule that lists a destination, by its name where it has one.
    fn rule(&self, address: IpAddr, port: u16, protocol: &str) -> String {
        let place = match (self.names.get(&address), address) {
            (_, address) if address == IpAddr::V4(HOST_V4) => "host".to_owned(),
            (Some(name), _) => name.clone(),
            (None, IpAddr::V4(address)) => address.to_string(),
            (None, IpAddr::V6(address)) => format!("[{address}]"),
        };
        match protocol {
            "tcp" => format!("{place}:{port}"),
            other => format!("{place}:{port}/{other}"),
        }
    }

    fn refuse_unlisted(
        &mut self,
        run: Option<u64>,
        kind: RefusedKind,
        told: (String, u64),
        rule: Option<String>,
        program: Option<&ByteText>,
    ) {
        // In an open network rules have no meaning.
        match self.mode {
            NetMode::Open if told.0.ends_with("/udp") || told.0.contains(' ') => {
                self.refuse(run, kind, told, (NOT_TCP, None), program);
            }
            NetMode::Open => self.refuse(run, kind, told, (NOT_PUBLIC, None), program),
            _ => self.refuse(run, kind, told, (NOT_LISTED, rule), program),
        }
    }

    fn refuse(
        &mut self,
        run: Option<u64>,
        kind: RefusedKind,
        (what, count): (String, u64),
        (reason, allowed_by): (&str, Option<String>),
        program: Option<&ByteText>,
    ) {
        let Some(run) = run else { return };
        let deeds = self.runs.entry(run).or_default();
        let room = deeds.refused.len() < TOLD;
        let same = |told: &&mut NetRefused| {
            told.kind == kind && told.what == what && told.reason == reason
        };
        match deeds.refused.iter_mut().find(same) {
            Some(told) => {
                told.count += count;
                let new = program.filter(|program| !told.programs.contains(program));
                let room = PROGRAMS.saturating_sub(told.programs.len());
                told.programs.extend(new.cloned().into_iter().take(room));
            }
            None if room => {
                let (reason, programs) =
                    (reason.to_owned(), program.cloned().into_iter().collect());
                deeds.refused.push(NetRefused { kind, what, count, reason, allowed_by, programs });
            }
            None => deeds.more += 1,
        }
    }
}

/// The process that opened a flow, and its executable where that could be seen.
fn opener(holder: Option<SocketHolder>) -> (Option<u32>, Option<ByteText>) {
    let Some(holder) = holder else { return (None, None) };
    let program = holder.program;
    (Some(holder.pid), (!program.is_empty()).then(|| ByteText::new(program)))
}

const fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Udp => "udp",
        _ => "tcp",
    }
}

fn refused_protocol(protocol: RefusedProtocol) -> (String, Option<u16>) {
    match protocol {
        RefusedProtocol::Tcp(port) => ("tcp".to_owned(), Some(port)),
        RefusedProtocol::Udp(port) => ("udp".to_owned(), Some(port)),
        RefusedProtocol::Icmp => ("icmp".to_owned(), None),
        RefusedProtocol::Other(number) => (format!("ip-{number}"), None),
        _ => ("ip".to_owned(), None),
    }
}
