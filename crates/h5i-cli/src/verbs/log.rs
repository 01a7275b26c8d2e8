//! `h5i box log`

use std::io::{BufRead as _, BufReader};

use h5i_export::{Event, Lane, Record, Timestamp};
use serde_json::Value;

use super::{Answer, Reader, find};
use crate::args::{self, LogArgs, Since};
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::path_error::{Action, PathError};
use crate::receipt_log::LOG;
use crate::shown::Shown;
use crate::store::LockError;

pub(super) fn log(caller: &Caller, args: &LogArgs) -> Result<Answer, Failure> {
    let stored = find(caller, &args.name)?;
    let path = stored.host_dir().join(LOG);
    let file = std::fs::File::open(&path).map_err(PathError::at(Action::Open, &path))?;
    let mut reader = BufReader::new(file);
    let mut rest = Vec::new();
    let from = from(args.since);
    loop {
        // Asked before reading: a session that ends in between is read to its end once more.
        let alive = matches!(stored.lock(), Err(LockError::Busy));
        while reader.read_until(b'\n', &mut rest).map_err(PathError::at(Action::Read, &path))? > 0 {
            // A line that is being written is taken up again with its rest.
            if rest.last() != Some(&b'\n') {
                break;
            }
            rest.pop();
            if show(&rest, args, from)? == Reader::Gone {
                return Answer::new(Value::Null, String::new());
            }
            rest.clear();
        }
        if !(args.follow && alive) {
            break;
        }
        crate::watch_file::wait_for_change(&path)?;
    }
    Answer::new(Value::Null, String::new())
}

/// The moment from which on records are shown.
fn from(since: Option<Since>) -> Option<Timestamp> {
    match since? {
        Since::Moment(moment) => Some(moment),
        Since::Ago(span) => {
            let now = Timestamp::now().unix_micros();
            Some(Timestamp::from_unix_micros(now.saturating_sub(span.count().saturating_mul(1000))))
        }
    }
}

fn show(line: &[u8], args: &LogArgs, from: Option<Timestamp>) -> Result<Reader, Failure> {
    let record = Record::from_line(line).map_err(|e| Failure::new(Kind::Corrupt, &e))?;
    let lane = args.lane.is_none_or(|lane| same(lane, record.lane));
    let denied = !args.denied || is_denial(&record.event);
    if lane && denied && from.is_none_or(|from| record.at >= from) {
        if args.output.json {
            return super::print_line(&String::from_utf8_lossy(line));
        }
        return super::print_line(&sentence(&record));
    }
    Ok(Reader::There)
}

/// Whether something was refused.
fn is_denial(event: &Event) -> bool {
    match event {
        Event::RefusedCall { .. }
        | Event::RefusedFlow { .. }
        | Event::RefusedAddress { .. }
        | Event::RefusedName { .. } => true,
        Event::FlowEnd { reason, .. } => reason.is_some(),
        _ => false,
    }
}

fn same(asked: args::Lane, lane: Lane) -> bool {
    use args::Lane as Asked;
    matches!(
        (asked, lane),
        (Asked::Host, Lane::Host)
            | (Asked::Kernel, Lane::Kernel)
            | (Asked::Net, Lane::Net)
            | (Asked::Broker, Lane::Broker)
            | (Asked::Browser, Lane::Browser)
            | (Asked::Box, Lane::Box)
    )
}

/// A record as a person reads it: time, lane, run, what happened.
pub(super) fn sentence(record: &Record) -> String {
    let run = record.run.map(|run| format!(" run {run}")).unwrap_or_default();
    let lane = serde_json::to_value(record.lane).unwrap_or_default();
    let lane = lane.as_str().unwrap_or("?").to_owned();
    format!("{} {lane:<7}{run:<7} {}", record.at, words(&record.event))
}

