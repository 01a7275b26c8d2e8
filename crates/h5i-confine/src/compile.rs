//! Turns steps into the system calls that the stage makes.

mod overlay;
mod restrict;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::layout::Access;
use crate::list::{Arg, Data, List, Slot};
use crate::path_set::{PathSet, within};
use crate::step::{BindKind, NetworkNamespace, Step};
use crate::system_v::Kind;
use crate::wire::{
    FIRST_SLOTS, OP_BECOME_INIT, OP_ENTER_NETWORK, OP_HOST_LEFT, OP_LEAVE_HOST, OP_NEXT_LIST,
    OP_SERVE,
};

/// Tag under which the stage hands out the listener of the system-call filter.
pub(crate) const TAG_LISTENER: u32 = 1;
/// The lists of what the box keeps of System V have this tag and above, in their order.
pub(crate) const TAG_SYSTEM_V: u32 = 2;
/// Memory file systems that are measured have this tag and above.
pub(crate) const TAG_SCRATCH: u32 = 100;
/// Sockets that other crates asked for have this tag and above.
pub(crate) const TAG_SOCKETS: u32 = 1000;
/// Terminals of runs are tagged with the run's number from here on.
pub(crate) const TAG_TERMINALS: u32 = 1 << 20;
/// Where the host's files stand while the root is built.
const HOST: &str = "/.host";

pub(crate) const AT_FDCWD: Arg = Arg::Value(libc::AT_FDCWD.cast_unsigned() as u64);
const NONE: Arg = Arg::Value(0);
const MOUNT_ATTR_RDONLY: u64 = 1;
const MOUNT_ATTR_NOSUID: u64 = 2;
const MOUNT_ATTR_NODEV: u64 = 4;
const AT_EMPTY_PATH: u64 = 0x1000;
const AT_RECURSIVE: u64 = 0x8000;
const OPEN_TREE_CLONE: u64 = 1;
const MOVE_MOUNT_F_EMPTY_PATH: u64 = 4;
const CLOEXEC: u64 = libc::O_CLOEXEC as u64;

/// Attributes of a bound part of the host: (set, clear, propagation, user namespace).
pub(crate) fn bind_attributes(access: Access, kind: BindKind) -> [u64; 4] {
    let device = if kind == BindKind::Device { 0 } else { MOUNT_ATTR_NODEV };
    let read_only = if access == Access::Read { MOUNT_ATTR_RDONLY } else { 0 };
    [MOUNT_ATTR_NOSUID | device | read_only, 0, 0, 0]
}

/// What the stage executes, and what the box's init goes on with: nothing of the first depends on
/// what the box may do, so the stage can begin with it before the rest of the plan is made.
pub(crate) struct Compiled {
    pub(crate) first: List,
    /// `None` where no step forks an init.
    pub(crate) second: Option<List>,
}

/// Compiles `steps`. The `i`th entry of `received` is the step whose source is the `i`th descriptor
/// that comes for the second list; all other sources are opened by path.
pub(crate) fn compile(steps: &[Step], received: &[usize]) -> Compiled {
    let mut compiler = Compiler {
        list: List::default(),
        first: None,
        received: u16::try_from(received.len()).unwrap_or(u16::MAX),
        made: PathSet::default(),
        mounted: PathSet::default(),
        errands: None,
        leaving: None,
        host: None,
        scratches: 0,
    };
    compiler.made.insert(Path::new("/"));
    for (index, step) in steps.iter().enumerate() {
        compiler.list.begin_step(u32::try_from(index).unwrap_or(u32::MAX));
        let source = received
            .iter()
            .position(|&i| i == index)
            .and_then(|i| u16::try_from(i).ok())
            .map(|i| compiler.list.received(i));
        compiler.step(step, source);
    }
    match compiler.first {
        Some(first) => Compiled { first, second: Some(compiler.list) },
        None => Compiled { first: compiler.list, second: None },
    }
}

struct Compiler {
    list: List,
    /// The first list, once the second is begun.
    first: Option<List>,
    /// How many descriptors come for the second list.
    received: u16,
    /// Directories and files that stand already.
    made: PathSet,
    /// Where parts of the host are mounted: what lies below them may be the box's own work.
    mounted: PathSet,
    /// Over which the stage does errands for the init.
    errands: Option<Slot>,
    /// The step that has the stage unmount the host's root, until that is waited for.
    leaving: Option<u32>,
    host: Option<HostRoot>,
    /// Memory file systems that were handed out.
    scratches: u32,
}

