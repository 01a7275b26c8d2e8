//! A person's word before a bundle is applied.

use std::io::Write as _;
use std::process::Stdio;

use crate::at_terminal::{read_all, terminal};
use crate::stand::{Said, Stand};

/// Applies at a terminal and answers; what was shown, and the exit code.
fn answered(stand: &Stand, name: &str, answer: &str) -> (String, i32) {
    let out = stand.path().join(format!("{name}.out"));
    let (mut person, program) = terminal();
    let mut command = stand.command();
    command.args(["box", "apply", name, "--bundle", out.to_str().unwrap()]);
    command.stdin(Stdio::from(program.try_clone().unwrap()));
    command.stderr(Stdio::from(program)).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    person.write_all(answer.as_bytes()).unwrap();
    let shown = read_all(&mut person);
    (shown, child.wait().unwrap().code().unwrap())
}

#[test]
fn a_person_sees_digest_and_files_and_decides() {
    let stand = Stand::with_identity();
    let script = "echo '{\"scripts\":{}}' > package.json; echo x > x; unshare -U true; true";
    stand.exported("a", script);
    let digest =
        stand.ok(&["receipt", "verify", "a.out", "-C", stand.path().to_str().unwrap(), "--json"]);
    let digest = digest.json()["data"]["bundle"].as_str().unwrap().to_owned();
    let (shown, code) = answered(&stand, "a", "n\n");
    assert_eq!(code, 4, "{shown}");
    assert!(shown.contains(&digest) && shown.contains("to new branch h5i/a? [y/N]"), "{shown}");
    assert!(shown.contains("## Look here first") && shown.contains("package.json"), "{shown}");
    assert!(shown.contains("## Files") && !shown.contains("## What ran"), "{shown}");
    assert_eq!(stand.ground.git(&["for-each-ref", "refs/heads/h5i"]), "");
    // Nothing is no consent either.
    assert_eq!(answered(&stand, "a", "\n").1, 4);
    let (shown, code) = answered(&stand, "a", "y\n");
    assert_eq!(code, 0, "{shown}");
    stand.ground.git(&["rev-parse", "h5i/a"]);
}

#[test]
fn without_a_terminal_the_word_has_to_be_given_before() {
    let stand = Stand::with_identity();
    let out = stand.exported("a", "echo x > x");
    let words = ["box", "apply", "a", "--bundle", out.to_str().unwrap()];
    for words in [&words[..], &[&words[..], &["--json"]].concat()] {
        let said = Said::of(stand.command().args(words).output().unwrap());
        assert_eq!(said.code, 4, "{said:?}");
        assert!(format!("{}{}", said.err, said.text()).contains("--yes"), "{said:?}");
    }
    assert_eq!(stand.ground.git(&["for-each-ref", "refs/heads/h5i"]), "");
    stand.applied("a", &[]);
}
