//! What a test needs of its host, and the count of what the host did not have.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};

/// Something a test needs of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Need {
    /// User namespaces for the caller, by the host's settings.
    UserNamespaces,
    /// Landlock of at least this ABI.
    Landlock(u32),
    /// The right to act as a second user: root.
    SecondUid,
    /// A file system below the directory for temporary files that can carry an overlay.
    Overlay,
    /// A program, by its absolute path.
    Program(&'static str),
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UserNamespaces => f.write_str("user namespaces"),
            Self::Landlock(abi) => write!(f, "Landlock ABI {abi}"),
            Self::SecondUid => f.write_str("root, for a second user id"),
            Self::Overlay => f.write_str("a file system for overlays"),
            Self::Program(path) => f.write_str(path),
        }
    }
}

static MISSING: Mutex<Vec<(String, Need)>> = Mutex::new(Vec::new());

/// Whether the host has it. A no is counted and written to standard error, with the name of the
/// test, which then returns.
///
/// # Panics
/// When the host lacks it and `H5I_REQUIRE=all` is set. To be an ordinary user is no lack of the host:
/// [`Need::SecondUid`] is then counted only.
#[must_use]
pub fn have(test: &str, need: Need) -> bool {
    if met(need) {
        return true;
    }
    #[allow(
        clippy::disallowed_methods,
        reason = "test support is told by CI what must not be missing"
    )]
    let required = std::env::var_os("H5I_REQUIRE").is_some_and(|value| value == "all");
    // An ordinary user lacks no mechanism: CI runs the same test as root, where this is met.
    let lacking = need != Need::SecondUid;
    assert!(!(required && lacking), "{test} needs {need}, and H5I_REQUIRE=all");
    // Not by a print macro, whose output the harness keeps back when the test is green.
    writeln!(io::stderr(), "not run: {test}: needs {need}").ok();
    MISSING.lock().unwrap_or_else(PoisonError::into_inner).push((test.to_owned(), need));
    false
}

/// The tests of this process that were not run, and what they need.
#[must_use]
pub fn not_run() -> Vec<(String, Need)> {
    MISSING.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn met(need: Need) -> bool {
    match need {
        Need::UserNamespaces => user_namespaces(),
        Need::Landlock(abi) => landlock(abi),
        Need::SecondUid => rustix::process::geteuid().is_root(),
        Need::Overlay => user_namespaces() && carries_overlays(&std::env::temp_dir()),
        Need::Program(path) => {
            rustix::fs::access(Path::new(path), rustix::fs::Access::EXEC_OK).is_ok()
        }
    }
}

fn user_namespaces() -> bool {
    let settings = [
        ("/proc/sys/user/max_user_namespaces", "0"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "0"),
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
    ];
    settings
        .iter()
        .all(|(path, bad)| fs::read_to_string(path).map_or(true, |value| value.trim() != *bad))
}

/// ext4, XFS and btrfs do, and tmpfs where it has the attributes of users: since Linux 6.6.
fn carries_overlays(directory: &Path) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    const ALWAYS: [i64; 3] = [0xef53, 0x5846_5342, 0x9123_683e];
    let Ok(found) = rustix::fs::statfs(directory) else { return false };
    let kind = found.f_type;
    let attributes = || {
        let mut value = [0; 1];
        let read = rustix::fs::getxattr(directory, "user.overlay.opaque", &mut value[..]);
        read != Err(rustix::io::Errno::OPNOTSUPP)
    };
    ALWAYS.contains(&kind) || (kind == TMPFS && attributes())
}

/// Making a ruleset restricts nobody; it fails when the kernel does not know one of its rights.
fn landlock(abi: u32) -> bool {
    let abi = match abi {
        0 => return true,
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        6 => ABI::V6,
        _ => ABI::V7,
    };
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))
        .and_then(|ruleset| ruleset.scope(landlock::Scope::from_all(abi)))
        .and_then(landlock::Ruleset::create);
    ruleset.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_need_is_counted_with_its_test() {
        let gone = Need::Program("/nonexistent/program");
        // Under H5I_REQUIRE=all the miss is a panic, which is a count of another kind.
        match std::panic::catch_unwind(|| have("counted", gone)) {
            Ok(there) => {
                assert!(!there);
                assert!(not_run().contains(&("counted".to_owned(), gone)));
            }
            Err(_) => assert!(!not_run().contains(&("counted".to_owned(), gone))),
        }
    }

    #[test]
    fn a_need_that_is_met_is_not_counted() {
        assert!(have("met", Need::Program("/bin/sh")));
        assert!(!not_run().iter().any(|(test, _)| test == "met"));
    }
}
