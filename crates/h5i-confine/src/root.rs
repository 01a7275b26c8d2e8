//! The steps that build a box's private root: what is not granted does not exist.

pub(crate) mod overlay;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use h5i_policy::{Bytes, GrantOrigin, Limits, NetMode, ReadGrant, ResolvedPolicy};

use crate::error::PlanError;
use crate::host::HostFacts;
use crate::layout::{Access, BOX_ID, HOME, Layout, Placement, Source, WORKSPACE};
use crate::path_set::{PathSet, within};
use crate::prepared::{LARGEST_COPY, Stamp};
use crate::step::{BindKind, ScratchBound, Step};

/// Devices every program expects; each is bound from the host's `/dev`.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// Memory file systems of a session; everything in them is gone with it. Each with its mode and the
/// part of the box's memory and disk that it may hold: together less than all, so that a box that has
/// filled them can still run what empties them.
const SCRATCH: [(&str, u32, u64); 3] =
    [("/tmp", 0o1777, 2), ("/run", 0o755, 16), ("/dev/shm", 0o1777, 4)];

/// A root as it is planned.
#[derive(Debug, Default)]
pub(crate) struct Root {
    /// From the empty root to the sealed one.
    pub(crate) steps: Vec<Step>,
    /// What may be written.
    pub(crate) writable: Vec<PathBuf>,
    /// Public files of the host that a prepared root may have a copy of, as they are now.
    pub(crate) copies: BTreeMap<PathBuf, Stamp>,
}

/// Plans the root.
pub(crate) fn plan(
    policy: &ResolvedPolicy,
    layout: &Layout,
    facts: &HostFacts,
) -> Result<Root, PlanError> {
    let mut steps = vec![Step::EmptyRoot];
    let mut writable: Vec<PathBuf> = SCRATCH.iter().map(|(path, ..)| path.into()).collect();
    // Before the grants, which may lie below them.
    steps.extend(SCRATCH.iter().map(|(path, mode, part)| {
        let bound = scratch_bound(&policy.limits, *part, facts.memory);
        Step::Scratch { path: path.into(), mode: *mode, bound }
    }));
    let copies = grants(policy, &mut steps, &mut writable)?;
    devices(&mut steps);
    steps.extend([WORKSPACE, HOME].map(|path| Step::Directory { path: path.into() }));
    steps.push(Step::Link { path: "/var/tmp".into(), target: "/tmp".into() });
    steps.push(Step::Link { path: "/var/run".into(), target: "/run".into() });
    identity(policy, &mut steps)?;
    let files = layout.files.iter().cloned();
    steps.extend(files.map(|(path, content)| Step::File { path, content }));
    for part in &layout.placements {
        if placed(part, facts, &mut steps) == Access::Write {
            writable.push(part.target.clone());
        }
    }
    steps.push(Step::Proc);
    if facts.system_v && policy.limits.memory.is_some() {
        steps.push(Step::SystemV);
    }
    steps.extend(facts.proc_files_to_mask.iter().map(|path| Step::Mask { path: path.clone() }));
    steps.push(Step::Terminals);
    steps.push(Step::LeaveHost);
    steps.push(Step::SealRoot);
    Ok(Root { steps, writable, copies })
}

/// What a memory file system may hold of a box with these limits.
fn scratch_bound(limits: &Limits, part: u64, host: u64) -> Option<ScratchBound> {
    /// What can be written with few bytes takes memory as well.
    const PAGE: u64 = 4096;
    const FEWEST: u64 = 256;
    let all = [limits.memory, limits.disk].into_iter().flatten().map(Bytes::count).min()?;
    // Never more than the kernel would give by itself.
    let bytes = (all / part).min(host / 2).max(FEWEST * PAGE);
    Some(ScratchBound { bytes, inodes: (bytes / PAGE).clamp(FEWEST, 1 << 20) })
}

/// Mounts a part of the box; yields whether the box may write there.
fn placed(part: &Placement, facts: &HostFacts, steps: &mut Vec<Step>) -> Access {
    let target = part.target.clone();
    match &part.source {
        Source::Directory { path, access } => {
            let (source, kind) = (path.clone(), BindKind::Directory);
            steps.push(Step::Bind { source, target, access: *access, kind });
            *access
        }
        Source::File { path } => {
            let (source, kind, access) = (path.clone(), BindKind::File, Access::Read);
            steps.push(Step::Bind { source, target, access, kind });
            access
        }
        Source::Overlay { lowers, area } => {
            steps.extend(overlay::steps(facts, lowers, area, target));
            Access::Write
        }
    }
}

/// Places of the box's own: no grant may stand at or above them.
const OWN: [&str; 7] = ["/proc", "/dev", "/tmp", "/run", "/etc", WORKSPACE, HOME];
/// Trees of the kernel and of the box that no grant may lie in.
const CLOSED: [&str; 5] = ["/proc", "/sys", "/dev", WORKSPACE, HOME];

/// One granted path of the host.
enum Granted<'a> {
    Read(&'a ReadGrant),
    Write,
}

