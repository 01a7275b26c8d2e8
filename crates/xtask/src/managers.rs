//! Real package managers in a box, against registries that stand in for the public ones: a package
//! with a dependency and a program of its own, and a dependency at a host that no rule lists.
//!
//! All of it happens in a network namespace of its own, in which the registries' names are this
//! host's; no network is needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::bench::{build, scratch};
use crate::needs;
use crate::test::{USER, ensure_user};

/// What is rehearsed and what it is rehearsed with.
const FILES: [(&str, &str); 4] = [
    ("packages.py", include_str!("managers/packages.py")),
    ("registry.py", include_str!("managers/registry.py")),
    ("receipt.py", include_str!("managers/receipt.py")),
    ("rehearsal.sh", include_str!("managers/rehearsal.sh")),
];
/// What is looked for where every person has it.
const PROGRAMS: [&str; 9] =
    ["bash", "git", "ip", "node", "npm", "openssl", "pip3", "python3", "setpriv"];
const PLACES: [&str; 5] = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"];
/// The certificates that programs here trust; the rehearsal lays its own over them, for itself.
const TRUSTED: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Yields 1 when a manager did not do what it should, 2 when one is not there.
pub(crate) fn run(root: &Path) -> Result<u8> {
    if !needs::provide()? {
        return Ok(2);
    }
    let root = root.canonicalize().context("could not find the workspace")?;
    let sysroot = sysroot()?;
    let missing = missing(&sysroot);
    for what in &missing {
        eprintln!("the rehearsal needs {what}, which is not here");
    }
    if !missing.is_empty() {
        return Ok(2);
    }
    let h5i = build(&root)?;
    let scratch = scratch()?;
    let result = rehearse(&h5i, &sysroot, &scratch);
    fs::remove_dir_all(&scratch).context("could not remove the scratch directory")?;
    result
}

fn missing(sysroot: &Path) -> Vec<String> {
    let there = |program: &&str| PLACES.iter().any(|dir| Path::new(dir).join(program).is_file());
    let programs = PROGRAMS.iter().filter(|program| !there(program));
    let mut missing: Vec<String> =
        programs.map(|program| format!("{program} in {}", PLACES.join(", "))).collect();
    let files = [sysroot.join("bin/cargo"), PathBuf::from(TRUSTED)];
    missing.extend(files.iter().filter(|file| !file.is_file()).map(|f| f.display().to_string()));
    missing
}

/// The toolchain itself, which is no program that asks which toolchain is meant.
fn sysroot() -> Result<PathBuf> {
    let told = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .context("could not start rustc")?;
    if !told.status.success() {
        bail!("rustc does not say where it is");
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&told.stdout).trim()))
}

fn rehearse(h5i: &Path, sysroot: &Path, scratch: &Path) -> Result<u8> {
    for (name, text) in FILES {
        fs::write(scratch.join(name), text).with_context(|| format!("could not write {name}"))?;
    }
    let mut rehearsal = Command::new("unshare");
    let persons = if needs::is_root() {
        ensure_user()?;
        rehearsal.args(["--net", "--mount"]);
        vec!["root".to_owned(), USER.to_owned()]
    } else {
        rehearsal.args(["--map-root-user", "--net", "--mount"]);
        vec![format!("self:{}:{}", needs::own_id("-u")?, needs::own_id("-g")?)]
    };
    let status = rehearsal
        .args(["bash", "rehearsal.sh"])
        .arg(h5i)
        .arg(sysroot)
        .args(persons)
        .current_dir(scratch)
        .stdin(Stdio::null())
        .status()
        .context("could not start unshare")?;
    Ok(u8::from(!status.success()))
}
