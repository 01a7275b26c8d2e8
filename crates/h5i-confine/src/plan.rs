//! From a policy to what will be done on this host, step by step.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use h5i_policy::{
    Bytes, Debuggers, LandlockMode, Limits, Namespaces, NetMode, ResolvedPolicy, Tier,
};

use crate::cgroup;
use crate::command::Command;
use crate::enforcement::{Enforcement, State};
use crate::error::{PlanError, StartError};
use crate::event::{EventSink, NoSink};
use crate::host::{HostFacts, UserNamespaces};
use crate::landlock;
use crate::launched::{Ahead, Launched};
use crate::layout::{BOX_ID, HOME, Layout, WORKSPACE};
use crate::prepared::{self, Shape};
use crate::root::{self, Root};
use crate::seccomp::{self, Programs};
use crate::session::Session;
use crate::step::{NetworkNamespace, Step};

/// A socket that the supervisor gets from the box's network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SocketSlot(pub(crate) u32);

/// What will be done on this host to enforce one policy, step by step.
///
/// Holding one proves that every field of the policy that this crate is responsible for has either
/// a step that enforces it or is off by the policy's own choice; what can't be enforced was refused
/// by [`PlanError`]. Making a plan starts nothing and writes nothing.
#[derive(Clone, Debug)]
pub struct Plan {
    steps: Arc<Vec<Step>>,
    enforcement: Enforcement,
    pub(crate) runs: Arc<RunDefaults>,
    pub(crate) root_caller: bool,
    pub(crate) prepared_root: Option<(PathBuf, String, Shape)>,
    sockets: u32,
    filter: (Debuggers, (u32, u32)),
}

/// What the plan says of every run.
#[derive(Debug)]
pub(crate) struct RunDefaults {
    pub(crate) limits: Limits,
    pub(crate) environment: Vec<(String, String)>,
    /// For a root caller: the host id that owns what is handed to a run.
    pub(crate) owner: Option<u32>,
    /// Directories of the host that count for the box's disk space.
    pub(crate) counted: Vec<PathBuf>,
    /// Where the kernel can bound the box's memory.
    pub(crate) cgroup: Option<cgroup::Place>,
}

/// Kernel that has everything but Landlock's newer rights: `mount_setattr` (5.12), Landlock (5.13).
const KERNEL_NEEDED: (u32, u32) = (5, 13);
const EXEC_RECORD: &str = "exec record";
/// Landlock ABI that controls truncation.
const LANDLOCK_NEEDED: u32 = 3;
/// Landlock ABI that separates abstract sockets, where the network namespace does not.
const LANDLOCK_SCOPES: u32 = 6;

impl Plan {
    /// Plans for this host.
    ///
    /// # Errors
    /// [`PlanError`], one variant for each thing that the host or this version can't do.
    pub fn for_host(policy: &ResolvedPolicy, layout: &Layout) -> Result<Self, PlanError> {
        Self::new(policy, layout, &HostFacts::read().map_err(PlanError::Facts)?)
    }

