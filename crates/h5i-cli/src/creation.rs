//! Makes a box: base, policy, plan, and only then anything on disk.

use std::os::unix::fs::lchown;
use std::path::PathBuf;

use h5i_confine::HostFacts;
use h5i_policy::{History, Pattern, Resolved, ResolvedPolicy, Tier};

use crate::approved_start::ApprovedStart;
pub use crate::approved_start::Artifact;
use crate::args::{BaseArgs, LearnArgs, PolicyArgs, WorkspaceChoice};
use crate::box_grants;
use crate::box_network::Doors;
use crate::box_plan::{self, OBJECTS_IN_BOX};
use crate::caller::Caller;
use crate::canary;
use crate::failure::{Failure, Kind};
use crate::net_sources;
use crate::network_trial;
use crate::path_error::{Action, PathError};
use crate::policy_source::{Sourced, source_policy};
use crate::receipt_log::ReceiptLog;
use crate::reviewed_start::ReviewedStart;
use crate::seeded_home::{self, SeededHome};
use crate::store::{
    BaseRecord, BoxDraft, BoxId, BoxLock, BoxName, FROZEN_POLICY, HostId, Manifest, Scope,
    StoredBox, WorkspaceKind,
};
use crate::timestamp::Timestamp;
use crate::workspace::{
    BaseKind, BaseObjects, BaseSpec, Checkout, HostGit, HostRepository, Identity, Note, ObjectsAt,
    ObjectsRequest, OverlaySupport, Owner, PinnedBase, Prepared, Workspace, is_small,
};

/// What is asked for.
#[derive(Debug)]
pub struct Wish<'a> {
    /// The box's name.
    pub name: &'a BoxName,
    /// What the workspace starts from.
    pub base: &'a BaseArgs,
    /// The approved artifact that it starts from instead.
    pub artifact: Option<Artifact<'a>>,
    /// How the workspace is laid out.
    pub workspace: WorkspaceChoice,
    /// What the box may do.
    pub policy: &'a PolicyArgs,
    /// Whether it is for learning what it needs of the network.
    pub learn: LearnArgs,
    /// What the box is for.
    pub purpose: Option<&'a str>,
}

/// A box that was just made; its lock is held.
#[derive(Debug)]
#[non_exhaustive]
pub struct Created {
    /// Where it stands.
    pub stored: StoredBox,
    /// Its manifest.
    pub manifest: Manifest,
    /// Its policy.
    pub policy: ResolvedPolicy,
    /// Held until the first run takes it over.
    pub lock: BoxLock,
    /// What the workspace has that a person should know.
    pub notes: Vec<Note>,
    /// What its home began with.
    pub(crate) seeded: SeededHome,
}

