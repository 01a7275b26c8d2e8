//! `h5i box explain`: five questions, answered from what is enforced, then the steps.

use std::fmt::Write as _;

use h5i_confine::{HOME, SPOOL, WORKSPACE};
use h5i_policy::{GrantOrigin, NetMode, ResolvedPolicy, Tier};
use serde_json::json;

use super::run::frozen_policy;
use super::{Answer, find};
use crate::args::ExplainArgs;
use crate::box_grants;
use crate::box_network::{Doors, GATE_WORDS, rules_words};
use crate::box_plan;
use crate::caller::Caller;
use crate::failure::Failure;
use crate::net_sources;
use crate::seeded_home::{self, SeededHome};
use crate::shown::Shown;
use crate::store::{Manifest, StoredBox, WorkspaceKind};
use crate::written_secrets::written_variables;

/// A question, and the answer for one box.
struct Answered {
    question: &'static str,
    answer: String,
}

pub(super) fn explain(caller: &Caller, args: &ExplainArgs) -> Result<Answer, Failure> {
    let stored = find(caller, &args.name)?;
    let manifest = stored.manifest()?;
    let policy = frozen_policy(&stored, &manifest)?;
    let home = seeded_home::of(&stored)?;
    let answers = if policy.tier == Tier::Workspace {
        without_boundary(&stored)
    } else {
        confined(&policy, &home)
    };
    let mut text = String::new();
    for (number, Answered { question, answer }) in answers.iter().enumerate() {
        // Writing to a String can't fail.
        writeln!(text, "{}  {question}\n   {answer}", number + 1).ok();
    }
    let workspace = format!("{}: {}", manifest.workspace.name(), manifest.workspace_reason);
    // Writing to a String can't fail.
    writeln!(text, "\nThe workspace is laid out as {workspace}").ok();
    if manifest.workspace == WorkspaceKind::Overlay {
        text.push_str(MOVES);
    }
    if policy.tier >= Tier::Supervised {
        let grants: Vec<&str> = policy.grants.keys().map(String::as_str).collect();
        let rules = rules_words(&policy.net, &grants);
        writeln!(text, "The network is {GATE_WORDS}. It may reach {rules}.").ok();
    }
    for file in &home.copied {
        let removed: Vec<String> = file
            .removed
            .iter()
            .map(|one| format!("{} ({})", Shown::text(&one.place), Shown::text(&one.why)))
            .collect();
        let without = match removed.is_empty() {
            true => String::new(),
            false => format!(", without {}", removed.join(", ")),
        };
        writeln!(text, "  ~/{}{without}", Shown::text(&file.path)).ok();
    }
    for file in &home.left {
        let (path, why) = (Shown::text(&file.path), Shown::text(&file.why));
        writeln!(text, "  ~/{path} was not copied: {why}").ok();
    }
    for path in policy.fs.canaries.iter() {
        let path = Shown::text(path.as_str());
        writeln!(text, "  {path} is planted: no credential, and who opens it is on record").ok();
    }
    if let Some(artifact) = &manifest.artifact {
        writeln!(text, "  artifact {}", super::grants::approved_words(artifact)).ok();
    }
    for (name, grant) in &policy.grants {
        let name = Shown::text(name).to_string();
        writeln!(text, "  grant {name}: {}", super::grants::service(grant)).ok();
        for caution in super::grants::cautions(grant) {
            writeln!(text, "    {caution}").ok();
        }
    }
    let sources = net_sources::told(&stored, &policy.net);
    for (rule, source) in &sources {
        let source = Shown::text(source.as_deref().unwrap_or("not written down")).to_string();
        writeln!(text, "  {rule:<32} {source}").ok();
    }
    let steps = steps(caller, &stored, &manifest, &policy)?;
    if !steps.is_empty() {
        text.push_str("\nThe steps of a session, in order:\n");
    }
    for (number, (step, reason)) in steps.iter().enumerate() {
        writeln!(text, "{:>3}  {step}\n       {reason}", number + 1).ok();
    }
    let answers: Vec<_> =
        answers.iter().map(|a| json!({ "question": a.question, "answer": a.answer })).collect();
    let steps: Vec<_> =
        steps.into_iter().map(|(step, reason)| json!({ "step": step, "reason": reason })).collect();
    let reach: Vec<_> =
        sources.into_iter().map(|(rule, source)| json!({ "rule": rule, "from": source })).collect();
    let data = json!({ "name": manifest.name, "reach": reach, "home": home, "grants": policy.grants, "artifact": manifest.artifact, "answers": answers, "workspace": { "kind": manifest.workspace, "reason": manifest.workspace_reason }, "steps": steps });
    Answer::new(data, text)
}

