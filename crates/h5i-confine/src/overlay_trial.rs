//! Tries an overlay where it is going to be used: not every file system can carry one.

use std::fs;
use std::path::Path;

use crate::compile::AT_FDCWD;
use crate::error::StartError;
use crate::host::HostFacts;
use crate::layout::{Access, BOX_ID, OVERLAY_WORK, UPPER, WORKSPACE};
use crate::list::{Arg, List, Slot};
use crate::probe::{Attempt, Probe, ProbeError, Sources, attempt};
use crate::root;
use crate::step::{BindKind, NetworkNamespace, Step};

const LOWER: &str = "/lower";

/// Tries an overlay of directories made below `directory`, in a child as a box is made: what is
/// written and removed through it must leave the lower layer as it was. A root caller's trial runs
/// under `host_id`, with root's files shown as that id's.
///
/// `directory` must be empty, and on the file system where the boxes are to be; the caller removes
/// it with all that the trial leaves. Takes some milliseconds.
#[must_use]
pub fn try_overlay(facts: &HostFacts, host_id: u32, directory: &Path) -> Probe {
    let sources = if facts.is_root() { Sources::TakenBefore } else { Sources::ByPath };
    Probe {
        mechanism: "overlay",
        attempts: "a write to the lower layer fails, one through the overlay leaves it unchanged",
        result: prepare(facts, host_id, directory)
            .map_err(|source| StartError::Prepare { what: "lay out a trial overlay", source })
            .map_err(ProbeError::SetUp)
            .and_then(|()| attempt(steps(facts, host_id, directory), sources, &ATTEMPTS)),
    }
}

fn prepare(facts: &HostFacts, host_id: u32, directory: &Path) -> std::io::Result<()> {
    for dir in ["lower", "area"] {
        fs::create_dir(directory.join(dir))?;
    }
    for file in ["written", "removed"] {
        fs::write(directory.join("lower").join(file), b"x")?;
    }
    for dir in [UPPER, OVERLAY_WORK] {
        let path = directory.join("area").join(dir);
        fs::create_dir(&path)?;
        if facts.is_root() {
            std::os::unix::fs::lchown(&path, Some(host_id), Some(host_id))?;
        }
    }
    Ok(())
}

fn steps(facts: &HostFacts, host_id: u32, directory: &Path) -> Vec<Step> {
    let (uid, gid) = if facts.is_root() { (host_id, host_id) } else { (facts.uid, facts.gid) };
    let mut steps = Vec::new();
    if facts.is_root() {
        steps.push(Step::TakeHostId { id: host_id });
    }
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    let flags = u64::from(flags.cast_unsigned());
    steps.push(Step::EnterNamespaces { names: vec!["user", "mount", "pid"], flags });
    steps.push(Step::MapIds { inside: BOX_ID, uid, gid });
    let network = NetworkNamespace::Host;
    steps.extend([Step::BecomeInit { network }, Step::DetachMounts, Step::EmptyRoot]);
    steps.push(Step::Scratch { path: "/run".into(), mode: 0o755, bound: None });
    let lower = directory.join("lower");
    steps.push(Step::Bind {
        source: lower.clone(),
        target: LOWER.into(),
        access: Access::Read,
        kind: BindKind::Layer,
    });
    steps.extend(root::overlay::steps(facts, &[lower], &directory.join("area"), WORKSPACE.into()));
    steps.extend([Step::LeaveHost, Step::SealRoot]);
    steps.push(Step::DropCapabilities { last: facts.last_capability });
    steps.push(Step::Serve);
    steps
}

/// What is tried, in order; each attempt takes up what the ones before it left.
const ATTEMPTS: [Attempt; 6] = [
    ("write to the lower layer", |l| {
        let args = open(l, b"/lower/written", libc::O_WRONLY);
        l.call_refused(libc::SYS_openat, &args, libc::EROFS);
    }),
    ("empty a file through the overlay", |l| {
        let args = open(l, b"/work/written", libc::O_WRONLY | libc::O_TRUNC);
        let file = l.open(libc::SYS_openat, &args);
        l.close(file);
    }),
    ("find the lower layer's file unchanged", |l| {
        let file = opened(l, b"/lower/written");
        l.call(libc::SYS_lseek, &[Arg::Slot(file), value(0), value(SEEK_DATA)]);
        l.close(file);
    }),
    ("find the overlay's file empty", |l| {
        let file = opened(l, b"/work/written");
        let args = [Arg::Slot(file), value(0), value(SEEK_DATA)];
        l.call_refused(libc::SYS_lseek, &args, libc::ENXIO);
        l.close(file);
    }),
    ("remove a file through the overlay", |l| {
        let path = Arg::Data(l.string(b"/work/removed"));
        l.call(libc::SYS_unlinkat, &[AT_FDCWD, path, value(0)]);
        let args = open(l, b"/work/removed", libc::O_RDONLY);
        l.call_refused(libc::SYS_openat, &args, libc::ENOENT);
    }),
    ("find it in the lower layer", |l| {
        let file = opened(l, b"/lower/removed");
        l.close(file);
    }),
];

/// Finds the next byte that is there; past the end of an empty file it gives `ENXIO`.
const SEEK_DATA: u64 = libc::SEEK_DATA.cast_unsigned() as u64;

const fn value(n: u64) -> Arg {
    Arg::Value(n)
}

fn open(list: &mut List, path: &[u8], flags: i32) -> [Arg; 4] {
    let flags = u64::from((flags | libc::O_CLOEXEC).cast_unsigned());
    [AT_FDCWD, Arg::Data(list.string(path)), value(flags), value(0)]
}

fn opened(list: &mut List, path: &[u8]) -> Slot {
    let args = open(list, path, libc::O_RDONLY);
    list.open(libc::SYS_openat, &args)
}