/// Makes a box. A refusal leaves nothing behind.
///
/// # Errors
/// A failure that says what was asked, why it did not happen, and what to do.
pub fn create(caller: &Caller, wish: &Wish<'_>) -> Result<Created, Failure> {
    let spec = match &wish.artifact {
        Some(artifact) => BaseSpec::Bundle(artifact.bundle.to_owned()),
        None => wish.base.spec(),
    };
    let reviewed = ReviewedStart::of(caller, &spec)?;
    let approved = match (&wish.artifact, &reviewed) {
        (Some(artifact), Some(start)) => {
            Some(ApprovedStart::check(caller, artifact.approval, start)?)
        }
        _ => None,
    };
    let repository = match &reviewed {
        Some(start) => Some(start.open()?),
        None => repository_of(caller, &spec)?,
    };
    let mut base = match &repository {
        Some(repository) => repository.pin(&spec)?,
        None => PinnedBase::empty(),
    };
    if let Some(start) = &reviewed {
        start.describe(&mut base);
    }
    let of_base = repository.as_ref().map(|repository| (repository, &base));
    let Sourced { resolved, toolchains } = source_policy(caller, of_base, wish.policy, wish.learn)?;
    let policy = &resolved.policy;
    check_tier(policy, wish.policy)?;
    check_layout(policy, wish.workspace)?;
    if let Some(approved) = &approved {
        approved.check_policy(policy)?;
    }
    box_plan::check_enforceable(policy)?;
    canary::check_claims(policy)?;
    let facts = match policy.tier {
        Tier::Workspace => None,
        _ => Some(box_plan::host_facts()?),
    };
    if let Some(facts) = &facts {
        // Nothing is written for a host that can't serve the policy; the paths are filled in later.
        let id = caller.is_root().then(HostId::first);
        let layout = box_plan::layout(&caller.store, &PathBuf::from("/"), &[], &[], id);
        box_plan::plan_with(facts, policy, &layout)?;
        if policy.tier >= Tier::Supervised {
            network_trial::check(&caller.store, facts)?;
        }
    }
    if let Some(start) = &reviewed {
        start.check_history(policy.history)?;
    }
    let home = reviewed.as_ref().map_or(repository.as_ref(), ReviewedStart::home);
    let scope = match (&spec, home) {
        (BaseSpec::Empty | BaseSpec::Clone(_), _) | (_, None) => Scope::None,
        (_, Some(repository)) => repository.scope(),
    };
    let origin = match &scope {
        Scope::None => None,
        _ => home.map(HostRepository::origin),
    };
    let mut draft = caller.store.draft(&scope, wish.name, origin.as_ref())?;
    let host_id = match caller.is_root() && policy.tier > Tier::Workspace {
        true => Some(caller.store.allocate_host_id(&caller.store.living_host_ids()?)?),
        false => None,
    };
    let place = Place {
        caller,
        repository: repository.as_ref(),
        base: &base,
        asked: wish.workspace,
        policy,
        facts: facts.as_ref(),
        host_id,
    };
    let laid = place.fill(&mut draft)?;
    link_caches(&draft, &toolchains.links, host_id)?;
    let box_home = draft.box_dir().join("home");
    let seeded = seeded_home::fill(&box_home, &caller.surroundings.home, policy, host_id)?;
    if !policy.seed.is_empty() {
        let json = serde_json::to_vec(&seeded).map_err(|e| Failure::new(Kind::Internal, &e))?;
        draft.write_host_file(seeded_home::FILE, &json)?;
    }
    if !policy.fs.canaries.is_empty() {
        let planted = canary::plant(&box_home, &policy.fs.canaries, host_id)?;
        draft.write_host_file(canary::FILE, &planted.to_json()?)?;
    }
    let mut manifest = place.manifest(&draft, &laid, &resolved.profile, wish.purpose)?;
    if let Some(start) = reviewed {
        start.name_parent(&mut manifest);
    }
    if let Some(approved) = &approved {
        approved.name_in(&mut manifest);
    }
    draft.write_host_file(FROZEN_POLICY, policy.canonical_json().as_bytes())?;
    write_sources(&draft, &resolved)?;
    let json = manifest.to_json().map_err(|e| Failure::new(Kind::Internal, &e))?;
    ReceiptLog::begin(&draft.host_dir(), &json, &manifest)?;
    // Last of all, so that a box that can't be made costs no approval.
    if let Some(approved) = &approved {
        approved.spend(caller, wish.name)?;
    }
    let (stored, lock) = draft.commit(&manifest)?;
    Ok(Created {
        stored,
        manifest,
        policy: resolved.policy,
        lock,
        notes: laid.prepared.notes,
        seeded,
    })
}

/// Writes down where the rules of the network came from, which the frozen policy does not say.
fn write_sources(draft: &BoxDraft, resolved: &Resolved) -> Result<(), Failure> {
    if resolved.policy.net.allow.is_empty() {
        return Ok(());
    }
    let json = net_sources::of(resolved).map_err(|e| Failure::new(Kind::Internal, &e))?;
    Ok(draft.write_host_file(net_sources::FILE, &json)?)
}

