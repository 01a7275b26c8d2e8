//! A box in the making: its stage works while its plan is made and its caller does something else.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use h5i_policy::ResolvedPolicy;
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};

use crate::budgets::Budgets;
use crate::cgroup::Cgroup;
use crate::compile::{self, TAG_LISTENER, TAG_SOCKETS, TAG_SYSTEM_V};
use crate::control;
use crate::error::StartError;
use crate::event::EventSink;
use crate::id_map::IdMap;
use crate::layout::{Access, Layout};
use crate::list::List;
use crate::memory_meter::MemoryFiles;
use crate::plan::{self, Plan};
use crate::processes;
use crate::session::{Session, Shared, State, reap};
use crate::step::{BindKind, Step};
use crate::sys;
use crate::system_v::Kind;
use crate::watch::{self, Watched};
use crate::wire::{
    FIRST_SLOTS, MAX_FDS, MSG_DESCRIPTOR, MSG_FAILED, MSG_LIST, MSG_READY, MSG_SLOTS, Message,
    SLOTS,
};

/// The namespaces of a box, made while its plan is still being made: what the stage does first is
/// the same for every policy of a tier.
///
/// No program of the box runs, and nothing of the host is in its reach that was not before. Dropping
/// it ends what there is; the drop returns when nothing is left of it.
#[derive(Debug)]
pub struct Ahead {
    /// The steps that it takes: those of the plan up to the fork of the box's init.
    steps: Vec<Step>,
    /// `None` once a plan has taken them over.
    alive: Option<Alive>,
}

/// A stage, and the supervisor's end of the socket to it.
#[derive(Debug)]
struct Alive {
    control: OwnedFd,
    stage: OwnedFd,
    started: Instant,
}

impl Ahead {
    /// Has the stage begin for a policy and layout that a plan will be made of.
    ///
    /// # Errors
    /// [`StartError`] when the stage can't be started. What the policy asks for and the host can't
    /// do, [`Plan::new`](crate::Plan::new) refuses.
    pub fn start(policy: &ResolvedPolicy, layout: &Layout) -> Result<Self, StartError> {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let ids = plan::host_ids(uid.as_raw(), gid.as_raw(), layout).map_err(|error| {
            StartError::Prepare { what: "choose an id", source: io::Error::other(error) }
        })?;
        Self::take(plan::first_steps(ids, plan::network_namespace(policy)))
    }

    fn take(steps: Vec<Step>) -> Result<Self, StartError> {
        let prepare =
            |what| move |e: rustix::io::Errno| StartError::Prepare { what, source: e.into() };
        let (control, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(prepare("make a control socket"))?;
        let list = seal(compile::compile(&steps, &[]).first)?;
        let started = Instant::now();
        let stage = sys::launch(theirs.as_fd(), list.as_fd()).map_err(|source| {
            if source.raw_os_error() == Some(libc::EACCES) {
                StartError::StageForbidden(source)
            } else {
                StartError::Prepare { what: "start the stage", source }
            }
        })?;
        Ok(Self { steps, alive: Some(Alive { control, stage, started }) })
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        if let Some(Alive { control, stage, .. }) = self.alive.take() {
            // The stage kills everything and ends when it hears nothing more.
            shutdown(&control, Shutdown::Both).ok();
            reap(&stage);
        }
    }
}

fn seal(list: List) -> Result<OwnedFd, StartError> {
    list.seal().map_err(|source| StartError::Prepare { what: "write the list of steps", source })
}

/// A box in the making: its stage takes the plan's steps, and no program of the box runs yet.
///
/// That takes a millisecond or two, which the caller may spend on work of its own before it asks
/// for the [`Session`]. Dropping it ends the box; the drop returns when nothing is left of it.
#[derive(Debug)]
pub struct Launched<'a> {
    plan: &'a Plan,
    ahead: Ahead,
    watcher: Watcher,
    also: Vec<Watched>,
    /// After `ahead`, whose processes are in it.
    cgroup: Option<Cgroup>,
}

/// The session's thread, waiting to be told what to watch. It is made here, while the stage is at
/// work, because making it takes as long as a dozen of the stage's steps.
#[derive(Debug)]
struct Watcher {
    thread: JoinHandle<()>,
    watched: Sender<Handed>,
}