    /// Plans for a host with these facts.
    ///
    /// # Errors
    /// As [`Plan::for_host`].
    pub fn new(
        policy: &ResolvedPolicy,
        layout: &Layout,
        facts: &HostFacts,
    ) -> Result<Self, PlanError> {
        check_served(policy)?;
        let abi = check_host(policy, facts)?;
        let ids = host_ids(facts.uid, facts.gid, layout)?;
        let mut steps = first_steps(ids, network_namespace(policy));
        let mut enforcement = Enforcement::default();
        for name in &namespaces().0 {
            enforcement.add(namespace_label(name), State::On, "of its own");
        }
        if network_namespace(policy) == NetworkNamespace::Own {
            enforcement.add("network namespace", State::On, "of its own, with loopback");
        } else {
            let detail = "the host's own network, unfiltered, by the policy's choice";
            enforcement.add("network namespace", State::OffByChoice, detail);
        }
        steps.push(Step::DetachMounts);
        steps.push(Step::Hostname { name: "box".to_owned() });
        let mut prepared_root = None;
        let Root { steps: root, writable, copies } = root::plan(policy, layout, facts)?;
        let binds = root.iter().filter(|s| matches!(s, Step::Bind { .. })).count();
        enforcement.add("private root", State::On, format!("{binds} mounts granted"));
        let root = match &layout.prepared_roots {
            Some(cache) => {
                let (shape, rest) = prepared::split(root, &copies);
                let name = shape.name();
                let source = cache.join(&name);
                let paths = shape.paths().map(Path::to_owned).collect();
                let copies = shape.copies();
                prepared_root = Some((cache.clone(), name, shape));
                let first = Step::PreparedRoot { source, paths, copies };
                let rest = rest.into_iter().filter(|step| *step != Step::EmptyRoot);
                std::iter::once(first).chain(rest).collect()
            }
            None => root,
        };
        steps.extend(root);
        if network_namespace(policy) == NetworkNamespace::Own {
            steps.push(Step::EnterNetwork);
        }
        let limits = limits(&policy.limits);
        enforce_limits(&policy.limits, &limits, facts.cgroup.as_ref(), &mut enforcement);
        steps.extend(limits);
        steps.push(Step::EnterDirectory { path: WORKSPACE.into() });
        steps.push(Step::DropCapabilities { last: facts.last_capability });
        steps.push(Step::NoNewPrivileges);
        enforcement.add("capabilities", State::On, "none, and none to gain");
        if abi == 0 {
            enforcement.add("landlock", State::Absent, "the host has none; best effort was chosen");
        } else {
            let rules = landlock::rules(abi, &writable);
            let detail = format!("ABI {}, {} rules", rules.abi, rules.rules.len());
            enforcement.add("landlock", State::On, detail);
            steps.push(Step::Landlock(rules));
        }
        let program = seccomp::program(policy.debuggers, Programs::Recorded, facts.kernel);
        let detail = format!(
            "{} calls refused and recorded, {} absent",
            seccomp::refused(policy.debuggers).count(),
            seccomp::absent().count()
        );
        enforcement.add("system-call filter", State::On, detail);
        steps.push(Step::SystemCallFilter { program });
        enforcement.add(EXEC_RECORD, State::On, "every program, before it is started");
        steps.push(Step::Serve);
        Ok(Self {
            steps: Arc::new(steps),
            enforcement,
            runs: Arc::new(RunDefaults {
                limits: policy.limits.clone(),
                environment: environment(policy),
                owner: facts.is_root().then_some(ids.uid),
                counted: layout.written(),
                cgroup: policy.limits.memory.and(facts.cgroup.clone()),
            }),
            root_caller: facts.is_root(),
            prepared_root,
            sockets: 0,
            filter: (policy.debuggers, facts.kernel),
        })
    }

    /// A plan of these steps alone, for the probe.
    pub(crate) fn of_steps(steps: Vec<Step>, limits: Limits) -> Self {
        Self {
            steps: Arc::new(steps),
            enforcement: Enforcement::default(),
            runs: Arc::new(RunDefaults {
                limits,
                environment: Vec::new(),
                owner: None,
                counted: Vec::new(),
                cgroup: None,
            }),
            root_caller: false,
            prepared_root: None,
            sockets: 0,
            filter: (Debuggers::Refused, (0, 0)),
        }
    }

    /// The steps in the order of their execution.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(crate) fn shared_steps(&self) -> Arc<Vec<Step>> {
        Arc::clone(&self.steps)
    }

    /// What is enforced, mechanism by mechanism.
    #[must_use]
    pub fn enforcement(&self) -> &Enforcement {
        &self.enforcement
    }

    /// Does without the record of programs: no [`Event::ExecAttempt`](crate::Event), `Exec` or
    /// `ProcessEnded` is sent. For harnesses that have no use for it; refused calls are recorded
    /// all the same, and [`Plan::enforcement`] says that the record is off.
    #[must_use]
    pub fn without_exec_record(mut self) -> Self {
        let (debuggers, kernel) = self.filter;
        for step in Arc::make_mut(&mut self.steps) {
            if let Step::SystemCallFilter { program } = step {
                *program = seccomp::program(debuggers, Programs::Unrecorded, kernel);
            }
        }
        self.enforcement.set(EXEC_RECORD, State::OffByChoice, "the harness does without");
        self
    }

    /// Asks for a socket made inside the box's network namespace before any program of the box
    /// runs; [`Session::take_socket`] yields it. The arguments are `socket(2)`'s.
    ///
    /// The box enters its network before all else then, and sockets are the first that it has: who
    /// asked for them can use them while the rest of the box is built.
    pub fn request_socket(&mut self, domain: i32, kind: i32, protocol: i32) -> SocketSlot {
        let tag = self.sockets;
        self.sockets += 1;
        let steps = Arc::make_mut(&mut self.steps);
        let at = |steps: &[Step], wanted: fn(&Step) -> bool| steps.iter().rposition(wanted);
        let enter = at(steps, |step| matches!(step, Step::EnterNetwork));
        let init = at(steps, |step| matches!(step, Step::BecomeInit { .. }));
        if let (0, Some(enter), Some(init)) = (tag, enter, init) {
            steps[init + 1..=enter].rotate_right(1);
        }
        let place = at(steps, |step| matches!(step, Step::EnterNetwork | Step::Socket { .. }))
            .map(|last| last + 1)
            .or_else(|| at(steps, |step| matches!(step, Step::DropCapabilities { .. })))
            .unwrap_or(steps.len());
        steps.insert(place, Step::Socket { domain, kind, protocol, tag });
        SocketSlot(tag)
    }

    /// Starts a session and returns when every step is done. Observations go to `sink`.
    ///
    /// # Errors
    /// [`StartError`]; a failing step is named with its errno.
    pub fn start(&self, sink: Arc<dyn EventSink>) -> Result<Session, StartError> {
        let session = Launched::launch(self, None)?.session(sink)?;
        session.wait_ready()?;
        Ok(session)
    }

    /// Has the stage take the steps, and returns meanwhile: the caller can do something else before
    /// it asks for the session. The stage goes on from `ahead` where that is how this plan begins.
    ///
    /// # Errors
    /// [`StartError`] when the stage can't be started.
    pub fn launch(&self, ahead: Option<Ahead>) -> Result<Launched<'_>, StartError> {
        Launched::launch(self, ahead)
    }

    /// A run with a session of its own: everything it started is gone when it is waited for.
    /// Observations are dropped; use [`Plan::start`] to keep them.
    pub fn command(&self, program: impl Into<std::ffi::OsString>) -> Command<'_> {
        Command::alone(self, Arc::new(NoSink), program.into())
    }
}

