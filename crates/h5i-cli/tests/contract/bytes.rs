//! Bytes pass through as they are, however many.

use crate::shapes::{BoxRun, Bytes, Encoded};
use crate::stand::Stand;

fn noise(length: u32) -> Vec<u8> {
    // Every byte value, in an order that no line or text has.
    (0..length).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect()
}

fn made() -> Stand {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a", "--set", "limits.output=\"300MiB\""]);
    stand
}

#[test]
fn binary_input_comes_back_unchanged() {
    let stand = made();
    let bytes = noise(3_000_000);
    let said = stand.h5i_reading(&["box", "run", "a", "--", "cat"], &bytes);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(said.out == bytes, "{} bytes of {}", said.out.len(), bytes.len());
}

#[test]
fn output_and_errors_stay_apart() {
    let stand = made();
    let script = "printf out; printf err >&2; printf '\\377\\000' ; printf '\\376' >&2";
    let words = ["box", "run", "a", "--", "sh", "-c", script];
    let output = stand.command().args(words).output().unwrap();
    assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"out\xff\0"[..], &b"err\xfe"[..]));
    let run: BoxRun = stand.ok(&["box", "run", "a", "--json", "--", "sh", "-c", script]).data();
    let encoded = |text: &str| Bytes::Encoded(Encoded { b64: text.to_owned() });
    assert_eq!((run.stdout, run.stderr), (encoded("b3V0/wA="), encoded("ZXJy/g==")));
    let run: BoxRun = stand.ok(&["box", "run", "a", "--json", "--", "echo", "é"]).data();
    assert_eq!(run.stdout, Bytes::Text("é\n".to_owned()));
}

#[test]
fn a_hundred_megabytes_of_output_arrive_whole() {
    let stand = made();
    let said = stand.ok(&["box", "run", "a", "--", "head", "-c", "100000000", "/dev/zero"]);
    assert_eq!(said.out.len(), 100_000_000);
    assert!(said.out.iter().all(|byte| *byte == 0));
}

#[test]
fn a_hundred_megabytes_of_input_arrive_whole() {
    let stand = made();
    let bytes = vec![b'x'; 100_000_000];
    let said = stand.h5i_reading(&["box", "run", "a", "--", "wc", "-c"], &bytes);
    assert_eq!(said.text().trim(), "100000000", "{}", said.err);
}

#[test]
fn arguments_arrive_as_they_are() {
    let stand = made();
    let words =
        ["box", "run", "a", "--", "printf", "[%s]", "", "a b", "--json", "-C", "*", "$HOME", "\n"];
    let said = stand.ok(&words);
    assert_eq!(said.text(), "[][a b][--json][-C][*][$HOME][\n]");
    let mut command = stand.command();
    command.args(["box", "run", "a", "--", "printf", "%s"]);
    let output = command.arg(crate::support::raw_name(b"caf\xe9")).output().unwrap();
    assert_eq!(output.stdout, b"caf\xe9");
}