/// The host's root while the box's is built, and a descriptor of it.
#[derive(Clone, Copy)]
enum HostRoot {
    /// It stands below the box's root.
    Below(Slot),
    /// It stands over the box's root, where no path leads.
    Over(Slot),
}

impl Compiler {
    fn step(&mut self, step: &Step, source: Option<Slot>) {
        match step {
            Step::TakeHostId { id } => self.take_host_id(u64::from(*id)),
            Step::EnterNamespaces { flags, .. } => {
                self.list.call(libc::SYS_unshare, &[Arg::Value(*flags)]);
            }
            Step::MapIds { inside, uid, gid } => {
                self.write("/proc/self/setgroups", b"deny");
                self.write("/proc/self/uid_map", format!("{inside} {uid} 1").as_bytes());
                self.write("/proc/self/gid_map", format!("{inside} {gid} 1").as_bytes());
            }
            Step::BecomeInit { network } => self.become_init(*network),
            Step::EnterNetwork => {
                if let Some(socket) = self.errands {
                    self.list.operation_on(OP_ENTER_NETWORK, &[socket], 0);
                }
            }
            Step::DetachMounts => {
                let flags = Arg::Value(libc::MS_REC | libc::MS_PRIVATE);
                let root = self.path("/");
                self.list.call(libc::SYS_mount, &[NONE, root, NONE, flags, NONE]);
            }
            Step::Hostname { name } => {
                let len = Arg::Value(name.len() as u64);
                let name = Arg::Data(self.list.string(name.as_bytes()));
                self.list.call(libc::SYS_sethostname, &[name, len]);
            }
            Step::Socket { domain, kind, protocol, tag } => {
                let args = [*domain, *kind | libc::SOCK_CLOEXEC, *protocol]
                    .map(|n| Arg::Value(u64::from(n.unsigned_abs())));
                let slot = self.list.open(libc::SYS_socket, &args);
                self.list.hand_out(slot, TAG_SOCKETS + tag);
                self.list.close(slot);
            }
            Step::EmptyRoot => self.empty_root(),
            Step::PreparedRoot { source: from, paths, .. } => {
                self.prepared_root(from, source, paths)
            }
            Step::Directory { path } => self.directory(path),
            Step::File { path, content } => {
                self.parents(path);
                self.create(path, content);
            }
            Step::Link { path, target } => {
                self.parents(path);
                let (path, target) = (self.path(path), self.path(target));
                self.list.call_or(libc::SYS_symlinkat, &[target, AT_FDCWD, path], libc::EEXIST);
            }
            Step::Bind { source: from, target, access, kind } => {
                self.bind(from, source, target, *access, *kind);
            }
            Step::Overlay { target, lowers, area, base } => {
                self.overlay(target, lowers, area, base.as_deref());
            }
            Step::Scratch { path, mode, bound } => {
                self.directory(path);
                let bounds = bound.map_or_else(String::new, |bound| {
                    format!(",size={},nr_inodes={}", bound.bytes, bound.inodes)
                });
                let (flags, data) =
                    (libc::MS_NOSUID | libc::MS_NODEV, format!("mode={mode:o}{bounds}"));
                self.mount("tmpfs", path, flags, &data);
                if bound.is_some() {
                    self.hand_out_directory(path);
                }
            }
            Step::Proc => {
                let path = Path::new("/proc");
                self.directory(path);
                let quiet = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
                self.mount("proc", path, quiet | libc::MS_RDONLY, "");
            }
            Step::SystemV => {
                for (tag, kind) in (TAG_SYSTEM_V..).zip(Kind::ALL) {
                    let path = self.path(kind.list());
                    let flags = Arg::Value(libc::O_RDONLY as u64 | CLOEXEC);
                    let slot = self.list.open(libc::SYS_openat, &[AT_FDCWD, path, flags, NONE]);
                    self.list.hand_out(slot, tag);
                    self.list.close(slot);
                }
            }
            Step::Terminals => {
                let path = Path::new("/dev/pts");
                self.directory(path);
                let data = "newinstance,ptmxmode=0666,mode=0620";
                self.mount("devpts", path, libc::MS_NOSUID | libc::MS_NOEXEC, data);
            }
            Step::Mask { path } => {
                let null = Path::new("/dev/null");
                self.bind(null, None, path, Access::Read, BindKind::Device);
            }
            Step::LeaveHost => self.leave_host(),
            Step::SealRoot => {
                let root = self.path("/");
                let attributes =
                    [MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, 0, 0];
                let attributes = Arg::Data(self.list.words(&attributes));
                let args = [AT_FDCWD, root, NONE, attributes, Arg::Value(32)];
                self.list.call(libc::SYS_mount_setattr, &args);
            }
            Step::Limit { resource, value, .. } => limit(&mut self.list, *resource, *value, *value),
            Step::DropCapabilities { last } => self.drop_capabilities(*last),
            Step::NoNewPrivileges => {
                self.prctl(libc::PR_SET_NO_NEW_PRIVS, 1);
                self.prctl(libc::PR_SET_DUMPABLE, 0);
            }
            Step::Landlock(rules) => self.landlock(rules),
            Step::SystemCallFilter { program } => self.filter(program),
            Step::EnterDirectory { path } => {
                let path = self.path(path);
                self.list.call(libc::SYS_chdir, &[path]);
            }
            Step::Serve => {
                if let (Some(step), Some(socket)) = (self.leaving.take(), self.errands) {
                    let serving = self.list.current_step();
                    self.list.begin_step(step);
                    self.list.operation_on(OP_HOST_LEFT, &[socket], 0);
                    self.list.begin_step(serving);
                }
                self.list.operation(OP_SERVE);
            }
        }
    }

