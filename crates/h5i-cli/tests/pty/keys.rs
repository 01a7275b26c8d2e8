//! What is typed arrives as typed, and what is shown is shown as written.

use crate::seat::{Seat, with_box};

#[test]
fn every_byte_passes_untouched_in_raw_mode() {
    let stand = with_box();
    let script =
        "stty raw -echo; printf ready; head -c 512 | od -An -v -tx1 | tr -d ' \\n'; printf end";
    let mut seat = Seat::h5i(&stand, &["box", "shell", "a", "--", "sh", "-c", script]);
    seat.expect("ready");
    let bytes: Vec<u8> = (0..=255u8).chain((0..=255).rev()).collect();
    seat.type_in(&bytes);
    let seen = seat.expect("end");
    let wanted: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(String::from_utf8(seen).unwrap(), wanted);
    assert_eq!(seat.end(), (0, Vec::new()));
}

#[test]
fn mouse_and_bracketed_paste_pass_untouched() {
    let stand = with_box();
    let script = "stty raw -echo; printf '\\033[?1000h\\033[?1006h\\033[?2004h'; printf ready;
                  head -c 37 | cat -v; printf end";
    let mut seat = Seat::h5i(&stand, &["box", "shell", "a", "--", "sh", "-c", script]);
    assert_eq!(seat.expect("ready"), b"\x1b[?1000h\x1b[?1006h\x1b[?2004h");
    seat.type_in("\x1b[<0;12;7M\x1b[<0;12;7m\x1b[200~a\rb\x1b[201~\x1b[");
    assert_eq!(seat.expect("end"), b"^[[<0;12;7M^[[<0;12;7m^[[200~a^Mb^[[201~^[[");
    assert_eq!(seat.end().0, 0);
}

#[test]
fn colours_links_and_any_byte_of_output_pass_untouched() {
    let stand = with_box();
    let sequences =
        "\x1b[38;2;1;2;3mtrue\x1b[0m\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\\u{1F980}";
    std::fs::write(stand.box_dir("a").join("box/home/out"), sequences).unwrap();
    let mut seat = Seat::h5i(&stand, &["box", "run", "a", "--", "cat", "/home/box/out"]);
    assert_eq!(seat.end(), (0, sequences.as_bytes().to_vec()));
    // Line ends are the box's terminal's to translate, once.
    let mut seat = Seat::h5i(&stand, &["box", "run", "a", "--", "printf", "a\\nb\\r\\n"]);
    assert_eq!(seat.end(), (0, b"a\r\nb\r\r\n".to_vec()));
}

#[test]
fn a_paste_of_a_megabyte_arrives_whole() {
    let stand = with_box();
    let script = "stty raw -echo; printf ready; head -c 1048576 > ~/pasted; printf end";
    let mut seat = Seat::h5i(&stand, &["box", "shell", "a", "--", "sh", "-c", script]);
    seat.expect("ready");
    let text: Vec<u8> =
        (0..1_048_576u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    seat.type_in(&text);
    seat.expect("end");
    assert_eq!(seat.end().0, 0);
    let pasted = std::fs::read(stand.box_dir("a").join("box/home/pasted")).unwrap();
    assert!(pasted == text, "{} bytes", pasted.len());
}

#[test]
fn a_line_is_edited_with_the_keys_of_the_callers_terminal() {
    let stand = with_box();
    let mut seat = Seat::shell(&stand);
    seat.line("stty erase '#' iutf8; \"$H5I\" box run a -- sh -c 'printf re; echo ady; read l; echo got=$l='");
    seat.expect("ready\r\n");
    // Two bytes, erased as one character.
    seat.type_in("ab\u{e9}##c\r");
    seat.expect("got=ac=");
    seat.expect("host> ");
    seat.line("exit 0");
    seat.end();
}

#[test]
fn the_size_is_the_callers_and_follows_it() {
    let stand = with_box();
    let script = "stty size; trap 'stty size; exit 5' WINCH; printf re; echo ady; while :; do sleep 1000 & wait; done";
    let mut seat = Seat::h5i(&stand, &["box", "shell", "a", "--", "bash", "-c", script]);
    seat.expect("24 80\r\n");
    seat.expect("ready");
    seat.resize(50, 132);
    seat.expect("50 132\r\n");
    assert_eq!(seat.end().0, 5);
}

#[test]
fn the_kind_of_terminal_is_told_and_it_has_a_name() {
    let stand = with_box();
    let words = [
        "box",
        "run",
        "a",
        "--",
        "sh",
        "-c",
        "tty; echo $TERM $COLORTERM; test -r /dev/tty && echo own",
    ];
    let mut seat = Seat::with(&stand, crate::stand::H5I, &words, &[("COLORTERM", "truecolor")]);
    let (code, shown) = seat.end();
    let shown = String::from_utf8(shown).unwrap();
    assert_eq!((code, shown.as_str()), (0, "/dev/pts/0\r\nxterm-256color truecolor\r\nown\r\n"));
}
