//! Standard input, output and errors redirected each on its own: what is a terminal stays one.

use crate::seat::{Seat, with_box};

/// Tells which of the three are terminals, into a file of the box's home.
const LOOK: &str =
    "exec 9>~/kinds; for fd in 0 1 2; do test -t $fd && echo -n t >&9 || echo -n - >&9; done";

#[test]
fn each_stays_what_it_is() {
    let stand = with_box();
    let dir = stand.path().display().to_string();
    std::fs::write(stand.path().join("in"), "from a file\n").unwrap();
    for verb in ["run", "shell"] {
        for (redirection, kinds) in [
            (String::new(), "ttt"),
            (format!("< {dir}/in"), "-tt"),
            ("< /dev/null".to_owned(), "-tt"),
            (format!("> {dir}/out"), "t-t"),
            (format!("2> {dir}/err"), "tt-"),
            (format!("< {dir}/in > {dir}/out"), "--t"),
            (format!("> {dir}/out 2> {dir}/err"), "t--"),
            (format!("< {dir}/in 2>&1 | cat"), "---"),
            (" | cat".to_owned(), "t-t"),
        ] {
            let script = format!("\"$H5I\" box {verb} a -- sh -c '{LOOK}' {redirection}");
            let mut seat = Seat::with(&stand, "/bin/sh", &["-c", &script], &[]);
            assert_eq!(seat.end(), (0, Vec::new()), "{script}");
            let seen = std::fs::read_to_string(stand.box_dir("a").join("box/home/kinds")).unwrap();
            assert_eq!(seen, kinds, "{script}");
            assert!(seat.is_restored(), "{script}");
        }
    }
}

#[test]
fn bytes_go_where_they_are_sent() {
    let stand = with_box();
    let dir = stand.path().display().to_string();
    let script = format!(
        "printf 'one\\n' | \"$H5I\" box run a -- sh -c 'cat; echo two; echo three >&2' > {dir}/out"
    );
    let mut seat = Seat::with(&stand, "/bin/sh", &["-c", &script], &[]);
    assert_eq!(seat.end(), (0, b"three\r\n".to_vec()));
    assert_eq!(std::fs::read(stand.path().join("out")).unwrap(), b"one\ntwo\n");
    let script = format!("\"$H5I\" box shell a -- sh -c 'echo two; echo three >&2' 2> {dir}/err");
    let mut seat = Seat::with(&stand, "/bin/sh", &["-c", &script], &[]);
    assert_eq!(seat.end(), (0, b"two\r\n".to_vec()));
    assert_eq!(std::fs::read(stand.path().join("err")).unwrap(), b"three\n");
}

#[test]
fn a_shell_whose_output_goes_elsewhere_is_still_typed_at() {
    let stand = with_box();
    let dir = stand.path().display().to_string();
    for elsewhere in [format!("> {dir}/out"), format!("| cat > {dir}/out")] {
        let script = format!(
            "\"$H5I\" box shell a -- sh -c 'echo ready >&2; read l; echo got=$l' {elsewhere}"
        );
        let mut seat = Seat::with(&stand, "/bin/sh", &["-c", &script], &[]);
        seat.expect("ready\r\n");
        seat.line("text");
        seat.end();
        assert_eq!(std::fs::read_to_string(stand.path().join("out")).unwrap(), "got=text\n");
        assert!(seat.is_restored());
    }
}
