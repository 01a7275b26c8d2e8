//! One session for thousands of runs: nothing grows in the process that holds it.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::holder_figures::settled;
use crate::stand::Stand;

/// Yields what the holder had after the first runs and at the end.
pub(crate) fn one_session(runs: u64) -> [[u64; 3]; 2] {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let mut holder = stand.command();
    holder.args(["box", "run", "a", "--", "sh", "-c", "echo here; cat; exit 7"]);
    // An arena for each thread that allocates beside another would look like growth.
    holder.env("MALLOC_ARENA_MAX", "1");
    let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(holder.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    let run = |number: u64| {
        let script = format!("echo {number}; exit {}", number % 100);
        let said = stand.h5i(&["box", "run", "a", "--", "sh", "-c", &script]);
        assert_eq!((said.code, said.text()), ((number % 100) as i32, &*format!("{number}\n")));
    };
    // Of processes that have ended some two thousand are remembered.
    let warm = (runs / 2).max(50);
    (0..warm).for_each(run);
    let before = settled(holder.id(), u64::MAX);
    (warm..runs).for_each(run);
    let after = settled(holder.id(), before[0]);
    assert!(after[2] <= before[2] + 512, "memory grew: {before:?} {after:?}");
    drop(holder.stdin.take());
    assert_eq!(holder.wait().unwrap().code(), Some(7));
    [before, after]
}
