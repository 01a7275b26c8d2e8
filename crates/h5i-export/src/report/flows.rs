//! What went over the network, and what was refused there.

use std::collections::BTreeMap;

use super::phrase::Phrase;
use super::tally::{Kept, Lines, Tally};
use super::text::{count, size};
use crate::record::{ByteText, Event, FlowVerdict, Record};

/// Programs that are named with a destination.
const PROGRAMS: usize = 5;
/// Destinations that are kept apart: the first ones in their order.
const DESTINATIONS: usize = 1024;
/// Names and programs of one destination that are kept apart.
const OF_ONE: usize = 64;

/// Flows to one destination.
#[derive(Debug, Default)]
struct Flows {
    times: u64,
    sent: u64,
    received: u64,
    unreachable: u64,
    /// What clients named in TLS or HTTP.
    named: Tally<String, OF_ONE>,
    programs: Programs,
}

type Programs = Tally<Kept, OF_ONE>;

/// What a destination is called: its names, the address and port, and the rules.
type Destination = (Vec<String>, String, Vec<String>);

/// What records tell of the network.
#[derive(Debug, Default)]
pub(super) struct Network {
    carried: BTreeMap<Destination, Flows>,
    /// Flows to destinations that are not kept apart.
    beyond: u64,
    /// Flows without an end so far.
    open: BTreeMap<u64, (Destination, Option<Kept>)>,
    changes: Lines,
    names: Refusals<Kept>,
    places: Refusals<String>,
    closed: Refusals<(String, String)>,
}

/// How often things were refused, and to which programs, as far as that is known.
#[derive(Debug)]
struct Refusals<K> {
    times: Tally<K>,
    programs: BTreeMap<K, Programs>,
}

impl Network {
    pub(super) fn take(&mut self, record: &Record) {
        match &record.event {
            Event::FlowStart { flow, protocol, address, port, names, rules, program, .. } => {
                let to = (names.clone(), place(protocol, address, Some(*port)), rules.clone());
                let flows = self.carried.entry(to.clone()).or_default();
                flows.times += 1;
                let program = program.as_ref().map(|program| Kept::new(program.as_bytes()));
                if let Some(program) = &program {
                    flows.programs.add(program.clone(), 1);
                }
                if self.carried.len() > DESTINATIONS
                    && let Some((_, last)) = self.carried.pop_last()
                {
                    self.beyond += last.times;
                }
                self.open.insert(*flow, (to, program));
            }
            Event::FlowEnd { flow, named, sent, received, verdict, reason, .. } => {
                let (to, program) = self.open.remove(flow).unzip();
                if let Some(reason) = reason {
                    let place = to.as_ref().map_or_else(String::new, |(_, place, _)| place.clone());
                    self.closed.add((place, reason.clone()), 1, program.flatten());
                }
                if let Some(flows) = to.and_then(|to| self.carried.get_mut(&to)) {
                    flows.sent = flows.sent.saturating_add(*sent);
                    flows.received = flows.received.saturating_add(*received);
                    flows.unreachable += u64::from(*verdict == FlowVerdict::Unreachable);
                    if let Some(named) = named {
                        flows.named.add(named.clone(), 1);
                    }
                }
            }
            Event::NetworkChange { change, rule, .. } => self.changes.push(|| {
                let line = Phrase::new().words(format!("Changed while it ran: {} ", change.name()));
                match rule {
                    Some(rule) => line.code(rule.as_bytes()).words("."),
                    None => line.words("(everything)."),
                }
            }),
            Event::RefusedName { name, count, program, .. } => {
                let name = name.as_ref().map_or(&b"others"[..], |name| name.as_bytes());
                self.names.add(Kept::new(name), *count, program_of(program.as_ref()));
            }
            Event::RefusedAddress { protocol, address, port, count, program, .. } => {
                let address = address.as_deref().unwrap_or("others");
                let place = place(protocol, address, *port);
                self.places.add(place, *count, program_of(program.as_ref()));
            }
            Event::RefusedFlow { protocol, address, port, reason, program, .. } => {
                let address = address.as_deref().unwrap_or("the relay");
                let what = (place(protocol, address, *port), reason.clone());
                self.closed.add(what, 1, program_of(program.as_ref()));
            }
            _ => {}
        }
    }

