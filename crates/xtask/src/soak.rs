//! The long soak: properties on many new cases, lives that are killed, and a session of many runs,
//! as root and as an ordinary user.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::needs;
use crate::test::{Caller, build, ensure_user, run_binary};

/// Lives on each back end.
const LIVES: u32 = 200;

/// Runs that share one session.
const RUNS: u32 = 5000;

/// Steps of each verb before which it is killed, three times as many of a run: all that a run has.
const STEPS: u32 = 400;

/// Cases of each property that does not say its number.
const CASES: u32 = 20_000;

/// Runs it; `words` may name the number of lives and the seed. Yields 1 when something survived or
/// a property does not hold.
pub(crate) fn run(root: &Path, words: &[String]) -> Result<u8> {
    if !needs::provide()? {
        return Ok(2);
    }
    let root = root.canonicalize().context("could not find the workspace")?;
    let lives = words.first().cloned().unwrap_or_else(|| LIVES.to_string());
    let mut variables = vec![("H5I_SOAK_LIVES", lives), ("H5I_SOAK_RUNS", RUNS.to_string())];
    variables.push(("H5I_SOAK_STEPS", STEPS.to_string()));
    variables.extend(words.get(1).map(|seed| ("H5I_SOAK_SEED", seed.clone())));
    let binaries = build(&root, &["-p", "h5i-cli", "--test", "soak"])?;
    let [binary] = binaries.as_slice() else { bail!("the soak is one binary") };
    // What it prints is meant to be read.
    variables.push(("RUST_TEST_NOCAPTURE", "1".to_owned()));
    let mut failed = run_binary(&root, binary, Caller::Own, &variables)?.is_some();
    if needs::is_root() {
        ensure_user()?;
        failed |= run_binary(&root, binary, Caller::OrdinaryUser, &variables)?.is_some();
    }
    Ok(u8::from(failed | !properties(&root)?))
}

/// Draws new cases for the properties of the libraries; a case that fails is printed, made small.
fn properties(root: &Path) -> Result<bool> {
    let mut hold = true;
    let variables = [("PROPTEST_CASES", CASES.to_string())];
    let mut binaries = build(root, &["--workspace", "--lib"])?;
    binaries.extend(build(root, &["-p", "h5i-broker", "--test", "homes"])?);
    for binary in &binaries {
        hold &= run_binary(root, binary, Caller::Own, &variables)?.is_none();
    }
    Ok(hold)
}