fn repository_of(caller: &Caller, spec: &BaseSpec) -> Result<Option<HostRepository>, Failure> {
    match spec {
        BaseSpec::Empty => Ok(None),
        BaseSpec::Clone(path) => Ok(Some(HostRepository::open(&caller.directory.join(path))?)),
        _ => Ok(Some(caller.repository()?)),
    }
}

/// The tier without a boundary has to be asked for by name, on the command line.
fn check_tier(policy: &ResolvedPolicy, args: &PolicyArgs) -> Result<(), Failure> {
    if policy.tier == Tier::Workspace && args.tier != Some(Tier::Workspace) {
        let message = "the profile asks for tier workspace, which has no boundary at all";
        return Err(Failure::told(Kind::Refused, message)
            .hint("--tier workspace if that is meant, or --tier process"));
    }
    Ok(())
}

/// An overlay needs mounts of its own.
fn check_layout(policy: &ResolvedPolicy, asked: WorkspaceChoice) -> Result<(), Failure> {
    if policy.tier == Tier::Workspace && asked == WorkspaceChoice::Overlay {
        let message = "an overlay is mounted in the box, and tier workspace has no mounts";
        return Err(
            Failure::told(Kind::Refused, message).hint("--workspace checkout, or --tier process")
        );
    }
    Ok(())
}

/// What a box is filled from.
struct Place<'a> {
    caller: &'a Caller,
    repository: Option<&'a HostRepository>,
    base: &'a PinnedBase,
    asked: WorkspaceChoice,
    policy: &'a ResolvedPolicy,
    /// Of a host that is to enforce something.
    facts: Option<&'a HostFacts>,
    host_id: Option<HostId>,
}

/// What was made for a box.
struct Laid {
    objects: BaseObjects,
    prepared: Prepared,
    /// Why the workspace is laid out as it is.
    reason: String,
}

