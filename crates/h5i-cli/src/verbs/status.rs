//! `h5i box status`

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use h5i_confine::{Enforcement, State};
use h5i_export::{ByteText, CanaryLoss, Event, Secrets};
use h5i_policy::{Limits, ResolvedPolicy, Tier};
use serde_json::{Value, json};

use super::export::home_of;
use super::log::place;
use super::run::frozen_policy;
use super::summary::{headline_with, tried_by};
use super::{Answer, budget_use, find, grants, live};
use crate::args::StatusArgs;
use crate::box_grants::BROKER;
use crate::box_network::{GATE, GATE_WORDS, rules_words};
use crate::box_plan;
use crate::caller::Caller;
use crate::canary;
use crate::changes::changes_of;
use crate::failure::Failure;
use crate::json_bytes::JsonBytes;
use crate::log_kinds::records_of;
use crate::session::{Presence, held};
use crate::shown::Shown;
use crate::store::{Manifest, StoredBox};
use crate::timestamp::Timestamp;

pub(super) fn status(caller: &Caller, args: &StatusArgs) -> Result<Answer, Failure> {
    let stored = find(caller, &args.name)?;
    let manifest = stored.manifest()?;
    let mut policy = frozen_policy(&stored, &manifest)?;
    let presence = live::presence_of(&stored)?;
    if let (true, Presence::Live(alive)) = (args.tree, &presence) {
        let data = json!({ "name": manifest.name, "session": live::data(alive, &policy.limits) });
        return Answer::new(data, live::tree(alive));
    }
    if let Presence::Live(alive) = &presence
        && let Some(net) = &alive.network
    {
        // What a person changed holds until the session ends.
        policy.net.clone_from(net);
    }
    let net = &policy.net;
    let in_use = !matches!(presence, Presence::Idle);
    let held = held(&stored.host_dir())?;
    let history = History::read(&stored)?;
    let changes = changes_of(&caller.store, &stored, &manifest, &policy, Secrets::Flag)?;
    let home = home_of(&stored)?;
    let planted = history.planted(canary::Planted::of(&stored)?);
    let enforcement = enforcement(caller, &stored, &manifest, &policy)?;
    let usable = grants::usable(&policy, &presence);
    let mut text = format!("{}\n", headline_with(&manifest, &policy, &usable));
    let age = Timestamp::now().millis().saturating_sub(manifest.created.millis());
    let mut line = |name: &str, what: String| {
        // Writing to a String can't fail.
        writeln!(text, "{name:<10} {what}").ok();
    };
    let runs = history.runs;
    let runs = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
    let session = match &presence {
        Presence::Idle => format!("idle · {runs}"),
        Presence::InUse => format!("in use · {runs}"),
        Presence::Live(alive) => format!("{} · {runs} in all", live::words(alive)),
    };
    line("session", format!("{session} · made {} ago", rough(age)));
    if let Presence::Live(alive) = &presence {
        live::runs(alive).into_iter().for_each(|run| line("run", run));
        line("used", budget_use::words(alive, &policy.limits));
        live::refused(alive).into_iter().for_each(|refused| line("lately", refused));
        live::frozen(alive, manifest.name.as_str()).into_iter().for_each(|why| line("frozen", why));
    }
    if let Some(why) = &held {
        line("export", format!("held back by {why}; h5i box thaw {}", manifest.name));
    }
    line("policy", format!("{}, {}, frozen at create", manifest.profile, manifest.policy_digest));
    if let Some(purpose) = &manifest.purpose {
        line("purpose", Shown::text(purpose).to_string());
    }
    if let Some(artifact) = &manifest.artifact {
        line("artifact", grants::approved_words(artifact));
    }
    if let Some(expires) = manifest.expires {
        line("expires", format!("{expires}, then gc removes it"));
    }
    line("changed", if changes.is_empty() { "nothing".to_owned() } else { changes.summary() });
    line("refused", history.refused_words());
    for planted in &planted {
        line("planted", planted.words());
    }
    line("workspace", format!("{}: {}", manifest.workspace.name(), manifest.workspace_reason));
    for found in &home {
        line("home", format!("~/{}: {}", Shown::bytes(&found.path), found.why));
    }
    if policy.tier >= Tier::Supervised {
        line("network", rules_words(net, &usable));
    }
    for (name, grant) in &policy.grants {
        line("grant", format!("{}: {}", Shown::text(name), grants::service(grant)));
    }
    if let Presence::Live(alive) = &presence {
        grants::live_words(&alive.grants).into_iter().for_each(|held| line("granted", held));
    }
    line("limits", limits(&policy.limits));
    if let Some(enforcement) = &enforcement {
        line("enforced", on(enforcement));
        for missing in enforcement.missing() {
            line("not here", format!("{}: {}", missing.name, missing.detail));
        }
    }
    let data = json!({
        "name": manifest.name,
        "id": manifest.id,
        "in_use": in_use,
        "export_held_by": held,
        "session": match &presence {
            Presence::Live(alive) => live::data(alive, &policy.limits),
            _ => Value::Null,
        },
        "tier": manifest.tier,
        "profile": manifest.profile,
        "policy": manifest.policy_digest,
        "network": net.mode,
        "allow": net.allow,
        "grants": policy.grants,
        "artifact": manifest.artifact,
        "base": manifest.base,
        "workspace": { "kind": manifest.workspace, "reason": manifest.workspace_reason },
        "created": manifest.created,
        "expires": manifest.expires,
        "purpose": manifest.purpose,
        "runs": history.runs,
        "refused": history.refused,
        "refused_network": history.places.iter().map(|(what, place)| json!({ "what": what, "count": place.count, "programs": place.programs })).collect::<Vec<_>>(),
        "canaries": planted.iter().map(Planted::data).collect::<Vec<_>>(),
        "refused_grants": history.grants.iter().map(|((grant, request, reason), count)| json!({ "grant": grant, "request": request, "reason": reason, "count": count })).collect::<Vec<_>>(),
        "changed": changes.files(),
        "home": home.iter().map(|found| json!({ "path": JsonBytes(found.path.clone()), "why": found.why })).collect::<Vec<_>>(),
        "enforcement": enforcement.as_ref().map(enforcement_data),
    });
    Answer::new(data, text)
}