    fn path(&mut self, path: impl AsRef<Path>) -> Arg {
        Arg::Data(self.list.string(path.as_ref().as_os_str().as_bytes()))
    }

    fn prctl(&mut self, option: libc::c_int, value: u64) {
        let option = Arg::Value(u64::from(option.unsigned_abs()));
        self.list.call(libc::SYS_prctl, &[option, Arg::Value(value), NONE, NONE, NONE]);
    }

    fn take_host_id(&mut self, id: u64) {
        let id = Arg::Value(id);
        self.list.call(libc::SYS_setgroups, &[NONE, NONE]);
        self.list.call(libc::SYS_setresgid, &[id, id, id]);
        self.list.call(libc::SYS_setresuid, &[id, id, id]);
        // A change of id makes the process's own /proc files root's, and the id maps with them.
        self.prctl(libc::PR_SET_DUMPABLE, 1);
    }

    fn become_init(&mut self, network: NetworkNamespace) {
        let pair = self.list.words(&[0]);
        let [domain, kind, protocol] =
            [libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0]
                .map(|n| Arg::Value(u64::from(n.unsigned_abs())));
        self.list.call(libc::SYS_socketpair, &[domain, kind, protocol, Arg::Data(pair)]);
        let init = self.list.load_fd(pair);
        let stage = self.list.load_fd(List::behind(pair, 4));
        let own = self.path("/proc/self/ns");
        let flags = Arg::Value(libc::O_RDONLY as u64 | CLOEXEC);
        let own = self.list.open(libc::SYS_openat, &[AT_FDCWD, own, flags, NONE]);
        let network = u64::from(network == NetworkNamespace::Own);
        self.list.operation_on(OP_BECOME_INIT, &[stage, own], network);
        self.list.close(own);
        self.list.close(stage);
        self.errands = Some(init);
        self.list.operation(OP_NEXT_LIST);
        debug_assert!(init.number() < u64::from(FIRST_SLOTS));
        let second = List::receiving(FIRST_SLOTS, self.received);
        self.first = Some(std::mem::replace(&mut self.list, second));
    }

    /// Writes a file that is there.
    fn write(&mut self, path: &str, content: &[u8]) {
        let path = self.path(path);
        let flags = Arg::Value(libc::O_WRONLY as u64 | CLOEXEC);
        let slot = self.list.open(libc::SYS_openat, &[AT_FDCWD, path, flags, NONE]);
        self.write_all(slot, content);
    }

    /// Makes a file.
    fn create(&mut self, path: &Path, content: &[u8]) {
        let path = self.path(path);
        let flags = Arg::Value((libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC) as u64 | CLOEXEC);
        let mode = Arg::Value(0o644);
        let slot = self.list.open(libc::SYS_openat, &[AT_FDCWD, path, flags, mode]);
        self.write_all(slot, content);
    }

    fn write_all(&mut self, slot: Slot, content: &[u8]) {
        let data = Arg::Data(self.list.bytes(content));
        let len = Arg::Value(content.len() as u64);
        self.list.call(libc::SYS_write, &[Arg::Slot(slot), data, len]);
        self.list.close(slot);
    }

