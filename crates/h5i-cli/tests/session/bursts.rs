//! Programs started as fast as may be.

use std::collections::BTreeMap;

use crate::going::{Going, records};
use crate::stand::Stand;

/// Processes that start programs at once, and how many each of them starts.
const PROCESSES: u64 = 4;
const EACH: u64 = 2500;

#[test]
fn ten_thousand_programs_in_a_burst_are_on_record_with_their_ends() {
    let stand = Stand::new();
    let program = stand.repo().join("burst");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/session/burst.c");
    let mut cc = stand.program("cc");
    let said = cc.args(["-O1", "-static", "-o"]).arg(&program).arg(source).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    stand.ground.commit("burst");
    stand.ok(&["box", "create", "a"]);
    let script = format!("echo here; ./burst {PROCESSES} {EACH} ./burst; echo $?");
    let mut burst = Going::sh(&stand, &script);
    assert_eq!(burst.line(), "here");
    // Another run comes and goes meanwhile.
    assert_eq!(stand.h5i(&["box", "run", "a", "--", "sh", "-c", "exit 9"]).code, 9);
    assert_eq!(burst.line(), "0", "each had its exit code");
    assert_eq!(burst.end().code, 0);
    let mut asked = BTreeMap::new();
    let (mut became, mut ended) = (BTreeMap::new(), BTreeMap::new());
    for record in records(&stand).iter().filter(|record| record["run"] == 1) {
        let proc = record["proc"].as_u64();
        match record["kind"].as_str().unwrap() {
            "exec-attempt" if record["argv"].as_array().unwrap().len() == 2 => {
                let number: u64 = record["argv"][1].as_str().unwrap().parse().unwrap();
                assert_eq!(asked.insert(number, proc), None, "{number} twice");
            }
            "exec" => drop(became.insert(proc, record["exe"].clone())),
            "process-end" => drop(ended.insert(proc, record["exit_code"].clone())),
            _ => {}
        }
    }
    assert!(asked.keys().copied().eq(0..PROCESSES * EACH), "{} are on record", asked.len());
    for (number, proc) in asked {
        assert_eq!(became[&proc], "/work/burst", "{number}");
        assert_eq!(ended[&proc], number % 100, "{number}");
    }
}
