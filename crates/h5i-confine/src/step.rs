//! The steps of a plan: what is executed, what `explain` prints, what the enforcement report says.

use std::fmt;
use std::path::PathBuf;

use h5i_policy::Bytes;

use crate::layout::Access;

/// One step on the way from an ordinary process to the box's init.
///
/// The list of steps is the plan. The stage executes it in order; the first one that fails ends the
/// attempt and is named with its errno. `Display` says what it does, [`Step::reason`] why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Give up root: no supplementary groups, and a host id of the box's own.
    TakeHostId {
        /// User and group id on the host.
        id: u32,
    },
    /// Leave the host's namespaces.
    EnterNamespaces {
        /// The namespaces, by name.
        names: Vec<&'static str>,
        /// The same as `CLONE_NEW*` flags.
        flags: u64,
    },
    /// Map one id into the user namespace.
    MapIds {
        /// Id inside.
        inside: u32,
        /// User id on the host.
        uid: u32,
        /// Group id on the host.
        gid: u32,
    },
    /// Fork the box's init; the stage stays outside its pid namespace and keeps watch.
    BecomeInit {
        /// Whether the stage makes a network namespace meanwhile, for [`Step::EnterNetwork`].
        network: NetworkNamespace,
    },
    /// Enter the network namespace that the stage made; its loopback is up.
    EnterNetwork,
    /// Cut mount propagation between box and host.
    DetachMounts,
    /// Name the box.
    Hostname {
        /// The name.
        name: String,
    },
    /// Make a socket in the box's network namespace and hand it to the supervisor.
    Socket {
        /// Address family.
        domain: i32,
        /// Type, without flags.
        kind: i32,
        /// Protocol.
        protocol: i32,
        /// Number by which the supervisor asks for it.
        tag: u32,
    },
    /// Put an empty file system at the root; the host's stands below `/.host` until it is left.
    EmptyRoot,
    /// Mount a root directory that was prepared; the host's stands over it until it is left.
    PreparedRoot {
        /// Where it is kept on the host.
        source: PathBuf,
        /// What is in it, in the order of bytes.
        paths: Vec<PathBuf>,
        /// How many of these are copies of the host's public files.
        copies: usize,
    },
    /// Make a directory and its parents.
    Directory {
        /// Where.
        path: PathBuf,
    },
    /// Make a file.
    File {
        /// Where.
        path: PathBuf,
        /// What it says.
        content: Vec<u8>,
    },
    /// Make a symbolic link.
    Link {
        /// Where.
        path: PathBuf,
        /// What it points to.
        target: PathBuf,
    },
    /// Mount a part of the host.
    Bind {
        /// Path on the host.
        source: PathBuf,
        /// Path in the box.
        target: PathBuf,
        /// Whether the box may write there.
        access: Access,
        /// What stands there.
        kind: BindKind,
    },
    /// Show several directories as one.
    Overlay {
        /// Where.
        target: PathBuf,
        /// Directories that are only read, the one that hides the others first.
        lowers: Vec<PathBuf>,
        /// The directory whose `upper` receives what is written.
        area: PathBuf,
        /// The directory of the host that they are named below; `None` when they are mounted in the
        /// box, beside each other, and unmounted together once they are shown as one.
        base: Option<PathBuf>,
    },
    /// Mount an empty file system in memory.
    Scratch {
        /// Where.
        path: PathBuf,
        /// Permission bits.
        mode: u32,
        /// How much it may hold; half of the host's memory where nothing is said. The supervisor
        /// gets a descriptor of one that is bounded, to measure it by.
        bound: Option<ScratchBound>,
    },
    /// Mount the box's own `/proc`, read-only.
    Proc,
    /// Give the supervisor the lists of what the box keeps of System V, to count it by.
    SystemV,
    /// Mount the box's own terminals.
    Terminals,
    /// Hide a file behind the null device.
    Mask {
        /// Which.
        path: PathBuf,
    },
    /// Unmount the host's file systems.
    LeaveHost,
    /// Make the root read-only.
    SealRoot,
    /// Bound a resource of every process.
    Limit {
        /// Name of the policy's field.
        name: &'static str,
        /// `RLIMIT_*`.
        resource: u32,
        /// The bound in the resource's unit.
        value: u64,
    },
    /// Give up every capability, for good.
    DropCapabilities {
        /// Highest capability of the kernel.
        last: u32,
    },
    /// Forbid gaining privileges by exec, and reading init's memory.
    NoNewPrivileges,
    /// Restrict files, sockets and signals by Landlock.
    Landlock(LandlockRules),
    /// Refuse dangerous system calls.
    SystemCallFilter {
        /// The compiled program.
        program: FilterProgram,
    },
    /// Change to the workspace.
    EnterDirectory {
        /// Which.
        path: PathBuf,
    },
    /// Serve runs.
    Serve,
}

