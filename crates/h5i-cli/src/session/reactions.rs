//! What is done about violations beyond their records, as the policy's `react` says.
//!
//! Each cause is acted on once in a session: what a person has let go on goes on. What is done is on
//! record before it is done.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io::{self, IsTerminal as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use h5i_confine::SessionHandle;
use h5i_export::{ByteText, Event};
use h5i_policy::{Escaped, React, Reaction, Violation};

use super::message::LiveRefusal;
use crate::box_grants::LiveGrants;
use crate::command_line::say;
use crate::failure::{Failure, Kind};
use crate::path_error::{Action, PathError};
use crate::timestamp::Timestamp;

/// Its presence in a box's host directory holds export back; it says why.
const HELD: &str = "export-held";
/// Causes that are told apart in a session; what comes beyond is acted on each time.
const CAUSES: usize = 4096;
/// Violations that are kept to be shown.
const LAST: usize = 5;

/// The reactions of one session.
#[derive(Debug)]
pub(crate) struct Reactions {
    react: React,
    name: String,
    host_dir: PathBuf,
    session: OnceLock<SessionHandle>,
    grants: OnceLock<Weak<LiveGrants>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    met: BTreeSet<(Violation, String)>,
    frozen: bool,
    /// Why, where no person did it.
    why: Option<String>,
    /// Export is held back.
    held: bool,
    /// What was said of it, and who of other processes is to be told: an event counter each.
    said: Vec<String>,
    listeners: Vec<Weak<OwnedFd>>,
    last: VecDeque<(Timestamp, String)>,
}

impl Reactions {
    /// For a session of the box of this name.
    pub(crate) fn new(react: React, name: &str, host_dir: &Path) -> Self {
        let (session, grants, state) = Default::default();
        let (name, host_dir) = (name.to_owned(), host_dir.to_owned());
        Self { react, name, host_dir, session, grants, state }
    }

    /// The session that is acted on.
    pub(crate) fn act_on(&self, session: SessionHandle) {
        // There is one in the life of this.
        self.session.set(session).ok();
    }

    /// What is suspended with it.
    pub(crate) fn suspends(&self, grants: &Arc<LiveGrants>) {
        // There is one in the life of this.
        self.grants.set(Arc::downgrade(grants)).ok();
    }

    /// Something was violated: does what the policy says of it, once for each `cause`. `record` takes
    /// the record of that.
    ///
    /// # Errors
    /// As `record`, or when export could not be held back: nothing may go on then.
    pub(crate) fn violated(
        &self,
        violation: Violation,
        cause: &str,
        record: impl FnOnce(Event) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let reaction = self.react.to(violation);
        {
            let mut state = self.state();
            if violation != Violation::Budget {
                state.last.push_back((Timestamp::now(), cause.to_owned()));
                let surplus = state.last.len().saturating_sub(LAST);
                state.last.drain(..surplus);
            }
            let known = (violation, cause.to_owned());
            let done = match reaction {
                Reaction::Freeze => state.why.is_some(),
                Reaction::FreezeExport => state.held,
                _ => false,
            };
            if reaction == Reaction::Continue || done || state.met.contains(&known) {
                return Ok(());
            }
            if state.met.len() < CAUSES {
                state.met.insert(known);
            }
        }
        record(Event::Reaction {
            violation: violation.name().to_owned(),
            reaction: reaction.name().to_owned(),
            cause: ByteText::new(cause.as_bytes()),
        })?;
        let why = format!("react.{violation}: {}", Escaped(cause));
        if reaction == Reaction::Kill {
            self.tell(format!("box `{}` was ended by {why}", self.name));
            if let Some(session) = self.session.get() {
                session.kill_for(violation);
            }
            return Ok(());
        }
        if reaction == Reaction::FreezeExport {
            hold(&self.host_dir, &why)?;
        }
        {
            let mut state = self.state();
            (state.frozen, state.why) = (true, Some(why.clone()));
            state.held |= reaction == Reaction::FreezeExport;
        }
        if let Some(session) = self.session.get() {
            session.freeze();
        }
        if let Some(grants) = self.grants.get().and_then(Weak::upgrade) {
            // What was violated may be a grant, whose broker waits for this.
            drop(std::thread::Builder::new().spawn(move || grants.suspend()));
        }
        self.tell(format!(
            "box `{0}` is frozen by {why}; h5i box thaw {0} lets it go on",
            self.name
        ));
        Ok(())
    }

