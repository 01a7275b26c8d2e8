//! h5i is killed at a random moment, again and again, and before each of its steps: nothing of it
//! survives, nothing of the host changes, and the next command works.
//!
//! `H5I_SOAK_STEPS` is the number of steps of each verb before which it is killed (6), of a run three
//! times as many. `H5I_SOAK_LIVES` is the number of lives on each back end (20 where it is not set),
//! `H5I_SOAK_SEED` repeats what was printed. `H5I_SOAK_RUNS` is the number of runs that share one
//! session (200).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[allow(dead_code, unused_macros, reason = "the contract's tests use the rest")]
#[path = "../support/back_ends.rs"]
mod back_ends;
mod chance;
#[path = "../support/holder_figures.rs"]
mod holder_figures;
mod left;
mod life;
mod runs;
#[allow(dead_code, reason = "the contract's tests use the rest")]
#[path = "../contract/shapes.rs"]
mod shapes;
#[allow(dead_code, reason = "the contract's tests use the rest")]
#[path = "../contract/stand.rs"]
mod stand;
mod steps;
#[path = "../support/mod.rs"]
mod support;
mod traces;

use chance::Chance;
use life::Life;
use steps::Killer;

#[test]
fn nothing_survives_a_kill_at_any_moment() {
    let number = |name: &str| asked(name).map(|value| value.parse::<u64>().expect(name));
    let lives = number("H5I_SOAK_LIVES").unwrap_or(20);
    let seed = number("H5I_SOAK_SEED").unwrap_or_else(Chance::any_seed);
    println!("H5I_SOAK_SEED={seed} H5I_SOAK_LIVES={lives}");
    for layout in life::layouts() {
        let mut life = Life::begin(layout, Chance::new(seed));
        for number in 0..lives {
            life.once(number);
        }
        println!("{}: {}", layout.unwrap_or("checkout"), life.told());
        life.end();
    }
}

#[test]
fn nothing_survives_a_kill_at_any_step() {
    let points = asked("H5I_SOAK_STEPS").map_or(6, |points| points.parse().expect("a number"));
    for layout in life::layouts() {
        let mut life = Life::begin(layout, Chance::new(1));
        let killer = Killer::build(life.stand());
        for (verb, points) in [
            ("whole run", 3 * points),
            ("one-shot", points),
            ("create", points),
            ("export", points),
            ("rm", points),
        ] {
            let steps = life.walk(verb, &killer, points);
            println!("{}: {verb} has {steps} steps", layout.unwrap_or("checkout"));
        }
        println!("{}: {}", layout.unwrap_or("checkout"), life.told());
        life.end();
    }
}

#[test]
fn nothing_grows_with_the_runs_of_a_session() {
    let runs = asked("H5I_SOAK_RUNS").map_or(200, |runs| runs.parse().expect("a number"));
    let figures = runs::one_session(runs);
    println!("{runs} runs: descriptors, threads, KiB before and after {figures:?}");
}

#[expect(clippy::disallowed_methods, reason = "the soak is told its length by its caller")]
fn asked(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
