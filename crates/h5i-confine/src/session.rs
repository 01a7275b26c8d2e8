//! A box that is alive: its namespaces, its init, and the supervisor's thread outside.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::command::Command;
use crate::compile::{self, TAG_LISTENER, TAG_SOCKETS};
use crate::control;
use crate::enforcement::Enforcement;
use crate::error::StartError;
use crate::event::EventSink;
use crate::id_map::IdMap;
use crate::layout::Access;
use crate::outcome::{Outcome, Stop, Usage};
use crate::plan::{Plan, RunDefaults, SocketSlot};
use crate::step::{BindKind, Step};
use crate::sys;
use crate::watch;
use crate::wire::{MAX_FDS, MSG_DESCRIPTOR, MSG_FAILED, MSG_READY, MSG_SLOTS, Message, SLOTS};

/// A box that is alive. Its runs share namespaces and one Landlock domain: they may signal each
/// other and talk over `localhost`, as at home.
///
/// Holding one proves that every step of its plan was done. Dropping it ends the box: every process
/// in it is killed, and the drop returns when the last one is gone. When the process that holds it
/// dies, the box ends as well.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    sockets: BTreeMap<u32, OwnedFd>,
    runs: Arc<RunDefaults>,
    enforcement: Enforcement,
}

/// What the session's thread and its users share.
pub(crate) struct Shared {
    pub(crate) control: OwnedFd,
    pub(crate) wake: OwnedFd,
    pub(crate) stage: OwnedFd,
    pub(crate) sink: Arc<dyn EventSink>,
    pub(crate) started: Instant,
    pub(crate) changed: Condvar,
    state: Mutex<State>,
}

/// The runs of a session.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) runs: BTreeMap<u64, RunState>,
    pub(crate) last_run: u64,
    /// The session takes no more runs.
    pub(crate) over: bool,
    /// Its owner ended it; otherwise it broke.
    pub(crate) intended: bool,
}

/// What the supervisor knows of one run.
#[derive(Debug)]
pub(crate) struct RunState {
    pub(crate) started: Instant,
    pub(crate) deadline: Option<Instant>,
    pub(crate) pidfd: Option<OwnedFd>,
    pub(crate) terminal: Option<OwnedFd>,
    pub(crate) stop: Option<Stop>,
    pub(crate) stop_sent: Option<Instant>,
    pub(crate) cpu_ms: u64,
    pub(crate) end: Option<(Outcome, Usage)>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Shared {
    /// The state. A panic of another holder left whole values behind, since every change is one
    /// assignment.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the session's thread.
    pub(crate) fn wake(&self) {
        // The counter can't overflow in a lifetime, and a full one is awake anyway.
        rustix::io::write(&self.wake, &1u64.to_ne_bytes()).ok();
    }

    /// Tells the box's side that the conversation is over; it kills everything and ends.
    pub(crate) fn close(&self, intended: bool) {
        {
            let mut state = self.state();
            state.intended |= intended && !state.over;
            state.over = true;
        }
        shutdown(&self.control, Shutdown::Both).ok();
    }
}

impl Session {
    pub(crate) fn start(plan: &Plan, sink: Arc<dyn EventSink>) -> Result<Self, StartError> {
        let prepare =
            |what| move |e: rustix::io::Errno| StartError::Prepare { what, source: e.into() };
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(prepare("make a control socket"))?;
        if let Some((cache, name, shape)) = &plan.prepared_root {
            shape.ensure(cache, name).map_err(|source| StartError::Prepare {
                what: "prepare the root directory",
                source,
            })?;
        }
        let (sources, received) = sources(plan)?;
        let list = compile::compile(plan.steps(), &received)
            .seal()
            .map_err(|source| StartError::Prepare { what: "write the list of steps", source })?;
        let stage = sys::launch(theirs.as_fd(), list.as_fd()).map_err(|source| {
            if source.raw_os_error() == Some(libc::EACCES) {
                StartError::StageForbidden(source)
            } else {
                StartError::Prepare { what: "start the stage", source }
            }
        })?;
        drop((theirs, list));
        for some in sources.chunks(MAX_FDS) {
            let fds: Vec<_> = some.iter().map(AsFd::as_fd).collect();
            let message = Message { kind: MSG_SLOTS, ..Message::default() };
            control::send(&ours, &message, &fds)
                .map_err(|source| StartError::Prepare { what: "pass parts of the host", source })?;
        }
        drop(sources);
        let mut handed = handshake(&ours, &stage, plan)?;
        let listener = handed.remove(&TAG_LISTENER);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(prepare("make an event counter"))?;
        let shared = Arc::new(Shared {
            control: ours,
            wake,
            stage,
            sink,
            started: Instant::now(),
            changed: Condvar::new(),
            state: Mutex::new(State::default()),
        });
        let thread = {
            let (shared, runs) = (Arc::clone(&shared), Arc::clone(&plan.runs));
            std::thread::Builder::new()
                .name("h5i-session".to_owned())
                .stack_size(256 * 1024)
                .spawn(move || watch::run(&shared, listener, &runs.limits))
                .map_err(|source| StartError::Prepare { what: "start a thread", source })?
        };
        let sockets = handed.into_iter().map(|(tag, fd)| (tag - TAG_SOCKETS, fd)).collect();
        let (runs, enforcement) = (Arc::clone(&plan.runs), plan.enforcement().clone());
        Ok(Self { shared, thread: Some(thread), sockets, runs, enforcement })
    }

