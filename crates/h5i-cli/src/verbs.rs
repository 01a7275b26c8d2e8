//! What each verb does, and how it answers.

mod accept;
mod amount;
mod apply;
mod approve;
mod archive;
mod budget_use;
mod changed_paths;
mod create;
mod diff;
mod doors;
mod explain;
mod export;
mod forward;
mod grants;
mod housekeeping;
mod listing;
mod live;
mod log;
mod note;
mod one_shot;
mod policy;
mod probe;
mod receipt;
mod run;
mod session;
mod shell;
mod skill;
mod status;
mod summary;
mod trust;

pub(crate) use apply::land_failure;
pub(crate) use receipt::mismatch;
use serde::Serialize;
use serde_json::Value;

use crate::args::{BoxVerb, Cli, GrantVerb, PolicyVerb, ReceiptVerb, SkillVerb, Verb};
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::shown::Shown;
use crate::store::{BoxName, Scope, StoredBox};

/// The answer of a verb that did what was asked.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) struct Answer {
    /// What programs get.
    pub(crate) data: Value,
    /// What a person gets on standard output.
    pub(crate) text: Vec<u8>,
    /// What a person gets on standard error.
    pub(crate) notes: String,
    /// The exit code.
    pub(crate) code: u8,
}

impl Answer {
    /// An answer with exit code 0.
    ///
    /// # Errors
    /// When the data has no JSON form.
    pub(crate) fn new(data: impl Serialize, text: impl Into<Vec<u8>>) -> Result<Self, Failure> {
        let data = serde_json::to_value(data).map_err(|e| Failure::new(Kind::Internal, &e))?;
        Ok(Self { data, text: text.into(), notes: String::new(), code: 0 })
    }

    /// With a remark on standard error.
    #[must_use]
    pub(crate) fn note(mut self, note: impl AsRef<str>) -> Self {
        self.notes.push_str(note.as_ref());
        self.notes.push('\n');
        self
    }

    /// With another exit code.
    #[must_use]
    pub(crate) fn code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }
}

/// How a verb that failed is told, and with which exit code.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// Why.
    pub(crate) failure: Failure,
    /// The exit code where it differs from the kind's.
    pub(crate) code: Option<u8>,
}

impl<E: Into<Failure>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self { failure: error.into(), code: None }
    }
}

/// Does what the command line says.
///
/// # Errors
/// [`Refusal`] with the failure to tell.
pub(crate) fn perform(cli: &Cli) -> Result<Answer, Refusal> {
    let caller = || Caller::new(cli.directory.as_deref());
    Ok(match &cli.verb {
        Verb::Run(args) => one_shot::run(&caller()?, args)?,
        Verb::Box(verb) => match verb {
            BoxVerb::Create(args) => create::create(&caller()?, args)?,
            BoxVerb::Run(args) => run::run(&caller()?, args)?,
            BoxVerb::Shell(args) => shell::shell(&caller()?, args)?,
            BoxVerb::Start(args) => session::start(&caller()?, args)?,
            BoxVerb::Stop(args) => session::stop(&caller()?, args)?,
            BoxVerb::Forward(args) => forward::forward(&caller()?, args)?,
            BoxVerb::Allow(args) => doors::allow(&caller()?, args)?,
            BoxVerb::Revoke(args) => doors::revoke(&caller()?, args)?,
            BoxVerb::Cut(args) => doors::cut(&caller()?, args)?,
            BoxVerb::Freeze(args) => session::freeze_or_thaw(&caller()?, args, true)?,
            BoxVerb::Thaw(args) => session::freeze_or_thaw(&caller()?, args, false)?,
            BoxVerb::Kill(args) => session::kill(&caller()?, args)?,
            BoxVerb::Hold(args) => session::hold(&caller()?, args)?,
            BoxVerb::Ls(args) => listing::list(&caller()?, args)?,
            BoxVerb::Status(args) => status::status(&caller()?, args)?,
            BoxVerb::Log(args) => log::log(&caller()?, args)?,
            BoxVerb::Explain(args) => explain::explain(&caller()?, args)?,
            BoxVerb::Rm(args) => housekeeping::remove(&caller()?, args)?,
            BoxVerb::Gc(_) => housekeeping::collect(&caller()?)?,
            BoxVerb::Probe(args) => probe::probe(&caller()?, args)?,
            BoxVerb::Diff(args) => diff::diff(&caller()?, args)?,
            BoxVerb::Apply(args) => apply::apply(&caller()?, args)?,
            BoxVerb::Approve(args) => approve::approve(&caller()?, args)?,
            BoxVerb::Export(args) => export::export(&caller()?, args)?,
        },
        Verb::Policy(verb) => match verb {
            PolicyVerb::Show(args) => policy::show(&caller()?, args)?,
            PolicyVerb::Check(args) => policy::check(&caller()?, args)?,
            PolicyVerb::Digest(args) => policy::digest(&caller()?, args)?,
            PolicyVerb::Diff(args) => policy::diff(&caller()?, args)?,
            PolicyVerb::Accept(args) => accept::accept(&caller()?, args)?,
            PolicyVerb::Trust(args) => trust::trust(&caller()?, args)?,
        },
        Verb::Grant(verb) => match verb {
            GrantVerb::Ls(args) => grants::list(&caller()?, args)?,
            GrantVerb::Show(args) => grants::show(&caller()?, args)?,
            GrantVerb::Revoke(args) => grants::revoke(&caller()?, args)?,
            GrantVerb::Extend(args) => grants::extend(&caller()?, args)?,
        },
        Verb::Receipt(verb) => match verb {
            ReceiptVerb::Verify(args) => receipt::verify(&caller()?, args)?,
            ReceiptVerb::Ls(_) => archive::list(&caller()?)?,
            ReceiptVerb::Show(args) => archive::show(&caller()?, args)?,
            ReceiptVerb::Purge(args) => archive::purge(&caller()?, args)?,
        },
        Verb::Skill(verb) => match verb {
            SkillVerb::Install(args) => skill::install(&caller()?, args)?,
            SkillVerb::Show(args) => skill::show(args)?,
        },
        Verb::Note(args) => note::note(args)?,
        Verb::ReportCommand(args) => note::report(args)?,
        Verb::Hook(args) => note::hook(*args)?,
        Verb::ChangedPaths(args) => changed_paths::answer(&caller()?.surroundings, args)?,
        Verb::Completions { shell } => {
            let script = String::from_utf8_lossy(&Cli::completions(*shell)).into_owned();
            Answer::new((), script)?
        }
    })
}

