//! What belongs to a run ends with it when it is stopped, and lives on when it ends by itself.

use std::time::Duration;

use h5i_testkit::Moment;

use crate::going::{Going, records, with_box};
use crate::stand::Stand;

/// Daemons in every form, which write their ids to a directory.
const DAEMONS: &str = "mkdir -p /tmp/$D; one() { exec sleep 1000; }; \
    setsid sh -c 'echo $$ > /tmp/$D/1; exec sleep 1000' & \
    (setsid sh -c 'trap \"\" TERM HUP INT; echo $$ > /tmp/$D/2; exec sleep 1000' &) ; \
    (setsid sh -c '(echo $$ > /tmp/$D/3; exec sleep 1000 > /dev/null 2>&1 < /dev/null) & exit' &) ; \
    while [ ! -s /tmp/$D/1 ] || [ ! -s /tmp/$D/2 ] || [ ! -s /tmp/$D/3 ]; do sleep 0.02; done; ";

/// How many of the sleeps there are, once they are as many as that, or after 20 seconds: who has
/// written its number may not have become a sleep yet, and who was ended may still be on its way out.
fn count(stand: &Stand, wanted: u32) -> u32 {
    let script = format!(
        "i=0; while n=$(ps -eo args= | grep -c '^sleep 1000$'); \
         [ $n -ne {wanted} ] && [ $i -lt 400 ]; do i=$((i + 1)); sleep 0.05; done; echo $n"
    );
    stand.sh("a", &script).parse().unwrap()
}

#[test]
fn a_deadline_ends_all_that_a_joined_run_started_and_nothing_else() {
    let stand = with_box();
    let holder = Going::waiting(&stand);
    let leave = format!("D=left; export D; {DAEMONS} exit 0");
    stand.sh("a", &leave);
    // What a run leaves when it ends by itself lives on, as at home.
    assert_eq!(count(&stand, 3), 3);
    let begun = Moment::now();
    let stay = format!("D=stopped; export D; {DAEMONS} echo all; sleep 1000");
    let words = ["box", "run", "a", "--timeout", "8s", "--", "sh", "-c", stay.as_str()];
    let mut stopped = Going::h5i(&stand, &words);
    assert_eq!(stopped.line(), "all");
    assert_eq!(count(&stand, 7), 7);
    // Its daemons hold its output: the end of that is theirs.
    let stopped = stopped.end();
    assert_eq!(stopped.code, 124, "{}", stopped.err);
    assert!(begun.elapsed() < Duration::from_secs(8 + 4), "{:?}", begun.elapsed());
    assert_eq!(count(&stand, 3), 3);
    assert_eq!(holder.end().code, 7);
}

#[test]
fn a_deadline_of_the_first_run_leaves_the_others_what_is_theirs() {
    let stand = with_box();
    let script = format!("D=first; export D; {DAEMONS} echo here; sleep 1000");
    let words = ["box", "run", "a", "--timeout", "8s", "--", "sh", "-c", script.as_str()];
    let mut first = Going::h5i(&stand, &words);
    assert_eq!(first.line(), "here");
    assert_eq!(count(&stand, 4), 4);
    let mut second = Going::waiting(&stand);
    assert_eq!(count(&stand, 0), 0);
    second.type_line("alive");
    assert_eq!(second.line(), "alive");
    assert_eq!(second.end().code, 7);
    assert_eq!(first.end().code, 124);
}

#[test]
fn what_forks_as_fast_as_it_can_ends_at_its_deadline_and_alone() {
    let stand = Stand::new();
    // As many as this are a bomb. Beside more of them nothing of this machine comes to its turn.
    stand.ok(&["box", "create", "a", "--set", "limits.processes=200"]);
    let mut holder = Going::waiting(&stand);
    for script in [
        "f() { f | f & }; f 2> /dev/null; sleep 1000",
        "while :; do (setsid sh -c 'sleep 0.01; exec sleep 1000' &) ; done 2> /dev/null",
    ] {
        let words = ["box", "run", "a", "--timeout", "1s", "--json", "--", "bash", "-c", script];
        let said = stand.h5i(&words);
        let run: crate::shapes::BoxRun = said.data();
        assert_eq!((run.exit_code, said.code), (124, 124), "{run:?}");
        holder.type_line("alive");
        assert_eq!(holder.line(), "alive");
        let told = stand.ok(&["box", "status", "a", "--json"]).json();
        // What has ended may not have been waited for.
        let all = told["data"]["session"]["processes"].as_array().unwrap();
        let alive = all.iter().filter(|process| process["state"] != "Z").count();
        assert_eq!(alive, 2, "the holder's two: {told}");
    }
    assert_eq!(holder.end().code, 7);
}

#[test]
fn a_run_that_kills_its_keeper_ends_the_box() {
    let stand = with_box();
    let holder = Going::waiting(&stand);
    // Asked by a signal that can be held back, it stays.
    stand.sh("a", "kill -TERM $PPID; kill -HUP $PPID; kill -USR1 $PPID; sleep 0; echo still");
    let said = stand.h5i(&["box", "run", "a", "--", "sh", "-c", "kill -9 $PPID; sleep 1000"]);
    assert_eq!(said.code, 125, "{}", said.err);
    assert_eq!(holder.end().code, 125);
    let broken = records(&stand).iter().filter(|r| r["outcome"] == "cut-off").count();
    assert_eq!(broken, 2);
    assert_eq!(stand.sh("a", "echo again"), "again");
}