    fn mount(&mut self, kind: &str, target: &Path, flags: u64, data: &str) {
        self.cover(target);
        let target = self.path(target);
        let kind = Arg::Data(self.list.string(kind.as_bytes()));
        let data = Arg::Data(self.list.string(data.as_bytes()));
        self.list.call(libc::SYS_mount, &[kind, target, kind, Arg::Value(flags), data]);
    }

    /// Hands out a descriptor by which the file system at `path` can be measured.
    fn hand_out_directory(&mut self, path: &Path) {
        let path = self.path(path);
        let flags = Arg::Value((libc::O_PATH | libc::O_DIRECTORY) as u64 | CLOEXEC);
        let slot = self.list.open(libc::SYS_openat, &[AT_FDCWD, path, flags, NONE]);
        self.list.hand_out(slot, TAG_SCRATCH + self.scratches);
        self.scratches += 1;
        self.list.close(slot);
    }

    fn empty_root(&mut self) {
        // Files are made with the modes that the steps say, whatever the caller's mask.
        self.list.call(libc::SYS_umask, &[Arg::Value(0o022)]);
        let base = Path::new("/tmp");
        self.mount("tmpfs", base, libc::MS_NOSUID | libc::MS_NODEV, "mode=0755");
        let base = self.path(base);
        self.list.call(libc::SYS_chdir, &[base]);
        let old = self.path(".host");
        self.list.call(libc::SYS_mkdirat, &[AT_FDCWD, old, Arg::Value(0o700)]);
        let here = self.path(".");
        self.list.call(libc::SYS_pivot_root, &[here, old]);
        let root = self.path("/");
        self.list.call(libc::SYS_chdir, &[root]);
        let host = self.path(HOST);
        let flags = Arg::Value((libc::O_PATH | libc::O_DIRECTORY) as u64 | CLOEXEC);
        let host = self.list.open(libc::SYS_openat, &[AT_FDCWD, host, flags, NONE]);
        self.host = Some(HostRoot::Below(host));
    }

    /// Puts a prepared directory in the place of the root. The host's root ends up mounted over it:
    /// no path leads there, the descriptor in `self.host` does.
    fn prepared_root(&mut self, from: &Path, received: Option<Slot>, paths: &[PathBuf]) {
        self.list.call(libc::SYS_umask, &[Arg::Value(0o022)]);
        let root = self.path("/");
        let flags = Arg::Value((libc::O_PATH | libc::O_DIRECTORY) as u64 | CLOEXEC);
        let host = self.list.open(libc::SYS_openat, &[AT_FDCWD, root, flags, NONE]);
        let tree = received.unwrap_or_else(|| {
            let from = self.path(from);
            let flags = Arg::Value(OPEN_TREE_CLONE | CLOEXEC);
            self.list.open(libc::SYS_open_tree, &[AT_FDCWD, from, flags])
        });
        let (empty, base) = (self.path(""), self.path("/tmp"));
        let flags = Arg::Value(MOVE_MOUNT_F_EMPTY_PATH);
        self.list.call(libc::SYS_move_mount, &[Arg::Slot(tree), empty, AT_FDCWD, base, flags]);
        self.list.close(tree);
        self.list.call(libc::SYS_chdir, &[base]);
        let here = self.path(".");
        self.list.call(libc::SYS_pivot_root, &[here, here]);
        self.list.call(libc::SYS_chdir, &[root]);
        self.host = Some(HostRoot::Over(host));
        for path in paths {
            self.made.insert(path);
        }
    }

    fn leave_host(&mut self) {
        let detach = Arg::Value(libc::MNT_DETACH as u64);
        match self.host.take() {
            Some(HostRoot::Below(host)) => {
                self.list.close(host);
                let path = self.path(HOST);
                self.list.call(libc::SYS_umount2, &[path, detach]);
                let remove = Arg::Value(libc::AT_REMOVEDIR as u64);
                self.list.call(libc::SYS_unlinkat, &[AT_FDCWD, path, remove]);
            }
            Some(HostRoot::Over(host)) => {
                let root = self.path("/");
                if let Some(socket) = self.errands {
                    self.list.operation_on(OP_LEAVE_HOST, &[socket, host], 0);
                    self.leaving = Some(self.list.current_step());
                } else {
                    let here = self.path(".");
                    self.list.call(libc::SYS_fchdir, &[Arg::Slot(host)]);
                    self.list.call(libc::SYS_umount2, &[here, detach]);
                }
                self.list.call(libc::SYS_chdir, &[root]);
                self.list.close(host);
            }
            None => {}
        }
    }