/// What is enforced in a box's sessions on this host; none for a box without a boundary.
///
/// # Errors
/// A refusal when this host can't serve the box's policy any more.
pub(super) fn enforcement(
    caller: &Caller,
    stored: &StoredBox,
    manifest: &Manifest,
    policy: &ResolvedPolicy,
) -> Result<Option<Enforcement>, Failure> {
    if policy.tier == Tier::Workspace {
        return Ok(None);
    }
    let layout = box_plan::layout_of(&caller.store, stored, manifest)?;
    let mut enforcement = box_plan::plan(policy, &layout)?.enforcement().clone();
    if policy.tier >= Tier::Supervised {
        enforcement.add(GATE, State::On, GATE_WORDS);
    }
    if !policy.grants.is_empty() {
        let words = format!("{} held by the host, no credential inside", policy.grants.len());
        enforcement.add(BROKER, State::On, &words);
    }
    Ok(Some(enforcement))
}

fn on(enforcement: &Enforcement) -> String {
    let mut words: Vec<String> = Vec::new();
    let namespaces: Vec<&str> = enforcement
        .mechanisms
        .iter()
        .filter(|m| m.state == State::On)
        .filter_map(|m| m.name.strip_suffix(" namespace"))
        .collect();
    words.push(format!("{} namespaces", namespaces.join(" ")));
    for m in &enforcement.mechanisms {
        if m.state == State::On && !m.name.ends_with(" namespace") && !m.name.starts_with("limit") {
            words.push(format!("{} ({})", m.name, m.detail));
        }
    }
    words.join(" · ")
}

pub(super) fn enforcement_data(enforcement: &Enforcement) -> Vec<Value> {
    enforcement
        .mechanisms
        .iter()
        .map(|m| json!({ "mechanism": m.name, "state": m.state.name(), "detail": m.detail }))
        .collect()
}

fn limits(limits: &Limits) -> String {
    let shown = |name: &str, value: Option<String>| value.map(|value| format!("{name} {value}"));
    let parts: Vec<String> = [
        shown("wall", limits.wall.map(|v| v.to_string())),
        shown("session", limits.session.map(|v| v.to_string())),
        shown("cpu", limits.cpu.map(|v| v.to_string())),
        shown("memory", limits.memory.map(|v| v.to_string())),
        shown("processes", limits.processes.map(|v| v.to_string())),
        shown("open files", limits.open_files.map(|v| v.to_string())),
        shown("file size", limits.file_size.map(|v| v.to_string())),
        shown("disk", limits.disk.map(|v| v.to_string())),
        shown("keep free", limits.keep_free.map(|v| v.to_string())),
        shown("output", limits.output.map(|v| v.to_string())),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(" · ") }
}

