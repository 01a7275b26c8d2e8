//! Programs that are asked, with a bound that a test can wait for.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::command::{AT_MOST, CommandError, ask};

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

/// Waits until the process whose number a file holds is gone.
fn is_gone(number: &str) {
    let number = number.trim().parse().ok().and_then(Pid::from_raw).expect("a process");
    if let Ok(process) = pidfd_open(number, PidfdFlags::empty()) {
        let limit = Timespec { tv_sec: 20, tv_nsec: 0 };
        let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit));
        assert_eq!(ended, Ok(1), "process {number:?} goes on");
    }
}

#[test]
fn what_a_program_leaves_running_is_ended_with_it() {
    let answer = ask(&shell("sleep 100000 & echo $!"), AT_MOST).expect("an answer");
    is_gone(std::str::from_utf8(answer.expose()).expect("a number"));
}

#[test]
fn a_program_that_takes_too_long_is_ended_with_all_that_it_started() {
    let scratch = tempfile::tempdir().expect("a directory");
    let file = scratch.path().join("number");
    let script = format!("sleep 100000 & echo $! >'{}'; wait", file.display());
    let begun = Instant::now();
    // It begins within that on a machine that does much else.
    let error = ask(&shell(&script), Duration::from_secs(5)).expect_err("too slow");
    assert!(matches!(error, CommandError::TooSlow), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(60));
    is_gone(&std::fs::read_to_string(&file).expect("its number"));
}

#[test]
fn a_program_that_closes_its_output_is_waited_for() {
    let scratch = tempfile::tempdir().expect("a directory");
    let file = scratch.path().join("done");
    let script = format!("echo secret; exec >&- 2>&-; sleep 0.2; : >'{}'", file.display());
    assert_eq!(ask(&shell(&script), AT_MOST).expect("an answer").expose(), b"secret");
    assert!(file.try_exists().expect("a look"), "it was ended before it was done");
}

#[test]
fn a_program_that_prints_without_end_is_ended() {
    for script in ["yes", "yes >&2"] {
        let error = ask(&shell(script), Duration::from_secs(1)).expect_err("too much");
        assert!(matches!(error, CommandError::TooMuch | CommandError::TooSlow), "{error}");
    }
    let most = ask(&shell("head -c 65536 /dev/zero | tr '\\0' x"), AT_MOST).expect("an answer");
    assert_eq!(most.expose().len(), 65536);
}

#[test]
fn a_program_gets_no_input() {
    let answer = ask(&shell("cat; echo end"), AT_MOST).expect("an answer");
    assert_eq!(answer.expose(), b"end");
}

#[test]
fn a_program_that_is_not_there_is_named_by_its_failure() {
    let words = vec![Path::new("/no/such/program").display().to_string()];
    assert!(matches!(ask(&words, AT_MOST), Err(CommandError::Run(_))));
    assert!(matches!(ask(&shell("true"), AT_MOST), Err(CommandError::Empty)));
}
