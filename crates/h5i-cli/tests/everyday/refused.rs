//! What a box does not give fails with a word of its own, and at once.

use h5i_testkit::{Need, have};

use crate::table::with_box;

#[test]
fn programs_that_would_gain_privileges_say_why_they_do_not() {
    let stand = with_box();
    for program in ["su", "newgrp", "passwd", "chfn", "mount", "sudo"] {
        let path = format!("/usr/bin/{program}");
        if std::fs::metadata(&path).is_err() {
            continue;
        }
        let script =
            format!("timeout 60 {path} </dev/null >/tmp/out 2>&1; echo $?; cat /tmp/out | wc -c");
        let told = stand.sh("a", &script);
        let (code, words) = told.split_once('\n').unwrap();
        match program {
            // Without a word to do it lists what is mounted.
            "mount" => assert_eq!(code, "0", "{told}"),
            _ => assert!(!["0", "124", "137"].contains(&code) && words != "0", "{program}: {told}"),
        }
    }
    assert_eq!(
        stand.sh("a", "mount -t tmpfs x /tmp 2>/dev/null; test $? -ne 0 && echo refused"),
        "refused"
    );
    // Nobody became anybody.
    assert_eq!(
        stand.sh("a", "grep -E '^(Uid|CapPrm)' /proc/self/status | tr -s '\\t\\n' '  '"),
        "Uid: 1000 1000 1000 1000 CapPrm: 0000000000000000"
    );
}

#[test]
fn a_sandbox_in_the_box_fails_at_once_and_is_on_record() {
    let stand = with_box();
    for (program, script, call) in [
        ("/usr/bin/bwrap", "bwrap --ro-bind / / true", "refused clone"),
        ("/usr/bin/unshare", "unshare -r true", "refused unshare"),
    ] {
        if !have("a_sandbox_in_the_box_fails_at_once_and_is_on_record", Need::Program(program)) {
            continue;
        }
        let told = stand.sh("a", &format!("timeout 60 {script} 2>/tmp/e; echo $?; head -1 /tmp/e"));
        let (code, words) = told.split_once('\n').unwrap();
        assert!(code == "1" && words.to_lowercase().contains("permi"), "{told}");
        assert!(stand.ok(&["box", "log", "a", "--denied"]).text().contains(call));
    }
    // The twin: what it would have run, runs.
    stand.sh("a", "true");
}

#[test]
fn names_and_addresses_beyond_the_box_fail_at_once() {
    let stand = with_box();
    let script = "timeout 60 getent hosts example.com; echo $?; \
                  timeout 60 bash -c 'echo > /dev/tcp/192.0.2.1/80' 2>/dev/null; echo $?";
    assert_eq!(stand.sh("a", script), "2\n1");
}
