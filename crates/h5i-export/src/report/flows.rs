//! What went over the network, and what was refused there.

use std::collections::{BTreeMap, BTreeSet};

use super::phrase::Phrase;
use super::text::{count, size};
use crate::record::{ByteText, Event, FlowVerdict, Record};

/// Programs that are named with a destination.
const PROGRAMS: usize = 5;

/// Flows to one destination.
#[derive(Debug, Default)]
struct Flows<'a> {
    times: u64,
    sent: u64,
    received: u64,
    unreachable: u64,
    /// What clients named in TLS or HTTP.
    named: BTreeSet<&'a str>,
    programs: BTreeSet<&'a [u8]>,
}

/// What a destination is called: its names, the address and port, and the rules.
type Destination<'a> = (&'a [String], String, &'a [String]);

/// The flows that were carried, those to one destination together.
pub(super) fn carried(records: &[Record]) -> Vec<Phrase> {
    let mut all: BTreeMap<Destination<'_>, Flows<'_>> = BTreeMap::new();
    let mut open: BTreeMap<u64, Destination<'_>> = BTreeMap::new();
    for record in records {
        match &record.event {
            Event::FlowStart { flow, protocol, address, port, names, rules, program, .. } => {
                let to = (&names[..], place(protocol, address, Some(*port)), &rules[..]);
                let flows = all.entry(to.clone()).or_default();
                flows.times += 1;
                flows.programs.extend(program.as_ref().map(|program| program.as_bytes()));
                open.insert(*flow, to);
            }
            Event::FlowEnd { flow, named, sent, received, verdict, .. } => {
                if let Some(flows) = open.remove(flow).and_then(|to| all.get_mut(&to)) {
                    flows.sent = flows.sent.saturating_add(*sent);
                    flows.received = flows.received.saturating_add(*received);
                    flows.unreachable += u64::from(*verdict == FlowVerdict::Unreachable);
                    flows.named.extend(named.as_deref());
                }
            }
            _ => {}
        }
    }
    let line = |((names, place, rules), flows): (Destination<'_>, Flows<'_>)| {
        let mut line = Phrase::new().words("Connected to ");
        if !names.is_empty() {
            line = line.code(names.join(", ")).words(" at ");
        }
        line = line.code(place).words(format!(
            ", {}, {} up, {} down",
            count(flows.times, "time", "times"),
            size(flows.sent),
            size(flows.received),
        ));
        // What it was allowed by is named already.
        let more: Vec<&str> =
            flows.named.iter().copied().filter(|name| !names.iter().any(|n| n == name)).collect();
        if !more.is_empty() {
            line = line.words(", for ").code(more.join(", "));
        }
        line = with_programs(line, &flows.programs, ", by ");
        if flows.unreachable > 0 {
            line = line.words(format!(" ({} could not be reached)", flows.unreachable));
        }
        match rules {
            [] => line.words("; the network is open."),
            rules => line.words("; allowed by ").code(rules.join(", ")).words("."),
        }
    };
    all.into_iter().map(line).collect()
}

/// How the rules were changed while the box ran, in their order.
pub(super) fn changes(records: &[Record]) -> Vec<Phrase> {
    let line = |record: &Record| {
        let Event::NetworkChange { change, rule, .. } = &record.event else { return None };
        let line = Phrase::new().words(format!("Changed while it ran: {} ", change.name()));
        Some(match rule {
            Some(rule) => line.code(rule.as_bytes()).words("."),
            None => line.words("(everything)."),
        })
    };
    records.iter().filter_map(line).collect()
}

/// How often something was refused, and to which programs, as far as that is known.
#[derive(Debug, Default)]
struct Times<'a> {
    times: u64,
    programs: BTreeSet<&'a [u8]>,
}

impl<'a> Times<'a> {
    fn add(&mut self, times: u64, program: Option<&'a ByteText>) {
        self.times = self.times.saturating_add(times);
        self.programs.extend(program.map(ByteText::as_bytes));
    }

    /// `, 6 times, first by …`: of what is only counted nobody knows whose it was.
    fn end(&self, line: Phrase) -> Phrase {
        let first = if self.times == 1 { ", by " } else { ", first by " };
        let line = line.words(format!(", {}", count(self.times, "time", "times")));
        with_programs(line, &self.programs, first).words(".")
    }
}

/// What was refused, equal refusals together: names, destinations, then flows that the relay closed.
pub(super) fn refused(records: &[Record]) -> Vec<Phrase> {
    let mut names: BTreeMap<&[u8], Times<'_>> = BTreeMap::new();
    let mut places: BTreeMap<String, Times<'_>> = BTreeMap::new();
    let mut closed: BTreeMap<(String, &str), Times<'_>> = BTreeMap::new();
    let mut open: BTreeMap<u64, (String, Option<&ByteText>)> = BTreeMap::new();
    for record in records {
        match &record.event {
            Event::RefusedName { name, count, program, .. } => {
                let name = name.as_ref().map_or(&b"others"[..], |name| name.as_bytes());
                names.entry(name).or_default().add(*count, program.as_ref());
            }
            Event::RefusedAddress { protocol, address, port, count, program, .. } => {
                let address = address.as_deref().unwrap_or("others");
                let times = places.entry(place(protocol, address, *port)).or_default();
                times.add(*count, program.as_ref());
            }
            Event::RefusedFlow { protocol, address, port, reason, program, .. } => {
                let address = address.as_deref().unwrap_or("the relay");
                let times = closed.entry((place(protocol, address, *port), reason)).or_default();
                times.add(1, program.as_ref());
            }
            Event::FlowStart { flow, protocol, address, port, program, .. } => {
                open.insert(*flow, (place(protocol, address, Some(*port)), program.as_ref()));
            }
            Event::FlowEnd { flow, reason, .. } => {
                let (place, program) = open.remove(flow).unwrap_or_default();
                if let Some(reason) = reason {
                    closed.entry((place, reason)).or_default().add(1, program);
                }
            }
            _ => {}
        }
    }
    let names = names
        .into_iter()
        .map(|(name, n)| n.end(Phrase::new().words("Refused: the name ").code(name)));
    let places =
        places.into_iter().map(|(place, n)| n.end(Phrase::new().words("Refused: ").code(place)));
    let closed = closed.into_iter().map(|((place, reason), n)| {
        let line = Phrase::new().words("Closed: ").code(place).words(" (").foreign(reason);
        n.end(line.words(")"))
    });
    names.chain(places).chain(closed).collect()
}

/// The first few of them, and how many more.
fn with_programs(mut line: Phrase, programs: &BTreeSet<&[u8]>, first: &str) -> Phrase {
    for (at, program) in programs.iter().take(PROGRAMS).enumerate() {
        line = line.words(if at == 0 { first } else { ", " }).code(*program);
    }
    match programs.len().saturating_sub(PROGRAMS) {
        0 => line,
        more => line.words(format!(" and {more} more")),
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
