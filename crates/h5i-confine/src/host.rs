//! What this host offers, read once and passed on as a value.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::cgroup;
use crate::sys;
use crate::system_v::Kind;

/// Facts about the host that a plan depends on.
///
/// A plan is made from this value alone, so that a test (or a harness that plans for another host)
/// can hand in facts of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostFacts {
    /// Kernel version: major and minor.
    pub kernel: (u32, u32),
    /// Landlock ABI, 0 when there is none.
    pub landlock_abi: u32,
    /// The caller's effective user id.
    pub uid: u32,
    /// The caller's effective group id.
    pub gid: u32,
    /// Highest capability of the kernel.
    pub last_capability: u32,
    /// Whether `/proc/sys/user/max_user_namespaces` and its kin allow user namespaces.
    pub user_namespaces: UserNamespaces,
    /// Files below `/proc` that are masked in a box: those that tell about the host and that
    /// everybody may read.
    pub proc_files_to_mask: Vec<PathBuf>,
    /// Whether the kernel has System V memory segments, semaphores and messages.
    pub system_v: bool,
    /// Memory of the host, bytes.
    pub memory: u64,
    /// Where a memory cgroup can be made.
    pub(crate) cgroup: Option<cgroup::Place>,
}

/// Whether the caller may make user namespaces, by the host's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UserNamespaces {
    /// No setting forbids them.
    Allowed,
    /// This setting of `/proc/sys` forbids them.
    Forbidden {
        /// The setting, as `sysctl` names it.
        setting: &'static str,
        /// Its value.
        value: String,
    },
}

/// Files below `/proc` that tell about the host or its kernel rather than about processes.
const REVEALING: [&str; 11] = [
    "cmdline",
    "kcore",
    "keys",
    "key-users",
    "kallsyms",
    "kmsg",
    "timer_list",
    "sched_debug",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
];

impl HostFacts {
    /// Reads the facts of this host: a few small files and one system call, tens of microseconds.
    ///
    /// # Errors
    /// When `/proc` is not there or unreadable.
    pub fn read() -> io::Result<Self> {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
        let last = fs::read_to_string("/proc/sys/kernel/cap_last_cap")?;
        Ok(Self {
            kernel: parse_release(&release),
            landlock_abi: sys::landlock_abi(),
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            last_capability: last.trim().parse().map_err(io::Error::other)?,
            user_namespaces: user_namespaces(),
            proc_files_to_mask: REVEALING
                .iter()
                .map(|name| Path::new("/proc").join(name))
                .filter(|path| {
                    // What only root may read stays closed by itself: no box runs as the host's root.
                    fs::symlink_metadata(path).is_ok_and(|found| found.mode() & 0o004 != 0)
                })
                .collect(),
            system_v: Kind::ALL.iter().all(|kind| fs::metadata(kind.list()).is_ok()),
            memory: total_memory(),
            cgroup: cgroup::Place::find(rustix::process::geteuid().as_raw()),
        })
    }

    /// Whether the caller is root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }
}

fn total_memory() -> u64 {
    let found = rustix::system::sysinfo();
    found.totalram.saturating_mul(found.mem_unit.into())
}

fn parse_release(release: &str) -> (u32, u32) {
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(|p| p.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

fn user_namespaces() -> UserNamespaces {
    let forbidding = [
        ("kernel.unprivileged_userns_clone", "/proc/sys/kernel/unprivileged_userns_clone", "0"),
        (
            "kernel.apparmor_restrict_unprivileged_userns",
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
        ),
        ("user.max_user_namespaces", "/proc/sys/user/max_user_namespaces", "0"),
    ];
    for (setting, path, bad) in forbidding {
        if let Ok(value) = fs::read_to_string(path)
            && value.trim() == bad
        {
            return UserNamespaces::Forbidden { setting, value: bad.to_owned() };
        }
    }
    UserNamespaces::Allowed
}