    fn directory(&mut self, path: &Path) {
        self.parents(path);
        if self.made.insert(path) {
            let name = self.path(path);
            let args = [AT_FDCWD, name, Arg::Value(0o755)];
            self.list.call_or(libc::SYS_mkdirat, &args, libc::EEXIST);
            if self.mounted.holds_above(path) {
                self.check_directory(name);
            }
        }
    }

    /// Fails (`ELOOP`) when a link stands where a directory was to be made: an earlier session of
    /// the box may have put it there, and the host's files are still within its reach. Called for
    /// each directory on a way, before the next one is made.
    fn check_directory(&mut self, path: Arg) {
        let flags = (libc::O_PATH | libc::O_DIRECTORY) as u64 | CLOEXEC;
        let how = Arg::Data(self.list.words(&[flags, 0, libc::RESOLVE_NO_SYMLINKS]));
        let args = [AT_FDCWD, path, how, Arg::Value(24)];
        let found = self.list.open(libc::SYS_openat2, &args);
        self.list.close(found);
    }

    /// What stood below `target` is out of reach once something is mounted there.
    fn cover(&mut self, target: &Path) {
        self.made.remove_below(target);
    }

    fn parents(&mut self, path: &Path) {
        if let Some(parent) = path.parent()
            && !self.made.contains(parent)
        {
            self.directory(parent);
        }
    }

    fn bind(
        &mut self,
        source: &Path,
        received: Option<Slot>,
        target: &Path,
        access: Access,
        kind: BindKind,
    ) {
        if matches!(kind, BindKind::Directory | BindKind::Layer) {
            self.directory(target);
        } else if !within(target, Path::new("/proc")) && self.made.insert(target) {
            self.parents(target);
            let path = self.path(target);
            let args = [AT_FDCWD, path, Arg::Value(u64::from(libc::S_IFREG) | 0o644), NONE];
            self.list.call_or(libc::SYS_mknodat, &args, libc::EEXIST);
        }
        let empty = self.path("");
        let mut found = None;
        let slot = received.unwrap_or_else(|| {
            let path = self.find_on_host(source);
            found = Some(path);
            let flags = Arg::Value(OPEN_TREE_CLONE | CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);
            let slot = self.list.open(libc::SYS_open_tree, &[Arg::Slot(path), empty, flags]);
            let attributes = Arg::Data(self.list.words(&bind_attributes(access, kind)));
            let flags = Arg::Value(AT_EMPTY_PATH | AT_RECURSIVE);
            let args = [Arg::Slot(slot), empty, flags, attributes, Arg::Value(32)];
            self.list.call(libc::SYS_mount_setattr, &args);
            slot
        });
        if matches!(kind, BindKind::Directory | BindKind::Layer) {
            self.cover(target);
            self.mounted.insert(target);
        }
        let target = self.path(target);
        let flags = Arg::Value(MOVE_MOUNT_F_EMPTY_PATH);
        let args = [Arg::Slot(slot), empty, AT_FDCWD, target, flags];
        self.list.call(libc::SYS_move_mount, &args);
        self.list.close(slot);
        if let Some(found) = found {
            self.list.close(found);
        }
    }

    /// Opens a path as it leads on the host: an absolute link on the way starts from the host's
    /// root, not from the box's.
    fn find_on_host(&mut self, path: &Path) -> Slot {
        let root = match self.host {
            Some(HostRoot::Below(host) | HostRoot::Over(host)) => Arg::Slot(host),
            None => AT_FDCWD,
        };
        let path = self.path(path);
        let flags = (libc::O_PATH | libc::O_NOFOLLOW) as u64 | CLOEXEC;
        let how = Arg::Data(self.list.words(&[flags, 0, libc::RESOLVE_IN_ROOT]));
        self.list.open(libc::SYS_openat2, &[root, path, how, Arg::Value(24)])
    }
}

/// Adds `prlimit64` on the calling process.
pub(crate) fn limit(list: &mut List, resource: u32, soft: u64, hard: u64) {
    let bound = Arg::Data(list.words(&[soft, hard]));
    list.call(libc::SYS_prlimit64, &[NONE, Arg::Value(u64::from(resource)), bound, NONE]);
}

/// Stores a C string.
pub(crate) fn c_string(list: &mut List, text: &OsStr) -> Data {
    list.string(text.as_bytes())
}
