//! `h5i run`: a box, one command, and what is worth telling.

use std::ffi::OsString;
use std::path::Path;

use h5i_export::Secrets;
use serde_json::json;

use super::accept::remark_lines;
use super::summary::{
    ending, grant_refusals, grants, headline, network_refusals, notes_of, opened, ran, refusals,
    run_data, undelivered,
};
use super::{Answer, Refusal};
use crate::args::{After, RunArgs};
use crate::caller::Caller;
use crate::changes::{Changes, changes_of};
use crate::creation::{Created, Wish, create};
use crate::failure::{Failure, Kind};
use crate::learn::{Learned, learned};
use crate::running::{Capture, Errand, run as execute, spawn_exit_code};
use crate::shown::Shown;
use crate::store::{BoxName, Retain, random_hex};

pub(super) fn run(caller: &Caller, args: &RunArgs) -> Result<Answer, Refusal> {
    let name = name_for(&args.command)?;
    let wish = Wish {
        name: &name,
        base: &args.base,
        artifact: None,
        workspace: args.layout.workspace,
        policy: &args.policy,
        learn: args.learn,
        purpose: args.purpose.as_deref(),
    };
    let created = create(caller, &wish).map_err(|failure| Refusal { failure, code: Some(125) })?;
    let json = args.output.json;
    if !json {
        super::say(&headline(&created.manifest, &created.policy));
        for note in notes_of(&created.notes, &created.policy) {
            super::say(&note);
        }
    }
    let errand = Errand {
        stored: &created.stored,
        manifest: &created.manifest,
        policy: &created.policy,
        command: &args.command,
        variables: &args.variables,
        timeout: args.timeout,
        output: if json { Capture::Collect } else { Capture::Pass },
    };
    let finished = match execute(caller, &errand, &created.lock) {
        Ok(finished) => finished,
        Err(failure) => {
            let code = Some(spawn_exit_code(&failure));
            let kept = args.after() == After::Keep;
            if !kept {
                caller.store.remove_locked(&created.stored, created.lock, Retain::Receipt)?;
            }
            let failure = failure.detail("box", name.as_str()).detail("kept", kept);
            return Err(Refusal { failure, code });
        }
    };
    let changes = changes_of(
        &caller.store,
        &created.stored,
        &created.manifest,
        &created.policy,
        Secrets::Flag,
    );
    let mut notes = format!("\n{}\n", ending(&finished));
    if let Some(error) = &finished.undelivered {
        notes.push_str(&undelivered(error));
    }
    let learned = match args.learn.learn {
        true => Some(learned(&created.stored, &created.policy.net)?),
        false => None,
    };
    let has_learned = learned.as_ref().is_some_and(|learned| !learned.is_empty());
    let kept = match args.after() {
        After::Keep => true,
        After::Remove => false,
        After::Judge => {
            let unchanged = changes.as_ref().is_ok_and(Changes::is_empty);
            !finished.outcome.success() || !unchanged || has_learned
        }
    };
    // What it changed is not known: nothing of it is thrown away.
    let kept = kept || changes.is_err();
    if let Some(ran) = ran(&finished) {
        let where_to_look =
            if kept { format!("  h5i box log {name} --lane kernel") } else { String::new() };
        notes.push_str(&format!("{ran}{where_to_look}\n"));
    }
    notes.push_str(&changed_line(&changes, &name));
    notes.push_str(&opened(&finished));
    notes.push_str(&refusals(&finished.refused));
    notes.push_str(&network_refusals(&finished));
    notes.push_str(&grants(&finished));
    notes.push_str(&grant_refusals(&finished));
    let mut data = run_data(&created.manifest, &finished);
    if let Some(learned) = &learned {
        notes.push_str(&lesson(learned, &created, kept));
        data["learned"] = learned.data(&created.manifest.profile);
    }
    data["changed"] = match &changes {
        Ok(changes) => changes.files(),
        Err(failure) => json!({ "unknown": failure }),
    };
    data["kept"] = json!(kept);
    notes.push_str(&settle(caller, created, kept)?);
    let answer = Answer::new(data, String::new())?.code(finished.exit_code());
    Ok(answer.note(notes.trim_end()))
}

/// Keeps the box and says how to go on, or removes it and says so.
fn settle(caller: &Caller, created: Created, kept: bool) -> Result<String, Failure> {
    let name = created.manifest.name.clone();
    if kept {
        let to = format!("kept     h5i box export {name} · h5i box shell {name} · ");
        return Ok(format!("{to}h5i box rm {name}\n"));
    }
    caller.store.remove_locked(&created.stored, created.lock, Retain::Receipt)?;
    Ok(format!("removed  box {name}; its receipt is in the archive\n"))
}

/// The rules that would have been needed, ready to paste.
fn lesson(learned: &Learned, created: &Created, kept: bool) -> String {
    let mut text = match learned.rules.len() {
        0 => "learned  no rule would have been needed\n".to_owned(),
        1 => "learned  1 rule would have been needed\n".to_owned(),
        n => format!("learned  {n} rules would have been needed\n"),
    };
    for beyond in &learned.beyond {
        text.push_str(&format!("         left out {}\n", Shown::text(beyond)));
    }
    if learned.is_empty() {
        return text;
    }
    text.push_str(&format!(
        "\n{}\n\n{}\n",
        learned.options(),
        learned.toml(&created.manifest.profile)
    ));
    for line in remark_lines(learned) {
        text.push_str(&format!("{line}\n"));
    }
    if kept {
        text.push_str(&format!("accept   h5i policy accept {}\n", created.manifest.name));
    }
    text
}

/// What changed. That it can't be told takes nothing from what the command said and ended with.
fn changed_line(changes: &Result<Changes, Failure>, name: &BoxName) -> String {
    match changes {
        Ok(changes) if changes.is_empty() => String::new(),
        Ok(changes) => format!("changed  {}  h5i box diff {name}\n", changes.summary()),
        Err(failure) => {
            let hint = failure.hint.as_ref().map(|hint| format!("\n  try       {hint}"));
            format!("changed  not known: {}{}\n", failure.message, hint.unwrap_or_default())
        }
    }
}

/// A name for the box of a one-shot: the command's own and four random digits.
fn name_for(command: &[OsString]) -> Result<BoxName, Failure> {
    let program = command.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
    let words = std::iter::once(program.to_string_lossy()).chain(
        command
            .iter()
            .skip(1)
            .map(|word| word.to_string_lossy())
            .take_while(|word| word.bytes().all(|b| b.is_ascii_alphanumeric()))
            .take(1),
    );
    let mut text = words.collect::<Vec<_>>().join("-").to_lowercase();
    text.retain(|c| c.is_ascii_alphanumeric() || c == '-');
    let text: String = text.trim_matches('-').chars().take(40).collect();
    let text = if text.is_empty() { "run".to_owned() } else { text };
    BoxName::new(&format!("{text}-{}", random_hex(2)?))
        .map_err(|e| Failure::new(Kind::Internal, &e))
}

#[cfg(test)]
mod tests {
    use super::name_for;

    #[test]
    fn a_one_shot_is_named_after_its_command() {
        let name = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(Into::into).collect();
            name_for(&words).unwrap().to_string()
        };
        assert!(name(&["npm", "test"]).starts_with("npm-test-"));
        assert!(name(&["/usr/bin/Python3", "-c", "1"]).starts_with("python3-"));
        assert!(name(&["…"]).starts_with("run-"));
        assert!(name(&["a", "../../x"]).starts_with("a-"));
    }
}
