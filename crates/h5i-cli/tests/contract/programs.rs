//! What programs a box ran, as people and programs are told.

use crate::stand::Stand;

/// Starts programs and removes what would tell of them.
const SCRIPT: &str = "/bin/echo $TOKEN > /dev/null; (setsid sh -c 'exit 41' &); rm -f postinstall";

#[test]
fn what_a_script_started_is_in_log_receipt_and_report_although_it_left_no_trace() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let token = format!("ghp_{}", "a".repeat(36));
    let script = format!(
        "echo \"{}\" > postinstall; sh postinstall; exit 3",
        SCRIPT.replace("$TOKEN", &token)
    );
    stand.h5i(&["box", "run", "a", "--", "sh", "-c", &script]);
    let log = stand.ok(&["box", "log", "a", "--lane", "kernel"]);
    for part in [
        "asks for /usr/bin/sh in /work: sh postinstall",
        "asks for /bin/echo in /work: /bin/echo [redacted: code host token]",
        "asks for /usr/bin/rm in /work: rm -f postinstall",
        "is /usr/bin/rm",
        "ended: exit 3 after",
    ] {
        assert!(log.text().contains(part), "{part}: {}", log.text());
    }
    let bundle = stand.export("a");
    let read = |name: &str| std::fs::read_to_string(bundle.join(name)).unwrap();
    let report = read("report.md");
    for line in
        [": exit 3 after", "- › › `/usr/bin/sh` `postinstall`", "- › › › `/bin/echo` `[redacted"]
    {
        assert!(report.contains(line), "{line}: {report}");
    }
    assert!(read("report.html").contains("<code>/usr/bin/sh</code> <code>postinstall</code>"));
    let receipt: serde_json::Value = serde_json::from_str(&read("receipt.json")).unwrap();
    let kinds: Vec<&str> = receipt["records"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|record| record["kind"].as_str())
        .collect();
    assert!(kinds.contains(&"exec-attempt") && kinds.contains(&"process-end"), "{kinds:?}");
    for name in ["report.md", "report.html", "receipt.json"] {
        assert!(!read(name).contains(&token), "{name}");
    }
    stand.ok(&["receipt", "verify", bundle.to_str().unwrap()]);
}

#[test]
fn the_last_lines_of_a_one_shot_say_what_ran_and_where_to_read_more() {
    let stand = Stand::new();
    let said = stand.h5i(&["run", "--", "sh", "-c", "/bin/true; /bin/true; /bin/echo x; exit 1"]);
    assert_eq!(said.code, 1);
    let line = said.err.lines().find(|line| line.starts_with("ran ")).unwrap_or_default();
    assert!(line.starts_with("ran      4 programs (true ×2, sh, echo)"), "{}", said.err);
    assert!(line.contains("h5i box log sh-") && line.ends_with(" --lane kernel"), "{line}");
    // A box that is gone has no log to be asked for.
    let said = stand.h5i(&["run", "--", "true"]);
    let line = said.err.lines().find(|line| line.starts_with("ran ")).unwrap_or_default();
    assert_eq!((said.code, line), (0, "ran      1 program (true)"));
}

#[test]
fn a_refusal_that_a_setting_would_allow_names_the_setting() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let said = stand.h5i(&["box", "run", "a", "--", "python3", "-c", PERSONALITY]);
    assert!(said.err.contains("allow at create: --set 'debuggers=\"allowed\"'"), "{}", said.err);
    // The twin: with the setting nothing of the kind is refused.
    stand.ok(&["box", "create", "b", "--set", "debuggers=\"allowed\""]);
    let said = stand.h5i(&["box", "run", "b", "--", "python3", "-c", PERSONALITY]);
    assert!(!said.err.contains("refused"), "{}", said.err);
    let said = stand.h5i(&["box", "run", "a", "--", "unshare", "--user", "true"]);
    assert!(said.err.contains("nothing allows it"), "{}", said.err);
}

/// Switches address randomisation off, as debuggers do.
const PERSONALITY: &str = "import ctypes; ctypes.CDLL(None).personality(0x40000)";
