//! From a frozen policy and a box's directories to the plan of its sessions.

use std::path::{Path, PathBuf};

use h5i_confine::{
    Access, HOME, HostFacts, Layout, Plan, PlanError, SPOOL, UPPER, UserNamespaces, WORKSPACE,
};
use h5i_policy::{NetMode, ResolvedPolicy, Unenforced, unenforced};

use crate::box_network::only_grants;
use crate::changed_paths::UPPER_IN_BOX;
use crate::failure::{Failure, Kind};
use crate::hook;
use crate::shown::Shown;
use crate::spool;
use crate::store::{HostId, LayerName, Manifest, Store, StoredBox};
use crate::workspace::{ObjectMount, Standing};

/// Where base objects are seen in a box, one numbered directory each.
pub const OBJECTS_IN_BOX: &str = "/run/h5i/objects";

/// The layout of a box whose own part is `box_dir`, over the lower layers of an overlay or, without
/// any, with a directory as its workspace.
#[must_use]
pub fn layout(
    store: &Store,
    box_dir: &Path,
    layers: &[LayerName],
    mounts: &[ObjectMount],
    host_id: Option<HostId>,
) -> Layout {
    let mut layout = match Standing::of(store, box_dir, layers) {
        Standing::Directory(path) => Layout::default().place(path, WORKSPACE, Access::Write),
        Standing::Overlay { lowers, area } => {
            let upper = area.join(UPPER);
            let layout = Layout::default().overlay(lowers, area, WORKSPACE);
            match layers.iter().any(LayerName::asks) {
                true => layout.place(upper, UPPER_IN_BOX, Access::Read),
                false => layout,
            }
        }
    };
    layout = layout.place(box_dir.join("home"), HOME, Access::Write);
    layout = layout.prepared_roots(store.roots_dir());
    layout = layout.place(box_dir.join("spool"), SPOOL, Access::Write);
    layout = layout.content(hook::BASH_AT, hook::BASH).content(hook::ZSH_AT, hook::ZSH);
    if let Some(program) = own_program() {
        layout = layout.file(program, spool::PROGRAM);
    }
    for mount in mounts {
        layout = layout.place(mount.host.clone(), mount.at.clone(), Access::Read);
    }
    match host_id {
        Some(id) => layout.host_id(id.number()),
        None => layout,
    }
}

/// This program, for the box to speak with. One whose file was replaced meanwhile is not there; then
/// a box has no `h5i` until the next session.
fn own_program() -> Option<PathBuf> {
    let path = std::fs::read_link("/proc/self/exe").ok()?;
    std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()).then_some(path)
}

/// The layout of a box that is made, with the object directories that it borrows.
///
/// # Errors
/// A failure when these can't be listed.
pub fn layout_of(
    store: &Store,
    stored: &StoredBox,
    manifest: &Manifest,
) -> Result<Layout, Failure> {
    let mut objects = Vec::new();
    for key in &manifest.objects {
        objects.extend(store.object_dirs(key)?);
    }
    let mounts = object_mounts(objects);
    let layout = layout(store, &stored.box_dir(), &manifest.layers, &mounts, manifest.host_id);
    // Every program that starts is on record: without a bound a box could fill the host's disk.
    Ok(layout.filled(stored.host_dir()))
}

/// What this host can enforce.
///
/// # Errors
/// A refusal where the kernel does not say.
pub fn host_facts() -> Result<HostFacts, Failure> {
    HostFacts::read().map_err(|e| plan_failure(PlanError::Facts(e)))
}

/// Plans for this host.
///
/// # Errors
/// A refusal that says what is missing and what to do.
pub fn plan(policy: &ResolvedPolicy, layout: &Layout) -> Result<Plan, Failure> {
    plan_with(&host_facts()?, policy, layout)
}

/// Plans for a host that has been looked at.
///
/// # Errors
/// A refusal that says what is missing and what to do.
pub fn plan_with(
    facts: &HostFacts,
    policy: &ResolvedPolicy,
    layout: &Layout,
) -> Result<Plan, Failure> {
    Plan::new(policy, layout, facts).map_err(plan_failure)
}

/// Refuses by name what this version can't enforce.
///
/// # Errors
/// One refusal for all fields, each with what to do instead.
pub fn check_enforceable(policy: &ResolvedPolicy) -> Result<(), Failure> {
    let missing = unenforced(policy);
    let Some(first) = missing.first() else { return Ok(()) };
    let message = missing.iter().map(Unenforced::to_string).collect::<Vec<_>>().join("; ");
    let fields: Vec<String> = missing.iter().map(|m| m.field.clone()).collect();
    Err(Failure::told(Kind::Refused, message).hint(first.instead).detail("fields", fields))
}

/// Says why a policy can't be enforced on this host.
#[must_use]
pub fn plan_failure(error: PlanError) -> Failure {
    let unavailable = |hint: &str| Failure::new(Kind::Unavailable, &error).hint(hint);
    match &error {
        PlanError::NoUserNamespaces { setting, .. } => {
            let value = if setting.contains("apparmor") { "0" } else { "1" };
            let number = if setting.contains("max_") { "15000" } else { value };
            unavailable(&format!("sudo sysctl -w {setting}={number}"))
        }
        PlanError::Kernel { .. } => {
            unavailable("a newer kernel, or --tier workspace (no boundary)")
        }
        PlanError::Landlock { .. } => {
            unavailable("a newer kernel, or landlock = \"best-effort\" in the profile")
        }
        PlanError::Facts(_) => unavailable("mount /proc"),
        PlanError::Tier { .. } | PlanError::Network { .. } => {
            Failure::new(Kind::Refused, &error).hint("--tier process with net.mode none or host")
        }
        PlanError::NamespacesOff => Failure::new(Kind::Refused, &error)
            .hint("leave it out, or --tier workspace (no boundary)"),
        PlanError::Grant { path, .. } | PlanError::NotFileOrDirectory { path } => {
            Failure::new(Kind::Refused, &error)
                .hint("take it out of fs.read or fs.write, or put it there")
                .detail("path", Shown::path(path).to_string())
        }
        PlanError::Reserved { .. } => Failure::new(Kind::Refused, &error)
            .hint("grant a path below it, in fs.read or fs.write"),
        PlanError::HideInGrant { .. } => {
            Failure::new(Kind::Refused, &error).hint("leave the host grant or fs.hide out")
        }
        _ => Failure::new(Kind::Refused, &error),
    }
}

/// The object directories that a box borrows, as they are mounted.
#[must_use]
pub fn object_mounts(directories: Vec<PathBuf>) -> Vec<ObjectMount> {
    directories
        .into_iter()
        .enumerate()
        .map(|(number, host)| {
            let at = Path::new(OBJECTS_IN_BOX).join(number.to_string());
            ObjectMount { host, at }
        })
        .collect()
}

/// The network in one word and what it means; without rules, the names of the grants that can be
/// used.
#[must_use]
pub fn network_words(mode: NetMode, grants: &[&str]) -> String {
    match mode {
        NetMode::None if !grants.is_empty() => format!("network: {}", only_grants(grants)),
        NetMode::None => "network none".to_owned(),
        NetMode::Host => "network host (the host's own, unfiltered)".to_owned(),
        NetMode::Allow => "network allow".to_owned(),
        _ => "network open".to_owned(),
    }
}

/// Whether a host's settings forbid user namespaces, in words for `probe`.
#[must_use]
pub fn namespace_setting(facts: &HostFacts) -> Option<String> {
    match &facts.user_namespaces {
        UserNamespaces::Forbidden { setting, value } => Some(format!("{setting} = {value}")),
        _ => None,
    }
}
