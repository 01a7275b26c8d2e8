//! What the tests need from the system beyond Rust, a C compiler and git.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A program the tests use, and the Debian package that has it.
const PROGRAMS: [(&str, &str); 20] = [
    ("bwrap", "bubblewrap"),
    ("ccache", "ccache"),
    ("curl", "curl"),
    ("gdb", "gdb"),
    ("less", "less"),
    ("make", "make"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("openssl", "openssl"),
    ("perl", "perl-base"),
    ("pip3", "python3-pip"),
    ("py.test-3", "python3-pytest-xdist"),
    ("python3", "python3"),
    ("setpriv", "util-linux"),
    ("setsid", "util-linux"),
    ("ssh", "openssh-client"),
    ("strace", "strace"),
    ("tput", "ncurses-bin"),
    ("vi", "vim-tiny"),
    ("zsh", "zsh"),
];

/// Sees to it that everything is there: installs it as root on Debian and its kin, otherwise lists
/// what is missing.
///
/// Yields false when something is missing; it has been said on standard error.
pub(crate) fn provide() -> Result<bool> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(true);
    }
    if is_root() && Path::new("/usr/bin/apt-get").is_file() {
        install(&missing)?;
        return Ok(self::missing().is_empty());
    }
    eprintln!("the tests need programs that are not here:");
    for (program, package) in &missing {
        eprintln!("  {program:<10} Debian package {package}");
    }
    eprintln!("install them, or run this as root on Debian or Ubuntu, which installs them");
    Ok(false)
}

fn missing() -> Vec<(&'static str, &'static str)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // An ordinary user's PATH may lack the system's own part, which the user may read.
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    dirs.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let there = |program: &str| dirs.iter().any(|dir| dir.join(program).is_file());
    PROGRAMS.into_iter().filter(|(program, _)| !there(program)).collect()
}

fn install(missing: &[(&str, &str)]) -> Result<()> {
    let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    eprintln!("installing {}", packages.join(" "));
    let apt = |args: &[&str]| -> Result<bool> {
        let status = Command::new("apt-get")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(args)
            .stdout(std::process::Stdio::null())
            .status()
            .context("could not start apt-get")?;
        Ok(status.success())
    };
    let mut args = vec!["install", "-y", "--no-install-recommends"];
    args.extend(&packages);
    // The lists of a fresh machine are empty or old.
    if !(apt(&args)? || apt(&["update"])? && apt(&args)?) {
        bail!("apt-get could not install {}", packages.join(" "));
    }
    Ok(())
}

/// Whether this process is root's.
pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// The number of who runs this: `-u` for the user, `-g` for the group.
pub(crate) fn own_id(which: &str) -> Result<String> {
    let told = Command::new("id").arg(which).output().context("could not start id")?;
    Ok(String::from_utf8_lossy(&told.stdout).trim().to_owned())
}
