//! `h5i policy accept`

use std::path::{Path, PathBuf};

use h5i_policy::{Layer, NetMode, NetRule, Origin, Overrides, ResolvedPolicy, Tier, diff};
use serde_json::json;

use super::run::frozen_policy;
use super::{Answer, find};
use crate::args::AcceptArgs;
use crate::box_plan::check_enforceable;
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::learn::{Learned, learned, remarks_data};
use crate::learn_edit::{Edit, edited};
use crate::path_error::{Action, PathError};
use crate::person::{self, Consent};
use crate::policy_source::{DEFAULT_PROFILE, Grounds, parse, read_document, user_document};
use crate::shown::Shown;
use crate::store::replace_file;

/// Writes what a box asked for on the network into the user's policy.
pub(super) fn accept(caller: &Caller, args: &AcceptArgs) -> Result<Answer, Failure> {
    crate::inside::refuse_verb("policy accept")?;
    let stored = find(caller, &args.name)?;
    let manifest = stored.manifest()?;
    let net = frozen_policy(&stored, &manifest)?.net;
    let learned = learned(&stored, &net)?;
    if learned.is_empty() {
        let data = json!({ "rules": [], "changes": [], "written": false });
        let note = format!("box {} asked for nothing that it may not reach", args.name);
        return Ok(Answer::new(data, String::new())?.note(note));
    }
    let of_box = manifest.profile.as_str();
    let profile = args.profile.as_ref().map_or(of_box, |name| name.as_str());
    let path = user_document(caller);
    let old = read_document(&path)?.unwrap_or_default();
    let change = Change::of(caller, &old, (profile, of_box), &learned)?;
    let shown = Shown::path(&path).to_string();
    let remarks = remarks_data(&learned.remarks());
    let data = |written: bool| {
        let rules: Vec<String> = learned.rules.iter().map(ToString::to_string).collect();
        let changes = &change.lines;
        json!({
            "profile": profile,
            "rules": rules,
            "changes": changes,
            "remarks": remarks,
            "written": written,
        })
    };
    if change.lines.is_empty() {
        let note = format!("profile {profile} in {shown} allows all of it already");
        return Ok(Answer::new(data(false), String::new())?.note(note));
    }
    if !args.output.json {
        super::say(&format!("profile {profile} in {shown} would change"));
        for line in &change.lines {
            super::say(&format!("  {line}"));
        }
        if change.tier {
            super::say(&format!("look     every box of profile {profile} gets another tier"));
        }
        for line in remark_lines(&learned) {
            super::say(&line);
        }
    }
    consent(args).map_err(|failure| {
        failure.detail("changes", change.lines.clone()).detail("remarks", remarks.clone())
    })?;
    write(&path, &old, change.text.as_bytes())?;
    let note = format!("accepted {} in profile {profile} of {shown}", counted(learned.rules.len()));
    Ok(Answer::new(data(true), String::new())?.note(note))
}

/// What to look at twice, a line each.
pub(super) fn remark_lines(learned: &Learned) -> Vec<String> {
    let line = |(rule, why): (&NetRule, String)| format!("look     {rule}: {}", Shown::text(&why));
    learned.remarks().into_iter().map(line).collect()
}

fn counted(rules: usize) -> String {
    if rules == 1 { "1 rule".to_owned() } else { format!("{rules} rules") }
}

/// The user's document as it would be.
struct Change {
    text: String,
    /// What would be different in the profile.
    lines: Vec<String>,
    /// Whether its boxes would be of another tier.
    tier: bool,
}

impl Change {
    fn of(
        caller: &Caller,
        old: &[u8],
        (profile, of_box): (&str, &str),
        learned: &Learned,
    ) -> Result<Self, Failure> {
        let name = user_document(caller).to_string_lossy().into_owned();
        // What a repository says is not the person's: without its document.
        let grounds = Grounds::of(caller, None)?;
        let known = |name: &str| {
            let mut names = grounds.layers.iter().flat_map(|l| l.document.profile_names());
            names.any(|own| own == name)
        };
        let parent = if known(of_box) { of_box } else { DEFAULT_PROFILE };
        let before_of = if known(profile) { profile } else { parent };
        let before = grounds.resolve(&grounds.layers, before_of, Overrides::new())?.policy;
        let edit = Edit {
            profile,
            extends: (!known(profile) && parent != DEFAULT_PROFILE).then_some(parent),
            tier: (before.tier < Tier::Supervised).then_some(Tier::Supervised),
            mode: (before.net.mode != NetMode::Allow).then_some(NetMode::Allow),
            inherited: &before.net.allow,
            rules: &learned.rules,
        };
        let text = edited(old, &edit)?;
        let mut layers = grounds.layers.clone();
        layers.retain(|layer| layer.origin == Origin::BuiltIn);
        layers.push(Layer::user(parse(&name, text.as_bytes())?));
        let after = grounds.resolve(&layers, profile, Overrides::new())?.policy;
        check_enforceable(&after)?;
        check_complete(&before, &after, learned)?;
        let lines = diff(&before, &after).iter().map(ToString::to_string).collect();
        Ok(Self { text, lines, tier: before.tier != after.tier })
    }
}

/// Whether the edit does what was meant, before a person is asked.
fn check_complete(
    before: &ResolvedPolicy,
    after: &ResolvedPolicy,
    learned: &Learned,
) -> Result<(), Failure> {
    let mut meant = learned.rules.iter().chain(&before.net.allow);
    let missing = meant.find(|rule| !after.net.allow.iter().any(|own| own.covers(rule)));
    match missing {
        None => Ok(()),
        Some(rule) => {
            let message = format!(
                "rule `{rule}` would not hold: another part of the document stands against it"
            );
            Err(Failure::told(Kind::Refused, message)
                .hint("write it by hand; h5i policy show says what holds"))
        }
    }
}

fn consent(args: &AcceptArgs) -> Result<(), Failure> {
    if args.yes {
        return Ok(());
    }
    if args.output.json || !person::is_present() {
        let message = "a policy is a person's to change, and there is no terminal to ask on";
        return Err(Failure::told(Kind::Refused, message).hint("read the change, then --yes"));
    }
    match person::ask("write it?")? {
        Consent::Given => Ok(()),
        Consent::Withheld => {
            let message = "nothing was written: nobody said yes";
            Err(Failure::told(Kind::Refused, message).hint("read the change, then answer y"))
        }
    }
}

/// Replaces the document, if it is still the one that was shown.
fn write(path: &Path, old: &[u8], new: &[u8]) -> Result<(), Failure> {
    if read_document(path)?.unwrap_or_default() != old {
        let message = format!("{} was changed meanwhile", Shown::path(path));
        return Err(Failure::told(Kind::Busy, message).hint("h5i policy accept again"));
    }
    // Many keep it elsewhere and have a link here.
    let place = real(path);
    let (Some(dir), Some(name)) = (place.parent(), place.file_name().and_then(|n| n.to_str()))
    else {
        let message = format!("{} can't be written", Shown::path(&place));
        return Err(Failure::told(Kind::Refused, message).hint("give it a plain name"));
    };
    std::fs::create_dir_all(dir).map_err(PathError::at(Action::CreateDirectory, dir))?;
    let mode = std::fs::metadata(&place).ok().map(|meta| meta.permissions());
    replace_file(dir, name, new)?;
    if let Some(mode) = mode {
        std::fs::set_permissions(&place, mode)
            .map_err(PathError::at(Action::ChangeMode, &place))?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the person's own link to the person's own file")]
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_not_there_yet| path.to_owned())
}
