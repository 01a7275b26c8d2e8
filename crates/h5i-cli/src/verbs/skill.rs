//! `h5i skill install` and `show`

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::Answer;
use crate::args::{Agent, SkillInstallArgs, SkillShowArgs};
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::path_error::{Action, PathError};
use crate::shown::Shown;
use crate::skill::{SKILL, section, with_section};
use crate::store::random_hex;

/// Longest file with instructions that is read, in bytes.
const MOST: u64 = 1024 * 1024;

pub(super) fn show(args: &SkillShowArgs) -> Result<Answer, Failure> {
    let text = match args.agent {
        Agent::Claude => SKILL.to_owned(),
        Agent::Codex => section(),
    };
    Answer::new(json!({ "text": text }), text)
}

pub(super) fn install(caller: &Caller, args: &SkillInstallArgs) -> Result<Answer, Failure> {
    let root = args.dir.as_ref().map_or(caller.directory.clone(), |dir| caller.directory.join(dir));
    let path = root.join(match args.agent {
        Agent::Claude => ".claude/skills/h5i/SKILL.md",
        Agent::Codex => "AGENTS.md",
    });
    let before = read(&path)?;
    let place = |error: PathError| {
        Failure::from(error).hint("--dir with a directory that is there and can be written")
    };
    let wanted = match args.agent {
        Agent::Claude => SKILL.to_owned(),
        Agent::Codex => with_section(before.as_deref().unwrap_or_default()),
    };
    let shown = Shown::path(&path).to_string();
    let answer = |written: bool| Answer::new(json!({ "path": shown, "written": written }), "");
    match before {
        Some(before) if before == wanted => {
            return Ok(answer(false)?.note(format!("there    {shown}, as this h5i has it")));
        }
        Some(_) if !args.force => {
            let message = format!("`{shown}` is there with other content");
            let hint = match args.agent {
                Agent::Claude => "--force replaces it; h5i skill show prints what it would be",
                Agent::Codex => "--force adds or replaces h5i's section and leaves the rest",
            };
            return Err(Failure::told(Kind::Exists, message).hint(hint));
        }
        Some(_) => replace(&path, &wanted).map_err(place)?,
        None => create(&path, &wanted).map_err(place)?,
    }
    Ok(answer(true)?.note(format!("wrote    {shown}")))
}

/// The text that is there; none without a file.
fn read(path: &Path) -> Result<Option<String>, Failure> {
    let other = || {
        let message = format!("`{}` is no plain file of text", Shown::path(path));
        Err(Failure::told(Kind::Exists, message).hint("move it away, or --dir with another place"))
    };
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() && found.len() <= MOST => {}
        Ok(_) => return other(),
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => {
            let failure = Failure::from(PathError::at(Action::Inspect, path)(e));
            return Err(failure.hint("--dir with a directory that can be looked at"));
        }
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MOST).read_to_end(&mut bytes))
        .map_err(PathError::at(Action::Read, path))?;
    String::from_utf8(bytes).map_or_else(|_bytes_that_are_no_text| other(), |text| Ok(Some(text)))
}

/// Writes a file that is not there; one that came meanwhile stays.
fn create(path: &Path, text: &str) -> Result<(), PathError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(PathError::at(Action::CreateDirectory, parent))?;
    }
    let made = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = made.map_err(PathError::at(Action::Create, path))?;
    file.write_all(text.as_bytes()).map_err(PathError::at(Action::Write, path))
}

/// Puts another file in the place of one, in one step; its mode stays.
fn replace(path: &Path, text: &str) -> Result<(), PathError> {
    let temp: PathBuf = path.with_extension(format!("{}.tmp", random_hex(4)?));
    let done = create(&temp, text).and_then(|()| {
        fs::metadata(path)
            .and_then(|found| fs::set_permissions(&temp, found.permissions()))
            .and_then(|()| fs::rename(&temp, path))
            .map_err(PathError::at(Action::Rename, path))
    });
    if done.is_err() {
        // The first error is the one to tell.
        fs::remove_file(&temp).ok();
    }
    done
}
