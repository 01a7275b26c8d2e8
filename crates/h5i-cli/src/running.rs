//! One run in a box: plan, session, command, and what came of it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use h5i_confine::{
    Command, EventSink, Outcome, Output, PlanError, RefusedCall, Run, RunHandle, SpawnError,
    StartError, Stdio, Usage,
};
use h5i_policy::{Millis, ResolvedPolicy, Tier};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;

use crate::args::Assignment;
use crate::box_plan;
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::receipt_log::{ReceiptLog, Recorder, RunFacts};
use crate::store::{BoxLock, Manifest, StoredBox};
use crate::terminal::RawTerminal;
use crate::unconfined;

/// What is to be run, and how.
#[derive(Debug)]
pub struct Errand<'a> {
    /// The box.
    pub stored: &'a StoredBox,
    /// Its manifest.
    pub manifest: &'a Manifest,
    /// Its policy.
    pub policy: &'a ResolvedPolicy,
    /// The command and its arguments; not empty.
    pub command: &'a [OsString],
    /// Variables for this run.
    pub variables: &'a [Assignment],
    /// A deadline that is tighter than the policy's.
    pub timeout: Option<Millis>,
    /// Where the output goes.
    pub output: Capture,
}

/// Where a run's output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// To the caller, as it comes.
    Pass,
    /// Into the answer, bounded by the policy's `limits.output`.
    Collect,
}

/// What came of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished {
    /// Number of the run in its box.
    pub run: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// What it cost.
    pub usage: Usage,
    /// What it wrote, where that was collected.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error, where that was collected.
    pub stderr: Vec<u8>,
    /// What was refused.
    pub refused: Vec<RefusedCall>,
}

/// Runs a command in a box. The caller holds the box's lock.
///
/// # Errors
/// A failure when nothing was run; its exit code is 125, 126 or 127 by [`spawn_exit_code`].
pub fn run(caller: &Caller, errand: &Errand<'_>, _lock: &BoxLock) -> Result<Finished, Failure> {
    let log = ReceiptLog::open(errand.stored)?;
    let number = log.next_run()?;
    let facts = RunFacts {
        number,
        argv: errand.command.to_vec(),
        tier: errand.policy.tier.to_string(),
        policy: errand.manifest.policy_digest.clone(),
    };
    let recorder = Arc::new(Recorder::new(log, facts));
    let (outcome, usage, stdout, stderr) = if errand.policy.tier == Tier::Workspace {
        unconfined::run(caller, errand, &recorder)?
    } else {
        confined(caller, errand, &recorder)?
    };
    let refused = recorder.refused();
    Ok(Finished { run: number, outcome, usage, stdout, stderr, refused })
}

type Ended = (Outcome, Usage, Vec<u8>, Vec<u8>);

fn confined(
    caller: &Caller,
    errand: &Errand<'_>,
    recorder: &Arc<Recorder>,
) -> Result<Ended, Failure> {
    let mut policy = errand.policy.clone();
    policy.limits.wall = tighter(policy.limits.wall, errand.timeout);
    let mut objects = Vec::new();
    for key in &errand.manifest.objects {
        objects.extend(caller.store.object_dirs(key)?);
    }
    let mounts = box_plan::object_mounts(objects);
    let layout = box_plan::layout(
        &caller.store,
        &errand.stored.box_dir(),
        &errand.manifest.layers,
        &mounts,
        errand.manifest.host_id,
    );
    let plan = box_plan::plan(&policy, &layout)?;
    let sink: Arc<dyn EventSink> = Arc::<Recorder>::clone(recorder);
    let session = plan.start(sink).map_err(|e| spawn_failure(&SpawnError::Session(e)))?;
    let [program, args @ ..] = errand.command else {
        return Err(Failure::told(Kind::Usage, "no command was given"));
    };
    let mut command = session.command(program);
    command.args(args);
    environment(&mut command, caller, errand, &policy);
    let ended = match errand.output {
        Capture::Collect => collect(&mut command),
        Capture::Pass => pass(&mut command),
    };
    session.end();
    ended
}

fn collect(command: &mut Command<'_>) -> Result<Ended, Failure> {
    let Output { outcome, usage, stdout, stderr, .. } =
        command.output().map_err(|e| spawn_failure(&e))?;
    Ok((outcome, usage, stdout, stderr))
}