/// The ids that a box has on the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostIds {
    uid: u32,
    gid: u32,
    caller_is_root: bool,
}

/// A box has its caller's ids, or, where that is root, one of its own.
pub(crate) fn host_ids(uid: u32, gid: u32, layout: &Layout) -> Result<HostIds, PlanError> {
    match (uid, layout.host_id) {
        (0, Some(id)) if id != 0 => Ok(HostIds { uid: id, gid: id, caller_is_root: true }),
        (0, _) => Err(PlanError::RootNeedsHostId),
        _ => Ok(HostIds { uid, gid, caller_is_root: false }),
    }
}

/// The steps up to the fork of the box's init.
pub(crate) fn first_steps(ids: HostIds, network: NetworkNamespace) -> Vec<Step> {
    let HostIds { uid, gid, caller_is_root } = ids;
    let (names, flags) = namespaces();
    let mut steps = Vec::new();
    if caller_is_root {
        steps.push(Step::TakeHostId { id: uid });
    }
    steps.push(Step::EnterNamespaces { names, flags });
    steps.push(Step::MapIds { inside: BOX_ID, uid, gid });
    steps.push(Step::BecomeInit { network });
    steps
}

/// Only the host's own network is without a namespace; what else is listed goes through the doors
/// of one.
pub(crate) fn network_namespace(policy: &ResolvedPolicy) -> NetworkNamespace {
    match policy.net.mode {
        NetMode::Host => NetworkNamespace::Host,
        _ => NetworkNamespace::Own,
    }
}

fn check_served(policy: &ResolvedPolicy) -> Result<(), PlanError> {
    let served = match policy.tier {
        Tier::Process => [NetMode::None, NetMode::Host].contains(&policy.net.mode),
        // Its gate, resolver and relay are the caller's, who asks for their sockets.
        Tier::Supervised => policy.net.mode != NetMode::Host,
        tier => return Err(PlanError::Tier { tier }),
    };
    if policy.namespaces == Namespaces::Off {
        return Err(PlanError::NamespacesOff);
    }
    if !served {
        return Err(PlanError::Network { mode: policy.net.mode, tier: policy.tier });
    }
    Ok(())
}

/// Checks what every box needs, and yields the Landlock ABI to use (0 for none, by choice).
fn check_host(policy: &ResolvedPolicy, facts: &HostFacts) -> Result<u32, PlanError> {
    if facts.kernel < KERNEL_NEEDED {
        let (have, need) = (facts.kernel, KERNEL_NEEDED);
        return Err(PlanError::Kernel { what: "a private root", have, need });
    }
    if let UserNamespaces::Forbidden { setting, value } = &facts.user_namespaces {
        // A root caller's box enters its namespaces as an ordinary user, too.
        return Err(PlanError::NoUserNamespaces { setting, value: value.clone() });
    }
    let have = facts.landlock_abi;
    if have < LANDLOCK_NEEDED && policy.landlock != LandlockMode::BestEffort {
        return Err(PlanError::Landlock { what: "a box", have, need: LANDLOCK_NEEDED });
    }
    if have < LANDLOCK_SCOPES && policy.net.mode == NetMode::Host {
        let what = "network = \"host\" (abstract sockets of the host)";
        return Err(PlanError::Landlock { what, have, need: LANDLOCK_SCOPES });
    }
    Ok(have)
}

