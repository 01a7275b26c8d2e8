//! One run in a box: plan, session, command, and what came of it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;

use h5i_confine::{Command, Outcome, Output, PlanError, SpawnError, StartError, Usage};
use h5i_policy::{Millis, RecordOutput, ResolvedPolicy, Tier};

use crate::args::Assignment;
use crate::box_plan;
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::grant_record::GrantDeeds;
use crate::net_record::NetDeeds;
use crate::passing::Foreground;
use crate::payload::Payloads;
use crate::program_record::Tally;
use crate::receipt_log::{Deeds, ReceiptLog, Recorder};
use crate::session::{Host, Joined, Lifetime, Opened, Refused, Seat, Spent};
use crate::store::{BoxLock, Manifest, StoredBox};
use crate::terminal::Attendance;
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
    /// To the caller, whose keyboard is the command's.
    Converse,
    /// Into the answer, bounded by the policy's `limits.output`.
    Collect,
}

impl Capture {
    fn attendance(self) -> Option<Attendance> {
        match self {
            Self::Pass => Some(Attendance::Command),
            Self::Converse => Some(Attendance::Conversation),
            Self::Collect => None,
        }
    }
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
    pub refused: Vec<Refused>,
    /// The programs that ran.
    pub programs: Tally,
    /// What it did on the network.
    pub network: NetDeeds,
    /// What it did with its grants.
    pub grants: GrantDeeds,
    /// The budget that it was stopped for, and who spent it.
    pub spent: Option<Spent>,
    /// Planted credentials that it opened.
    pub opened: Vec<Opened>,
    /// Why its session broke, where that is known.
    pub broke: Option<String>,
    /// Why output could not be delivered to the caller, where that failed.
    pub undelivered: Option<io::Error>,
}

impl Finished {
    /// The exit code of h5i: the run's own, unless that says nothing of output that was lost.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        const SIGPIPE: i32 = 13;
        let silent = self.outcome.success() || self.outcome == Outcome::Signaled(SIGPIPE);
        if self.undelivered.is_some() && silent {
            Kind::Io.exit_code()
        } else {
            self.outcome.exit_code()
        }
    }
}

/// Runs a command in a box, in the place that was taken.
///
/// # Errors
/// A failure when nothing was run; its exit code is 125, 126 or 127 by [`spawn_exit_code`].
pub(crate) fn run_at(
    caller: &Caller,
    errand: &Errand<'_>,
    seat: &Seat,
) -> Result<Finished, Failure> {
    match seat {
        Seat::First(lock) => run(caller, errand, lock),
        Seat::Joined(joined) => join(caller, errand, joined),
    }
}

/// Runs a command in a box. The caller holds the box's lock.
///
/// # Errors
/// A failure when nothing was run; its exit code is 125, 126 or 127 by [`spawn_exit_code`].
pub fn run(caller: &Caller, errand: &Errand<'_>, _lock: &BoxLock) -> Result<Finished, Failure> {
    if errand.policy.tier == Tier::Workspace {
        let log = ReceiptLog::open(errand.stored)?;
        let recorder = Recorder::new(log, errand.manifest, errand.policy);
        let number = recorder.admit(errand.command.to_vec())?;
        let ended = unconfined::run(caller, errand, (number, &recorder))?;
        return Ok(ended.finished(number, recorder.leave(number)));
    }
    confined(caller, errand)
}

/// How a run ended, before its records are looked at.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) usage: Usage,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) undelivered: Option<io::Error>,
}

impl Ended {
    /// With nothing collected, and everything delivered.
    pub(crate) fn new(outcome: Outcome, usage: Usage) -> Self {
        Self { outcome, usage, stdout: Vec::new(), stderr: Vec::new(), undelivered: None }
    }

    fn finished(self, run: u64, deeds: Deeds) -> Finished {
        let Self { outcome, usage, stdout, stderr, undelivered } = self;
        let Deeds { refused, programs, network, grants, spent, opened, broke } = deeds;
        Finished {
            run,
            outcome,
            usage,
            stdout,
            stderr,
            refused,
            programs,
            network,
            grants,
            spent,
            opened,
            broke,
            undelivered,
        }
    }
}

