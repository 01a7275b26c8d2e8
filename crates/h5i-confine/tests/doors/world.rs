//! The boxes in which the doors are tried, and the host around them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use h5i_confine::{
    Access, Event, EventSink, FilterProgram, Layout, NoSink, Output, Plan, RefusedCall, Session,
    SinkClosed, Spent, Step, system_grants,
};
use h5i_policy::{Debuggers, GrantOrigin, HostPath, NetMode, ReadGrant, ResolvedPolicy};
use h5i_testkit::{BoxDirs, Moment};

/// Where the program that makes the attempts stands in the box.
pub(crate) const TOOLS: &str = "/opt/doors";

/// A box with a policy of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Variant {
    /// Process tier, no network, no grant beyond the system's.
    Usual,
    /// A second one like it, with directories of its own.
    Second,
    /// Like the usual one, on a root that was prepared before.
    Prepared,
    /// With debuggers allowed.
    Debuggers,
    /// On the host's network.
    HostNetwork,
    /// With the host's secret directory granted for reading, and a second one for writing.
    Granted,
}

const VARIANTS: [Variant; 6] = [
    Variant::Usual,
    Variant::Second,
    Variant::Prepared,
    Variant::Debuggers,
    Variant::HostNetwork,
    Variant::Granted,
];

/// Keeps what the supervisor observes.
#[derive(Debug, Default)]
pub(crate) struct Recorder(pub(crate) Mutex<Vec<Event>>);

impl EventSink for Recorder {
    fn event(&self, event: Event) -> Result<(), SinkClosed> {
        self.0.lock().unwrap().push(event);
        Ok(())
    }
}

impl Recorder {
    /// The budgets that were spent since the last question.
    pub(crate) fn spent(&self) -> Vec<Spent> {
        let events = std::mem::take(&mut *self.0.lock().unwrap());
        let spent = |event| if let Event::BudgetSpent(spent) = event { Some(spent) } else { None };
        events.into_iter().filter_map(spent).collect()
    }

    /// The refused calls since the last question.
    pub(crate) fn refused(&self) -> Vec<RefusedCall> {
        let events = std::mem::take(&mut *self.0.lock().unwrap());
        let refused = |event| if let Event::RefusedCall(call) = event { Some(call) } else { None };
        events.into_iter().filter_map(refused).collect()
    }
}

#[derive(Debug)]
struct Running {
    dirs: BoxDirs,
    session: Session,
    sink: Arc<Recorder>,
    filter: FilterProgram,
}

/// A plan with directories and a record of its own.
#[derive(Debug)]
pub(crate) struct Fresh {
    pub(crate) dirs: BoxDirs,
    pub(crate) plan: Plan,
    pub(crate) sink: Arc<Recorder>,
}

impl Fresh {
    pub(crate) fn start(&self) -> Session {
        self.plan.start(Arc::clone(&self.sink) as Arc<dyn EventSink>).unwrap()
    }

    /// Runs a shell's line in a session of its own, to its end.
    pub(crate) fn shell(&self, line: &str) -> (Output, Duration) {
        let started = Moment::now();
        let output = self.plan.command("/bin/sh").args(["-c", line]).output().unwrap();
        (output, started.elapsed())
    }

    /// Makes an attempt in a session of its own.
    pub(crate) fn attempt(&self, attempt: &[&str]) -> Output {
        let program = format!("{TOOLS}/attempt");
        self.plan.command(program).arg("attempt").args(attempt).output().unwrap()
    }
}

/// The host's files, and the boxes, started when they are first asked for.
#[derive(Debug)]
pub(crate) struct World {
    host: BoxDirs,
    abstract_name: String,
    _sockets: [UnixListener; 2],
    kinds: Mutex<BTreeSet<(Variant, &'static str, [u64; 3])>>,
    boxes: BTreeMap<Variant, OnceLock<Running>>,
}

impl World {
    pub(crate) fn new() -> Self {
        let host = BoxDirs::new().unwrap();
        for directory in ["tools", "secret", "written"] {
            fs::create_dir(host.path().join(directory)).unwrap();
        }
        let program = host.path().join("tools/attempt");
        fs::copy("/proc/self/exe", &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        // Readable by the box's own id, so that not the mode but the box keeps them.
        for name in ["secret/id_ed25519", "secret/canary", "written/file"] {
            let path = host.path().join(name);
            fs::write(&path, "hunter2").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        }
        fs::set_permissions(host.path().join("written"), fs::Permissions::from_mode(0o777))
            .unwrap();
        let path = host.path().join("secret/host.sock");
        let by_path = UnixListener::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let abstract_name = format!("h5i-doors-{}", std::process::id());
        let address =
            <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&abstract_name);
        let by_name = UnixListener::bind_addr(&address.unwrap()).unwrap();
        let boxes = VARIANTS.into_iter().map(|variant| (variant, OnceLock::new())).collect();
        Self { host, abstract_name, _sockets: [by_path, by_name], kinds: Mutex::default(), boxes }
    }

