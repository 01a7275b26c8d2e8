//! `h5i box start`, `stop`, `freeze`, `thaw`, `kill`, and what keeps a started session

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use h5i_export::{Event, Lane};
use h5i_policy::Tier;
use serde_json::json;

use super::run::frozen_policy;
use super::{Answer, Reader, find};
use crate::args::SessionArgs;
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::passing::Foreground;
use crate::path_error::{Action, PathError};
use crate::receipt_log::ReceiptLog;
use crate::session::{
    Ending, Host, Lifetime, Live, Presence, end, freeze, held, presence, release,
};
use crate::shown::Shown;
use crate::store::{LockError, StoredBox};
use crate::terminal::Attendance;

/// What the process that keeps a session says once it does.
const READY: &str = "ready";
/// What it complains of goes there, in the box's host directory.
const LOG: &str = "session.log";
/// How long a box that is neither free nor open is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn start(caller: &Caller, args: &SessionArgs) -> Result<Answer, Failure> {
    let stored = find(caller, &args.name)?;
    if stored.manifest()?.tier == Tier::Workspace {
        let message = format!("box `{}` has no boundary, and so no session to keep", args.name);
        return Err(Failure::told(Kind::Refused, message).hint("a box of the tier process"));
    }
    let begun = Instant::now();
    loop {
        match presence(&stored)? {
            Presence::Live(live) => return alive(&stored, &live),
            Presence::Idle => match begin(caller, &stored) {
                // Somebody else was quicker.
                Err(failure) if failure.kind == Kind::Busy => {}
                Err(failure) => return Err(failure),
                Ok(()) => {
                    let name = &args.name;
                    let data = json!({ "box": name, "started": true });
                    return Ok(Answer::new(data, String::new())?
                        .note(format!("started  box {name}; h5i box stop {name} ends it")));
                }
            },
            Presence::InUse if begun.elapsed() > PATIENCE => return Err(LockError::Busy.into()),
            // Its holder begins or ends a session, or does something that ends soon.
            Presence::InUse => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// What is told of a box that is alive.
fn alive(stored: &StoredBox, live: &Live) -> Result<Answer, Failure> {
    let name = stored.name();
    if live.started {
        let data = json!({ "box": name, "started": false });
        return Ok(Answer::new(data, String::new())?.note(format!("box `{name}` is alive")));
    }
    let message = format!("the session of box `{name}` is held by a run, and ends with it");
    Err(Failure::told(Kind::Busy, message).hint("start it when the run has ended"))
}

/// Starts the process that keeps the session, and waits until it does.
fn begin(caller: &Caller, stored: &StoredBox) -> Result<(), Failure> {
    let log = stored.host_dir().join(LOG);
    let complaints = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&log)
        .map_err(PathError::at(Action::Open, &log))?;
    let failed = |error: std::io::Error| {
        Failure::told(Kind::Io, format!("cannot start the process that keeps the session: {error}"))
            .hint("see that this user may have more processes and descriptors (ulimit -u, -n)")
    };
    #[expect(clippy::disallowed_methods, reason = "this very program, whatever became of its file")]
    let mut child = Command::new("/proc/self/exe")
        .arg("-C")
        .arg(&caller.directory)
        .args(["box", "hold", "--json", stored.name().as_str()])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(complaints)
        .spawn()
        .map_err(failed)?;
    let mut said = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut said).map_err(failed)?;
    }
    if said.trim_end() == READY {
        return Ok(());
    }
    // It failed, and says why in the form of any answer.
    let told = serde_json::from_str::<serde_json::Value>(&said)
        .ok()
        .and_then(|answer| serde_json::from_value(answer.get("error")?.clone()).ok());
    Err(told.unwrap_or_else(|| {
        Failure::told(Kind::Internal, "the process that keeps the session ended")
            .hint(format!("its last words are in {}", Shown::path(&log)))
    }))
}

/// Keeps a session until it is stopped: the process that `start` leaves.
pub(super) fn hold(caller: &Caller, args: &SessionArgs) -> Result<Answer, Failure> {
    let stored = find(caller, &args.name)?;
    let _lock = stored.lock()?;
    let manifest = stored.manifest()?;
    let policy = frozen_policy(&stored, &manifest)?;
    // Not in the session of a terminal that will be closed.
    rustix::process::setsid().ok();
    let box_and_policy = (&stored, &manifest, &policy);
    let (host, signals) = Host::open(caller, box_and_policy, Lifetime::Started, |launched| {
        Foreground::take(Attendance::Command, |fd, hear| launched.also_watch(fd, hear))
    })?;
    signals.wait_for_others(host.handle());
    host.keep(|| {
        if super::print_line(READY)? == Reader::Gone {
            return Ok(());
        }
        // Whoever started it waits for the end of its output.
        let null = std::fs::File::options().write(true).open("/dev/null");
        let null = null.map_err(PathError::at(Action::Open, "/dev/null".as_ref()))?;
        rustix::stdio::dup2_stdout(&null).map_err(|e| Failure::new(Kind::Io, &e))
    })?;
    Answer::new(serde_json::Value::Null, String::new())
}

pub(super) fn stop(caller: &Caller, args: &SessionArgs) -> Result<Answer, Failure> {
    ended(caller, args, Ending::Asked, "stopped")
}

pub(super) fn kill(caller: &Caller, args: &SessionArgs) -> Result<Answer, Failure> {
    ended(caller, args, Ending::Killed, "killed")
}

fn ended(
    caller: &Caller,
    args: &SessionArgs,
    ending: Ending,
    word: &str,
) -> Result<Answer, Failure> {
    let stored = find(caller, &args.name)?;
    let was_alive = end(&stored, ending)?.is_some();
    let answer = Answer::new(json!({ "box": args.name, word: was_alive }), String::new())?;
    Ok(answer.note(match was_alive {
        true => format!("{word:<8} box {}", args.name),
        false => format!("box `{}` is not alive", args.name),
    }))
}

/// Lets the export of a box pass that is not alive any more; yields whether it was held back.
fn let_export_pass(stored: &StoredBox) -> Result<bool, Failure> {
    let _lock = stored.lock()?;
    if held(&stored.host_dir())?.is_none() {
        return Ok(false);
    }
    let text = h5i_export::ByteText::new(b"thawed: export may pass".as_slice());
    ReceiptLog::open(stored)?.append(Lane::Host, None, Event::Note { text })?;
    release(&stored.host_dir())
}

pub(super) fn freeze_or_thaw(
    caller: &Caller,
    args: &SessionArgs,
    frozen: bool,
) -> Result<Answer, Failure> {
    let stored = find(caller, &args.name)?;
    let processes = match freeze(&stored, frozen) {
        Err(failure) if failure.kind == Kind::NotFound && !frozen => {
            if !let_export_pass(&stored)? {
                return Err(failure);
            }
            0
        }
        done => done?,
    };
    let data = json!({ "box": args.name, "frozen": frozen, "processes": processes });
    let (word, name) = (if frozen { "frozen" } else { "thawed" }, &args.name);
    let of = if processes == 1 { "process" } else { "processes" };
    Ok(Answer::new(data, String::new())?.note(format!("{word:<8} box {name}, {processes} {of}")))
}
