//! In a pipeline the terminal has several users: keys go to the one that asks for them.

use h5i_testkit::{Need, have};
use rustix::termios::LocalModes;

use crate::seat::{Seat, with_box};

#[test]
fn a_pager_of_the_host_gets_its_keys_from_behind_a_run() {
    if !have("a_pager_of_the_host_gets_its_keys_from_behind_a_run", Need::Program("/usr/bin/less"))
    {
        return;
    }
    let stand = with_box();
    stand.sh("a", "mkfifo ~/gate");
    let mut seat = Seat::shell(&stand);
    // The run lives as long as the pager: every key could go astray.
    seat.line("\"$H5I\" box run a -- sh -c 'seq 1 500; cat ~/gate' | less");
    seat.expect("\r\n23\r\n");
    for page in 2..20 {
        seat.type_in(" ");
        seat.expect(format!("\r\n{}\r\n", page * 23));
    }
    seat.type_in("q");
    seat.expect("\x1b[?1049l");
    // The run goes on without a reader until it has nothing more to wait for.
    let gate = stand.box_dir("a").join("box/home/gate");
    drop(std::fs::File::options().write(true).open(gate).unwrap());
    seat.expect("host> ");
    assert!(seat.modes().local_modes.contains(LocalModes::ICANON));
    seat.line("exit 0");
    seat.end();
}

#[test]
fn a_pager_of_the_box_gets_its_keys_at_the_end_of_a_pipeline() {
    if !have(
        "a_pager_of_the_box_gets_its_keys_at_the_end_of_a_pipeline",
        Need::Program("/usr/bin/less"),
    ) {
        return;
    }
    let stand = with_box();
    let script = "seq 1 500 | \"$H5I\" box run a -- less";
    let mut seat = Seat::with(&stand, "/bin/sh", &["-c", script], &[]);
    seat.expect("23\r");
    seat.until(|modes| !modes.local_modes.contains(LocalModes::ICANON));
    seat.type_in("G");
    // By now line ends are translated once.
    seat.expect("499\r\n500\r\n");
    seat.type_in("q");
    assert_eq!(seat.end().0, 0);
    assert!(seat.is_restored());
}

#[test]
fn a_password_for_the_host_never_reaches_the_box() {
    let stand = with_box();
    let mut seat = Seat::shell(&stand);
    // A program of the host that hides what is typed, beside a run that would read it.
    seat.line(
        "\"$H5I\" box run a -- sh -c '> ~/stolen; echo up; exec cat >> ~/stolen' | bash -c 'read up; stty -echo </dev/tty; printf pass; echo word: ; \
         read p </dev/tty; stty echo </dev/tty; echo got=$p=; read q </dev/tty'",
    );
    seat.expect("password:");
    seat.line("secret");
    seat.expect("got=secret=");
    seat.type_in("\x03");
    seat.expect("host> ");
    assert_eq!(std::fs::read(stand.box_dir("a").join("box/home/stolen")).unwrap(), b"");
    seat.line("exit 0");
    seat.end();
}

#[test]
fn a_line_typed_at_a_run_in_a_pipeline_arrives() {
    let stand = with_box();
    let mut seat = Seat::shell(&stand);
    seat.line("\"$H5I\" box run a -- sh -c 'echo ready; read l; echo got=$l=; read l; echo got=$l=' | cat");
    seat.expect("ready\r\n");
    seat.line("first");
    seat.expect("got=first=");
    seat.line("second");
    seat.expect("got=second=");
    seat.expect("host> ");
    assert!(seat.modes().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO));
    seat.line("exit 0");
    seat.end();
}

#[test]
fn a_password_of_the_box_is_not_shown() {
    let stand = with_box();
    let script = "echo x | \"$H5I\" box run a -- bash -c \
                  'read -rsp pass: p </dev/tty; echo; echo got=$p='";
    let mut seat = Seat::with(&stand, "/bin/sh", &["-c", script], &[]);
    seat.expect("pass:");
    seat.until(|modes| !modes.local_modes.contains(LocalModes::ECHO));
    seat.type_in("hidden\r");
    assert_eq!(seat.expect("got="), b"\r\n");
    seat.expect("hidden=");
    assert_eq!(seat.end().0, 0);
    assert!(seat.is_restored());
}
