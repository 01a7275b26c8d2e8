//! Switches of export, diff, log and ls.

use std::process::Stdio;

use crate::at_terminal::{read_all, terminal};
use crate::stand::Stand;

#[test]
fn secrets_in_the_patch_are_refused_unless_they_are_meant_to_leave() {
    let stand = Stand::new();
    let secret = format!("ghp_{}", "A1b2".repeat(9));
    stand.ok(&["box", "create", "a"]);
    stand.sh("a", &format!("printf 'x\\n{secret}\\n' > key.txt"));
    let out = stand.path().join("a.out");
    let words = ["box", "export", "a", "--json", "-o", out.to_str().unwrap()];
    let said = stand.h5i(&words);
    let told = said.failure();
    assert_eq!((said.code, told.kind.as_str()), (4, "refused"));
    assert!(told.hint.unwrap().contains("--allow-secrets"));
    assert!(!out.try_exists().unwrap());
    stand.ok(&[&words[..], &["--allow-secrets"]].concat());
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    assert!(read("patch.diff").contains(&secret));
    for name in ["report.md", "report.html", "receipt.json"] {
        assert!(!read(name).contains(&secret), "{name}");
    }
    for name in ["report.md", "report.html"] {
        assert!(read(name).contains("line 2, holds what looks like a code host token"), "{name}");
    }
}

#[test]
fn a_terminal_gets_colour_and_a_pager_and_a_pipe_gets_bytes() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    stand.sh("a", "printf 'x\\033[2J\\n' > new");
    let plain = stand.ok(&["box", "diff", "a"]);
    assert!(plain.text().contains("+x\x1b[2J\n") && !plain.text().contains("\x1b[32m"));
    let on_terminal = |set: &[(&str, &str)]| {
        let (mut person, program) = terminal();
        let mut command = stand.command();
        command.args(["box", "diff", "a"]).envs(set.iter().copied());
        command.stderr(Stdio::null()).stdout(Stdio::from(program));
        let mut child = command.spawn().unwrap();
        drop(command);
        let shown = read_all(&mut person);
        assert_eq!(child.wait().unwrap().code(), Some(0));
        shown
    };
    let shown = on_terminal(&[("PAGER", "")]);
    assert!(shown.contains("\x1b[32m+x\\u{1b}[2J\x1b[m"), "{shown:?}");
    let shown = on_terminal(&[("PAGER", "cat"), ("NO_COLOR", "1")]);
    assert!(shown.contains("+x\\u{1b}[2J") && !shown.contains('\x1b'), "{shown:?}");
    // What the pager prints is all that is shown.
    let shown = on_terminal(&[("PAGER", "wc -l")]);
    let lines = plain.text().lines().count();
    assert_eq!(shown.trim(), lines.to_string());
}

#[test]
fn the_log_can_be_asked_from_a_moment_on() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    stand.sh("a", "true");
    let all = stand.ok(&["box", "log", "a", "--json"]);
    let lines: Vec<&str> = all.text().lines().collect();
    let number = lines.len();
    assert!(number > 3, "{lines:?}");
    let second: serde_json::Value = serde_json::from_str(lines[1]).unwrap();
    let since = |word: &str| {
        stand.ok(&["box", "log", "a", "--json", "--since", word]).text().lines().count()
    };
    assert_eq!(since(second["at"].as_str().unwrap()), number - 1);
    assert_eq!((since("1h"), since("2999-01-01T00:00:00.000000Z")), (number, 0));
    for wrong in ["yesterday", "2026-05-01T99:00:00.000000Z", "5"] {
        let said = stand.h5i(&["box", "log", "a", "--since", wrong, "--json"]);
        assert_eq!((said.code, said.failure().kind.as_str()), (2, "usage"), "{wrong}");
    }
}

#[test]
fn a_list_tells_what_a_box_is_for_and_when_it_ends() {
    let stand = Stand::new();
    let words = ["box", "create", "a", "--purpose", "mend it", "--set", "expires=\"72h\""];
    stand.ok(&words);
    stand.ok(&["box", "create", "b"]);
    let said = stand.ok(&["box", "ls"]);
    let lines: Vec<&str> = said.text().lines().collect();
    assert!(
        lines[0].ends_with("mend it · expires in 2 days")
            || lines[0].ends_with("mend it · expires in 3 days"),
        "{lines:?}"
    );
    assert!(!lines[1].contains('·'), "{lines:?}");
}