fn steps(
    caller: &Caller,
    stored: &StoredBox,
    manifest: &Manifest,
    policy: &ResolvedPolicy,
) -> Result<Vec<(String, &'static str)>, Failure> {
    if policy.tier == Tier::Workspace {
        return Ok(Vec::new());
    }
    let layout = box_plan::layout_of(&caller.store, stored, manifest)?;
    let mut plan = box_plan::plan(policy, &layout)?;
    Doors::ask(&mut plan, policy)?;
    box_grants::sockets(&mut plan, policy);
    Ok(plan.steps().iter().map(|step| (step.to_string(), step.reason())).collect())
}

/// What is different in an overlay, for a person.
const MOVES: &str = "A directory of the base moves by copying: rename(2) of one gives EXDEV, so \
                     `mv` works and `git mv` of one does not.\n";

const QUESTIONS: [&str; 5] = [
    "Where do package scripts execute?",
    "Which home and credentials can they see?",
    "Where does a dev server listen?",
    "Which browser profile opens the page?",
    "Can the agent write the accepted result directly?",
];

fn answered(answers: [String; 5]) -> Vec<Answered> {
    QUESTIONS
        .into_iter()
        .zip(answers)
        .map(|(question, answer)| Answered { question, answer })
        .collect()
}

fn confined(policy: &ResolvedPolicy, home: &SeededHome) -> Vec<Answered> {
    let count = |origin| policy.fs.read.values().filter(|grant| grant.origin == origin).count();
    let masked: usize = policy.fs.read.values().map(|grant| grant.mask.len()).sum();
    let granted = format!(
        "{} system paths, {} of toolchains and {} of the policy are readable{}",
        count(GrantOrigin::System),
        count(GrantOrigin::Toolchain),
        count(GrantOrigin::Policy),
        if masked == 0 { String::new() } else { format!(", {masked} credential files masked") }
    );
    let listen = match policy.net.mode {
        NetMode::Host => {
            "On the host's own network: what listens there is reachable from wherever the host is."
        }
        _ => {
            "On the box's own loopback. The host reaches it only through `h5i box forward`; nobody \
             else does."
        }
    };
    let mut writable = vec![WORKSPACE.to_owned(), HOME.to_owned(), SPOOL.to_owned()];
    writable.extend(["/tmp", "/run", "/dev/shm"].map(str::to_owned));
    let hosts: Vec<String> = policy.fs.write.iter().map(ToString::to_string).collect();
    let host_writes = if hosts.is_empty() {
        String::new()
    } else {
        format!(" and, by the policy, to {} of the host", hosts.join(", "))
    };
    answered([
        "In the box. Every child of every run has the same namespaces, Landlock domain and \
         system-call filter."
            .to_owned(),
        format!(
            "A private home at {HOME}{}. No credential of the host{}{}. Of the host, {granted}.",
            home.words().map_or_else(String::new, |words| format!(" ({words})")),
            match policy.grants.len() {
                0 => "",
                _ => "; what grants need stays there",
            },
            passed(policy)
        ),
        listen.to_owned(),
        "None: this version has no browser.".to_owned(),
        format!(
            "No. It can write to {}{host_writes}. A person exports and applies.",
            writable.join(", ")
        ),
    ])
}

/// Which variables may hold a credential: those of the host's that the policy passes on, of which
/// only the person knows what they hold, and those that it sets to what looks like one.
fn passed(policy: &ResolvedPolicy) -> String {
    let plain =
        |name: &str| name.starts_with("LC_") || matches!(name, "LANG" | "LANGUAGE" | "TERM" | "TZ");
    let passed = policy.env.pass.iter().map(String::as_str).filter(|name| !plain(name));
    let set = written_variables(policy).map(|(name, _)| name);
    let given = |key: &str, names: Vec<&str>| {
        let names: Vec<String> = names.iter().map(|name| Shown::text(name).to_string()).collect();
        (!names.is_empty()).then(|| format!("{key} gives it one: {}", names.join(", ")))
    };
    let given = [given("env.pass", passed.collect()), given("env.set", set.collect())];
    let given: Vec<String> = given.into_iter().flatten().collect();
    match given.is_empty() {
        true => String::new(),
        false => format!(", unless {}", given.join(", or ")),
    }
}

fn without_boundary(stored: &StoredBox) -> Vec<Answered> {
    let work = crate::shown::Shown::path(&stored.box_dir()).to_string();
    answered([
        "On the host, as you. This box has no boundary: tier workspace.".to_owned(),
        format!("HOME is {work}/home, but every file of yours can be read, credentials too."),
        "On the host's own network.".to_owned(),
        "None: this version has no browser. Your own could be opened.".to_owned(),
        "Yes. Everything that you can write, it can write.".to_owned(),
    ])
}
