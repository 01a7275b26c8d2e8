//! Records as a person reads them.

use h5i_export::{ByteText, Event, Record};

use super::super::amount::{network_used_of, used_of};
use super::super::budget_use::size;
use crate::shown::Shown;

/// A record as a person reads it: time, lane, run, what happened.
pub(in crate::verbs) fn sentence(record: &Record) -> String {
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
        Event::GrantIssued { grant, host, port, lasts_ms } => {
            let lasts =
                lasts_ms.map_or_else(String::new, |ms| format!(" for {} s at most", ms / 1000));
            format!("grant {} for {host}:{port} is the run's{lasts}", Shown::text(grant))
        }
        Event::GrantUse { grant, request, via, method, path, pid, program } => {
            let by = opener(*pid, program.as_ref());
            format!("request {request} by grant {}, {via}: {method} {path}{by}", Shown::text(grant))
        }
        Event::GrantUseEnd {
            request, status, sent, received, duration_ms, end, scrubbed, ..
        } => {
            let status = status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
            let covered = match scrubbed {
                0 => String::new(),
                times => format!(", the secret in its answer covered ×{times}"),
            };
            format!(
                "request {request} ended: {}, {status}, {} sent, {} received in {duration_ms} ms{covered}",
                end.name(),
                size(*sent),
                size(*received)
            )
        }
        Event::GrantRefused { grant, reason, request, pid, program, count } => {
            let what =
                request.as_ref().map_or_else(String::new, |request| format!(" to {request}"));
            let by = opener(*pid, program.as_ref());
            let reason = Shown::text(reason);
            format!("refused grant {}{what} ×{count}: {reason}{by}", Shown::text(grant))
        }
        Event::GrantEnded { grant, end } => {
            format!("grant {} holds no more: {}", Shown::text(grant), end.name())
        }
        Event::GrantChange { grant, change, by_ms } => {
            let by = by_ms.map_or_else(String::new, |ms| format!(" by {} s", ms / 1000));
            format!("a person changes grant {}: {}{by}", Shown::text(grant), change.name())
        }
        Event::FlowStart { flow, protocol, address, port, names, rules, pid, program } => {
            let names =
                if names.is_empty() { String::new() } else { format!("{} at ", names.join(", ")) };
            let rules = match rules.as_slice() {
                [] => "the network is open".to_owned(),
                rules => format!("by {}", rules.join(", ")),
            };
            let to = format!("{names}{} ({rules})", place(protocol, address, Some(*port)));
            format!("flow {flow} to {}{}", Shown::text(&to), opener(*pid, program.as_ref()))
        }
        Event::FlowEnd {
            flow,
            named,
            sent,
            received,
            duration_ms,
            verdict,
            reason,
            used,
            allowed,
            ..
        } => {
            let named = named.as_ref().map_or_else(String::new, |name| format!(", named {name}"));
            let why = reason
                .as_ref()
                .map_or_else(String::new, |why| format!(": {why}{}", spent(why, *used, *allowed)));
            let (sent, received) = (size(*sent), size(*received));
            let text = format!(
                "flow {flow} ended: {}{why}; {sent} out, {received} in, {duration_ms} ms{named}",
                verdict.name()
            );
            Shown::text(&text).to_string()
        }
        Event::RefusedFlow { protocol, address, port, reason, pid, program, used, allowed } => {
            let to = place(protocol, address.as_deref().unwrap_or("the relay"), *port);
            let spent = spent(reason, *used, *allowed);
            let by = opener(*pid, program.as_ref());
            format!("refused a flow to {}: {}{spent}{by}", Shown::text(&to), Shown::text(reason))
        }
        Event::RefusedAddress { protocol, address, port, count, pid, program } => {
            let to = place(protocol, address.as_deref().unwrap_or("others"), *port);
            let by = opener(*pid, program.as_ref());
            format!("refused {} ×{count}{by}", Shown::text(&to))
        }
        Event::RefusedName { name, record, count, pid, program } => {
            let name = name.as_ref().map_or_else(|| "others".to_owned(), ToString::to_string);
            let by = opener(*pid, program.as_ref());
            format!("refused the name {name} ×{count} (record type {record}){by}")
        }
        Event::Resolved { name, addresses, withheld } => {
            let found = match addresses.as_slice() {
                [] => "has no address".to_owned(),
                found => format!("is {}", found.join(" ")),
            };
            let kept = match withheld.as_slice() {
                [] => String::new(),
                kept => format!("; kept from the box: {}", kept.join(" ")),
            };
            Shown::text(&format!("{name} {found}{kept}")).to_string()
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
            format!("cut off: {} of a record were moved aside", size(*torn_bytes))
        }
        Event::BudgetSpent { limit, used, allowed, pid, program } => {
            let used = used_of(limit, *used, *allowed);
            let limit = Shown::text(limit);
            let by = match pid {
                0 if program.as_bytes().is_empty() => String::new(),
                _ => format!(", by {program} (pid {pid})"),
            };
            format!("limits.{limit} spent: {used}{by}")
        }
        Event::Reaction { violation, reaction, cause } => {
            let (violation, reaction) = (Shown::text(violation), Shown::text(reaction));
            format!("react.{violation}: {reaction}, for {cause}")
        }
        Event::Export { bundle, .. } => format!("exported {bundle}"),
        Event::Apply { bundle, branch, .. } => {
            let to =
                branch.as_ref().map_or_else(|| "the working tree".to_owned(), ToString::to_string);
            format!("applied {bundle} to {to}")
        }
        Event::Note { text } => format!("note: {text}"),
        Event::ReportedCommand { shell: 0, command, status: Some(status), .. } => {
            format!("reports {command}: exit {status}")
        }
        Event::ReportedCommand { shell, number, command, .. } => {
            format!("shell {shell} begins {number}: {command}")
        }
        Event::ReportedEnd { shell, number, status } => {
            format!("shell {shell} is through with {number}: exit {status}")
        }
        Event::SpoolRefused { fault, count } => {
            format!("not taken in from the spool ×{count}: {}", fault.why())
        }
        Event::Gap { gap, what, reported, seen, .. } => {
            let codes = match (reported, seen) {
                (Some(reported), Some(seen)) => format!(" ({reported} reported, {seen} seen)"),
                _ => String::new(),
            };
            format!("gap: {what} {}{codes}", gap.why())
        }
        Event::CanaryRead { path, count } => {
            format!("the planted credential {} was opened ×{count}", Shown::text(path))
        }
        Event::CanaryLost { path, why } => {
            format!("the planted credential {} {}", Shown::text(path), why.why())
        }
        Event::Output { stream, bytes, kept, payload } => {
            let cut = if kept < bytes {
                format!(", the first {} of it", size(*kept))
            } else {
                String::new()
            };
            format!("{} kept: {}{cut}, {payload}", stream.name(), size(*bytes))
        }
        _ => "something that this version does not know".to_owned(),
    }
}

/// `, by /usr/bin/curl, pid 7`, where it is known.
fn opener(pid: Option<u32>, program: Option<&ByteText>) -> String {
    let Some(pid) = pid else { return String::new() };
    let program = program.map_or_else(|| "a program that was gone".to_owned(), ToString::to_string);
    format!(", by {program}, pid {pid}")
}

/// ` (11 of 10 connections)`, where a budget stopped something.
fn spent(reason: &str, used: Option<u64>, allowed: Option<u64>) -> String {
    used.zip(allowed).map_or_else(String::new, |(used, allowed)| {
        format!(" ({})", network_used_of(reason, used, allowed))
    })
}

/// `192.0.2.1:443`, `[2001:db8::1]:443/udp`, `192.0.2.1 icmp`.
pub(in crate::verbs) fn place(protocol: &str, address: &str, port: Option<u16>) -> String {
    let address = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    match port {
        None => format!("{address} {protocol}"),
        Some(port) if protocol == "tcp" => format!("{address}:{port}"),
        Some(port) => format!("{address}:{port}/{protocol}"),
    }
}