/// Begins the session, in which others may join, and ends it with its last run.
fn confined(caller: &Caller, errand: &Errand<'_>) -> Result<Finished, Failure> {
    let attendance = errand.output.attendance();
    let box_and_policy = (errand.stored, errand.manifest, errand.policy);
    let (host, foreground) = Host::open(caller, box_and_policy, Lifetime::Runs, |launched| {
        attendance
            .map(|a| Foreground::take(a, |fd, hear| launched.also_watch(fd, hear)))
            .transpose()
    })?;
    let (number, mut command) = host.command(errand.command)?;
    environment(&mut command, caller, errand);
    if let Some(wall) = errand.timeout {
        command.wall(wall);
    }
    let payloads = keep_output(&mut command, errand)?;
    let ended = pass(&mut command, foreground.as_ref());
    let recorder = Arc::clone(host.recorder());
    if let (Some(payloads), Ok(_)) = (payloads, &ended) {
        recorder.output_kept(number, payloads.finish(number)?)?;
    }
    let mut deeds = host.leave(number);
    let session = host.handle();
    host.end(|others| {
        if let Some(foreground) = &foreground {
            foreground.wait_for_others(session);
        }
        crate::command_line::say(&others_go_on(errand.stored, others));
        if attendance.is_some() {
            let_go_of_output();
        }
    });
    deeds.network = recorder.network_of(number);
    Ok(ended?.finished(number, deeds))
}

/// Has the session of another process run it.
fn join(caller: &Caller, errand: &Errand<'_>, joined: &Arc<Joined>) -> Result<Finished, Failure> {
    let foreground = errand.output.attendance().map(Foreground::take_alone).transpose()?;
    let [program, args @ ..] = errand.command else {
        return Err(Failure::told(Kind::Usage, "no command was given"));
    };
    let mut command = joined.command(program, errand.timeout);
    command.args(args);
    environment(&mut command, caller, errand);
    let payloads = keep_output(&mut command, errand)?;
    let ended = pass(&mut command, foreground.as_ref())?;
    if let Some(payloads) = payloads {
        joined.output_kept(payloads.finish(joined.run())?);
    }
    Ok(ended.finished(joined.run(), joined.deeds()))
}

/// Has a run's output kept, where the policy says so.
fn keep_output(
    command: &mut Command<'_>,
    errand: &Errand<'_>,
) -> Result<Option<Arc<Payloads>>, Failure> {
    if errand.policy.record_output != RecordOutput::On {
        return Ok(None);
    }
    let payloads = Arc::new(Payloads::new(&errand.stored.host_dir())?);
    command.output_tap(Arc::<Payloads>::clone(&payloads));
    Ok(Some(payloads))
}

fn pass(command: &mut Command<'_>, foreground: Option<&Foreground>) -> Result<Ended, Failure> {
    match foreground {
        None => collect(command),
        Some(foreground) => foreground.pass(command),
    }
}

/// Whoever reads the command's output, in a pipeline say, has had all of it.
fn let_go_of_output() {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null");
    // With nothing to put there, they wait for the end of this process.
    if let Ok(null) = null {
        rustix::stdio::dup2_stdout(&null).ok();
        rustix::stdio::dup2_stdin(&null).ok();
    }
}

fn others_go_on(stored: &StoredBox, others: usize) -> String {
    let (runs, go) = if others == 1 { ("run", "goes") } else { ("runs", "go") };
    format!(
        "the command has ended; {others} other {runs} in the session of box `{}` {go} on, and this \
         process holds it (^C ends them)",
        stored.name()
    )
}

fn collect(command: &mut Command<'_>) -> Result<Ended, Failure> {
    let Output { outcome, usage, stdout, stderr, .. } =
        command.output().map_err(|e| spawn_failure(&e))?;
    Ok(Ended { stdout, stderr, ..Ended::new(outcome, usage) })
}

/// The environment of a run: the policy's, what it passes on, language and terminal, and what was
/// asked for this run.
fn environment(command: &mut Command<'_>, caller: &Caller, errand: &Errand<'_>) {
    let policy = errand.policy;
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
pub(crate) fn spawn_failure(error: &SpawnError) -> Failure {
    match error {
        SpawnError::NotFound { .. } => {
            Failure::new(Kind::NotFound, error).hint("a path of the box, or a name in its PATH")
        }
        SpawnError::NotExecutable { .. } => Failure::new(Kind::Refused, error)
            .hint("name a program; a script needs its execute bit, or its interpreter before it"),
        SpawnError::Nul { .. } => Failure::new(Kind::Usage, error),
        SpawnError::Elsewhere(told) => match told.downcast_ref::<Failure>() {
            Some(failure) => failure.clone(),
            None => Failure::new(Kind::Io, error),
        },
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
