//! `h5i box log`

mod words;

use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};

use h5i_export::{Event, Lane, Record, Timestamp};
use serde_json::Value;

use super::{Answer, Reader, find};
use crate::args::{self, LogArgs, Since};
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::log_kinds::lane_and_kind;
use crate::log_tail::tail_of;
use crate::path_error::{Action, PathError};
use crate::receipt_log::LOG;
use crate::store::LockError;

pub(super) use words::{place, sentence};

pub(super) fn log(caller: &Caller, args: &LogArgs) -> Result<Answer, Failure> {
    let stored = find(caller, &args.name)?;
    let path = stored.host_dir().join(LOG);
    let mut file = std::fs::File::open(&path).map_err(PathError::at(Action::Open, &path))?;
    if let Some(count) = args.last() {
        let begin = tail_of(&file, count);
        begin
            .and_then(|begin| file.seek(SeekFrom::Start(begin)))
            .map_err(PathError::at(Action::Read, &path))?;
    }
    let mut reader = BufReader::new(file);
    let mut rest = Vec::new();
    let from = from(args.since);
    let mut lives;
    let mut shown = false;
    loop {
        // Asked before reading: a session that ends in between is read to its end once more.
        lives = matches!(stored.lock(), Err(LockError::Busy));
        while reader.read_until(b'\n', &mut rest).map_err(PathError::at(Action::Read, &path))? > 0 {
            // A line that is being written is taken up again with its rest.
            if rest.last() != Some(&b'\n') {
                break;
            }
            rest.pop();
            match show(&rest, args, from)? {
                Some(Reader::Gone) => return Answer::new(Value::Null, String::new()),
                told => shown |= told.is_some(),
            }
            rest.clear();
        }
        if !(args.follow && lives) {
            break;
        }
        crate::watch_file::wait_for_change(&path)?;
    }
    // Where it lives somebody is writing it.
    if !lives && !rest.is_empty() {
        super::say(&format!(
            "cut off  the log ends in {} bytes that are no whole record; the next session moves them \
             aside and records that",
            rest.len()
        ));
    }
    let answer = Answer::new(Value::Null, String::new())?;
    Ok(match (shown, args.denied) {
        (true, _) => answer,
        (false, true) => answer.note("nothing was refused"),
        (false, false) => answer.note("no such record"),
    })
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

/// Shows a record that was asked for; none where it was not.
fn show(line: &[u8], args: &LogArgs, from: Option<Timestamp>) -> Result<Option<Reader>, Failure> {
    // Most lines of a filtered log need no reading.
    let asked = args.lane.map(lane_name);
    if let (Some(asked), Some((lane, _))) = (asked, lane_and_kind(line))
        && lane != asked.as_bytes()
    {
        return Ok(None);
    }
    let record = Record::from_line(line).map_err(|e| Failure::new(Kind::Corrupt, &e))?;
    let lane = args.lane.is_none_or(|lane| same(lane, record.lane));
    let denied = !args.denied || is_denial(&record.event);
    if lane && denied && from.is_none_or(|from| record.at >= from) {
        if args.output.json {
            return super::print_line(&String::from_utf8_lossy(line)).map(Some);
        }
        return super::print_line(&sentence(&record)).map(Some);
    }
    Ok(None)
}

/// Whether something was refused, or done that has no place in honest work.
fn is_denial(event: &Event) -> bool {
    match event {
        Event::RefusedCall { .. }
        | Event::RefusedFlow { .. }
        | Event::RefusedAddress { .. }
        | Event::RefusedName { .. }
        | Event::GrantRefused { .. }
        | Event::CanaryRead { .. } => true,
        Event::FlowEnd { reason, .. } => reason.is_some(),
        _ => false,
    }
}

/// The word of a lane on the wire.
const fn lane_name(asked: args::Lane) -> &'static str {
    match asked {
        args::Lane::Host => "host",
        args::Lane::Kernel => "kernel",
        args::Lane::Net => "net",
        args::Lane::Broker => "broker",
        args::Lane::Browser => "browser",
        args::Lane::Box => "box",
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