/// What the session's thread gets.
type Handed = (Arc<Shared>, Vec<Watched>, Option<Cgroup>);

impl<'a> Launched<'a> {
    /// Goes on from `ahead`, if that is how this plan begins, else from the beginning.
    pub(crate) fn launch(plan: &'a Plan, ahead: Option<Ahead>) -> Result<Self, StartError> {
        let steps = plan.steps();
        let first = steps.iter().position(|step| matches!(step, Step::BecomeInit { .. }));
        let first = &steps[..first.map_or(steps.len(), |at| at + 1)];
        let ahead = match ahead.filter(|ahead| ahead.steps == first) {
            Some(ahead) => ahead,
            None => Ahead::take(first.to_vec())?,
        };
        let mut cgroup = None;
        if let Some(Alive { control, stage, .. }) = &ahead.alive {
            cgroup = take_in(plan, stage);
            send_rest(plan, control)?;
        }
        let watcher = Watcher::start(plan)?;
        Ok(Self { plan, ahead, watcher, also: Vec::new(), cgroup })
    }

    /// Has the session's thread call `heard` whenever there is something to read from `fd`, as long
    /// as the session lives. `heard` reads it and does not block.
    pub fn also_watch(&mut self, fd: OwnedFd, heard: impl FnMut() + Send + 'static) {
        self.also.push(Watched { fd, heard: Box::new(heard) });
    }

    /// The session, whose steps may still be under way. Its first run waits for them, and tells if
    /// one failed; [`Plan::start`](crate::Plan::start) waits at once. Observations go to `sink`.
    ///
    /// # Errors
    /// [`StartError::Prepare`].
    pub fn session(self, sink: Arc<dyn EventSink>) -> Result<Session, StartError> {
        let Self { plan, mut ahead, watcher: Watcher { thread, watched }, also, cgroup } = self;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| StartError::Prepare { what: "make an event counter", source: e.into() })?;
        let Some(alive) = ahead.alive.take() else { return Err(StartError::StageDied) };
        let Alive { control, stage, started } = alive;
        let (changed, state) = (Condvar::new(), Mutex::new(State::default()));
        let shared = Arc::new(Shared { control, wake, stage, sink, started, changed, state });
        // The thread waits for nothing else, so it is there to receive this.
        let bounded = cgroup.is_some();
        watched.send((Arc::clone(&shared), also, cgroup)).ok();
        let mut session = Session::new(plan, shared, thread);
        if plan.runs.cgroup.is_some() && !bounded {
            session.has_no_cgroup();
        }
        Ok(session)
    }
}