fn words(event: &Event) -> String {
    match event {
        Event::Create { base, tier, profile, .. } => {
            format!("created on {} · {tier} · {profile}", base.get(..7).unwrap_or(base))
        }
        Event::SessionStart { policy } => format!("session started under {policy}"),
        Event::SessionEnd => "session ended".to_owned(),
        Event::RunStart { argv, argv_cut, .. } => {
            let words: Vec<String> = argv.iter().map(ToString::to_string).collect();
            let cut = if *argv_cut > 0 { format!(" (and {argv_cut} cut)") } else { String::new() };
            format!("started {}{cut}", words.join(" "))
        }
        Event::RunEnd { outcome, exit_code, signal, limit, wall_ms, .. } => {
            let how = match (exit_code, signal, limit) {
                (Some(code), _, _) => format!("exit {code}"),
                (_, Some(signal), _) => format!("signal {signal}"),
                (_, _, Some(limit)) if limit.starts_with("react.") => {
                    format!("stopped by {}", Shown::text(limit))
                }
                (_, _, Some(limit)) => format!("stopped by limits.{}", Shown::text(limit)),
                _ => outcome.name().to_owned(),
            };
            format!("ended: {how} after {wall_ms} ms")
        }
        Event::BudgetSpent { limit, used, allowed, pid, program } => {
            let limit = Shown::text(limit);
            format!("limits.{limit} spent: {used} of {allowed}, by {program} (pid {pid})")
        }
        Event::Reaction { violation, reaction, cause } => {
            let (violation, reaction) = (Shown::text(violation), Shown::text(reaction));
            format!("react.{violation}: {reaction}, for {cause}")
        }
        Event::RefusedCall { call, pid, program, errno, count, .. } => {
            format!("refused {call} ×{count} with {errno} by {program} (pid {pid})")
        }
        Event::ExecAttempt { pid, path, argv, argv_cut, cwd, unread, .. } => {
            let words: Vec<String> = argv.iter().map(ToString::to_string).collect();
            let cut = if *argv_cut > 0 { format!(" (and {argv_cut} cut)") } else { String::new() };
            let lost = if unread.is_empty() { "" } else { " (some of it could not be read)" };
            format!("pid {pid} asks for {path} in {cwd}: {}{cut}{lost}", words.join(" "))
        }
        Event::Exec { pid, exe, failed, .. } => {
            let after = match failed {
                0 => String::new(),
                1 => ", after an attempt that failed".to_owned(),
                many => format!(", after {many} attempts that failed"),
            };
            format!("pid {pid} is {exe}{after}")
        }
        Event::ProcessEnd { pid, exit_code, signal, wall_ms, unseen, .. } => {
            let how = match (exit_code, signal) {
                (Some(code), _) => format!("exit {code}"),
                (_, Some(signal)) => format!("signal {signal}"),
                _ => "how was not told".to_owned(),
            };
            let unseen = if *unseen { ", before it was seen as what it asked for" } else { "" };
            format!("pid {pid} ended: {how} after {wall_ms} ms{unseen}")
        }
        Event::FlowStart { flow, protocol, address, port, names, rules } => {
            let names =
                if names.is_empty() { String::new() } else { format!("{} at ", names.join(", ")) };
            let rules = match rules.as_slice() {
                [] => "the network is open".to_owned(),
                rules => format!("by {}", rules.join(", ")),
            };
            let to = format!("{names}{} ({rules})", place(protocol, address, Some(*port)));
            format!("flow {flow} to {}", Shown::text(&to))
        }
        Event::FlowEnd { flow, named, sent, received, duration_ms, verdict, reason, .. } => {
            let named = named.as_ref().map_or_else(String::new, |name| format!(", named {name}"));
            let why = reason.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            let text = format!(
                "flow {flow} ended: {}{why}; {sent} bytes out, {received} bytes in, \
                 {duration_ms} ms{named}",
                verdict.name()
            );
            Shown::text(&text).to_string()
        }
        Event::RefusedFlow { protocol, address, port, reason } => {
            let to = place(protocol, address.as_deref().unwrap_or("the relay"), *port);
            format!("refused a flow to {}: {}", Shown::text(&to), Shown::text(reason))
        }
        Event::RefusedAddress { protocol, address, port, count } => {
            let to = place(protocol, address.as_deref().unwrap_or("others"), *port);
            format!("refused {} ×{count}", Shown::text(&to))
        }
        Event::RefusedName { name, record, count } => {
            let name = name.as_ref().map_or_else(|| "others".to_owned(), ToString::to_string);
            format!("refused the name {name} ×{count} (record type {record})")
        }
        Event::Resolved { name, addresses, withheld } => {
            let found = match addresses.as_slice() {
                [] => "nothing".to_owned(),
                found => found.join(" "),
            };
            let kept = match withheld.as_slice() {
                [] => String::new(),
                kept => format!("; kept from the box: {}", kept.join(" ")),
            };
            Shown::text(&format!("{name} is {found}{kept}")).to_string()
        }
        Event::NetworkChange { change, rule, policy } => {
            let rule = rule.as_deref().unwrap_or("everything");
            format!(
                "network: {} {}, under {}",
                change.name(),
                Shown::text(rule),
                Shown::text(policy)
            )
        }
        Event::CutOff { torn_bytes: 0, .. } => {
            "cut off: the process that held the session died".to_owned()
        }
        Event::CutOff { torn_bytes, .. } => {
            format!("cut off: {torn_bytes} bytes of a record were moved aside")
        }
        Event::Export { bundle, .. } => format!("exported {bundle}"),
        Event::Apply { bundle, branch, .. } => {
            let to =
                branch.as_ref().map_or_else(|| "the working tree".to_owned(), ToString::to_string);
            format!("applied {bundle} to {to}")
        }
        Event::Note { text } => format!("note: {text}"),
        _ => "something that this version does not know".to_owned(),
    }
}

/// `192.0.2.1:443`, `[2001:db8::1]:443/udp`, `192.0.2.1 icmp`.
pub(super) fn place(protocol: &str, address: &str, port: Option<u16>) -> String {
    let address = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    match port {
        None => format!("{address} {protocol}"),
        Some(port) if protocol == "tcp" => format!("{address}:{port}"),
        Some(port) => format!("{address}:{port}/{protocol}"),
    }
}
