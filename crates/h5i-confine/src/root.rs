//! The steps that build a box's private root: what is not granted does not exist.

use std::fs;
use std::path::{Path, PathBuf};

use h5i_policy::{GrantOrigin, NetMode, ResolvedPolicy};

use crate::error::PlanError;
use crate::host::HostFacts;
use crate::layout::{Access, BOX_ID, HOME, Layout, WORKSPACE};
use crate::step::{BindKind, Step};

/// Devices every program expects; each is bound from the host's `/dev`.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// Memory file systems of a session; everything in them is gone with it.
const SCRATCH: [(&str, u32); 3] = [("/tmp", 0o1777), ("/run", 0o755), ("/dev/shm", 0o1777)];

/// Steps for the root, from the empty one to the sealed one, and the paths that may be written.
pub(crate) fn steps(
    policy: &ResolvedPolicy,
    layout: &Layout,
    facts: &HostFacts,
) -> Result<(Vec<Step>, Vec<PathBuf>), PlanError> {
    let mut steps = vec![Step::EmptyRoot];
    let mut writable: Vec<PathBuf> = SCRATCH.iter().map(|(path, _)| path.into()).collect();
    // Before the grants, which may lie below them.
    steps.extend(
        SCRATCH.iter().map(|(path, mode)| Step::Scratch { path: path.into(), mode: *mode }),
    );
    grants(policy, &mut steps)?;
    devices(&mut steps);
    steps.extend([WORKSPACE, HOME].map(|path| Step::Directory { path: path.into() }));
    steps.push(Step::Link { path: "/var/tmp".into(), target: "/tmp".into() });
    steps.push(Step::Link { path: "/var/run".into(), target: "/run".into() });
    identity(policy, &mut steps)?;
    for path in &policy.fs.write {
        steps.push(bind_found(&metadata(path.as_path())?, path.as_path(), Access::Write)?);
        writable.push(path.as_path().to_owned());
    }
    for part in &layout.placements {
        steps.push(Step::Bind {
            source: part.source.clone(),
            target: part.target.clone(),
            access: part.access,
            kind: BindKind::Directory,
        });
        if part.access == Access::Write {
            writable.push(part.target.clone());
        }
    }
    steps.push(Step::Proc);
    steps.extend(facts.proc_files_to_mask.iter().map(|path| Step::Mask { path: path.clone() }));
    steps.push(Step::Terminals);
    steps.push(Step::LeaveHost);
    steps.push(Step::SealRoot);
    Ok((steps, writable))
}

fn grants(policy: &ResolvedPolicy, steps: &mut Vec<Step>) -> Result<(), PlanError> {
    let mut mounted: Vec<PathBuf> = Vec::new();
    for (path, grant) in &policy.fs.read {
        let path = path.as_path();
        if !policy.fs.hide.is_empty() && grant.origin == GrantOrigin::Policy {
            return Err(PlanError::HideInGrant { path: path.to_owned() });
        }
        if !mounted.iter().any(|above| path.starts_with(above)) {
            match metadata(path) {
                Ok(found) if found.is_symlink() => {
                    let target = fs::read_link(path)
                        .map_err(|source| PlanError::Grant { path: path.to_owned(), source })?;
                    steps.push(Step::Link { path: path.to_owned(), target });
                }
                Ok(found) => {
                    steps.push(bind_found(&found, path, Access::Read)?);
                    mounted.push(path.to_owned());
                }
                // A system path that went since `create` only makes the box smaller.
                Err(PlanError::Grant { source, .. })
                    if grant.origin == GrantOrigin::System
                        && source.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        for name in &grant.mask {
            let masked = path.join(name);
            match fs::symlink_metadata(&masked) {
                Ok(found) if found.is_dir() => {
                    steps.push(Step::Scratch { path: masked, mode: 0o555 });
                }
                Ok(_) => steps.push(Step::Mask { path: masked }),
                Err(source) if source.kind() == std::io::ErrorKind::NotFound => {}
                Err(source) => return Err(PlanError::Grant { path: masked, source }),
            }
        }
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
        _ => b"# no network\n".to_vec(),
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