impl Watcher {
    fn start(plan: &Plan) -> Result<Self, StartError> {
        let (watched, told) = mpsc::channel::<Handed>();
        let (steps, runs) = (plan.shared_steps(), Arc::clone(&plan.runs));
        let watch = move || {
            // Nobody tells when the box is not wanted after all.
            let Ok((shared, also, cgroup)) = told.recv() else { return };
            let ready = handshake(&shared, &steps).and_then(|mut handed| {
                let listener = handed.remove(&TAG_LISTENER);
                let lists = (TAG_SYSTEM_V..).zip(Kind::ALL);
                let lists = lists.filter_map(|(tag, kind)| Some((kind, handed.remove(&tag)?)));
                let system_v = lists.collect();
                let memory = MemoryFiles { scratch: handed.into_values().collect(), system_v };
                Ok((listener, Budgets::new(&runs, memory, cgroup)?))
            });
            match ready {
                Ok((listener, budgets)) => {
                    shared.is_ready();
                    watch::run(&shared, listener, also, budgets);
                }
                Err(error) => {
                    shared.has_failed(error);
                    watch::run(&shared, None, also, Budgets::none());
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("h5i-session".to_owned())
            .stack_size(256 * 1024)
            .spawn(watch)
            .map_err(|source| StartError::Prepare { what: "start a thread", source })?;
        Ok(Self { thread, watched })
    }
}

/// Has the kernel bound the memory of what the stage and the box's init will start: no program of the
/// box runs before the rest of the steps is sent. `None` where it can't be had; then measuring bounds
/// it alone.
fn take_in(plan: &Plan, stage: &OwnedFd) -> Option<Cgroup> {
    let (place, allowed) = (plan.runs.cgroup.as_ref()?, plan.runs.limits.memory?);
    let cgroup = place.make(allowed.count()).ok()?;
    let stage = sys::process_of(stage.as_fd())?;
    cgroup.take_in(stage).ok()?;
    // The init was forked before, or is there from its first moment.
    processes::children(stage).into_iter().try_for_each(|init| cgroup.take_in(init)).ok()?;
    Some(cgroup)
}

/// Sends what the box's init goes on with.
fn send_rest(plan: &Plan, control: &OwnedFd) -> Result<(), StartError> {
    if let Some((cache, name, shape)) = &plan.prepared_root {
        shape
            .ensure(cache, name)
            .map_err(|source| StartError::Prepare { what: "prepare the root directory", source })?;
    }
    let (sources, received) = sources(plan)?;
    let Some(rest) = compile::compile(plan.steps(), &received).second else { return Ok(()) };
    let list = seal(rest)?;
    let send = |kind, fds: &[BorrowedFd<'_>]| {
        match control::send(control, &Message { kind, ..Message::default() }, fds) {
            // A stage that has ended said why, which the session hears.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            sent => sent
                .map_err(|source| StartError::Prepare { what: "pass parts of the host", source }),
        }
    };
    send(MSG_LIST, &[list.as_fd()])?;
    for some in sources.chunks(MAX_FDS) {
        send(MSG_SLOTS, &some.iter().map(AsFd::as_fd).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Slots that the list of a root caller's box has for parts of the host; the rest is for what its
/// steps open.
const MOST_SOURCES: usize = SLOTS - FIRST_SLOTS as usize - 64;

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

/// A detached copy that shares nothing with the mount that it is of. Most hosts' mounts are shared:
/// what the stage mounts in a copy that still is would appear on the host, what the host mounts
/// later would appear in the box, and the kernel refuses such a copy as a root.
fn take_hold(path: &Path, attributes: [u64; 4]) -> Result<OwnedFd, StartError> {
    let failed = |source: io::Error| StartError::Source { path: path.to_owned(), source };
    let tree = sys::clone_tree(path).map_err(failed)?;
    let [set, clear, _, namespace] = attributes;
    let private = [set, clear, libc::MS_PRIVATE, namespace];
    sys::set_mount_attributes(tree.as_fd(), private).map_err(failed)?;
    Ok(tree)
}

/// Waits until every step is done; yields the descriptors that were handed out, but for the sockets
/// that the plan asked for, which are told of as soon as all are there.
fn handshake(shared: &Shared, steps: &[Step]) -> Result<BTreeMap<u32, OwnedFd>, StartError> {
    let sockets = steps.iter().filter(|step| matches!(step, Step::Socket { .. })).count();
    let (mut handed, mut asked) = (BTreeMap::new(), BTreeMap::new());
    loop {
        let message = control::receive(&shared.control)
            .map_err(|source| StartError::Prepare { what: "hear from the stage", source })?;
        match message {
            Some((Message { kind: MSG_READY, .. }, _)) => return Ok(handed),
            Some((Message { kind: MSG_DESCRIPTOR, code, .. }, mut fds)) => {
                match (fds.pop(), code.checked_sub(TAG_SOCKETS)) {
                    (Some(fd), Some(tag)) => drop(asked.insert(tag, fd)),
                    (Some(fd), None) => drop(handed.insert(code, fd)),
                    (None, _) => {}
                }
                if sockets > 0 && asked.len() == sockets {
                    shared.has_sockets(std::mem::take(&mut asked));
                }
            }
            Some((Message { kind: MSG_FAILED, code, value, .. }, _)) => {
                let errno = i32::try_from(value).unwrap_or(0);
                let source = io::Error::from_raw_os_error(errno);
                let index = usize::try_from(code).unwrap_or(usize::MAX);
                let step = steps
                    .get(index)
                    .map_or_else(|| "read the list of steps".to_owned(), ToString::to_string);
                return Err(StartError::Step { step, index, source });
            }
            Some(_) => {}
            None => return Err(StartError::StageDied),
        }
    }
}
