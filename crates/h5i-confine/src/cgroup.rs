//! A memory cgroup of a box's own, where one was delegated to the caller.
//!
//! Delegated is a directory of the cgroup file system that belongs to an ordinary caller, or, for
//! root, that carries the mark of systemd's `Delegate=` (`user.delegate` or `trusted.delegate`): what
//! is not marked has another manager, whose accounts and kills a cgroup made there would disturb.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use std::os::unix::fs::MetadataExt as _;

/// Which of the two kinds of cgroup file systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

/// Where a cgroup may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) version: Version,
    parent: PathBuf,
}

impl Place {
    /// The nearest one to this process's own cgroup. Nothing is written.
    pub(crate) fn find(uid: u32) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        Self::among(&own, &mounts, uid)
    }

    fn among(own: &str, mounts: &str, uid: u32) -> Option<Self> {
        for (version, path) in own.lines().filter_map(memory_line) {
            let Some(mount) = mounts.lines().find_map(|line| Mount::of(line, version)) else {
                continue;
            };
            let Ok(below) = Path::new(path).strip_prefix(&mount.root) else { continue };
            let mut place = mount.at.join(below);
            // Version 2 lets no cgroup have both processes and children with controllers, so the
            // caller's own has none; one above it may.
            while place.starts_with(&mount.at) {
                if is_delegated(&place, uid) && serves(&place, version) {
                    return Some(Self { version, parent: place });
                }
                if version == Version::V1 || !place.pop() {
                    break;
                }
            }
        }
        None
    }

    /// Makes a cgroup there that may take so many bytes. What others left empty is removed.
    pub(crate) fn make(&self, allowed: u64) -> io::Result<Cgroup> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        self.remove_left();
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let directory = self.parent.join(format!("{NAME}{}-{number}", std::process::id()));
        fs::create_dir(&directory)?;
        let mut made = Cgroup { version: self.version, directory, kills: 0 };
        for (file, value) in bounds(self.version, allowed) {
            match fs::write(made.directory.join(file.name), &value) {
                // A kernel without accounts of swap.
                Err(error) if file.optional && error.kind() == io::ErrorKind::NotFound => {}
                written => written?,
            }
        }
        made.kills = made.told_kills();
        Ok(made)
    }

    /// Removes what a caller that died left: a cgroup with a process in it is not removed by this.
    fn remove_left(&self) {
        let Ok(entries) = fs::read_dir(&self.parent) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(|name| name.strip_prefix(NAME)?.split('-').next());
            if owner.is_some_and(|pid| fs::metadata(format!("/proc/{pid}")).is_err()) {
                fs::remove_dir(entry.path()).ok();
            }
        }
    }
}

/// What the names of cgroups begin with; the maker's process id follows.
const NAME: &str = "h5i-";

struct Bound {
    name: &'static str,
    optional: bool,
}

/// What is written to bound a cgroup, in this order.
fn bounds(version: Version, allowed: u64) -> Vec<(Bound, String)> {
    let hard = |name| Bound { name, optional: false };
    let soft = |name| Bound { name, optional: true };
    match version {
        Version::V2 => vec![
            (hard("memory.max"), allowed.to_string()),
            (soft("memory.swap.max"), "0".to_owned()),
        ],
        // Memory with swap may not be bounded below memory alone.
        Version::V1 => vec![
            (hard("memory.limit_in_bytes"), allowed.to_string()),
            (soft("memory.memsw.limit_in_bytes"), allowed.to_string()),
        ],
    }
}

/// A cgroup, removed when it is dropped: the last of its processes must be gone by then.
#[derive(Debug)]
pub(crate) struct Cgroup {
    version: Version,
    directory: PathBuf,
    /// Kills that were told of before.
    kills: u64,
}

impl Cgroup {
    /// Moves a process in; what it starts from then on is in as well.
    pub(crate) fn take_in(&self, pid: u32) -> io::Result<()> {
        fs::write(self.directory.join("cgroup.procs"), pid.to_string())
    }

    /// Bytes in use without the pages of files, which the kernel takes back by itself.
    pub(crate) fn used(&self) -> Option<u64> {
        let (file, cached): (_, &[&str]) = match self.version {
            Version::V2 => ("memory.current", &["inactive_file", "active_file"]),
            Version::V1 => ("memory.usage_in_bytes", &["total_inactive_file", "total_active_file"]),
        };
        let all: u64 = self.read(file)?.trim().parse().ok()?;
        let stat = self.read("memory.stat")?;
        let cached = cached.iter().filter_map(|name| number_of(&stat, name)).sum();
        Some(all.saturating_sub(cached))
    }

    /// How many processes the kernel has killed for the bound since this was asked last.
    pub(crate) fn new_kills(&mut self) -> u64 {
        let told = self.told_kills();
        let more = told.saturating_sub(self.kills);
        self.kills = told;
        more
    }

    fn told_kills(&self) -> u64 {
        let file = match self.version {
            Version::V2 => "memory.events",
            Version::V1 => "memory.oom_control",
        };
        self.read(file).and_then(|text| number_of(&text, "oom_kill")).unwrap_or(0)
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.directory.join(name)).ok()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // One that is left is removed by the next that is made here.
        fs::remove_dir(&self.directory).ok();
    }
}

/// The number that follows a name on a line of its own.
fn number_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

/// A line of `/proc/self/cgroup` that may hold the memory controller; see cgroups(7).
fn memory_line(line: &str) -> Option<(Version, &str)> {
    let mut fields = line.splitn(3, ':');
    let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    match (number, controllers) {
        ("0", "") => Some((Version::V2, path)),
        (_, list) if list.split(',').any(|name| name == "memory") => Some((Version::V1, path)),
        _ => None,
    }
}

/// A cgroup file system of `/proc/self/mountinfo`.
struct Mount {
    root: PathBuf,
    at: PathBuf,
}

impl Mount {
    fn of(line: &str, version: Version) -> Option<Self> {
        let (front, back) = line.split_once(" - ")?;
        let mut back = back.split(' ');
        let (kind, options) = (back.next()?, back.nth(1)?);
        let right = match version {
            Version::V2 => kind == "cgroup2",
            Version::V1 => kind == "cgroup" && options.split(',').any(|option| option == "memory"),
        };
        let mut front = front.split(' ').skip(3);
        right.then_some(())?;
        Some(Self { root: front.next()?.into(), at: front.next()?.into() })
    }
}

/// Whether the caller may make cgroups there and nobody else manages them.
fn is_delegated(place: &Path, uid: u32) -> bool {
    let owned = |path: &Path| fs::metadata(path).is_ok_and(|found| found.uid() == uid);
    if uid == 0 {
        let marked = |name: &str| {
            let mut value = [0; 1];
            rustix::fs::getxattr(place, name, &mut value[..]) == Ok(1) && value == *b"1"
        };
        return marked("user.delegate") || marked("trusted.delegate");
    }
    // Moving a process needs the list of processes of where it is now, too, which the file system
    // checks when it is tried.
    owned(place) && owned(&place.join("cgroup.procs"))
}

/// Whether a cgroup made there has the memory controller.
fn serves(place: &Path, version: Version) -> bool {
    match version {
        Version::V1 => fs::metadata(place.join("memory.limit_in_bytes")).is_ok(),
        Version::V2 => fs::read_to_string(place.join("cgroup.subtree_control"))
            .is_ok_and(|list| list.split_ascii_whitespace().any(|name| name == "memory")),
    }
}

#[cfg(test)]
mod tests;