    /// The flows that were carried, those to one destination together.
    pub(super) fn carried(&self) -> Lines {
        let lines = self.carried.iter().map(|(to, flows)| flows.line(to)).collect();
        Lines { lines, more: self.beyond }
    }

    /// How the rules were changed while the box ran, in their order.
    pub(super) fn changes(&self) -> Lines {
        self.changes.clone()
    }

    /// What was refused, equal refusals together: names, destinations, then flows that the relay
    /// closed.
    pub(super) fn refused(&self) -> Lines {
        let mut lines = self
            .names
            .lines(|name| Phrase::new().words("Refused: the name ").code(name.as_bytes()));
        lines.append(
            self.places.lines(|place| Phrase::new().words("Refused: ").code(place.as_bytes())),
        );
        lines.append(self.closed.lines(|(place, reason)| {
            let line = Phrase::new().words("Closed: ").code(place.as_bytes());
            line.words(" (").foreign(reason).words(")")
        }));
        lines
    }
}

impl<K> Default for Refusals<K> {
    fn default() -> Self {
        Self { times: Tally::default(), programs: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Refusals<K> {
    fn add(&mut self, what: K, times: u64, program: Option<Kept>) {
        if let Some(program) = program {
            self.programs.entry(what.clone()).or_default().add(program, 1);
            if self.programs.len() > DESTINATIONS {
                self.programs.pop_last();
            }
        }
        self.times.add(what, times);
    }

    /// `…, 6 times, first by …`: of what is only counted nobody knows whose it was.
    fn lines(&self, line: impl Fn(&K) -> Phrase) -> Lines {
        self.times.lines(|what, times| {
            let line = line(what).words(format!(", {}", count(times, "time", "times")));
            let first = if times == 1 { ", by " } else { ", first by " };
            match self.programs.get(what) {
                Some(programs) => with_programs(line, programs, first),
                None => line,
            }
            .words(".")
        })
    }
}

fn program_of(program: Option<&ByteText>) -> Option<Kept> {
    program.map(|program| Kept::new(program.as_bytes()))
}

/// The first few of them, and how many more.
fn with_programs(mut line: Phrase, programs: &Programs, first: &str) -> Phrase {
    for (at, (program, _)) in programs.kinds().take(PROGRAMS).enumerate() {
        line = line.words(if at == 0 { first } else { ", " }).code(program.as_bytes());
    }
    match programs.number().saturating_sub(PROGRAMS as u64) {
        0 => line,
        more => line.words(format!(" and {more} more")),
    }
}

impl Flows {
    fn line(&self, (names, place, rules): &Destination) -> Phrase {
        let mut line = Phrase::new().words("Connected to ");
        if !names.is_empty() {
            line = line.code(names.join(", ")).words(" at ");
        }
        line = line.code(place.as_bytes()).words(format!(
            ", {}, {} up, {} down",
            count(self.times, "time", "times"),
            size(self.sent),
            size(self.received),
        ));
        // What it was allowed by is named already.
        let named = self.named.kinds().map(|(name, _)| name.as_str());
        let more: Vec<&str> = named.filter(|name| !names.iter().any(|n| n == name)).collect();
        if !more.is_empty() {
            line = line.words(", for ").code(more.join(", "));
        }
        line = with_programs(line, &self.programs, ", by ");
        if self.unreachable > 0 {
            line = line.words(format!(" ({} could not be reached)", self.unreachable));
        }
        match &rules[..] {
            [] => line.words("; the network is open."),
            rules => line.words("; allowed by ").code(rules.join(", ")).words("."),
        }
    }
}

/// `192.0.2.1:443`, `[2001:db8::1]:443/udp`, `192.0.2.1 icmp`.
fn place(protocol: &str, address: &str, port: Option<u16>) -> String {
    let Some(port) = port else { return format!("{address} {protocol}") };
    let address = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    match protocol {
        "tcp" => format!("{address}:{port}"),
        other => format!("{address}:{port}/{other}"),
    }
}