pub(super) fn rough(millis: u64) -> String {
    match millis / 1000 {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7200 => format!("{} min", s / 60),
        s @ 7200..172_800 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}

/// What a record says was refused on the network, how often, and the program that is known of it.
fn refused_on_the_network(event: Event) -> Option<(String, u64, Option<ByteText>)> {
    match event {
        Event::RefusedName { name, count, program, .. } => {
            let name = name.as_ref().map_or_else(|| "others".to_owned(), ToString::to_string);
            Some((format!("name {name}"), count, program))
        }
        Event::RefusedAddress { protocol, address, port, count, program, .. } => {
            let address = address.as_deref().unwrap_or("others");
            Some((place(&protocol, address, port), count, program))
        }
        Event::RefusedFlow { protocol, address, port, program, .. } => {
            let address = address.as_deref().unwrap_or("the relay");
            Some((place(&protocol, address, port), 1, program))
        }
        _ => None,
    }
}

/// A name or a destination that was refused.
#[derive(Default)]
struct Place {
    count: u64,
    /// Who tried, as far as that is known.
    programs: BTreeSet<ByteText>,
}

impl Place {
    /// Programs that are kept of one.
    const PROGRAMS: usize = 16;

    fn add(&mut self, count: u64, program: Option<ByteText>) {
        self.count += count;
        if self.programs.len() < Self::PROGRAMS {
            self.programs.extend(program);
        }
    }
}

/// What the log tells in sum: what `log --denied` shows, counted.
#[derive(Default)]
struct History {
    runs: u64,
    refused: Vec<Value>,
    /// Names, and destinations of the network.
    places: BTreeMap<String, Place>,
    /// How often each planted credential was opened.
    opened: BTreeMap<String, u64>,
    /// Grants, with the request and the reason.
    grants: BTreeMap<(String, Option<String>, String), u64>,
}

/// A planted credential.
struct Planted {
    path: String,
    opened: u64,
    lost: Option<CanaryLoss>,
}

impl Planted {
    fn words(&self) -> String {
        let opened = match self.opened {
            0 => "not opened".to_owned(),
            1 => "opened once".to_owned(),
            times => format!("opened {times} times"),
        };
        let lost = self.lost.map_or_else(String::new, |why| format!("; it {}", why.why()));
        format!("{}: {opened}{lost}", Shown::text(&self.path))
    }

    fn data(&self) -> Value {
        json!({ "path": self.path, "opened": self.opened, "lost": self.lost })
    }
}

/// The records that it is made from.
const TOLD: [&str; 9] = [
    "run-start",
    "refused-call",
    "refused-name",
    "refused-address",
    "refused-flow",
    "flow-start",
    "flow-end",
    "grant-refused",
    "canary-read",
];

/// How many kinds of refusals a person is shown.
const KINDS: usize = 10;

impl History {
    fn read(stored: &StoredBox) -> Result<Self, Failure> {
        let mut history = Self::default();
        let mut counts = BTreeMap::new();
        // Where the flows that have not ended yet lead.
        let mut going: BTreeMap<u64, (String, Option<ByteText>)> = BTreeMap::new();
        for record in records_of(&stored.host_dir(), &TOLD)? {
            match record.event {
                Event::RunStart { .. } => history.runs += 1,
                Event::CanaryRead { path, count } => {
                    *history.opened.entry(path).or_default() += count;
                }
                Event::RefusedCall { call, program, count, .. } => {
                    *counts.entry((call, program.to_string())).or_insert(0) += count;
                }
                Event::FlowStart { flow, protocol, address, port, program, .. } => {
                    going.insert(flow, (place(&protocol, &address, Some(port)), program));
                }
                Event::FlowEnd { flow, reason, .. } => {
                    let to = going.remove(&flow);
                    if let (Some(_), Some((to, program))) = (reason, to) {
                        history.places.entry(to).or_default().add(1, program);
                    }
                }
                Event::GrantRefused { grant, reason, request, count, .. } => {
                    let request = request.map(|request| request.to_string());
                    *history.grants.entry((grant, request, reason)).or_default() += count;
                }
                event => {
                    if let Some((what, count, program)) = refused_on_the_network(event) {
                        history.places.entry(what).or_default().add(count, program);
                    }
                }
            }
        }
        history.refused = counts
            .into_iter()
            .map(|((call, program), count): ((String, String), u64)| {
                json!({ "call": call, "program": program, "count": count })
            })
            .collect();
        Ok(history)
    }

    /// What is planted, and what became of it.
    fn planted(&self, planted: canary::Planted) -> Vec<Planted> {
        let told = |file: canary::PlantedFile| Planted {
            opened: self.opened.get(file.path.as_str()).copied().unwrap_or_default(),
            path: file.path.into(),
            lost: file.lost,
        };
        planted.files.into_iter().map(told).collect()
    }

    fn refused_words(&self) -> String {
        let calls = self.refused.iter().map(|row| {
            let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            let count = row["count"].as_u64().unwrap_or_default();
            (count, format!("{} ×{count} by {}", text("call"), text("program")))
        });
        let places = self.places.iter().map(|(what, Place { count, programs })| {
            let by = tried_by(*count, programs);
            (*count, format!("{} ×{count}{by}", Shown::text(what)))
        });
        let grants = self.grants.iter().map(|((grant, request, reason), count)| {
            let to = request.as_ref().map_or_else(String::new, |request| format!(" to {request}"));
            let (grant, reason) = (Shown::text(grant), Shown::text(reason));
            (*count, format!("grant {grant}{to} ×{count}: {reason}"))
        });
        // A box can be refused as many kinds as it likes; a screen is one.
        let mut rows: Vec<(u64, String)> = calls.chain(places).chain(grants).collect();
        if rows.is_empty() {
            return "nothing".to_owned();
        }
        rows.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let mut words: Vec<String> =
            rows.iter().take(KINDS).map(|(_, words)| words.clone()).collect();
        if rows.len() > KINDS {
            words.push(format!("and {} kinds more: h5i box log --denied", rows.len() - KINDS));
        }
        words.join(", ")
    }
}
