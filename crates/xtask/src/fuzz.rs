//! The fuzz targets on the stable toolchain.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Checks that the targets build for the long form, then runs each one; yields the runner's code.
pub(crate) fn run(root: &Path, words: &[String]) -> Result<u8> {
    let checked = Command::new("cargo")
        .current_dir(root)
        .args(["check", "--quiet", "-p", "h5i-fuzz", "--bins", "--features", "targets"])
        .status()
        .context("could not start cargo")?;
    if !checked.success() {
        bail!("the fuzz targets do not build");
    }
    let status = Command::new("cargo")
        .current_dir(root)
        .args(["run", "--quiet", "-p", "h5i-fuzz", "--"])
        .args(words)
        .status()
        .context("could not start cargo")?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
