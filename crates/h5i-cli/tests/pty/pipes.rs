//! A run as a member of a pipeline.

use std::process::Command;

use crate::seat::with_box;
use crate::stand::{Said, Stand};

/// Runs a script of bash with the program's path in `$H5I`.
fn bash(stand: &Stand, script: &str) -> Said {
    let mut command: Command = stand.program("/bin/bash");
    Said::of(command.args(["-c", script]).output().unwrap())
}

#[test]
fn a_hundred_megabytes_pass_whole_in_both_directions() {
    let stand = with_box();
    let script = "yes 'a line of text that is repeated' | head -c 104857600 | tee >(sha256sum >../sum) \
                  | \"$H5I\" box run a -- cat | sha256sum; \
                  until [ -s ../sum ]; do sleep 0.01; done; cat ../sum";
    let said = bash(&stand, script);
    let sums: Vec<&str> = said.text().lines().collect();
    assert_eq!((said.code, sums.len()), (0, 2), "{said:?}");
    assert_eq!(sums[0], sums[1]);
}

#[test]
fn a_reader_that_closes_early_ends_the_whole_pipeline_as_at_home() {
    let stand = with_box();
    for (inside, codes) in [
        // The member in the box dies of SIGPIPE, and so does what feeds it.
        ("yes | \"$H5I\" box run a -- cat | head -1", "y\n141 141 0\n"),
        ("yes | cat | head -1", "y\n141 141 0\n"),
        // One that has read all and then writes into nothing.
        ("seq 1 300000 | \"$H5I\" box run a -- sort -n | head -1", "1\n0 141 0\n"),
        ("seq 1 300000 | sort -n | head -1", "1\n0 141 0\n"),
        ("yes | \"$H5I\" box run a -- head -1 | cat", "y\n141 0 0\n"),
        ("yes | head -1 | cat", "y\n141 0 0\n"),
    ] {
        let said = bash(&stand, &format!("{inside}; echo ${{PIPESTATUS[@]}}"));
        assert_eq!((said.text(), said.err.as_str()), (codes, ""), "{inside}");
    }
}

#[test]
fn a_slow_reader_gets_everything() {
    let stand = with_box();
    // More than every pipe on the way holds, read only when the run is long over.
    let script = "\"$H5I\" box run a -- seq 1 40000 | (read first; exec 3<>fifo; read -t 1 x <&3; cat | tail -1)";
    let dir = stand.path().display();
    let said = bash(
        &stand,
        &format!("cd {dir} && mkfifo fifo && cd repo && {}", script.replace("fifo", "../fifo")),
    );
    assert_eq!((said.text(), said.code), ("40000\n", 0), "{said:?}");
}

#[test]
fn an_interrupt_ends_a_run_whose_reader_does_not_read() {
    let stand = with_box();
    let script = "mkfifo ../full; exec 3<>../full; \"$H5I\" box run a -- seq 1 15000 >&3 & pid=$!; \
                  until grep -q '\"run-end\"' \"$LOG\"; do :; done; kill -INT $pid; wait $pid; echo $?";
    // Interrupts are ignored in the background of a shell without job control.
    let script = format!(
        "set -m; LOG={}; {script}",
        stand.box_dir("a").join("host/receipt.jsonl").display()
    );
    let said = bash(&stand, &script);
    assert_eq!(said.text(), "0\n", "{said:?}");
}

#[test]
fn input_that_is_closed_empty_or_a_file_reads_as_such() {
    let stand = with_box();
    std::fs::write(stand.path().join("in"), "from a file\n").unwrap();
    let dir = stand.path().display();
    for (input, read) in [
        ("<&-".to_owned(), ""),
        ("</dev/null".to_owned(), ""),
        (format!("<{dir}/in"), "from a file"),
        ("<<<here".to_owned(), "here"),
    ] {
        let said = bash(&stand, &format!("\"$H5I\" box run a -- cat {input}"));
        assert_eq!((said.code, said.text().trim_end()), (0, read), "{input} {}", said.err);
    }
}

#[test]
fn output_that_finds_no_room_is_a_failure() {
    let stand = with_box();
    for (command, code) in [("echo hi", 70), ("seq 1 1000000", 70), ("sh -c 'echo hi; exit 3'", 3)]
    {
        let said = bash(&stand, &format!("\"$H5I\" box run a -- {command} >/dev/full"));
        assert_eq!(said.code, code, "{command}: {}", said.err);
        assert!(
            said.err.contains("could not be written: No space left"),
            "{command}: {}",
            said.err
        );
    }
    let said = bash(&stand, "\"$H5I\" box run a -- echo hi >/dev/null");
    assert_eq!((said.code, said.err.as_str()), (0, ""));
}

#[test]
fn errors_and_output_in_one_pipe_keep_their_order() {
    let stand = with_box();
    let script =
        "\"$H5I\" box run a -- sh -c 'for i in 1 2 3 4; do echo o$i; echo e$i >&2; done' 2>&1";
    let said = bash(&stand, script);
    assert_eq!(said.text(), "o1\ne1\no2\ne2\no3\ne3\no4\ne4\n");
}