/// Finds a box from where the caller stands: the repository's first, then those of none.
///
/// # Errors
/// `not-found` with the names that there are.
pub(crate) fn find(caller: &Caller, name: &BoxName) -> Result<StoredBox, Failure> {
    let scopes = caller.scopes()?;
    let mut first = None;
    for scope in &scopes {
        match caller.store.find(scope, name) {
            Ok(found) => return Ok(found),
            Err(error) => {
                first.get_or_insert(error);
            }
        }
    }
    let missing = first
        .map_or_else(|| Failure::told(Kind::NotFound, format!("no box `{name}`")), Failure::from);
    Err(match elsewhere(caller, &scopes, name) {
        Some(hint) if missing.kind == Kind::NotFound => missing.hint(hint),
        _ => missing,
    })
}

/// Which other repository has a box of that name, if one has. What can't be read there is no reason
/// to say nothing of the rest.
fn elsewhere(caller: &Caller, looked_at: &[Scope], name: &BoxName) -> Option<String> {
    let scopes = caller.store.scopes().ok()?;
    let others = scopes.iter().filter(|scope| !looked_at.contains(scope));
    let mut having = others.filter(|scope| caller.store.find(scope, name).is_ok());
    let scope = having.next()?;
    let Some(place) = caller.store.repository_of(scope) else {
        return Some("another repository has one: h5i box ls --all".to_owned());
    };
    let place = Shown::path(&place).to_string();
    let more = if having.next().is_some() { ", and others do: h5i box ls --all" } else { "" };
    Some(format!("the repository `{place}` has one: h5i -C '{place}' …{more}"))
}

/// Prints a line on standard error before the verb ends.
pub(crate) fn say(line: &str) {
    crate::command_line::say(line);
}

/// Whether anybody reads on after a line of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// As far as can be told.
    There,
    /// It has closed its end; that is its right, and no failure.
    Gone,
}

/// Prints a line on standard output before the verb ends.
///
/// # Errors
/// An I/O failure if it can't be written though somebody would read it.
pub(crate) fn print_line(line: &str) -> Result<Reader, Failure> {
    reader_of(crate::command_line::print_line(line))
}

/// Prints an answer's data before the verb ends.
///
/// # Errors
/// As [`print_line`].
pub(crate) fn print_data(data: &impl Serialize) -> Result<Reader, Failure> {
    reader_of(crate::command_line::print_data(data))
}

fn reader_of(written: std::io::Result<()>) -> Result<Reader, Failure> {
    match written {
        Ok(()) => Ok(Reader::There),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(e) => {
            let message = format!("cannot write to standard output: {e}");
            Err(Failure::told(Kind::Io, message).hint("see that it has room"))
        }
    }
}

/// Where `ls` looks.
pub(crate) fn scopes(caller: &Caller, all: bool) -> Result<Vec<Scope>, Failure> {
    if all { Ok(caller.store.scopes()?) } else { Ok(caller.scopes()?) }
}