/// How much a file system in memory may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScratchBound {
    /// Bytes.
    pub bytes: u64,
    /// Files, directories and links.
    pub inodes: u64,
}

/// Whether a box has a network namespace of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkNamespace {
    /// One of its own; the stage makes it while the init builds the root, because it takes longest.
    Own,
    /// The host's.
    Host,
}

/// What a [`Step::Bind`] mounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BindKind {
    /// A directory and what is mounted below it.
    Directory,
    /// A directory that an overlay is made of; for a root caller's box its files, which belong to
    /// root on the host, show as the box's own.
    Layer,
    /// A file.
    File,
    /// A character device.
    Device,
}

/// The rules of a Landlock domain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LandlockRules {
    /// The host's ABI, by which the rights below were chosen.
    pub abi: u32,
    /// File rights that are refused where no rule grants them.
    pub handled: u64,
    /// Scopes: signals and abstract sockets.
    pub scoped: u64,
    /// Paths in the box and the rights granted below each.
    pub rules: Vec<(PathBuf, u64)>,
}

/// A compiled seccomp program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilterProgram {
    /// The instructions as `struct sock_filter` words: code, jt, jf, k.
    pub instructions: Vec<(u16, u8, u8, u32)>,
    /// Whether its refusals are reported to the supervisor before they are answered.
    pub notifies: bool,
    /// Whether the notification survives signals (`WAIT_KILLABLE_RECV`, Linux 5.19).
    pub wait_killable: bool,
}

