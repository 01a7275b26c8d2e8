//! Runs a test binary, shows what it prints, and keeps what tells why it failed.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result};

/// Words in a line with which a failure begins: of a door, of a test's panic, of its result.
const FAILURES: [&str; 4] = ["LEAKED", "panicked at", "... FAILED", "error:"];
/// What follows such a line says why.
const AFTER: usize = 8;
/// At most so many lines are kept, and the last of all where nothing looks like a failure.
const MOST: usize = 60;
const LAST: usize = 20;
/// How long somebody who was left behind may hold the output, and what was said may take to be read
/// on a busy machine.
const SILENCE: Duration = Duration::from_secs(10);

/// Runs a program and shows what it prints; yields the lines that tell why it failed, none when it
/// succeeded.
pub(crate) fn run(command: Command) -> Result<Option<Vec<String>>> {
    run_to(command, &mut std::io::stdout())
}

fn run_to(mut command: Command, out: &mut impl Write) -> Result<Option<Vec<String>>> {
    let (read, write) = std::io::pipe()?;
    command.stdout(write.try_clone()?).stderr(write);
    let mut child = command.spawn().context("could not start")?;
    // The pipe's other ends are the child's alone.
    drop(command);
    let (send, lines) = channel();
    std::thread::spawn(move || {
        let mut read = BufReader::new(read);
        let mut line = Vec::new();
        while read.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            if send.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    let mut kept = Kept::default();
    let status = loop {
        show(&lines, Duration::from_millis(100), &mut kept, out)?;
        if let Some(status) = child.try_wait()? {
            break status;
        }
    };
    show(&lines, SILENCE, &mut kept, out)?;
    Ok((!status.success()).then(|| kept.lines()))
}

/// Shows lines until there is none for so long, or nobody writes any more.
fn show(
    lines: &Receiver<Vec<u8>>,
    silence: Duration,
    kept: &mut Kept,
    out: &mut impl Write,
) -> Result<()> {
    loop {
        match lines.recv_timeout(silence) {
            Ok(line) => {
                out.write_all(&line)?;
                kept.add(&String::from_utf8_lossy(&line));
            }
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(Duration::from_millis(5));
                return Ok(());
            }
        }
    }
}

/// The lines that tell why a program failed.
#[derive(Default)]
struct Kept {
    failures: Vec<String>,
    more: usize,
    last: VecDeque<String>,
}

impl Kept {
    fn add(&mut self, line: &str) {
        let line = line.trim_end();
        if FAILURES.iter().any(|word| line.contains(word)) {
            self.more = AFTER + 1;
        }
        if self.more > 0 && self.failures.len() < MOST {
            self.failures.push(line.to_owned());
        }
        self.more = self.more.saturating_sub(1);
        if self.last.len() == LAST {
            self.last.pop_front();
        }
        self.last.push_back(line.to_owned());
    }

    fn lines(self) -> Vec<String> {
        if self.failures.is_empty() { self.last.into() } else { self.failures }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown of a shell's line, and what is kept of it.
    fn sh(line: &str) -> (String, Option<Vec<String>>) {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        let mut shown = Vec::new();
        let kept = run_to(command, &mut shown).unwrap();
        (String::from_utf8(shown).unwrap(), kept)
    }

    #[test]
    fn a_failure_is_kept_with_what_follows_and_a_success_keeps_nothing() {
        let long = "echo held; echo LEAKED one >&2; seq 30; exit 1";
        let (shown, kept) = sh(long);
        assert_eq!(shown.lines().count(), 32);
        let kept = kept.unwrap();
        assert_eq!(kept.first().map(String::as_str), Some("LEAKED one"));
        assert_eq!((kept.len(), kept.last().map(String::as_str)), (1 + AFTER, Some("8")));
        assert_eq!(sh("echo LEAKED; exit 0"), ("LEAKED\n".to_owned(), None));
    }

    #[test]
    fn where_nothing_looks_like_a_failure_the_last_lines_are_kept() {
        let kept = sh("seq 100; exit 3").1.unwrap();
        assert_eq!((kept.len(), kept.last().map(String::as_str)), (LAST, Some("100")));
    }

    #[test]
    fn who_was_left_behind_with_the_output_is_not_waited_for() {
        let begun = std::time::Instant::now();
        assert_eq!(sh("sleep 600 & echo $!").1, None);
        assert!(begun.elapsed() < Duration::from_secs(120));
    }
}
