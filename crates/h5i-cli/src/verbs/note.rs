//! `h5i note`, `report-command` and `hook`

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use h5i_confine::SPOOL;
use serde_json::json;

use super::Answer;
use crate::args::{HookArgs, HookShell, NoteArgs, ReportArgs};
use crate::failure::{Failure, Kind};
use crate::hook;
use crate::path_error::{Action, PathError};
use crate::spool::{Claim, LARGEST};
use crate::store::random_hex;

pub(super) fn note(args: &NoteArgs) -> Result<Answer, Failure> {
    only_inside("note")?;
    let words: Vec<&[u8]> = args.text.iter().map(|word| word.as_bytes()).collect();
    let text = if words.is_empty() { read_input()? } else { words.join(&b' ') };
    if text.is_empty() {
        return Err(Failure::told(Kind::Usage, "there is nothing to note").hint("h5i note TEXT"));
    }
    say(&Claim::note(&text))?;
    Answer::new(json!({ "bytes": text.len() }), String::new())
}

pub(super) fn report(args: &ReportArgs) -> Result<Answer, Failure> {
    only_inside("report-command")?;
    let words: Vec<Vec<u8>> = args.command.iter().map(|word| word.as_bytes().to_vec()).collect();
    say(&Claim::ran(&words, args.status))?;
    Answer::new(json!({ "status": args.status }), String::new())
}

pub(super) fn hook(args: HookArgs) -> Result<Answer, Failure> {
    let script = match args.shell {
        HookShell::Bash => hook::BASH,
        HookShell::Zsh => hook::ZSH,
    };
    Answer::new(json!({ "text": script }), script)
}

/// Outside there is nobody whom it would be a word of.
fn only_inside(verb: &str) -> Result<(), Failure> {
    if crate::inside::is_inside() {
        return Ok(());
    }
    let message = format!("h5i {verb} is what a program in a box says, and this is no box");
    Err(Failure::told(Kind::Refused, message).hint(format!("h5i box run NAME -- h5i {verb} …")))
}

fn read_input() -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    std::io::stdin()
        .take(LARGEST as u64 + 1)
        .read_to_end(&mut text)
        .map_err(PathError::at(Action::Read, Path::new("standard input")))?;
    while text.last() == Some(&b'\n') {
        text.pop();
    }
    Ok(text)
}

/// Puts a file into the spool.
fn say(file: &[u8]) -> Result<(), Failure> {
    if file.len() > LARGEST {
        let message = format!("{} bytes are more than the {LARGEST} that are taken in", file.len());
        return Err(Failure::told(Kind::Limit, message).hint("say it shorter"));
    }
    let path = Path::new(SPOOL).join(format!("said-{}", random_hex(8)?));
    let mut opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(PathError::at(Action::Write, &path))?;
    Ok(opened.write_all(file).map_err(PathError::at(Action::Write, &path))?)
}