    /// A person has frozen the session, or lets it go on, and export pass.
    ///
    /// # Errors
    /// An I/O failure: export is held back then.
    pub(crate) fn frozen_by_hand(&self, frozen: bool) -> Result<(), Failure> {
        if !frozen {
            release(&self.host_dir)?;
        }
        let mut state = self.state();
        (state.frozen, state.why) = (frozen, None);
        state.held &= frozen;
        Ok(())
    }

    /// The session is to stand still while it is read; whether it does not do so already.
    pub(super) fn pauses(&self) -> bool {
        let mut state = self.state();
        let pauses = !state.frozen;
        state.frozen = true;
        pauses
    }

    /// It was read; whether it may go on: not when a violation has frozen it meanwhile.
    pub(super) fn goes_on(&self) -> bool {
        let mut state = self.state();
        state.frozen = state.why.is_some();
        !state.frozen
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.state().frozen
    }

    /// Why the session is frozen, where no person did it.
    pub(crate) fn why(&self) -> Option<String> {
        self.state().why.clone()
    }

    /// The last things that were refused.
    pub(crate) fn last(&self) -> Vec<LiveRefusal> {
        let told = |(at, what): &(Timestamp, String)| LiveRefusal {
            at_ms: at.millis(),
            what: what.clone(),
        };
        self.state().last.iter().map(told).collect()
    }

    /// Who passes on what is said raises this counter's owner from its wait.
    pub(crate) fn listen(&self, counter: &Arc<OwnedFd>) {
        let mut state = self.state();
        state.listeners.retain(|listener| listener.strong_count() > 0);
        state.listeners.push(Arc::downgrade(counter));
    }

    /// What was said, from the `from`th sentence on.
    pub(crate) fn said(&self, from: usize) -> Vec<String> {
        self.state().said.get(from..).unwrap_or_default().to_vec()
    }

    fn tell(&self, line: String) {
        let said = line.clone();
        // Whoever reads this may be slow or stand still, and the session must not.
        let thread = std::thread::Builder::new().stack_size(64 * 1024);
        drop(thread.spawn(move || say_aside(&said)));
        let mut state = self.state();
        state.said.push(line);
        for listener in state.listeners.iter().filter_map(Weak::upgrade) {
            // A full counter has been raised.
            rustix::io::write(&*listener, &1u64.to_ne_bytes()).ok();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says a line while a command may have the terminal, which then ends no line by itself.
pub(crate) fn say_aside(line: &str) {
    if io::stderr().is_terminal() { say(&format!("\r{line}\r")) } else { say(line) }
}

/// Why export of a box is held back, if it is.
///
/// # Errors
/// An I/O failure.
pub(crate) fn held(host_dir: &Path) -> Result<Option<String>, Failure> {
    let path = host_dir.join(HELD);
    match fs::read_to_string(&path) {
        Ok(why) => Ok(Some(why)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(PathError::at(Action::Read, &path)(error).into()),
    }
}

/// Refuses the export of a box that is held back.
///
/// # Errors
/// A refusal that says why and what to do, or an I/O failure.
pub(crate) fn check_export(host_dir: &Path, name: &str) -> Result<(), Failure> {
    let Some(why) = held(host_dir)? else { return Ok(()) };
    let message = format!("export of box `{name}` is held back by {why}");
    Err(Failure::told(Kind::Refused, message)
        .hint(format!("h5i box log {name} --denied, then h5i box thaw {name}")))
}

/// Lets export pass again; yields whether it was held back.
///
/// # Errors
/// An I/O failure.
pub(crate) fn release(host_dir: &Path) -> Result<bool, Failure> {
    let path = host_dir.join(HELD);
    match fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(PathError::at(Action::Remove, &path)(error).into()),
    }
}

fn hold(host_dir: &Path, why: &str) -> Result<(), Failure> {
    let path = host_dir.join(HELD);
    let written = fs::write(&path, why);
    Ok(written.map_err(PathError::at(Action::Write, &path))?)
}
