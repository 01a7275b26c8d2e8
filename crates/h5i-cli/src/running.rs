//! One run in a box: plan, session, command, and what came of it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;

use h5i_confine::{
    Ahead, Command, EventSink, Outcome, Output, PlanError, RefusedCall, SpawnError, StartError,
    Usage,
};
use h5i_policy::{Millis, ResolvedPolicy, Tier};

use crate::args::Assignment;
use crate::box_plan;
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::passing::Foreground;
use crate::program_record::Programs;
use crate::receipt_log::{ReceiptLog, Recorder, RunFacts};
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
    /// The programs that ran.
    pub programs: Programs,
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

fn finished(recorder: &Recorder, ended: Ended) -> Finished {
    let Ended { outcome, usage, stdout, stderr, undelivered } = ended;
    let (run, refused, programs) = (recorder.run(), recorder.refused(), recorder.programs());
    Finished { run, outcome, usage, stdout, stderr, refused, programs, undelivered }
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
}

fn confined(caller: &Caller, errand: &Errand<'_>) -> Result<Finished, Failure> {
    let mut policy = errand.policy.clone();
    policy.limits.wall = tighter(policy.limits.wall, errand.timeout);
    let layout = box_plan::layout_of(&caller.store, errand.stored, errand.manifest)?;
    // The stage's first steps are the same whatever the plan; a plan that is refused ends them.
    let ahead = Ahead::start(&policy, &layout);
    let plan = box_plan::plan(&policy, &layout)?;
    let started = |e| spawn_failure(&SpawnError::Session(e));
    let mut launched = plan.launch(Some(ahead.map_err(started)?)).map_err(started)?;
    // While the stage builds the box. Nothing of the box runs before the log is open.
    let recorder = Arc::new(recorder(errand)?);
    let foreground = match errand.output {
        Capture::Pass => Some(Foreground::take(&mut launched, Attendance::Command)?),
        Capture::Converse => Some(Foreground::take(&mut launched, Attendance::Conversation)?),
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
    let ended = match foreground {
        None => collect(&mut command),
        Some(foreground) => foreground.pass(&mut command),
    };
    session.end();
    Ok(finished(&recorder, ended?))
}

fn collect(command: &mut Command<'_>) -> Result<Ended, Failure> {
    let Output { outcome, usage, stdout, stderr, .. } =
        command.output().map_err(|e| spawn_failure(&e))?;
    Ok(Ended { stdout, stderr, ..Ended::new(outcome, usage) })
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
pub(crate) fn spawn_failure(error: &SpawnError) -> Failure {
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
