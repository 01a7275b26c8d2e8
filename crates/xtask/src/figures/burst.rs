//! What very many programs at once cost, and what they cost another run.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::git;

/// Processes that start programs, and how many each of them starts.
const PROCESSES: u64 = 4;
const EACH: u64 = 2500;
/// The program; the session's test has it as well.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../h5i-cli/tests/session/burst.c");

/// Prints the rows.
pub(super) fn measure(h5i: &Path, scratch: &Path) -> Result<()> {
    let repository = scratch.join("burst");
    fs::create_dir(&repository)?;
    let mut cc = Command::new("cc");
    cc.current_dir(&repository).args(["-O1", "-static", "-o", "burst", SOURCE]);
    if !cc.status()?.success() {
        bail!("the burst does not build");
    }
    git(&repository, &["init", "--quiet", "--initial-branch=main"])?;
    git(&repository, &["add", "--all"])?;
    let who = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    git(&repository, &[&who[..], &["commit", "-qm", "base"]].concat())?;
    let state = scratch.join("bursts");
    let run = |words: &[&str]| {
        let mut command = Command::new(h5i);
        command.current_dir(&repository).env("XDG_STATE_HOME", &state).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let (processes, each) = (PROCESSES.to_string(), EACH.to_string());
    let words = [&*processes, &each, "./burst"];
    let mut bare = Command::new("./burst");
    let bare = timed(bare.current_dir(&repository).args(words))?;
    timed(&mut run(&["box", "create", "a"]))?;
    timed(&mut run(&["box", "start", "a"]))?;
    let other = || timed(&mut run(&["box", "run", "a", "--", "true"]));
    let before = median((0..20).map(|_| other()).collect::<Result<_>>()?);
    let started = Instant::now();
    let mut burst = run(&[&["box", "run", "a", "--", "./burst"][..], &words].concat()).spawn()?;
    let mut during = Vec::new();
    let ended = loop {
        let told = burst.try_wait()?;
        if let Some(ended) = told {
            break ended;
        }
        during.push(other()?);
    };
    let took = started.elapsed();
    timed(&mut run(&["box", "stop", "a"]))?;
    if !ended.success() {
        bail!("the burst failed: {ended}");
    }
    let log = Command::new(h5i)
        .current_dir(&repository)
        .env("XDG_STATE_HOME", &state)
        .args(["box", "log", "a", "--json"])
        .output()?;
    let text = String::from_utf8_lossy(&log.stdout);
    let (there, worst) = ("/work/burst\"", during.iter().max().copied().unwrap_or_default());
    let kind = |line: &&str| line.contains("\"kind\":\"exec\"") && line.contains(there);
    println!(
        "{} programs by {PROCESSES} processes: {:.2} s bare, {:.2} s in a box, {} on record",
        PROCESSES * EACH,
        bare.as_secs_f64(),
        took.as_secs_f64(),
        text.lines().filter(kind).count(),
    );
    println!(
        "another run: {:.1} ms before, {:.1} ms meanwhile, {:.1} ms at most",
        millis(before),
        millis(median(during)),
        millis(worst),
    );
    Ok(())
}

fn timed(command: &mut Command) -> Result<Duration> {
    let started = Instant::now();
    let status = command.status()?;
    let took = started.elapsed();
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(took)
}

fn median(mut spans: Vec<Duration>) -> Duration {
    spans.sort();
    spans.get(spans.len() / 2).copied().unwrap_or_default()
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}