    /// A run in this session.
    pub fn command(&self, program: impl Into<std::ffi::OsString>) -> Command<'_> {
        Command::joined(self, program.into())
    }

    /// What is enforced, mechanism by mechanism.
    #[must_use]
    pub fn enforcement(&self) -> &Enforcement {
        &self.enforcement
    }

    /// Yields a socket that [`Plan::request_socket`] asked for, once.
    pub fn take_socket(&mut self, slot: SocketSlot) -> Option<OwnedFd> {
        self.sockets.remove(&slot.0)
    }

    /// Ends the box: kills every process in it and returns when the last one is gone. Runs that are
    /// alive end with [`Outcome::Ended`].
    pub fn end(self) {
        drop(self);
    }

    pub(crate) fn runs(&self) -> &Arc<RunDefaults> {
        &self.runs
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.close(true);
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed by the panic hook; the box is over either way.
            drop(thread.join());
        }
    }
}

/// Slots that the list of a root caller's box has for parts of the host; the rest is for what its
/// steps open.
const MOST_SOURCES: usize = SLOTS - 64;

/// For a root caller: takes hold of every granted part of the host before root is given up, because
/// the box's own id may not be able to walk there. Yields the descriptors and their steps.
fn sources(plan: &Plan) -> Result<(Vec<OwnedFd>, Vec<usize>), StartError> {
    let mut fds = Vec::new();
    let mut steps = Vec::new();
    if !plan.root_caller {
        return Ok((fds, steps));
    }
    let mut map = None;
    for (index, step) in plan.steps().iter().enumerate() {
        let (source, attributes) = match step {
            Step::Bind { source, access, kind, .. } if *kind != BindKind::Device => {
                (source, compile::bind_attributes(*access, *kind))
            }
            Step::PreparedRoot { source, .. } => {
                (source, compile::bind_attributes(Access::Read, BindKind::Directory))
            }
            _ => continue,
        };
        if fds.len() == MOST_SOURCES {
            let source = io::Error::from_raw_os_error(libc::E2BIG);
            return Err(StartError::Prepare { what: "pass so many parts of the host", source });
        }
        let tree = take_hold(source, attributes)?;
        if matches!(step, Step::Bind { kind: BindKind::Layer, .. }) {
            let map = match &map {
                Some(map) => map,
                None => map.insert(IdMap::new(host_id(plan))?),
            };
            map.apply(&tree)
                .map_err(|error| StartError::Source { path: source.clone(), source: error })?;
        }
        fds.push(tree);
        steps.push(index);
    }
    Ok((fds, steps))
}

/// The id that a root caller's box runs under.
fn host_id(plan: &Plan) -> u32 {
    let id = plan.steps().iter().find_map(|step| match step {
        Step::TakeHostId { id } => Some(*id),
        _ => None,
    });
    id.unwrap_or(0)
}

fn take_hold(path: &Path, attributes: [u64; 4]) -> Result<OwnedFd, StartError> {
    let failed = |source: io::Error| StartError::Source { path: path.to_owned(), source };
    let tree = sys::clone_tree(path).map_err(failed)?;
    sys::set_mount_attributes(tree.as_fd(), attributes).map_err(failed)?;
    Ok(tree)
}

/// Waits until every step is done; yields the descriptors that were handed out.
fn handshake(
    control: &OwnedFd,
    stage: &OwnedFd,
    plan: &Plan,
) -> Result<BTreeMap<u32, OwnedFd>, StartError> {
    let mut handed = BTreeMap::new();
    loop {
        let message = control::receive(control)
            .map_err(|source| StartError::Prepare { what: "hear from the stage", source })?;
        match message {
            Some((Message { kind: MSG_READY, .. }, _)) => return Ok(handed),
            Some((Message { kind: MSG_DESCRIPTOR, code, .. }, mut fds)) => {
                if let Some(fd) = fds.pop() {
                    handed.insert(code, fd);
                }
            }
            Some((Message { kind: MSG_FAILED, code, value, .. }, _)) => {
                reap(stage);
                let errno = i32::try_from(value).unwrap_or(0);
                let source = io::Error::from_raw_os_error(errno);
                let index = usize::try_from(code).unwrap_or(usize::MAX);
                let step = plan
                    .steps()
                    .get(index)
                    .map_or_else(|| "read the list of steps".to_owned(), ToString::to_string);
                return Err(StartError::Step { step, index, source });
            }
            Some(_) => {}
            None => {
                reap(stage);
                return Err(StartError::StageDied);
            }
        }
    }
}

/// Reaps the stage. It is this process's child, and ends when the box is gone.
pub(crate) fn reap(stage: &OwnedFd) {
    rustix::io::retry_on_intr(|| waitid(WaitId::PidFd(stage.as_fd()), WaitIdOptions::EXITED)).ok();
}
