//! The commonest slips of a command line, and the line that was meant.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser as _};

use super::Cli;
use crate::failure::{Failure, Kind};
use crate::shown::Shown;
use crate::workspace::nearest;

/// What is told instead of the grammar's own words; none where those say enough.
pub(super) fn slip(words: &[OsString], error: &clap::Error) -> Option<Failure> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => wrong_verb(words, error),
        ErrorKind::UnknownArgument | ErrorKind::MissingRequiredArgument => {
            let line = with_dashes(words)?;
            let message = "the command to run stands after `--`";
            Some(Failure::told(Kind::Usage, message).hint(line))
        }
        _ => None,
    }
}

/// The verb that was probably meant.
fn wrong_verb(words: &[OsString], error: &clap::Error) -> Option<Failure> {
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let mut command = &Cli::command();
    let mut path = String::from("h5i");
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        if word == wrong {
            break;
        }
        if let Some(below) = command.find_subcommand(word) {
            path.push_str(&format!(" {}", below.get_name()));
            command = below;
        }
    }
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let near = nearest(wrong, verbs.map(clap::Command::get_name))?;
    let message = format!("h5i has no verb `{}`", Shown::text(wrong));
    Some(Failure::told(Kind::Usage, message).hint(format!("did you mean {path} {near}?")))
}

/// The line with `--` before the command, where it is right then and was wrong without.
fn with_dashes(words: &[OsString]) -> Option<String> {
    if words.iter().any(|word| word == "--") {
        return None;
    }
    // A command that begins with a dash is none: that is an option of the verb.
    let plain = |at: &usize| !words[*at].as_encoded_bytes().starts_with(b"-");
    (2..words.len()).filter(plain).find_map(|at| {
        let mut right = words.to_vec();
        right.insert(at, "--".into());
        Cli::try_parse_from(&right).ok()?;
        let quoted: Vec<String> = right.iter().skip(1).map(|word| quoted(word)).collect();
        Some(format!("h5i {}", quoted.join(" ")))
    })
}

/// A word as a shell reads it, inert on a terminal.
fn quoted(word: &OsStr) -> String {
    let shown = Shown::bytes(word.as_encoded_bytes()).to_string();
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+~".contains(c);
    if !shown.is_empty() && shown.chars().all(plain) {
        return shown;
    }
    format!("'{}'", shown.replace('\'', "'\\''"))
}
