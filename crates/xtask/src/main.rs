//! Tasks of the h5i workspace: `cargo xtask TASK`, where the task is one of
//! test, agents, managers, bench, soak, builds, examples, figures, fuzz, round-trips, package, tidy.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "a task runner runs commands and is told by environment"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it talks to the person who runs it")]

mod agents;
mod bench;
mod builds;
mod examples;
mod figures;
mod fuzz;
mod managers;
mod needs;
mod package;
mod round_trips;
mod soak;
mod test;
mod tidy;
mod told;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask TASK
  test [--quick]   build once, run every test (as root: as root and as an ordinary user)
  agents           Claude Code and Codex in a box, against stand-ins for their services
  managers         npm, pip, cargo and go in a box, against registries that stand in for public ones
  bench            h5i beside bare exec and bubblewrap, one run, medians and ratios
  bench --relay    10,000 short connections out of a box, beside bare loopback and tinyproxy
  bench --sizes    a box on 100, 10,000 and 100,000 files, beside worktrees, clones and bubblewrap
  soak [N [SEED]]  kill h5i at N random moments (200) and before each of its steps on each back
                   end, where nothing may survive; run 5,000 programs in one session; try every property on 20,000 new cases
  builds [N] [python|node|rust]   real builds in a box beside outside, N pairs (5), offline
  examples         run every example as a reader would
  figures          what an export costs, beside git's own diff: time and peak memory; the same of
                   a log of a million records, and of 10,000 programs in a burst
  fuzz [--seconds N] [TARGET]…   seeds and mutated inputs through every fuzz target
  round-trips [--commits N] [REPOSITORY]
                   box, export, verify and apply for each commit of a history
  package          pack every crate as it is published, and build what came out
  tidy             what clippy can't check: file lengths, unsafe, names
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.first().map(String::as_str) {
        Some("test") => test::run(&root(), args.iter().any(|arg| arg == "--quick")),
        Some("agents") => agents::run(&root()),
        Some("managers") => managers::run(&root()),
        Some("bench") if args.iter().any(|arg| arg == "--sizes") => {
            bench::sizes::run(&root(), &args[1..])
        }
        Some("bench") if args.iter().any(|arg| arg == "--relay") => bench::relay::run(&root()),
        Some("bench") => bench::run(&root()),
        Some("builds") => builds::run(&root(), &args[1..]),
        Some("soak") => soak::run(&root(), &args[1..]),
        Some("examples") => examples::run(&root()),
        Some("figures") => figures::run(&root()),
        Some("fuzz") => fuzz::run(&root(), &args[1..]),
        Some("round-trips") => round_trips::run(&root(), &args[1..]),
        Some("package") => package::run(&root()),
        Some("tidy") => tidy::run(&root()),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(1)
        }
    }
}

/// Where cargo puts what it builds: beside the workspace, or where the caller says.
fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir))
}

/// The workspace's directory.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
