//! What the record of programs costs: the same work in a box with it and in one without, paired and
//! interleaved.
//!
//! `cargo bench -p h5i-confine --bench exec_record -- [PAIRS]` prints the median of the ratios of a
//! loop that starts programs, of a compile, and of a session with one program.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench: its output is its report, and a failure a panic"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use h5i_confine::{Event, EventSink, Layout, Outcome, Plan, SinkClosed, system_grants};
use h5i_policy::ResolvedPolicy;
use h5i_testkit::BoxDirs;

const PAIRS: usize = 21;

/// Programs that start programs, and whether `cc` is needed for them.
const WORK: [(&str, &str); 3] = [
    ("one program", "exit 0"),
    ("500 programs in a loop", "i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i+1)); done"),
    (
        "20 compiles",
        "i=0; while [ $i -lt 20 ]; do \
         printf '#include <stdio.h>\\n#include <stdlib.h>\\nint f(int x){return printf(\"%%d\",x);}' \
         > /tmp/x.c; cc -O1 -c -o /tmp/x.o /tmp/x.c || exit 1; i=$((i+1)); done",
    ),
];

/// Counts what a log would write.
#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl EventSink for Counter {
    fn event(&self, event: Event) -> Result<(), SinkClosed> {
        if matches!(event, Event::ExecAttempt(_)) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn main() {
    let pairs = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(PAIRS);
    let dirs = BoxDirs::new().unwrap();
    let mut policy = ResolvedPolicy::default();
    policy.fs.read = system_grants();
    let layout = Layout::new(dirs.work(), dirs.home());
    let layout = match dirs.host_id() {
        Some(id) => layout.host_id(id),
        None => layout,
    };
    let with = Plan::for_host(&policy, &layout).unwrap();
    let without = with.clone().without_exec_record();
    println!("{:<26}{:>12}{:>12}{:>10}{:>12}", "", "without ms", "with ms", "ratio", "programs");
    for (name, line) in WORK {
        let (mut a, mut b, mut ratios, mut programs) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for pair in 0..=pairs {
            let ((off, _), (on, seen)) = if pair % 2 == 0 {
                let first = timed(&without, line);
                (first, timed(&with, line))
            } else {
                let second = timed(&with, line);
                (timed(&without, line), second)
            };
            // The first pair only warms both sides up.
            if pair > 0 {
                a.push(off.as_secs_f64() * 1e3);
                b.push(on.as_secs_f64() * 1e3);
                ratios.push(on.as_secs_f64() / off.as_secs_f64());
            }
            programs = seen;
        }
        let [a, b, ratio] = [a, b, ratios].map(median);
        println!("{name:<26}{a:>12.2}{b:>12.2}{ratio:>10.3}{programs:>12}");
    }
}

fn timed(plan: &Plan, line: &str) -> (Duration, u64) {
    let counter = Arc::new(Counter::default());
    let started = Instant::now();
    let session = plan.start(Arc::clone(&counter) as Arc<dyn EventSink>).unwrap();
    let outcome = session.command("/bin/sh").args(["-c", line]).status().unwrap();
    drop(session);
    let took = started.elapsed();
    assert_eq!(outcome, Outcome::Exited(0));
    (took, counter.0.load(Ordering::Relaxed))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
