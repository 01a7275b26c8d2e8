//! Packs every crate as it would be published and builds what came out.
//!
//! `cargo package --workspace` alone remembers too much: it unpacks the members into the user's
//! cargo directory under their version, and finds an earlier packaging of the same version there,
//! also from another clone at the same path. So both what was unpacked and what was built are made
//! anew each time.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// The target directory of packaging; it is removed before and after.
const OWN_TARGET: &str = "package-check";
/// What one packaging of a user holds at a time, in the cargo directory.
const LOCK: &str = ".h5i-package-lock";

/// Yields cargo's exit code.
pub(crate) fn run(root: &Path) -> Result<u8> {
    let root = root.canonicalize().context("could not find the workspace")?;
    // Each would forget what the other has just unpacked.
    let lock = cargo_home()?.join(LOCK);
    let alone =
        File::create(&lock).with_context(|| format!("could not open {}", lock.display()))?;
    alone.lock().with_context(|| format!("could not lock {}", lock.display()))?;
    let target = crate::target(&root).join(OWN_TARGET);
    remove(&target)?;
    forget(&cargo_home()?.join("registry/src"))?;
    let status = Command::new("cargo")
        .current_dir(&root)
        .args(["package", "--workspace", "--allow-dirty", "--quiet", "--target-dir"])
        .arg(&target)
        .status()
        .context("could not start cargo")?;
    remove(&target)?;
    Ok(u8::from(!status.success()))
}

fn cargo_home() -> Result<PathBuf> {
    match std::env::var_os("CARGO_HOME") {
        Some(home) => Ok(home.into()),
        None => Ok(std::env::home_dir().context("there is no home directory")?.join(".cargo")),
    }
}

/// Removes what packaging unpacked of this workspace's crates. The directories of registries that
/// have no host, as the one of packaging, are called by a dash and a digest.
fn forget(sources: &Path) -> Result<()> {
    for registry in entries(sources)?.iter().filter(|path| named(path, "-")) {
        for unpacked in entries(registry)?.iter().filter(|path| named(path, "h5i-")) {
            remove(unpacked)?;
        }
    }
    Ok(())
}

fn named(path: &Path, start: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    match fs::read_dir(directory) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("could not list {}", directory.display())),
    }
}

fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("could not remove {}", directory.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_packaging_unpacked_of_this_workspace_is_forgotten() {
        let sources = std::env::temp_dir().join(format!("h5i-package-{}", std::process::id()));
        let (kept, gone) =
            (["-0a/serde-1.0.0", "named-0a/h5i-policy-0.1.0"], "-0a/h5i-policy-0.1.0");
        for path in kept.iter().chain([&gone]) {
            fs::create_dir_all(sources.join(path)).unwrap();
        }
        forget(&sources).unwrap();
        assert!(!sources.join(gone).is_dir());
        assert!(kept.iter().all(|path| sources.join(path).is_dir()));
        forget(&sources.join("absent")).unwrap();
        fs::remove_dir_all(&sources).unwrap();
    }
}