impl Step {
    /// Why the step is there.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::TakeHostId { .. } => {
                "files of /proc/sys go by host id 0 and not by capability, and the process limit is void for it"
            }
            Self::EnterNamespaces { .. } => "the box sees itself only",
            Self::MapIds { .. } => "one id, not 0: no set-id program and no other user inside",
            Self::BecomeInit { .. } => {
                "when it dies the kernel kills everything in the box; what watches it has no name inside"
            }
            Self::DetachMounts => {
                "no mount of the box shows on the host, and none of the host's later"
            }
            Self::EnterNetwork => "loopback only: no address of the host or beyond can be reached",
            Self::Hostname { .. } => "the host's name stays outside",
            Self::Socket { .. } => "the supervisor serves it from outside",
            Self::EmptyRoot => "what is not granted does not exist",
            Self::PreparedRoot { .. } => {
                "what is not granted does not exist; made once for all sessions of this shape"
            }
            Self::Directory { .. } | Self::Link { .. } => "the shape that programs expect",
            Self::File { .. } => "written for the box, nothing of the host's",
            Self::Bind { kind: BindKind::Layer, .. } => "a part of the overlay that follows",
            Self::Bind { access: Access::Read, .. } => "granted for reading",
            Self::Bind { access: Access::Write, .. } => "granted for writing",
            Self::Overlay { .. } => "what the box writes is apart from what it was given",
            Self::Scratch { .. } => "gone with the session",
            Self::Proc => "shows the box's processes only; nothing below it can be written",
            Self::SystemV => "memory that no process has mapped counts, too",
            Self::Terminals => "a terminal of the box is never the caller's",
            Self::Mask { path } if path.starts_with("/proc") => {
                "tells about the host's kernel, not about the box"
            }
            Self::Mask { .. } => "may hold a credential; an empty file stands there",
            Self::LeaveHost => "from here on the host's files have no path",
            Self::SealRoot => "the shape of the box can't be changed from inside",
            Self::Limit { .. } => "the policy's budget",
            Self::DropCapabilities { .. } => {
                "no mount, no network set-up, no override of permissions"
            }
            Self::NoNewPrivileges => "set-id programs gain nothing",
            Self::Landlock(_) => "a second wall, should the first have a hole",
            Self::SystemCallFilter { .. } => {
                "less of the kernel within reach; each attempt is on record"
            }
            Self::EnterDirectory { .. } => "runs start in the workspace",
            Self::Serve => "runs are forked here, all in one domain",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TakeHostId { id } => write!(f, "become host id {id}"),
            Self::EnterNamespaces { names, .. } => {
                write!(f, "enter new namespaces: {}", names.join(" "))
            }
            Self::MapIds { inside, uid, gid } => {
                write!(f, "map id {inside} inside to host user {uid}, group {gid}")
            }
            Self::BecomeInit { network: NetworkNamespace::Own } => f.write_str(
                "fork the box's init, make a network namespace meanwhile, and keep watch over it",
            ),
            Self::BecomeInit { .. } => f.write_str("fork the box's init and keep watch over it"),
            Self::EnterNetwork => f.write_str("enter the network namespace"),
            Self::DetachMounts => f.write_str("detach the mount tree"),
            Self::Hostname { name } => write!(f, "set the host name to {name}"),
            Self::Socket { domain, kind, protocol, .. } => {
                write!(f, "make a socket ({domain}, {kind}, {protocol}) for the supervisor")
            }
            Self::EmptyRoot => f.write_str("pivot to an empty root"),
            Self::PreparedRoot { source, paths, copies } => {
                let (source, entries) = (source.display(), paths.len());
                write!(
                    f,
                    "pivot to the root {source}, {entries} entries, {copies} of them copies of the host's"
                )
            }
            Self::Directory { path } => write!(f, "make directory {}", path.display()),
            Self::File { path, content } => {
                write!(f, "write {} ({} bytes)", path.display(), content.len())
            }
            Self::Link { path, target } => {
                write!(f, "link {} to {}", path.display(), target.display())
            }
            Self::Bind { source, target, access, .. } => {
                let access = match access {
                    Access::Read => "read-only",
                    Access::Write => "writable",
                };
                if source == target {
                    write!(f, "mount {} {access}", target.display())
                } else {
                    write!(f, "mount {} {access} from {}", target.display(), source.display())
                }
            }
            Self::Overlay { target, lowers, .. } => {
                write!(f, "mount {} as an overlay of {} layers", target.display(), lowers.len() + 1)
            }
            Self::Scratch { path, bound: None, .. } => {
                write!(f, "mount memory at {}", path.display())
            }
            Self::Scratch { path, bound: Some(bound), .. } => {
                let most = Bytes::new(bound.bytes);
                write!(f, "mount {most} of memory at {}", path.display())
            }
            Self::Proc => f.write_str("mount /proc of the box, read-only"),
            Self::SystemV => {
                f.write_str("hand out the lists of System V memory, semaphores and messages")
            }
            Self::Terminals => f.write_str("mount terminals of the box at /dev/pts"),
            Self::Mask { path } => write!(f, "mask {}", path.display()),
            Self::LeaveHost => f.write_str("unmount the host's files"),
            Self::SealRoot => f.write_str("make the root read-only"),
            Self::Limit { name, value, .. } if name.ends_with("_size") => {
                write!(f, "limit {name} to {}", Bytes::new(*value))
            }
            Self::Limit { name, value, .. } => write!(f, "limit {name} to {value}"),
            Self::DropCapabilities { .. } => f.write_str("drop all capabilities"),
            Self::NoNewPrivileges => f.write_str("forbid new privileges"),
            Self::Landlock(rules) => {
                write!(f, "restrict by Landlock ABI {}, {} rules", rules.abi, rules.rules.len())
            }
            Self::SystemCallFilter { program } => {
                let count = program.instructions.len();
                write!(f, "install the system-call filter, {count} instructions")
            }
            Self::EnterDirectory { path } => write!(f, "change to {}", path.display()),
            Self::Serve => f.write_str("serve runs"),
        }
    }
}
