//! However a run ends, the terminal is as it was found, and nothing but its own bytes was shown.

use rustix::process::Signal;
use rustix::termios::LocalModes;

use crate::seat::{Seat, is_held, with_box};

#[test]
fn output_and_exit_code_are_the_commands_and_no_byte_more() {
    let stand = with_box();
    for verb in ["shell", "run"] {
        let words = ["box", verb, "a", "--", "sh", "-c", "printf hi; printf ho >&2; exit 7"];
        let mut seat = Seat::h5i(&stand, &words);
        assert_eq!(seat.end(), (7, b"hiho".to_vec()), "{verb}");
        assert!(seat.is_restored(), "{verb}");
    }
}

#[test]
fn the_terminal_is_restored_whatever_the_end() {
    let stand = with_box();
    for (script, code) in [
        ("printf here; exit 0", 0),
        ("printf here; kill -KILL $$", 137),
        ("printf here; kill -SEGV $$", 139),
        ("stty raw -echo; printf here; exit 1", 1),
    ] {
        let mut seat = Seat::h5i(&stand, &["box", "shell", "a", "--", "sh", "-c", script]);
        seat.expect("here");
        assert_eq!(seat.end().0, code, "{script}");
        assert!(seat.is_restored(), "{script}");
    }
    let mut seat = Seat::h5i(&stand, &["box", "shell", "a", "--", "/nonexistent"]);
    let (code, shown) = seat.end();
    assert!(code == 127 && seat.is_restored(), "{code} {}", String::from_utf8_lossy(&shown));
    let mut seat = Seat::h5i(
        &stand,
        &["box", "shell", "a", "--timeout", "300ms", "--", "sh", "-c", "stty -echo; sleep 1000"],
    );
    assert_eq!(seat.end().0, 124);
    assert!(seat.is_restored());
}

#[test]
fn a_signal_to_h5i_ends_the_command_and_restores_the_terminal() {
    let stand = with_box();
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::QUIT, 131)] {
        let mut seat = Seat::h5i(
            &stand,
            &["box", "run", "a", "--", "sh", "-c", "printf here; exec sleep 1000"],
        );
        seat.expect("here");
        assert!(!seat.modes().local_modes.contains(LocalModes::ICANON), "raw meanwhile");
        seat.signal(signal);
        assert_eq!(seat.end().0, code);
        assert!(seat.is_restored());
    }
}

#[test]
fn a_terminal_that_is_closed_takes_the_box_with_it() {
    let stand = with_box();
    for (how, script) in [
        ("one that dies of it", "exec 9>~/held; flock 9; printf here; sleep 1000"),
        (
            "one that will not",
            "trap '' HUP TERM INT; exec 9>~/held; flock 9; printf here; while :; do sleep 1000; done",
        ),
        (
            "one that nobody waits for",
            "exec 9>~/held; flock 9; setsid sleep 1000 & printf here; wait",
        ),
    ] {
        let mut seat = Seat::h5i(&stand, &["box", "shell", "a", "--", "bash", "-c", script]);
        seat.expect("here");
        assert!(is_held(&stand), "{how}");
        let status = seat.hang_up();
        assert!(!status.success(), "{how}: {status}");
        assert!(!is_held(&stand), "{how}");
    }
    stand.ok(&["box", "run", "a", "--", "true"]);
}

#[test]
fn a_hang_up_that_was_ignored_from_the_start_ends_nothing() {
    let stand = with_box();
    let mut seat = Seat::with(
        &stand,
        "/bin/sh",
        &[
            "-c",
            "trap '' HUP; exec \"$H5I\" box run a -- sh -c 'printf here; read line; echo got $line'",
        ],
        &[],
    );
    seat.expect("here");
    seat.signal(Signal::HUP);
    seat.line("x");
    seat.expect("got x");
    assert_eq!(seat.end().0, 0);
}

#[test]
fn what_a_shell_left_in_the_background_ends_with_it() {
    let stand = with_box();
    let mut seat = Seat::h5i(&stand, &["box", "shell", "a"]);
    seat.expect("box@a:/work$ ");
    seat.line("flock ~/held sh -c 'printf st; echo arted; exec setsid sleep 1000' &");
    seat.expect("started\r\n");
    assert!(is_held(&stand));
    seat.line("exit 3");
    assert_eq!(seat.end().0, 3);
    assert!(!is_held(&stand));
    assert!(seat.is_restored());
}
