//! Keys that send signals, and job control: inside as at home, and h5i itself as a job of a shell.

use rustix::termios::LocalModes;

use crate::seat::{Seat, with_box};

#[test]
fn keys_that_send_signals_reach_the_foreground_of_the_box() {
    let stand = with_box();
    let mut seat = Seat::h5i(&stand, &["box", "shell", "a"]);
    seat.expect("box@a:/work$ ");
    for (key, code) in [("\x03", "130"), ("\x1c", "131")] {
        // Started by an echo of its own: the key is for it and not for the shell.
        seat.line("sh -c 'printf st; echo arted; exec sleep 1000'");
        seat.expect("started\r\n");
        seat.type_in(key);
        seat.expect("box@a:/work$ ");
        seat.line("echo code=$?=");
        seat.expect(format!("code={code}="));
    }
    seat.line("exit");
    assert_eq!(seat.end().0, 0);
}

#[test]
fn a_job_is_stopped_listed_and_brought_back() {
    let stand = with_box();
    let mut seat = Seat::h5i(&stand, &["box", "shell", "a"]);
    seat.expect("box@a:/work$ ");
    seat.line("sh -c 'printf wa; echo its; read line; printf go; echo t=$line'");
    seat.expect("waits\r\n");
    seat.type_in("\x1a");
    seat.expect("Stopped");
    seat.expect("box@a:/work$ ");
    seat.line("jobs");
    seat.expect("Stopped");
    seat.line("fg");
    seat.expect("sh -c");
    // A line feed ends a line, whichever of the two has set the modes by now.
    seat.type_in("again\n");
    seat.expect("got=again");
    seat.expect("box@a:/work$ ");
    seat.type_in("\x04");
    assert_eq!(seat.end().0, 0);
    assert!(seat.is_restored());
}

#[test]
fn an_interrupt_reaches_all_of_a_pipeline_of_the_host() {
    let stand = with_box();
    let mut seat = Seat::shell(&stand);
    // Shared: h5i is in the middle of a pipeline and takes no key.
    seat.line("\"$H5I\" box run a -- sh -c 'echo started; exec sleep 1000' | cat");
    seat.expect("started\r\n");
    assert!(seat.modes().local_modes.contains(LocalModes::ISIG | LocalModes::ICANON));
    seat.type_in("\x03");
    seat.expect("host> ");
    seat.line("echo code=${PIPESTATUS[0]}=");
    seat.expect("code=130=");
    seat.line("exit 0");
    seat.end();
}

#[test]
fn h5i_is_a_job_that_stops_and_goes_on() {
    let stand = with_box();
    let mut seat = Seat::shell(&stand);
    seat.line("\"$H5I\" box run a -- sh -c 'printf re; echo ady; read line; echo got=$line=' 2>&1");
    seat.expect("ready\r\n");
    assert!(!seat.modes().local_modes.contains(LocalModes::ICANON));
    // From another window.
    let pid = stand_pid(&stand, "h5i");
    rustix::process::kill_process(pid, rustix::process::Signal::TSTP).unwrap();
    seat.expect("Stopped");
    seat.expect("host> ");
    seat.line("echo modes=$(stty -a | grep -o -- '-*icanon')=");
    seat.expect("modes=icanon=");
    seat.line("fg");
    seat.expect("box run");
    seat.line("text");
    seat.expect("got=text=");
    seat.expect("host> ");
    seat.line("exit 0");
    seat.end();
}

#[test]
fn a_command_in_the_background_of_a_shell_takes_no_key() {
    let stand = with_box();
    let mut seat = Seat::shell(&stand);
    seat.line("\"$H5I\" box run a -- sh -c 'read line; echo got=$line=' &");
    seat.expect("host> ");
    seat.line("echo for the shell");
    seat.expect("for the shell\r\n");
    seat.expect("host> ");
    seat.line("fg");
    seat.expect("box run");
    // The key may come before h5i is in front; then the caller's terminal keeps the line for it.
    seat.line("for the box");
    seat.expect("got=for the box=");
    seat.expect("host> ");
    seat.line("exit 0");
    seat.end();
}

/// The process of this program whose environment is the stand's.
fn stand_pid(stand: &crate::stand::Stand, name: &str) -> rustix::process::Pid {
    let home = format!("HOME={}", stand.home().display());
    for entry in std::fs::read_dir("/proc").unwrap() {
        let path = entry.unwrap().path();
        let comm = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        let environ = std::fs::read(path.join("environ")).unwrap_or_default();
        let ours = environ.split(|byte| *byte == 0).any(|part| part == home.as_bytes());
        if comm.trim() == name && ours {
            let pid = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
            return rustix::process::Pid::from_raw(pid).unwrap();
        }
    }
    panic!("no {name}");
}

#[test]
fn a_shell_without_a_boundary_has_the_terminal_and_its_keys() {
    let stand = crate::stand::Stand::new();
    stand.ok(&["box", "create", "a", "--tier", "workspace"]);
    let mut seat = Seat::h5i(&stand, &["box", "shell", "a", "--", "bash", "--norc", "-i"]);
    seat.line("PS1='in> '");
    seat.expect("in> ");
    seat.line("sh -c 'printf st; echo arted; exec sleep 1000'");
    seat.expect("started\r\n");
    seat.type_in("\x03");
    seat.expect("in> ");
    seat.line("exit 4");
    assert_eq!(seat.end().0, 4);
    // One that is no shell, and does not mind the key.
    let script = "trap 'echo caught; exit 6' INT; printf st; echo arted; while :; do sleep 1000 & wait; done";
    let mut seat = Seat::h5i(&stand, &["box", "run", "a", "--", "sh", "-c", script]);
    seat.expect("started\r\n");
    seat.type_in("\x03");
    seat.expect("caught");
    assert_eq!(seat.end().0, 6);
}
