//! Standard descriptors that are closed, or whose other end goes away.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use crate::stand::{Said, Stand};

fn made() -> Stand {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    stand
}

/// Runs a shell script with the program's path in `$H5I`.
fn shell(stand: &Stand, script: &str) -> Said {
    Said::of(stand.program("sh").args(["-c", script]).output().unwrap())
}

#[test]
fn closed_descriptors_are_no_obstacle() {
    let stand = made();
    for (script, out, err) in [
        ("$H5I box ls <&-", "a ", ""),
        ("$H5I box ls 2>&-", "a ", ""),
        ("$H5I box ls >&-", "", ""),
        ("$H5I box run a -- sh -c 'cat; echo hi' <&-", "hi", ""),
        ("$H5I box run a -- sh -c 'echo hi' 2>&-", "hi", ""),
        ("$H5I box run a -- sh -c 'echo hi >&2' >&-", "", "hi"),
        ("$H5I box run a -- true <&- >&- 2>&-", "", ""),
        ("$H5I run --rm -- true <&- >&- 2>&-", "", ""),
    ] {
        let said = shell(&stand, script);
        assert_eq!(said.code, 0, "{script}: {}", said.err);
        assert!(said.text().starts_with(out) && said.err.contains(err), "{script}: {said:?}");
    }
}

#[test]
fn a_closed_descriptor_never_becomes_a_file_of_the_box() {
    let stand = made();
    // Were 1 free, the log or the manifest could be opened as 1 and the run would write into it.
    let before = std::fs::read(stand.box_dir("a").join("host/manifest.json")).unwrap();
    shell(&stand, "$H5I box run a -- sh -c 'echo canary; echo canary >&2' <&- >&- 2>&-");
    assert_eq!(std::fs::read(stand.box_dir("a").join("host/manifest.json")).unwrap(), before);
    let log = std::fs::read_to_string(stand.box_dir("a").join("host/receipt.jsonl")).unwrap();
    assert!(log.lines().all(|line| line.starts_with("{\"v\":1,")), "{log}");
    stand.ok(&["box", "log", "a"]);
}

#[test]
fn a_reader_that_goes_away_ends_a_run_as_at_home() {
    let stand = made();
    let mut child = stand.command();
    child.args(["box", "run", "a", "--", "yes"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 100]).unwrap();
    let said = Said::of(child.wait_with_output().unwrap());
    // `yes` dies of SIGPIPE, as its own shell would tell.
    assert_eq!((said.code, said.err.as_str()), (141, ""));
}

#[test]
fn a_reader_that_goes_away_ends_an_answer_without_a_word() {
    let stand = made();
    for _ in 0..40 {
        stand.ok(&["box", "run", "a", "--", "true"]);
    }
    for words in [&["box", "log", "a"][..], &["box", "log", "a", "--json"], &["policy", "show"]] {
        // The reader takes a line of a pipe that is too small for the rest, or none at all.
        let (reader, writer) = std::io::pipe().unwrap();
        rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
        let mut child = stand.command();
        child.args(words).stdout(writer).stderr(Stdio::piped());
        let child = child.spawn().unwrap();
        let mut lines = BufReader::with_capacity(1, reader);
        lines.read_until(b'\n', &mut Vec::new()).unwrap();
        drop(lines);
        let said = Said::of(child.wait_with_output().unwrap());
        assert_eq!(said.code, 0, "{words:?}: {}", said.err);
        assert!(!said.err.contains("error"), "{words:?}: {}", said.err);
    }
}

#[test]
fn an_answer_that_can_not_be_written_is_a_failure() {
    let stand = made();
    for words in ["box ls", "box ls --json", "box log a", "box log a --json", "policy show"] {
        let said = shell(&stand, &format!("$H5I {words} >/dev/full"));
        assert_eq!(said.code, 70, "{words}: {}", said.err);
    }
}
