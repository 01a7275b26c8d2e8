//! Tries each mechanism on this host, alone, in a child: one attempt that must fail under it, and
//! the same or a like one that must succeed.

use std::io;
use std::sync::Arc;

use h5i_policy::{Debuggers, Limits};

use crate::compile::AT_FDCWD;
use crate::error::{SpawnError, StartError};
use crate::event::NoSink;
use crate::host::HostFacts;
use crate::layout::BOX_ID;
use crate::list::{Arg, List};
use crate::plan::Plan;
use crate::run;
use crate::seccomp::{self, Programs};
use crate::step::{LandlockRules, NetworkNamespace, Step};
use crate::wire::OP_DONE;

/// What trying one mechanism showed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Probe {
    /// Name of the mechanism.
    pub mechanism: &'static str,
    /// The attempt that must fail under it, and the one that must succeed.
    pub attempts: &'static str,
    /// Nothing, or why the mechanism can't be relied on here.
    pub result: Result<(), ProbeError>,
}

/// Why a mechanism can't be relied on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// It can't be set up.
    #[error("it can't be set up")]
    SetUp(#[from] StartError),
    /// The child could not be started.
    #[error("the attempt could not be made")]
    Attempt(#[from] SpawnError),
    /// An attempt succeeded that must fail.
    #[error("{attempt}: it succeeded and must fail")]
    Leaks {
        /// Which.
        attempt: &'static str,
    },
    /// An attempt failed that must succeed, or failed in another way than it must.
    #[error("{attempt}: it went another way than it must")]
    Unexpected {
        /// Which.
        attempt: &'static str,
        /// What it gave.
        source: io::Error,
    },
}

/// One attempt: what it shows, and the calls.
pub(crate) type Attempt = (&'static str, fn(&mut List));

/// Who opens the parts of the host that a trial needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sources {
    /// The child, by their paths.
    ByPath,
    /// This process, before the child gives up root.
    TakenBefore,
}

struct Trial {
    mechanism: &'static str,
    shows: &'static str,
    steps: Vec<Step>,
    attempts: Vec<Attempt>,
}

/// Tries every mechanism that a box at the process tier needs. Takes some ten milliseconds; writes
/// nothing. A root caller's trials run under `host_id`, as its boxes do.
#[must_use]
pub fn probe(facts: &HostFacts, host_id: u32) -> Vec<Probe> {
    trials(facts, host_id)
        .into_iter()
        .map(|trial| Probe {
            mechanism: trial.mechanism,
            attempts: trial.shows,
            result: attempt(trial.steps, Sources::ByPath, &trial.attempts),
        })
        .collect()
}

/// Takes the steps in a child and makes the attempts there.
pub(crate) fn attempt(
    steps: Vec<Step>,
    sources: Sources,
    attempts: &[Attempt],
) -> Result<(), ProbeError> {
    let mut plan = Plan::of_steps(steps, Limits::default());
    plan.root_caller = sources == Sources::TakenBefore;
    let session = plan.start(Arc::new(NoSink))?;
    let mut list = List::receiving(0, 0);
    for (index, (_, calls)) in attempts.iter().enumerate() {
        list.begin_step(u32::try_from(index).unwrap_or(u32::MAX));
        calls(&mut list);
    }
    list.operation(OP_DONE);
    match run::attempt(&session, list)? {
        None => Ok(()),
        Some((step, errno)) => {
            let attempt = attempts.get(step as usize).map_or("the attempt", |(what, _)| what);
            Err(match errno {
                0 => ProbeError::Leaks { attempt },
                _ => {
                    ProbeError::Unexpected { attempt, source: io::Error::from_raw_os_error(errno) }
                }
            })
        }
    }
}

fn trials(facts: &HostFacts, host_id: u32) -> Vec<Trial> {
    let (uid, gid) = if facts.is_root() { (host_id, host_id) } else { (facts.uid, facts.gid) };
    let enter = |names: &[&'static str], flags: i32| {
        let mut steps = Vec::new();
        if facts.is_root() {
            steps.push(Step::TakeHostId { id: host_id });
        }
        let flags = u64::from((libc::CLONE_NEWUSER | flags).cast_unsigned());
        steps.push(Step::EnterNamespaces { names: names.to_vec(), flags });
        steps.push(Step::MapIds { inside: BOX_ID, uid, gid });
        steps
    };
    let with = |mut steps: Vec<Step>, more: Vec<Step>| {
        steps.extend(more);
        steps
    };
    let drop_all = || Step::DropCapabilities { last: facts.last_capability };
    let pid = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    vec![
        Trial {
            mechanism: "user namespace",
            shows: "setuid(0) fails, setuid(1000) works",
            steps: with(enter(&["user"], 0), vec![drop_all(), Step::Serve]),
            attempts: vec![
                ("become id 0", |l| l.call_refused(libc::SYS_setuid, &[value(0)], libc::EINVAL)),
                ("stay id 1000", |l| l.call(libc::SYS_setuid, &[value(1000)])),
            ],
        },
        Trial {
            mechanism: "pid namespace",
            shows: "process 1 is the box's init, process 4000000 is not there",
            steps: with(
                enter(&["user", "pid"], pid),
                vec![Step::BecomeInit { network: NetworkNamespace::Host }, Step::Serve],
            ),
            attempts: vec![
                ("signal a process outside", |l| {
                    l.call_refused(libc::SYS_kill, &[value(4_000_000), value(0)], libc::ESRCH);
                }),
                ("see the box's init", |l| l.call(libc::SYS_kill, &[value(1), value(0)])),
            ],
        },
        Trial {
            mechanism: "private root",
            shows: "/etc/passwd of the host is gone, /tmp of the box is there",
            steps: with(
                enter(&["user", "mount", "pid"], pid),
                vec![
                    Step::BecomeInit { network: NetworkNamespace::Host },
                    Step::DetachMounts,
                    Step::EmptyRoot,
                    Step::Scratch { path: "/tmp".into(), mode: 0o1777, bound: None },
                    Step::Proc,
                    Step::LeaveHost,
                    Step::SealRoot,
                    Step::Serve,
                ],
            ),
            attempts: vec![
                ("open a file of the host", |l| open_refused(l, b"/etc/passwd", libc::ENOENT)),
                ("write into the sealed root", |l| make_refused(l, b"/x", libc::EROFS)),
                ("write into /tmp", |l| make(l, b"/tmp/x")),
            ],
        },
        Trial {
            mechanism: "network namespace",
            shows: "loopback is up, no way leads out",
            steps: with(
                enter(&["user"], 0),
                vec![
                    Step::BecomeInit { network: NetworkNamespace::Own },
                    Step::EnterNetwork,
                    drop_all(),
                    Step::Serve,
                ],
            ),
            attempts: vec![
                ("connect to a documentation address", |l| {
                    connect(l, [192, 0, 2, 1], Some(libc::ENETUNREACH));
                }),
                ("reach loopback", |l| connect(l, [127, 0, 0, 1], None)),
            ],
        },
        Trial {
            mechanism: "landlock",
            shows: "/etc can't be opened, /usr can",
            steps: vec![
                Step::NoNewPrivileges,
                Step::Landlock(LandlockRules {
                    rules: vec![("/usr".into(), READ)],
                    ..crate::landlock::rules(facts.landlock_abi, &[])
                }),
                Step::Serve,
            ],
            attempts: vec![
                ("open an ungranted directory", |l| open_refused(l, b"/etc", libc::EACCES)),
                ("open a granted directory", |l| open(l, b"/usr")),
            ],
        },
        Trial {
            mechanism: "system-call filter",
            shows: "unshare(user) is refused and reported, unshare(files) works",
            steps: vec![
                Step::NoNewPrivileges,
                Step::SystemCallFilter {
                    program: seccomp::program(
                        Debuggers::Refused,
                        Programs::Unrecorded,
                        facts.kernel,
                    ),
                },
                Step::Serve,
            ],
            attempts: vec![
                ("make a user namespace", |l| {
                    let flag = value(u64::from(libc::CLONE_NEWUSER.cast_unsigned()));
                    l.call_refused(libc::SYS_unshare, &[flag], libc::EPERM);
                }),
                ("use io_uring", |l| {
                    let args = [value(1), value(0)];
                    l.call_refused(libc::SYS_io_uring_setup, &args, libc::ENOSYS);
                }),
                ("unshare the descriptor table", |l| {
                    let flag = value(u64::from(libc::CLONE_FILES.cast_unsigned()));
                    l.call(libc::SYS_unshare, &[flag]);
                }),
            ],
        },
    ]
}

/// `LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR`.
const READ: u64 = 1 << 2 | 1 << 3;

fn value(n: u64) -> Arg {
    Arg::Value(n)
}

fn open_args(list: &mut List, path: &[u8], flags: i32) -> [Arg; 4] {
    let path = Arg::Data(list.string(path));
    [AT_FDCWD, path, value(u64::from((flags | libc::O_CLOEXEC).cast_unsigned())), value(0o600)]
}

fn open(list: &mut List, path: &[u8]) {
    let args = open_args(list, path, libc::O_RDONLY);
    list.call(libc::SYS_openat, &args);
}

fn open_refused(list: &mut List, path: &[u8], errno: i32) {
    let args = open_args(list, path, libc::O_RDONLY);
    list.call_refused(libc::SYS_openat, &args, errno);
}

fn make(list: &mut List, path: &[u8]) {
    let args = open_args(list, path, libc::O_RDWR | libc::O_CREAT);
    list.call(libc::SYS_openat, &args);
}

fn make_refused(list: &mut List, path: &[u8], errno: i32) {
    let args = open_args(list, path, libc::O_RDWR | libc::O_CREAT);
    list.call_refused(libc::SYS_openat, &args, errno);
}

/// Connects a datagram socket: only the route is looked up, nothing is sent.
fn connect(list: &mut List, address: [u8; 4], errno: Option<i32>) {
    let args = [libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0]
        .map(|n| value(u64::from(n.unsigned_abs())));
    let socket = list.open(libc::SYS_socket, &args);
    // struct sockaddr_in: family in native order, port in network order, address.
    let mut name = [0u8; 16];
    name[..2].copy_from_slice(&libc::AF_INET.to_le_bytes()[..2]);
    name[2..4].copy_from_slice(&9u16.to_be_bytes());
    name[4..8].copy_from_slice(&address);
    let args = [Arg::Slot(socket), Arg::Data(list.bytes(&name)), value(16)];
    match errno {
        Some(errno) => list.call_refused(libc::SYS_connect, &args, errno),
        None => list.call(libc::SYS_connect, &args),
    }
    list.close(socket);
}
