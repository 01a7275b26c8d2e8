//! What a box asked for on the network, as the rules that would have allowed it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use h5i_export::{Event, NetworkChange};
use h5i_net::HOST_V4;
use h5i_policy::{NetPolicy, NetRule, NetRuleError, NetTarget};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::receipt_log::records;
use crate::second_look::second_look;
use crate::store::StoredBox;

mod started;

use started::Started;

/// Questions for the addresses of a name, by the numbers of their records: A, AAAA, HTTPS, and 0
/// where several were counted together.
const FOR_ADDRESSES: [u16; 4] = [0, 1, 28, 65];

/// Programs that are kept of one rule, and those of them that a line names.
const ASKERS: usize = 16;
const NAMED: usize = 3;

/// The rules that a box would have needed beside its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Learned {
    /// The rules, names first.
    pub(crate) rules: BTreeSet<NetRule>,
    /// What was asked for that no rule can allow, with the reason.
    pub(crate) beyond: BTreeSet<String>,
    /// Rules by a name that was only spoken on a flow, whose address was never asked for: where that
    /// flow went.
    pub(crate) spoken: BTreeMap<NetRule, String>,
    /// The programs that asked for what a rule allows, as far as is known, by the names that they were
    /// started by. The names are the box's.
    pub(crate) askers: BTreeMap<NetRule, BTreeSet<String>>,
}

/// Learns from the records of a box.
///
/// # Errors
/// A failure when they can't be read.
pub(crate) fn learned(stored: &StoredBox, net: &NetPolicy) -> Result<Learned, Failure> {
    let mut lesson = Lesson::default();
    // What comes after a damaged record is the log's matter: `receipt verify` says it.
    for line in records(&stored.host_dir())?.map_while(Result::ok) {
        lesson.take_in(&line.record.event);
    }
    Ok(lesson.learned(net))
}

#[derive(Debug, Default)]
struct Lesson {
    learned: Learned,
    /// The name that each address was last given for.
    names: BTreeMap<String, String>,
    /// The names whose addresses were asked for.
    asked: BTreeSet<String>,
    /// Flows without an end so far.
    flows: BTreeMap<u64, Flow>,
    started: Started,
}

/// A flow that was let out.
#[derive(Debug)]
struct Flow {
    address: String,
    port: u16,
    protocol: String,
    names: Vec<String>,
    /// Whether a rule allowed it.
    listed: bool,
    by: Option<String>,
}

impl Lesson {
    fn take_in(&mut self, event: &Event) {
        match event {
            Event::Resolved { name, addresses, .. } => {
                self.asked.insert(name.to_ascii_lowercase());
                let new = addresses.iter().map(|address| (address.clone(), name.clone()));
                self.names.extend(new);
            }
            Event::ExecAttempt { pid, path, argv, .. } => self.started.asks(*pid, path, argv),
            Event::ProcessEnd { pid, .. } => self.started.ends(*pid),
            Event::RefusedName { name: Some(name), record, pid, program, .. } => {
                let text = name.to_string();
                self.asked.insert(text.to_ascii_lowercase());
                let by = self.started.name(*pid, program.as_ref());
                match FOR_ADDRESSES.contains(record) {
                    // A name is asked for without a port.
                    true => drop(self.need(&text, None, "tcp", by)),
                    false => {
                        let why = "no rule is for records but addresses";
                        self.learned.beyond.insert(format!("{text} (record {record}): {why}"));
                    }
                }
            }
            Event::RefusedAddress {
                protocol, address: Some(address), port, pid, program, ..
            } => {
                if let Some(port) = port {
                    let by = self.started.name(*pid, program.as_ref());
                    self.need_at(address, *port, protocol, by);
                } else {
                    let why = "no rule is for protocols but TCP and UDP";
                    self.learned.beyond.insert(format!("{address} {protocol}: {why}"));
                }
            }
            Event::FlowStart { flow, protocol, address, port, names, rules, pid, program } => {
                let by = self.started.name(*pid, program.as_ref());
                let (address, protocol) = (address.clone(), protocol.clone());
                let (names, listed) = (names.clone(), !rules.is_empty());
                let started = Flow { address, port: *port, protocol, names, listed, by };
                // One of that number which has no end was cut off with its session.
                if let Some(cut_off) = self.flows.insert(*flow, started) {
                    self.flow(&cut_off, None);
                }
            }
            Event::FlowEnd { flow, named, .. } => {
                if let Some(started) = self.flows.remove(flow) {
                    self.flow(&started, named.as_ref());
                }
            }
            Event::NetworkChange { change, rule: Some(rule), .. } => {
                if let Ok(rule) = NetRule::new(rule) {
                    match change {
                        NetworkChange::Allow => drop(self.learned.rules.insert(rule)),
                        _ => drop(self.learned.rules.remove(&rule)),
                    }
                }
            }
            _ => {}
        }
    }