    /// A path of the host that no box but the granted one sees.
    pub(crate) fn host(&self, name: &str) -> String {
        self.host.path().join(name).display().to_string()
    }

    pub(crate) fn abstract_name(&self) -> &str {
        &self.abstract_name
    }

    /// The program in the box.
    pub(crate) fn program(&self) -> String {
        format!("{TOOLS}/attempt")
    }

    /// The host's path of a box's workspace.
    pub(crate) fn work(&self, variant: Variant) -> PathBuf {
        self.running(variant).dirs.work()
    }

    /// Makes an attempt in a box; yields the line that the program printed.
    pub(crate) fn attempt(&self, variant: Variant, attempt: &[String]) -> String {
        let session = &self.running(variant).session;
        let output = session.command(self.program()).arg("attempt").args(attempt).output().unwrap();
        if output.stdout.is_empty() {
            return format!("{:?}", output.outcome);
        }
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// The calls that were refused in a box since the last question.
    pub(crate) fn recorded(&self, variant: Variant) -> Vec<RefusedCall> {
        let calls = self.running(variant).sink.refused();
        let named = calls.iter().filter(|call| call.pid != 0);
        self.kinds.lock().unwrap().extend(named.map(|call| (variant, call.name, call.args)));
        calls
    }

    /// Whether this kind of refused call was recorded with its process before.
    pub(crate) fn told(&self, variant: Variant, name: &'static str, args: [u64; 3]) -> bool {
        self.kinds.lock().unwrap().contains(&(variant, name, args))
    }

    pub(crate) fn filter(&self, variant: Variant) -> &FilterProgram {
        &self.running(variant).filter
    }

    pub(crate) fn session(&self, variant: Variant) -> &Session {
        &self.running(variant).session
    }

    fn running(&self, variant: Variant) -> &Running {
        self.boxes[&variant].get_or_init(|| {
            let dirs = BoxDirs::new().unwrap();
            for name in ["own-file", "for-rename", "for-unlink"] {
                let path = dirs.work().join(name);
                fs::write(&path, "own").unwrap();
                dirs.give(&path).unwrap();
            }
            let mut policy = policy();
            match variant {
                Variant::Usual | Variant::Prepared => {}
                Variant::Second => {
                    fs::write(dirs.work().join("of-the-second"), "own").unwrap();
                }
                Variant::Debuggers => policy.debuggers = Debuggers::Allowed,
                Variant::HostNetwork => policy.net.mode = NetMode::Host,
                Variant::Granted => {
                    let path = |name| HostPath::new(&self.host(name)).unwrap();
                    let whole = ReadGrant::whole(GrantOrigin::Policy);
                    policy.fs.read.insert(path("secret"), whole);
                    policy.fs.write.insert(path("written"));
                }
            }
            let mut layout = self.layout(&dirs);
            if variant == Variant::Prepared {
                layout = layout.prepared_roots(dirs.path().join("roots"));
                // The first session makes the root, the one of the doors finds it made.
                drop(Plan::for_host(&policy, &layout).unwrap().start(Arc::new(NoSink)).unwrap());
            }
            let plan = Plan::for_host(&policy, &layout).unwrap();
            let filter = plan.steps().iter().find_map(|step| match step {
                Step::SystemCallFilter { program } => Some(program.clone()),
                _ => None,
            });
            let sink = Arc::new(Recorder::default());
            let session = plan.start(Arc::clone(&sink) as Arc<dyn EventSink>).unwrap();
            Running { dirs, session, sink, filter: filter.unwrap() }
        })
    }

    /// A box of its own, not started.
    pub(crate) fn fresh(&self, change: impl FnOnce(&mut ResolvedPolicy)) -> Fresh {
        let dirs = BoxDirs::new().unwrap();
        let mut policy = policy();
        change(&mut policy);
        let plan = Plan::for_host(&policy, &self.layout(&dirs)).unwrap();
        Fresh { dirs, plan, sink: Arc::new(Recorder::default()) }
    }

    /// A layout on these directories, with the attempting program.
    pub(crate) fn layout(&self, dirs: &BoxDirs) -> Layout {
        layout(dirs, &self.host.path().join("tools"))
    }
}

/// The process tier with the system's files.
pub(crate) fn policy() -> ResolvedPolicy {
    let mut policy = ResolvedPolicy::default();
    policy.fs.read = system_grants();
    policy
}

/// A layout on these directories, with tools at [`TOOLS`].
pub(crate) fn layout(dirs: &BoxDirs, tools: &Path) -> Layout {
    let layout = Layout::new(dirs.work(), dirs.home()).place(tools, TOOLS, Access::Read);
    match dirs.host_id() {
        Some(id) => layout.host_id(id),
        None => layout,
    }
}