impl Place<'_> {
    /// Makes the objects and the workspace.
    fn fill(&self, draft: &mut BoxDraft) -> Result<Laid, Failure> {
        let hide = |path: &[u8]| {
            self.policy.fs.hide.iter().any(|pattern: &Pattern| pattern.matches(path, false))
        };
        let request = ObjectsRequest {
            history: self.history(),
            hidden: (!self.policy.fs.hide.is_empty()).then_some(&hide),
        };
        let git = HostGit::find(&self.caller.surroundings.path)?;
        let objects = BaseObjects::make(draft, self.repository, self.base, &request, &git)?;
        let (kind, reason) = self.workspace_kind(&objects)?;
        let (objects_at, inside) = if self.policy.tier == Tier::Workspace {
            let own = (self.caller.surroundings.uid, self.caller.surroundings.gid);
            (ObjectsAt::Host, own)
        } else {
            let id = h5i_confine::BOX_ID;
            (ObjectsAt::InBox(PathBuf::from(OBJECTS_IN_BOX)), (id, id))
        };
        let identity = Identity::of_host(self.repository);
        let workspace = Workspace {
            base: self.base,
            objects: &objects,
            identity: &identity,
            objects_at,
            owner: self.host_id.map_or(Owner::Caller, Owner::Box),
            inside,
        };
        let prepared = match kind {
            WorkspaceKind::Overlay => workspace.create_overlay(draft)?,
            WorkspaceKind::Checkout => workspace.create(&draft.box_dir(), &Checkout)?,
        };
        Ok(Laid { objects, prepared, reason })
    }

    /// What was asked for or, left to h5i, an overlay where that saves something and the host allows
    /// it; and why.
    fn workspace_kind(&self, objects: &BaseObjects) -> Result<(WorkspaceKind, String), Failure> {
        if self.asked == WorkspaceChoice::Checkout {
            return Ok((WorkspaceKind::Checkout, "asked for".to_owned()));
        }
        let Some(facts) = self.facts else {
            let reason = "without a boundary there are no mounts of its own";
            return Ok((WorkspaceKind::Checkout, reason.to_owned()));
        };
        if self.asked == WorkspaceChoice::Auto && is_small(objects) {
            return Ok((WorkspaceKind::Checkout, "the base is small".to_owned()));
        }
        let support = OverlaySupport::of(&self.caller.store, facts, self.host_id)?;
        match (&support, self.asked) {
            (OverlaySupport::Works, WorkspaceChoice::Overlay) => {
                Ok((WorkspaceKind::Overlay, "asked for".to_owned()))
            }
            (OverlaySupport::Works, _) => Ok((WorkspaceKind::Overlay, support.reason())),
            (OverlaySupport::Fails(_), WorkspaceChoice::Overlay) => {
                Err(Failure::told(Kind::Unavailable, support.reason())
                    .hint("--workspace checkout, or another XDG_STATE_HOME"))
            }
            (OverlaySupport::Fails(_), _) => Ok((WorkspaceKind::Checkout, support.reason())),
        }
    }

    fn history(&self) -> History {
        match self.base.kind {
            BaseKind::Empty => History::Full,
            _ => self.policy.history,
        }
    }

    fn manifest(
        &self,
        draft: &BoxDraft,
        laid: &Laid,
        profile: &str,
        purpose: Option<&str>,
    ) -> Result<Manifest, Failure> {
        let objects = &laid.objects;
        let mounts = box_plan::object_mounts(objects.object_dirs());
        let plan = match self.facts {
            None => Vec::new(),
            Some(facts) => {
                let layout = box_plan::layout(
                    &self.caller.store,
                    &draft.final_box_dir(),
                    &laid.prepared.layers,
                    &mounts,
                    self.host_id,
                );
                let mut plan = box_plan::plan_with(facts, self.policy, &layout)?;
                Doors::ask(&mut plan, self.policy)?;
                box_grants::sockets(&mut plan, self.policy);
                plan.steps().iter().map(ToString::to_string).collect()
            }
        };
        let created = Timestamp::now();
        Ok(Manifest {
            v: Manifest::VERSION,
            id: BoxId::random()?,
            name: draft.name().clone(),
            created,
            expires: self.policy.expires.map(|span| created.plus_millis(span.count())),
            base: BaseRecord {
                commit: objects.tip.to_string(),
                tree: objects.tree.to_string(),
                host_commit: self.base.commit.map(|id| id.to_string()),
                branch: self.base.branch.clone(),
                described: self.base.described.clone(),
            },
            tier: self.policy.tier,
            profile: profile.to_owned(),
            purpose: purpose.map(str::to_owned),
            policy_digest: self.policy.digest(),
            workspace: laid.prepared.kind,
            workspace_reason: laid.reason.clone(),
            layers: laid.prepared.layers.clone(),
            history: self.history(),
            objects: vec![objects.key.clone()],
            plan,
            parent: None,
            artifact: None,
            host_id: self.host_id,
        })
    }
}

/// Links caches of the host's toolchains, granted read-only, to where the toolchains look for them.
fn link_caches(
    draft: &BoxDraft,
    links: &std::collections::BTreeMap<&'static str, h5i_policy::HostPath>,
    owner: Option<HostId>,
) -> Result<(), PathError> {
    let home = draft.box_dir().join("home");
    for (link, target) in links {
        let path = home.join(link);
        let mut made = Vec::new();
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)
                .map_err(PathError::at(Action::CreateDirectory, parent))?;
            made.extend(parent.ancestors().take_while(|dir| *dir != home).map(PathBuf::from));
        }
        std::os::unix::fs::symlink(target.as_path(), &path)
            .map_err(PathError::at(Action::Write, &path))?;
        made.push(path);
        if let Some(id) = owner {
            for path in made {
                lchown(&path, Some(id.number()), Some(id.number()))
                    .map_err(PathError::at(Action::ChangeOwner, &path))?;
            }
        }
    }
    Ok(())
}