    /// A flow that no rule allowed, because the network is open, or that named another host than its
    /// rule.
    fn flow(&mut self, flow: &Flow, named: Option<&String>) {
        match named.or_else(|| flow.names.first()) {
            Some(name) if !flow.listed || !flow.names.contains(name) => {
                let rule = self.need(name, Some(flow.port), &flow.protocol, flow.by.clone());
                if let Some(rule) = rule.filter(|_| !flow.names.contains(name)) {
                    let place = flow.names.first().unwrap_or(&flow.address);
                    let place = format!("{place}:{}", flow.port);
                    self.learned.spoken.entry(rule).or_insert(place);
                }
            }
            None if !flow.listed => {
                self.need_at(&flow.address, flow.port, &flow.protocol, flow.by.clone());
            }
            _ => {}
        }
    }

    fn need_at(&mut self, address: &str, port: u16, protocol: &str, by: Option<String>) {
        let place = match self.names.get(address) {
            Some(name) => name.clone(),
            None if address == HOST_V4.to_string() => "host".to_owned(),
            None if address.contains(':') => format!("[{address}]"),
            None => address.to_owned(),
        };
        drop(self.need(&place, Some(port), protocol, by));
    }

    fn need(
        &mut self,
        place: &str,
        port: Option<u16>,
        protocol: &str,
        by: Option<String>,
    ) -> Option<NetRule> {
        let port = port.map_or_else(String::new, |port| format!(":{port}"));
        let protocol = if protocol == "udp" { "/udp" } else { "" };
        let text = format!("{place}{port}{protocol}");
        match NetRule::new(&text) {
            Ok(rule) => {
                self.learned.rules.insert(rule.clone());
                let askers = self.learned.askers.entry(rule.clone()).or_default();
                askers.extend(by.filter(|_| askers.len() < ASKERS));
                Some(rule)
            }
            Err(error) => {
                self.learned.beyond.insert(format!("{text}: {}", why(&error)));
                None
            }
        }
    }

    /// What the box's own rules do not allow.
    fn learned(mut self, net: &NetPolicy) -> Learned {
        for going in std::mem::take(&mut self.flows).into_values() {
            self.flow(&going, None);
        }
        let Learned { mut rules, beyond, mut spoken, mut askers } = self.learned;
        rules.retain(|rule| !net.allow.iter().any(|own| own.covers(rule)));
        let asked = |rule: &NetRule| match rule.target() {
            NetTarget::Name(name) => self.asked.contains(name.as_str()),
            _ => true,
        };
        spoken.retain(|rule, _| rules.contains(rule) && !asked(rule));
        askers.retain(|rule, by| rules.contains(rule) && !by.is_empty());
        Learned { rules, beyond, spoken, askers }
    }
}

/// Why a text is no rule, without the text itself.
fn why(error: &NetRuleError) -> String {
    match error {
        NetRuleError::HostWithoutPort { .. } => {
            "it is allowed by its ports, as host:PORT".to_owned()
        }
        NetRuleError::Name { source, .. } => source.to_string(),
        NetRuleError::Range { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

impl Learned {
    /// Whether no rule would have been needed.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// What a person should look at twice: a rule, and why.
    pub(crate) fn remarks(&self) -> Vec<(&NetRule, String)> {
        let remark = |rule| {
            let spoken = |place: &String| {
                format!(
                    "the box never asked for its address, it only named it on a flow to {place}"
                )
            };
            let why = second_look(rule).map(str::to_owned);
            Some((rule, why.or_else(|| self.spoken.get(rule).map(spoken))?))
        };
        self.rules.iter().filter_map(remark).collect()
    }

    /// The rules as options of the command line.
    pub(crate) fn options(&self) -> String {
        let options: Vec<String> =
            self.rules.iter().map(|rule| format!("--allow {rule}")).collect();
        options.join(" ")
    }

    /// All of it for programs.
    pub(crate) fn data(&self, profile: &str) -> Value {
        let rules: Vec<String> = self.rules.iter().map(ToString::to_string).collect();
        let toml = (!self.is_empty()).then(|| self.toml(profile));
        let remarks = remarks_data(&self.remarks());
        let askers: BTreeMap<String, &BTreeSet<String>> =
            self.askers.iter().map(|(rule, by)| (rule.to_string(), by)).collect();
        json!({
            "rules": rules,
            "beyond": self.beyond,
            "remarks": remarks,
            "askers": askers,
            "toml": toml,
        })
    }

    /// The rules as a part of a policy document, each with who asked for what it allows.
    pub(crate) fn toml(&self, profile: &str) -> String {
        let mut text = format!("[profile.{profile}.net]\nmode = \"allow\"\nallow = [\n");
        for rule in &self.rules {
            // Writing to a String can't fail.
            write!(text, "  \"{rule}\",").ok();
            if let Some(by) = self.askers.get(rule) {
                let named: Vec<&str> = by.iter().take(NAMED).map(String::as_str).collect();
                let more = match by.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                write!(text, " # asked by {}{more}", named.join(", ")).ok();
            }
            text.push('\n');
        }
        text.push_str("]\n");
        text
    }
}

/// Remarks for programs.
pub(crate) fn remarks_data(remarks: &[(&NetRule, String)]) -> Value {
    remarks.iter().map(|(rule, why)| json!({ "rule": rule, "why": why })).collect()
}

#[cfg(test)]
mod tests;
