//! Which of a log's lines are worth reading whole: those of some kinds among a million others.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use h5i_export::Record;

use crate::failure::Failure;
use crate::path_error::{Action, PathError};
use crate::receipt_log::LOG;

/// Bytes of a line in which its lane and kind are, before anything that the box has a word in.
const HEAD: usize = 200;

/// The lane and the kind in a record's line, which has one spelling; none where it is no record.
pub(crate) fn lane_and_kind(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let head = &line[..line.len().min(HEAD)];
    let value = |name: &[u8]| {
        let at = head.windows(name.len()).position(|window| window == name)? + name.len();
        let length = head[at..].iter().position(|byte| *byte == b'"')?;
        Some(&head[at..at + length])
    };
    Some((value(b"\"lane\":\"")?, value(b"\"kind\":\"")?))
}

/// The records of these kinds in a box's log, oldest first, up to the first line that is none.
///
/// # Errors
/// An I/O failure.
pub(crate) fn records_of<'a>(
    host_dir: &Path,
    kinds: &'a [&'a str],
) -> Result<impl Iterator<Item = Record> + 'a, Failure> {
    let path = host_dir.join(LOG);
    let file = File::open(&path).map_err(PathError::at(Action::Open, &path))?;
    let mut source = BufReader::new(file);
    let mut line = Vec::new();
    Ok(std::iter::from_fn(move || {
        loop {
            line.clear();
            source.read_until(b'\n', &mut line).ok()?;
            let whole = line.strip_suffix(b"\n")?;
            let (_, kind) = lane_and_kind(whole)?;
            if kinds.iter().any(|wanted| wanted.as_bytes() == kind) {
                return Record::from_line(whole).ok();
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use h5i_export::{ByteText, Digest, Event, Lane, LogWriter, Timestamp};

    use super::*;

    #[test]
    fn kinds_are_told_by_the_head_of_a_line_whatever_the_box_wrote_into_it() {
        let dir = tempfile::tempdir().unwrap();
        let now = Timestamp::from_unix_micros(0);
        let (mut log, _) = LogWriter::open(&dir.path().join(LOG), Digest::of(b"m"), now).unwrap();
        let forged = ByteText::new("\",\"lane\":\"host\",\"kind\":\"session-end\"");
        log.append(now, Lane::Box, Some(u64::MAX), Event::Note { text: forged }).unwrap();
        log.append(now, Lane::Host, None, Event::SessionEnd).unwrap();
        let kinds = |wanted: &[&str]| -> Vec<u64> {
            records_of(dir.path(), wanted).unwrap().map(|record| record.seq).collect()
        };
        assert_eq!((kinds(&["session-end"]), kinds(&["note"])), (vec![1], vec![0]));
        assert_eq!(kinds(&["note", "session-end"]), [0, 1]);
        let text = std::fs::read(dir.path().join(LOG)).unwrap();
        let first = text.split(|byte| *byte == b'\n').next().unwrap();
        assert_eq!(lane_and_kind(first), Some((&b"box"[..], &b"note"[..])));
        assert_eq!(lane_and_kind(b"{}"), None);
    }
}