/// Mounts the grants in the order of their paths, so that of two the deeper one decides; each read
/// grant is followed by its masks.
fn grants(
    policy: &ResolvedPolicy,
    steps: &mut Vec<Step>,
    writable: &mut Vec<PathBuf>,
) -> Result<BTreeMap<PathBuf, Stamp>, PlanError> {
    let read = policy.fs.read.iter().map(|(path, grant)| (path.as_path(), Granted::Read(grant)));
    let write = policy.fs.write.iter().map(|path| (path.as_path(), Granted::Write));
    let all: BTreeMap<&OsStr, Granted<'_>> =
        read.chain(write).map(|(path, granted)| (path.as_os_str(), granted)).collect();
    let mut copies = BTreeMap::new();
    // What is readable already, and where that ends again.
    let mut readable = PathSet::default();
    let mut ended = PathSet::default();
    for (path, granted) in all {
        let path = Path::new(path);
        let own = OWN.iter().any(|own| within(Path::new(own), path));
        if own || CLOSED.iter().any(|closed| within(path, Path::new(closed))) {
            return Err(PlanError::Reserved { path: path.to_owned() });
        }
        let Granted::Read(grant) = granted else {
            steps.push(bind_found(&metadata(path)?, path, Access::Write)?);
            writable.push(path.to_owned());
            ended.insert(path);
            continue;
        };
        if !policy.fs.hide.is_empty() && grant.origin == GrantOrigin::Policy {
            return Err(PlanError::HideInGrant { path: path.to_owned() });
        }
        if (!readable.covers(path) || ended.covers(path))
            && let Some(found) = read_grant(path, grant, steps)?
        {
            readable.insert(path);
            if grant.origin == GrantOrigin::System && is_public_file(&found) {
                copies.insert(path.to_owned(), Stamp::of(&found));
            }
        }
        masks(path, grant, steps, &mut ended)?;
    }
    Ok(copies)
}

/// Whether anybody on the host may read this file, and it is small enough to have copies of.
fn is_public_file(found: &fs::Metadata) -> bool {
    found.is_file() && found.mode() & 0o004 != 0 && found.len() <= LARGEST_COPY
}

/// Yields what stands there, where that is mounted.
fn read_grant(
    path: &Path,
    grant: &ReadGrant,
    steps: &mut Vec<Step>,
) -> Result<Option<fs::Metadata>, PlanError> {
    match metadata(path) {
        Ok(found) if found.is_symlink() => {
            let target = fs::read_link(path)
                .map_err(|source| PlanError::Grant { path: path.to_owned(), source })?;
            steps.push(Step::Link { path: path.to_owned(), target });
        }
        Ok(found) => {
            steps.push(bind_found(&found, path, Access::Read)?);
            return Ok(Some(found));
        }
        // A system path that went since `create` only makes the box smaller.
        Err(PlanError::Grant { source, .. })
            if grant.origin == GrantOrigin::System
                && source.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(None)
}

fn masks(
    path: &Path,
    grant: &ReadGrant,
    steps: &mut Vec<Step>,
    ended: &mut PathSet,
) -> Result<(), PlanError> {
    for name in &grant.mask {
        let masked = path.join(name);
        match fs::symlink_metadata(&masked) {
            Ok(found) if found.is_dir() => {
                steps.push(Step::Scratch { path: masked.clone(), mode: 0o555, bound: None });
            }
            Ok(_) => steps.push(Step::Mask { path: masked.clone() }),
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => continue,
            Err(source) => return Err(PlanError::Grant { path: masked, source }),
        }
        ended.insert(&masked);
    }
    Ok(())
}

fn devices(steps: &mut Vec<Step>) {
    for name in DEVICES {
        let path = Path::new("/dev").join(name);
        steps.push(Step::Bind {
            source: path.clone(),
            target: path,
            access: Access::Write,
            kind: BindKind::Device,
        });
    }
    for (name, target) in DEVICE_LINKS {
        steps.push(Step::Link { path: Path::new("/dev").join(name), target: target.into() });
    }
}

/// The files by which programs learn who and where they are; nothing of the host's.
fn identity(policy: &ResolvedPolicy, steps: &mut Vec<Step>) -> Result<(), PlanError> {
    let passwd = format!(
        "box:x:{BOX_ID}:{BOX_ID}:box:{HOME}:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
    );
    let group = format!("box:x:{BOX_ID}:\nnogroup:x:65534:\n");
    let resolv = match policy.net.mode {
        NetMode::Host => fs::read("/etc/resolv.conf")
            .map_err(|source| PlanError::Grant { path: "/etc/resolv.conf".into(), source })?,
        // Where a network's resolver answers in the box; without one the question is refused at once.
        _ => b"nameserver 127.0.0.53\n".to_vec(),
    };
    let files: [(&str, Vec<u8>); 6] = [
        ("/etc/passwd", passwd.into_bytes()),
        ("/etc/group", group.into_bytes()),
        ("/etc/hosts", b"127.0.0.1 localhost box\n::1 localhost box\n".to_vec()),
        ("/etc/hostname", b"box\n".to_vec()),
        ("/etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n".to_vec()),
        ("/etc/resolv.conf", resolv),
    ];
    steps
        .extend(files.into_iter().map(|(path, content)| Step::File { path: path.into(), content }));
    Ok(())
}

fn metadata(path: &Path) -> Result<fs::Metadata, PlanError> {
    fs::symlink_metadata(path).map_err(|source| PlanError::Grant { path: path.to_owned(), source })
}

/// Mounts what was found at a path of the host at the same path of the box.
fn bind_found(found: &fs::Metadata, path: &Path, access: Access) -> Result<Step, PlanError> {
    let kind = if found.is_dir() {
        BindKind::Directory
    } else if found.is_file() {
        BindKind::File
    } else {
        return Err(PlanError::NotFileOrDirectory { path: path.to_owned() });
    };
    Ok(Step::Bind { source: path.to_owned(), target: path.to_owned(), access, kind })
}

#[cfg(test)]
mod tests;
