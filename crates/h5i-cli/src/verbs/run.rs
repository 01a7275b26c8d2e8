//! `h5i box run`

use std::ffi::OsString;
use std::fs;

use h5i_policy::{Millis, ResolvedPolicy, Tier};

use super::summary::{
    ending, grant_refusals, network_refusals, opened, refusals, run_data, undelivered,
};
use super::{Answer, Refusal, find};
use crate::args::{Assignment, RunInArgs};
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::path_error::{Action, PathError};
use crate::running::{Capture, Errand, Finished, run_at, spawn_exit_code};
use crate::session::Seat;
use crate::store::{BoxName, FROZEN_POLICY, LockError, Manifest, StoredBox};

/// What is to be run in a box, whichever verb asks for it.
pub(super) struct Asked<'a> {
    pub(super) name: &'a BoxName,
    pub(super) timeout: Option<Millis>,
    pub(super) output: Capture,
}

pub(super) fn run(caller: &Caller, args: &RunInArgs) -> Result<Answer, Refusal> {
    let output = if args.output.json { Capture::Collect } else { Capture::Pass };
    let asked = Asked { name: &args.name, timeout: args.timeout, output };
    run_in(caller, &asked, |_, _, _| (args.command.clone(), args.variables.clone()))
}

/// Runs in a box what `command` says of it.
pub(super) fn run_in(
    caller: &Caller,
    asked: &Asked<'_>,
    command: impl FnOnce(&StoredBox, &Manifest, &ResolvedPolicy) -> (Vec<OsString>, Vec<Assignment>),
) -> Result<Answer, Refusal> {
    let not_started = |failure: Failure| {
        let code = Some(spawn_exit_code(&failure));
        Refusal { failure, code }
    };
    let before = |failure: Failure| Refusal { failure, code: Some(125) };
    let stored = find(caller, asked.name).map_err(before)?;
    let seat = take_seat(&stored).map_err(before)?;
    let manifest = stored.manifest().map_err(|e| before(e.into()))?;
    let policy = frozen_policy(&stored, &manifest).map_err(before)?;
    stored.open_own_roots().map_err(|e| before(e.into()))?;
    let (command, variables) = command(&stored, &manifest, &policy);
    let errand = Errand {
        stored: &stored,
        manifest: &manifest,
        policy: &policy,
        command: &command,
        variables: &variables,
        timeout: asked.timeout,
        output: asked.output,
    };
    let finished = run_at(caller, &errand, &seat).map_err(not_started)?;
    let data = run_data(&manifest, &finished);
    let answer = Answer::new(data, String::new())?.code(finished.exit_code());
    Ok(match remarks(&finished) {
        Some(remarks) => answer.note(remarks),
        None => answer,
    })
}

/// A place in the box. Without a boundary there is no session that could be joined.
fn take_seat(stored: &StoredBox) -> Result<Seat, Failure> {
    match stored.lock() {
        Ok(lock) => Ok(Seat::First(lock)),
        Err(LockError::Busy) if stored.manifest()?.tier != Tier::Workspace => Seat::take(stored),
        Err(error) => Err(error.into()),
    }
}

/// What a person is told after a run: nothing, unless it was stopped or something was refused.
pub(super) fn remarks(finished: &Finished) -> Option<String> {
    use h5i_confine::Outcome::{Exited, Signaled};
    let mut lines = String::new();
    if !matches!(finished.outcome, Exited(_) | Signaled(_)) {
        lines.push_str(&ending(finished));
        lines.push('\n');
    }
    if let Some(error) = &finished.undelivered {
        lines.push_str(&undelivered(error));
    }
    lines.push_str(&opened(finished));
    lines.push_str(&refusals(&finished.refused));
    lines.push_str(&network_refusals(finished));
    lines.push_str(&grant_refusals(finished));
    let lines = lines.trim_end();
    (!lines.is_empty()).then(|| lines.to_owned())
}

/// The policy that a box was made with; its digest is checked.
pub(super) fn frozen_policy(
    stored: &StoredBox,
    manifest: &Manifest,
) -> Result<ResolvedPolicy, Failure> {
    let path = stored.host_dir().join(FROZEN_POLICY);
    let json = fs::read(&path).map_err(PathError::at(Action::Read, &path))?;
    ResolvedPolicy::from_canonical_json(&json, manifest.policy_digest).map_err(|error| {
        let why = Failure::new(Kind::Corrupt, &error).message;
        let message = format!("the frozen policy of box `{}` is not usable: {why}", manifest.name);
        Failure::told(Kind::Corrupt, message)
            .hint(format!("h5i box rm {} keeps its receipt", manifest.name))
    })
}
