//! Shells that join a session, each at a terminal of its own.

use crate::going::{Going, with_box};
use crate::seat::Seat;

#[test]
fn an_interrupt_in_one_shell_does_not_disturb_another() {
    let stand = with_box();
    let mut first = Seat::h5i(&stand, &["box", "shell", "a"]);
    first.expect("box@a:/work$ ");
    let mut second = Seat::h5i(&stand, &["box", "shell", "a"]);
    second.expect("box@a:/work$ ");
    first.line("sh -c 'printf st; echo arted; read l; printf go; echo t=$l'");
    first.expect("started\r\n");
    second.line("sh -c 'printf st; echo arted; exec sleep 1000'");
    second.expect("started\r\n");
    second.type_in("\x03");
    second.expect("box@a:/work$ ");
    second.line("echo code=$?=; tty; stty size");
    second.expect("code=130=");
    second.expect("/dev/pts/");
    second.expect("24 80");
    second.resize(30, 100);
    second.insist(|seat, _| seat.line("stty size"), "30 100");
    // A job is stopped and brought back in the one that joined.
    second.line("sh -c 'printf wa; echo its; read line; printf ba; echo ck=$line'");
    second.expect("waits\r\n");
    second.type_in("\x1a");
    second.expect("Stopped");
    second.line("fg");
    second.expect("sh -c");
    second.type_in("again\n");
    second.expect("back=again");
    first.type_in("word\n");
    first.expect("got=word");
    second.line("exit 5");
    assert_eq!(second.end().0, 5);
    assert!(second.is_restored());
    first.line("exit 6");
    assert_eq!(first.end().0, 6);
}

#[test]
fn a_shell_whose_terminal_closes_ends_alone() {
    let stand = with_box();
    let holder = Going::waiting(&stand);
    let mut shell = Seat::h5i(&stand, &["box", "shell", "a"]);
    shell.expect("box@a:/work$ ");
    shell.line("echo $$ > /tmp/shell; printf wri; echo tten");
    shell.expect("written");
    drop(shell);
    let waits = "while kill -0 $(cat /tmp/shell) 2> /dev/null; do sleep 0.02; done; echo gone";
    assert_eq!(stand.sh("a", waits), "gone");
    assert_eq!(holder.end().code, 7);
}
