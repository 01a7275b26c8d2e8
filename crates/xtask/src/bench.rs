//! h5i beside bare exec and beside bubblewrap, in one run: medians and ratios.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::needs;
use repository::repository_with;

pub(crate) mod relay;
pub(crate) mod repository;
pub(crate) mod sizes;

/// Rounds; each takes every candidate once, so that a slow moment hits them all.
const ROUNDS: usize = 101;
/// Addresses that a box with a list may reach.
const ADDRESSES: usize = 50;

/// Prints the table.
pub(crate) fn run(root: &Path) -> Result<u8> {
    if !needs::provide()? {
        return Ok(2);
    }
    let root = root.canonicalize().context("could not find the workspace")?;
    let h5i = build(&root)?;
    let scratch = scratch()?;
    let result = measure(&h5i, &scratch);
    fs::remove_dir_all(&scratch).context("could not remove the scratch directory")?;
    result.map(|()| 0)
}

/// Builds h5i as it is released; yields where it is.
pub(crate) fn build(root: &Path) -> Result<PathBuf> {
    let built = Command::new("cargo")
        .current_dir(root)
        .args(["build", "--release", "--quiet", "-p", "h5i-cli"])
        .status()?;
    if !built.success() {
        bail!("h5i does not build");
    }
    Ok(crate::target(root).join("release/h5i"))
}

/// A new directory for one measurement.
pub(crate) fn scratch() -> Result<PathBuf> {
    let scratch = std::env::temp_dir().join(format!("h5i-bench-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    Ok(scratch)
}

/// bubblewrap with the arguments that agents use.
fn bubblewrap(work: &Path) -> Vec<String> {
    let work = work.display().to_string();
    let mut all: Vec<String> = "bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --bind"
        .split(' ')
        .map(str::to_owned)
        .collect();
    all.extend([work.clone(), work.clone()]);
    all.extend(
        "--unshare-all --die-with-parent --new-session --chdir".split(' ').map(str::to_owned),
    );
    all.extend([work, "true".to_owned()]);
    all
}

struct Candidate {
    name: &'static str,
    command: Vec<String>,
    times: Vec<Duration>,
}

fn measure(h5i: &Path, scratch: &Path) -> Result<()> {
    let repository = scratch.join("repository");
    repository_with(&repository, 100)?;
    let state = scratch.join("state");
    let text = |path: &Path| path.display().to_string();
    let in_box = |verb: &[&str]| {
        let mut all = vec![text(h5i), "-C".to_owned(), text(&repository)];
        all.extend(verb.iter().map(|word| (*word).to_owned()));
        all
    };
    for layout in ["checkout", "overlay"] {
        let words = ["box", "create", layout, "--workspace", layout, "--tier", "process"];
        once(&in_box(&words), &state)?;
    }
    // Both as the first box, so that the difference is the network's.
    let supervised = |name: &'static str| {
        ["box", "create", name, "--workspace", "checkout", "--tier", "supervised"]
    };
    once(&in_box(&supervised("gate")), &state)?;
    let rules: Vec<String> = (1..=ADDRESSES).map(|n| format!("192.0.2.{n}:443")).collect();
    let allowed = rules.iter().flat_map(|rule| ["--allow", rule.as_str()]);
    let words: Vec<&str> = supervised("addresses").into_iter().chain(allowed).collect();
    once(&in_box(&words), &state)?;
    let work = scratch.join("work");
    fs::create_dir_all(&work)?;
    let bubblewrap = bubblewrap(&work);
    let mut candidates = [
        ("bare exec of true", vec!["true".to_owned()]),
        ("bubblewrap", bubblewrap),
        ("h5i box run, checkout", in_box(&["box", "run", "checkout", "--", "true"])),
        ("h5i box run, overlay", in_box(&["box", "run", "overlay", "--", "true"])),
        ("  supervised, network none", in_box(&["box", "run", "gate", "--", "true"])),
        ("  supervised, 50 addresses", in_box(&["box", "run", "addresses", "--", "true"])),
    ]
    .map(|(name, command)| Candidate { name, command, times: Vec::new() });
    for _ in 0..ROUNDS {
        for candidate in &mut candidates {
            candidate.times.push(once(&candidate.command, &state)?);
        }
    }
    let all = ["box", "rm", "--force", "checkout", "overlay", "gate", "addresses"];
    once(&in_box(&all), &state)?;
    print(&mut candidates);
    Ok(())
}

fn once(command: &[String], state: &Path) -> Result<Duration> {
    let [program, args @ ..] = command else { bail!("an empty command") };
    let start = Instant::now();
    let status = Command::new(program)
        .args(args)
        .env("XDG_STATE_HOME", state)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("could not start {program}"))?;
    let time = start.elapsed();
    if !status.success() {
        bail!("{} failed: {status}", command.join(" "));
    }
    Ok(time)
}

fn print(candidates: &mut [Candidate]) {
    for candidate in &mut *candidates {
        candidate.times.sort();
    }
    let median = |c: &Candidate| c.times[c.times.len() / 2].as_secs_f64() * 1000.0;
    let (bare, bubblewrap) = (median(&candidates[0]), median(&candidates[1]));
    println!("{:<28} {:>10} {:>8} {:>14}", "", "median ms", "× bare", "× bubblewrap");
    for candidate in candidates {
        let time = median(candidate);
        println!(
            "{:<28} {time:>10.2} {:>8.2} {:>14.2}",
            candidate.name,
            time / bare,
            time / bubblewrap
        );
    }
}
