//! One run in a box: plan, session, command, and what came of it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

use h5i_confine::{
    Ahead, Command, EventSink, Launched, Outcome, Output, PlanError, RefusedCall, Run, RunHandle,
    SpawnError, StartError, Stdio, Usage,
};
use h5i_policy::{Millis, ResolvedPolicy, Tier};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use crate::args::Assignment;
use crate::box_plan;
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::receipt_log::{ReceiptLog, Recorder, RunFacts};
use crate::store::{BoxLock, Manifest, StoredBox};
use crate::terminal::RawTerminal;
use crate::unconfined;

type Signals = SignalDelivery<UnixStream, SignalOnly>;

/// The signals that are for the command.
const FORWARDED: [i32; 5] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH];

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
    if errand.policy.tier == Tier::Workspace {
        let recorder = Arc::new(recorder(errand)?);
        let ended = unconfined::run(caller, errand, &recorder)?;
        return Ok(finished(&recorder, ended));
    }
    confined(caller, errand)
}

fn recorder(errand: &Errand<'_>) -> Result<Recorder, Failure> {
    let log = ReceiptLog::open(errand.stored)?;
    let facts = RunFacts {
        number: log.next_run()?,
        argv: errand.command.to_vec(),
        tier: errand.policy.tier.to_string(),
        policy: errand.manifest.policy_digest.to_string(),
    };
    Ok(Recorder::new(log, facts))
}

fn finished(recorder: &Recorder, (outcome, usage, stdout, stderr): Ended) -> Finished {
    Finished { run: recorder.run(), outcome, usage, stdout, stderr, refused: recorder.refused() }
}

type Ended = (Outcome, Usage, Vec<u8>, Vec<u8>);

fn confined(caller: &Caller, errand: &Errand<'_>) -> Result<Finished, Failure> {
    let mut policy = errand.policy.clone();
    policy.limits.wall = tighter(policy.limits.wall, errand.timeout);
    let mut objects = Vec::new();
    for key in &errand.manifest.objects {
        objects.extend(caller.store.object_dirs(key)?);
    }
    let mounts = box_plan::object_mounts(objects);
    let layout =
        box_plan::layout(&caller.store, &errand.stored.box_dir(), &mounts, errand.manifest.host_id);
    // The stage's first steps are the same whatever the plan; a plan that is refused ends them.
    let ahead = Ahead::start(&policy, &layout);
    let plan = box_plan::plan(&policy, &layout)?;
    let started = |e| spawn_failure(&SpawnError::Session(e));
    let mut launched = plan.launch(Some(ahead.map_err(started)?)).map_err(started)?;
    // While the stage builds the box. Nothing of the box runs before the log is open.
    let recorder = Arc::new(recorder(errand)?);
    let foreground = match errand.output {
        Capture::Pass => Some(Foreground::take(&mut launched)?),
        Capture::Collect => None,
    };
    let sink: Arc<dyn EventSink> = Arc::<Recorder>::clone(&recorder);
    let session = launched.session(sink).map_err(started)?;
    let [program, args @ ..] = errand.command else {
        return Err(Failure::told(Kind::Usage, "no command was given"));
    };
    let mut command = session.command(program);
    command.args(args);
    environment(&mut command, caller, errand, &policy);
    let ended = match &foreground {
        None => collect(&mut command),
        Some(foreground) => foreground.pass(&mut command),
    };
    // What the caller lent is given back while the kernel clears the box away.
    session.stop();
    drop(foreground);
    session.end();
    Ok(finished(&recorder, ended?))
}

fn collect(command: &mut Command<'_>) -> Result<Ended, Failure> {
    let Output { outcome, usage, stdout, stderr, .. } =
        command.output().map_err(|e| spawn_failure(&e))?;
    Ok((outcome, usage, stdout, stderr))
}

fn terminal_failure(source: io::Error) -> Failure {
    spawn_failure(&SpawnError::Prepare { what: "use the terminal", source })
}

/// The caller's terminal and signals, held for a run from before its start: a signal that comes with
/// the first output is for the command.
struct Foreground {
    to: Arc<Mutex<Recipient>>,
    raw: Option<RawTerminal>,
}

impl Foreground {
    fn take(launched: &mut Launched<'_>) -> Result<Self, Failure> {
        let raw = RawTerminal::take().map_err(terminal_failure)?;
        let (mut forwarding, told) = Forwarding::start(raw.is_some()).map_err(terminal_failure)?;
        let to = forwarding.recipient();
        launched.also_watch(told, move || forwarding.forward());
        Ok(Self { to, raw })
    }

    /// Passes bytes, signals and the terminal through until the run ends.
    fn pass(&self, command: &mut Command<'_>) -> Result<Ended, Failure> {
        let run = carry(command, self.raw.as_ref())?;
        let handle = run.handle().map_err(terminal_failure)?;
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        if let Recipient::Awaited(came) = &*to {
            came.iter().for_each(|signal| pass_on(&handle, *signal, self.raw.is_some()));
        }
        *to = Recipient::Run(handle);
        drop(to);
        let (outcome, usage) = run.finish();
        Ok((outcome, usage, Vec::new(), Vec::new()))
    }
}

/// Starts the run and has its terminal carried.
fn carry(command: &mut Command<'_>, raw: Option<&RawTerminal>) -> Result<Run, Failure> {
    if let Some(raw) = raw {
        command.terminal(raw.size());
        if !rustix::termios::isatty(io::stderr()) {
            let stderr = io::stderr().as_fd().try_clone_to_owned().map_err(terminal_failure)?;
            command.stderr(Stdio::Descriptor(stderr));
        }
    }
    let mut run = command.spawn().map_err(|e| spawn_failure(&e))?;
    if let Some(raw) = raw {
        let output = io::stdout().as_fd().try_clone_to_owned().map_err(terminal_failure)?;
        let input = raw.input().map_err(terminal_failure)?;
        run.carry_terminal(input, output).map_err(terminal_failure)?;
    }
    Ok(run)
}

/// Passes the signals that are meant for the command on to it; until there is one they wait.
struct Forwarding {
    signals: Signals,
    to: Arc<Mutex<Recipient>>,
    terminal: bool,
}

/// What signals are passed on to.
enum Recipient {
    /// Nothing runs yet; these came meanwhile.
    Awaited(Vec<i32>),
    /// The run.
    Run(RunHandle),
}

impl Forwarding {
    /// Takes the signals, and yields what tells that there are some.
    fn start(terminal: bool) -> io::Result<(Self, OwnedFd)> {
        let (read, write) = UnixStream::pair()?;
        let told = read.try_clone()?.into();
        let signals = Signals::with_pipe(read, write, SignalOnly, FORWARDED)?;
        let to = Arc::new(Mutex::new(Recipient::Awaited(Vec::new())));
        Ok((Self { signals, to, terminal }, told))
    }

    fn recipient(&self) -> Arc<Mutex<Recipient>> {
        Arc::clone(&self.to)
    }

    /// Passes on what came.
    fn forward(&mut self) {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        for signal in self.signals.pending() {
            match &mut *to {
                Recipient::Awaited(came) => came.push(signal),
                Recipient::Run(run) => pass_on(run, signal, self.terminal),
            }
        }
    }
}

fn pass_on(run: &RunHandle, signal: i32, terminal: bool) {
    let done = match (signal, terminal) {
        (SIGWINCH, true) => run.resize(crate::terminal::size_of_output()),
        (SIGWINCH, false) => Ok(()),
        (signal, _) => run.signal(signal),
    };
    // A run that has just ended needs no signal.
    done.ok();
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
