//! Programs that use the whole screen.

use h5i_testkit::{Need, have};

use crate::seat::{Seat, with_box};

#[test]
fn an_editor_opens_edits_and_saves() {
    if !have("an_editor_opens_edits_and_saves", Need::Program("/usr/bin/vi")) {
        return;
    }
    let stand = with_box();
    let mut seat = Seat::h5i(&stand, &["box", "shell", "a", "--", "vi", "-u", "NONE", "a.txt"]);
    seat.expect("one and more");
    seat.type_in("Onew first line\x1b:wq\r");
    assert_eq!(seat.end().0, 0);
    assert!(seat.is_restored());
    assert_eq!(stand.sh("a", "cat a.txt"), "new first line\none and more");
}

#[test]
fn a_pager_fills_the_screen_it_has() {
    if !have("a_pager_fills_the_screen_it_has", Need::Program("/usr/bin/less")) {
        return;
    }
    let stand = with_box();
    stand.sh("a", "seq 1 500 > ~/lines");
    let mut seat = Seat::h5i(&stand, &["box", "shell", "a", "--", "less", "/home/box/lines"]);
    // 23 lines and the prompt.
    seat.expect("\r\n23\r\n");
    seat.expect("/home/box/lines\x1b[27m\x1b[K");
    seat.insist(|seat, times| seat.resize(40 + times % 2, 80), "\r\n39\r\n");
    seat.type_in("G");
    seat.expect("500\r\n");
    seat.type_in("q");
    assert_eq!(seat.end().0, 0);
    assert!(seat.is_restored());
}

#[test]
fn a_pager_stops_and_comes_back_in_a_shell() {
    if !have("a_pager_stops_and_comes_back_in_a_shell", Need::Program("/usr/bin/less")) {
        return;
    }
    let stand = with_box();
    stand.sh("a", "seq 1 500 > ~/lines");
    let mut seat = Seat::h5i(&stand, &["box", "shell", "a"]);
    seat.expect("box@a:/work$ ");
    seat.line("less ~/lines");
    // Its prompt: it waits for keys.
    seat.expect("/home/box/lines\x1b[27m\x1b[K");
    seat.insist(|seat, _| seat.type_in("\x1a"), "Stopped");
    seat.expect("box@a:/work$ ");
    seat.line("fg");
    seat.expect("\r\n23\r\n");
    seat.type_in("q");
    seat.expect("box@a:/work$ ");
    seat.line("exit");
    assert_eq!(seat.end().0, 0);
    assert!(seat.is_restored());
}
