//! Reading a line that is spelled as lines are, without looking for other spellings first.

use super::{Event, Lane, RECORD_VERSION, Record, Timestamp};
use crate::digest::Digest;

/// The record of a line in the one spelling; none for many others. What it yields is the line's only
/// if it is written as that line: that is for the caller to compare.
pub(super) fn read(line: &[u8]) -> Option<Record> {
    let line = str::from_utf8(line).ok()?;
    let (version, rest) = number(line.strip_prefix("{\"v\":")?)?;
    if version != u64::from(RECORD_VERSION) {
        return None;
    }
    let (seq, rest) = number(rest.strip_prefix(",\"seq\":")?)?;
    let (at, rest) = rest.strip_prefix(",\"at\":\"")?.split_once('"')?;
    let (lane, rest) = rest.strip_prefix(",\"lane\":\"")?.split_once('"')?;
    let (run, rest) = match rest.strip_prefix(",\"run\":") {
        None => (None, rest),
        Some(rest) => number(rest).map(|(run, rest)| (Some(run), rest))?,
    };
    // What the event says may hold the same words; the last ones are the record's own.
    let (event, prev) = rest.strip_prefix(',')?.rsplit_once(",\"prev\":\"")?;
    let at: Timestamp = at.parse().ok()?;
    let prev: Digest = prev.strip_suffix("\"}")?.parse().ok()?;
    let event: Event = serde_json::from_str(&format!("{{{event}}}")).ok()?;
    Some(Record { seq, at, lane: lane_of(lane)?, run, event, prev })
}

/// The number that a text begins with, and what follows it.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

fn lane_of(word: &str) -> Option<Lane> {
    Some(match word {
        "host" => Lane::Host,
        "kernel" => Lane::Kernel,
        "net" => Lane::Net,
        "broker" => Lane::Broker,
        "browser" => Lane::Browser,
        "box" => Lane::Box,
        _ => return None,
    })
}