/// All but the network's, which the stage makes by itself.
fn namespaces() -> (Vec<&'static str>, u64) {
    let all = [
        ("user", libc::CLONE_NEWUSER),
        ("mount", libc::CLONE_NEWNS),
        ("pid", libc::CLONE_NEWPID),
        ("ipc", libc::CLONE_NEWIPC),
        ("uts", libc::CLONE_NEWUTS),
        ("cgroup", libc::CLONE_NEWCGROUP),
    ];
    let flags = all.iter().fold(0, |all, (_, flag)| all | u64::from(flag.cast_unsigned()));
    (all.into_iter().map(|(name, _)| name).collect(), flags)
}

fn namespace_label(name: &str) -> &'static str {
    match name {
        "user" => "user namespace",
        "mount" => "mount namespace",
        "pid" => "pid namespace",
        "ipc" => "ipc namespace",
        "uts" => "uts namespace",
        _ => "cgroup namespace",
    }
}

/// Resource limits as steps; never above what the caller itself may have.
fn limits(limits: &Limits) -> Vec<Step> {
    use rustix::process::{Resource, getrlimit};
    let mut steps = vec![Step::Limit { name: "core_size", resource: libc::RLIMIT_CORE, value: 0 }];
    let wanted = [
        ("processes", libc::RLIMIT_NPROC, Resource::Nproc, limits.processes.map(u64::from)),
        ("open_files", libc::RLIMIT_NOFILE, Resource::Nofile, limits.open_files.map(u64::from)),
        ("file_size", libc::RLIMIT_FSIZE, Resource::Fsize, limits.file_size.map(|b| b.count())),
    ];
    for (name, resource, kind, value) in wanted {
        if let Some(value) = value {
            let value = getrlimit(kind).maximum.map_or(value, |hard| hard.min(value));
            steps.push(Step::Limit { name, resource, value });
        }
    }
    steps
}

/// That a box's memory is measured, in words.
pub(crate) const MEASURED: &str = "of all processes and memory files, measured every 10 ms to 2 s";
pub(crate) const LIMIT_MEMORY: &str = "limit memory";

fn enforce_limits(
    limits: &Limits,
    steps: &[Step],
    cgroup: Option<&cgroup::Place>,
    enforcement: &mut Enforcement,
) {
    let bounded = match cgroup.map(|place| place.version) {
        None => "",
        Some(cgroup::Version::V1) => "; bounded by a cgroup (version 1) as well",
        Some(cgroup::Version::V2) => "; bounded by a cgroup (version 2) as well",
    };
    let supervised = [
        ("limit wall", limits.wall.map(|v| format!("{v}, by the supervisor's clock"))),
        ("limit session", limits.session.map(|v| format!("{v}, by the supervisor's clock"))),
        (
            "limit cpu",
            limits.cpu.map(|v| {
                format!("{v}, accounted every 250 ms; children that nobody waits for do not count")
            }),
        ),
        (LIMIT_MEMORY, limits.memory.map(|v| format!("{v} {MEASURED}{bounded}"))),
        (
            "limit disk",
            limits.disk.map(|v| {
                format!(
                    "{v} of workspace, home, spool, records and temporary files, free space looked at every \
                     10 to 500 ms and files counted when it may be spent, at least every minute"
                )
            }),
        ),
        (
            "limit keep_free",
            limits.keep_free.map(|v| {
                format!("{v} of the file systems it writes to, looked at every 10 to 500 ms")
            }),
        ),
        ("limit output", limits.output.map(|v| format!("{v}, counted as it passes"))),
    ];
    for (name, detail) in supervised {
        match detail {
            Some(detail) => enforcement.add(name, State::On, detail),
            None => enforcement.add(name, State::OffByChoice, "no budget"),
        }
    }
    for (name, label) in [
        ("processes", "limit processes"),
        ("open_files", "limit open_files"),
        ("file_size", "limit file_size"),
    ] {
        let found = steps.iter().find_map(|step| match step {
            Step::Limit { name: n, value, .. } if *n == name => Some(*value),
            _ => None,
        });
        match found {
            Some(value) => {
                let words = match name {
                    "file_size" => Bytes::new(value).to_string(),
                    _ => value.to_string(),
                };
                enforcement.add(label, State::On, format!("{words}, by rlimit"));
            }
            None => enforcement.add(label, State::OffByChoice, "no budget"),
        }
    }
}

/// What every run finds in its environment; the caller's own is not passed on.
fn environment(policy: &ResolvedPolicy) -> Vec<(String, String)> {
    let defaults = [
        ("HOME", HOME),
        ("USER", "box"),
        ("LOGNAME", "box"),
        ("SHELL", "/bin/sh"),
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("LANG", "C.UTF-8"),
    ];
    let set = &policy.env.set;
    defaults
        .into_iter()
        .filter(|(name, _)| !set.contains_key(*name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .chain(set.iter().map(|(name, value)| (name.clone(), value.clone())))
        .collect()
}
