//! Seeds on disk, and inputs that found something.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// Every seed of a target, in the order of their names.
pub(crate) fn read(directory: &Path) -> Result<Vec<Vec<u8>>> {
    let entries = fs::read_dir(directory)
        .with_context(|| format!("could not list {}", directory.display()))?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.sort();
    if paths.is_empty() {
        bail!("{} has no seed", directory.display());
    }
    let read = |path: &PathBuf| {
        fs::read(path).with_context(|| format!("could not read {}", path.display()))
    };
    paths.iter().map(read).collect()
}

/// Keeps an input under a name that its bytes make.
pub(crate) fn keep(directory: &Path, target: &str, input: &[u8]) -> Result<PathBuf> {
    fs::create_dir_all(directory)
        .with_context(|| format!("could not make {}", directory.display()))?;
    let path = directory.join(format!("{target}-{:016x}", fingerprint(input)));
    fs::write(&path, input).with_context(|| format!("could not write {}", path.display()))?;
    Ok(path)
}

/// FNV-1a.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