/// Passes bytes, signals and the terminal through until the run ends.
fn pass(command: &mut Command<'_>) -> Result<Ended, Failure> {
    let prepare = |source| spawn_failure(&SpawnError::Prepare { what: "use the terminal", source });
    let raw = RawTerminal::take().map_err(prepare)?;
    if let Some(raw) = &raw {
        command.terminal(raw.size());
        if !rustix::termios::isatty(io::stderr()) {
            let stderr = io::stderr().as_fd().try_clone_to_owned().map_err(prepare)?;
            command.stderr(Stdio::Descriptor(stderr));
        }
    }
    // Held from before the start: a signal that comes with the first output is for the command.
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH]).map_err(prepare)?;
    let mut run = command.spawn().map_err(|e| spawn_failure(&e))?;
    if let Some(raw) = &raw {
        let output = io::stdout().as_fd().try_clone_to_owned().map_err(prepare)?;
        run.carry_terminal(raw.input().map_err(prepare)?, output).map_err(prepare)?;
    }
    let forwarding = Forwarding::start(signals, &run, raw.is_some()).map_err(prepare)?;
    let (outcome, usage) = run.finish();
    forwarding.stop();
    drop(raw);
    Ok((outcome, usage, Vec::new(), Vec::new()))
}

/// Passes the signals that are meant for the command on to it.
struct Forwarding {
    signals: signal_hook::iterator::Handle,
    thread: std::thread::JoinHandle<()>,
}

impl Forwarding {
    fn start(mut signals: Signals, run: &Run, terminal: bool) -> io::Result<Self> {
        let handle = run.handle()?;
        let stop = signals.handle();
        let thread = std::thread::Builder::new()
            .name("h5i-signals".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || forward(&mut signals, &handle, terminal))?;
        Ok(Self { signals: stop, thread })
    }

    fn stop(self) {
        self.signals.close();
        // A panic of the thread was printed by the panic hook; the run is over either way.
        self.thread.join().ok();
    }
}

fn forward(signals: &mut Signals, run: &RunHandle, terminal: bool) {
    for signal in signals.forever() {
        let done = match (signal, terminal) {
            (SIGWINCH, true) => run.resize(crate::terminal::size_of_output()),
            (SIGWINCH, false) => Ok(()),
            (signal, _) => run.signal(signal),
        };
        // A run that has just ended needs no signal.
        done.ok();
    }
}

/// The environment of a run: the policy's, what it passes on, language and terminal, and what was
/// asked for this run.
fn environment(
    command: &mut Command<'_>,
    caller: &Caller,
    errand: &Errand<'_>,
    policy: &ResolvedPolicy,
) {
    for (name, value) in caller.surroundings.locale() {
        set_unless_set(command, policy, name, value);
    }
    for name in &policy.env.pass {
        if let Some(value) = caller.surroundings.variable(name) {
            set_unless_set(command, policy, OsStr::new(name), value);
        }
    }
    for assignment in errand.variables {
        command.env(&assignment.name, &assignment.value);
    }
}

fn set_unless_set(command: &mut Command<'_>, policy: &ResolvedPolicy, name: &OsStr, value: &OsStr) {
    if name.to_str().is_none_or(|name| !policy.env.set.contains_key(name)) {
        command.env(name, value);
    }
}

/// The smaller of two budgets.
#[must_use]
pub fn tighter(policy: Option<Millis>, asked: Option<Millis>) -> Option<Millis> {
    match (policy, asked) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Says why a run did not start.
fn spawn_failure(error: &SpawnError) -> Failure {
    match error {
        SpawnError::NotFound { .. } => {
            Failure::new(Kind::NotFound, error).hint("a path of the box, or a name in its PATH")
        }
        SpawnError::NotExecutable { .. } => Failure::new(Kind::Refused, error)
            .hint("name a program; a script needs its execute bit, or its interpreter before it"),
        SpawnError::Nul { .. } => Failure::new(Kind::Usage, error),
        SpawnError::Session(StartError::Step { step, .. }) => {
            Failure::new(Kind::Unavailable, error)
                .hint("h5i box probe")
                .detail("step", step.clone())
        }
        SpawnError::Session(StartError::StageForbidden(_)) => {
            Failure::new(Kind::Unavailable, error).hint("sysctl vm.memfd_noexec=1")
        }
        SpawnError::Session(_) => Failure::new(Kind::Unavailable, error).hint("h5i box probe"),
        _ => Failure::new(Kind::Io, error),
    }
}

/// The exit code of a run that did not start: 127 and 126 as shells have them, else 125.
#[must_use]
pub fn spawn_exit_code(failure: &Failure) -> u8 {
    match failure.kind {
        Kind::NotFound => 127,
        Kind::Refused => 126,
        _ => 125,
    }
}

/// Says that a plan can't be had, as a failure of a run.
#[must_use]
pub fn plan_failure(error: PlanError) -> Failure {
    box_plan::plan_failure(error)
}
