//! `h5i box apply`

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use git2::{ErrorCode, Oid, Repository};
use h5i_export::{
    Base, ByteText, Completeness, Event, LandError, Landing, Merged, Message, Verified,
    verify_bundle,
};
use serde_json::json;

use super::Answer;
use super::receipt::mismatch;
use crate::args::{ApplyArgs, Destination};
use crate::caller::Caller;
use crate::failure::{Failure, Kind, objects_failure};
use crate::json_bytes::JsonBytes;
use crate::origin::{Origin, changed};
use crate::person::{self, Consent};
use crate::shown::Shown;
use crate::workspace::HostRepository;

pub(super) fn apply(caller: &Caller, args: &ApplyArgs) -> Result<Answer, Failure> {
    crate::inside::refuse("apply")?;
    let asks = !args.yes && !args.output.json && person::is_present();
    if !asks && !args.yes {
        let message = "applying needs a person's consent, and there is no terminal to ask on";
        return Err(Failure::told(Kind::Refused, message).hint("read the report, then --yes"));
    }
    let host = caller.repository()?;
    let directory = caller.directory.join(&args.bundle);
    let verified = verify_bundle(&directory, &caller.scratch(), None).map_err(|e| mismatch(&e))?;
    if args.digest.is_some_and(|asked| asked != verified.bundle) {
        return Err(changed(&format!("the bundle is {}, not the one named", verified.bundle)));
    }
    let origin = Origin::find(caller, &args.name, &verified)?;
    refuse_incomplete(args.incomplete, &verified)?;
    let repository = open(&host)?;
    let onto = head(&repository)?;
    let base = origin.base(&caller.store, Some(&repository))?;
    let landing = land(&repository, args, &verified, &base, &origin.scratch(caller))?;
    let tree = onto.map(|id| repository.find_commit(id).map(|commit| commit.tree_id()));
    let merged = landing.merge(tree.transpose().map_err(unreadable)?).map_err(land_failure)?;
    let destination = args.destination();
    let conflicts = merged.conflicts().map_err(land_failure)?;
    match &destination {
        Destination::Branch(branch) => {
            Merged::check_branch(&repository, branch).map_err(land_failure)?;
            Merged::check_author(&repository).map_err(land_failure)?;
            if !conflicts.is_empty() {
                return Err(land_failure(LandError::Conflicts { conflicts }));
            }
        }
        Destination::WorkingTree => merged.check_working_tree(&repository).map_err(land_failure)?,
    }
    if asks {
        show(&verified);
        let place = match &destination {
            Destination::Branch(branch) => format!("to new branch {}", Shown::text(branch)),
            _ => "to the working tree".to_owned(),
        };
        if person::ask(&format!("apply {} {place}?", verified.bundle))? == Consent::Withheld {
            let message = "the bundle was not applied: nobody said yes";
            return Err(Failure::told(Kind::Refused, message)
                .hint("read the report, then answer y, or --yes"));
        }
    }
    let done = Done { name: args.name.to_string(), verified: &verified, conflicts, onto };
    match destination {
        Destination::Branch(branch) => {
            record(&origin, &done, Some(&branch))?;
            let message = message(&origin, &verified);
            let made = merged.commit(&repository, &branch, onto, &message).map_err(land_failure)?;
            done.on_branch(&branch, made)
        }
        Destination::WorkingTree => {
            record(&origin, &done, None)?;
            let label = format!("box {}", args.name);
            merged.check_out(&repository, &label).map_err(land_failure)?;
            done.in_working_tree()
        }
    }
}

/// Refuses what a run that did not end by itself left, unless that is meant.
pub(super) fn refuse_incomplete(meant: bool, verified: &Verified) -> Result<(), Failure> {
    if meant || verified.index.completeness == Completeness::Complete {
        return Ok(());
    }
    let message = "a run of the box was stopped or cut off before the export, what it left may be \
                   half done";
    Err(Failure::told(Kind::Refused, message).hint("--incomplete if that is meant"))
}

/// The repository for writing. It is opened bare, because its owner was checked already, and then
/// given its working tree.
fn open(host: &HostRepository) -> Result<Repository, Failure> {
    let repository = Repository::open_bare(host.git_dir()).map_err(unreadable)?;
    if let Some(workdir) = host.workdir() {
        repository.set_workdir(workdir, false).map_err(unreadable)?;
    }
    Ok(repository)
}

/// The commit that the repository is on; none on a branch without one.
fn head(repository: &Repository) -> Result<Option<Oid>, Failure> {
    match repository.head().and_then(|head| head.peel_to_commit()) {
        Ok(commit) => Ok(Some(commit.id())),
        Err(error) if error.code() == ErrorCode::UnbornBranch => Ok(None),
        Err(error) => Err(unreadable(error)),
    }
}

fn land(
    repository: &Repository,
    args: &ApplyArgs,
    verified: &Verified,
    base: &Base,
    scratch: &std::path::Path,
) -> Result<Landing, Failure> {
    let landing = Landing::new(verified, base, repository, scratch).map_err(land_failure)?;
    if args.only.is_empty() {
        return Ok(landing);
    }
    let bytes = |path: &PathBuf| path.as_os_str().as_bytes().to_vec();
    let paths: Vec<Vec<u8>> = args.only.iter().map(bytes).collect();
    landing.only(&paths).map_err(land_failure)
}

/// What of the report a person is shown before the question: its head, what to look at first, and
/// the files. Lines of it are never cut.
pub(super) fn show(verified: &Verified) {
    let report = String::from_utf8_lossy(&verified.report);
    let mut wanted = true;
    let mut left = LINES;
    for line in report.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            wanted = SHOWN.contains(&title);
            left = LINES;
        }
        if !wanted {
            continue;
        }
        match left.checked_sub(1) {
            Some(less) => {
                left = less;
                super::say(&Shown::text(line).to_string());
            }
            None => {
                wanted = false;
                super::say("and more of it in report.md");
            }
        }
    }
}

/// Sections of the report that are shown, and how many lines of each.
const SHOWN: [&str; 2] = ["Look here first", "Files"];
const LINES: usize = 200;

fn message(origin: &Origin, verified: &Verified) -> Message {
    let manifest = origin.manifest();
    Message {
        subject: format!("Apply box {}", manifest.name),
        body: manifest.purpose.clone(),
        trailers: vec![
            ("H5i-Box", format!("{} ({})", manifest.name, manifest.id)),
            ("H5i-Base", manifest.base.commit.clone()),
            ("H5i-Bundle", verified.bundle.to_string()),
        ],
    }
}

/// Puts the intention on record before anything is done.
fn record(origin: &Origin, done: &Done<'_>, branch: Option<&str>) -> Result<(), Failure> {
    origin.record(Event::Apply {
        bundle: done.verified.bundle,
        onto: done.onto.map(|id| id.to_string()),
        branch: branch.map(ByteText::new),
    })
}

/// What is answered.
struct Done<'a> {
    name: String,
    verified: &'a Verified,
    conflicts: Vec<Vec<u8>>,
    onto: Option<Oid>,
}

impl Done<'_> {
    fn data(&self) -> serde_json::Value {
        let conflicts: Vec<JsonBytes> = self.conflicts.iter().cloned().map(JsonBytes).collect();
        json!({
            "name": self.name,
            "bundle": self.verified.bundle.to_string(),
            "onto": self.onto.map(|id| id.to_string()),
            "branch": null,
            "commit": null,
            "tree": null,
            "conflicts": conflicts,
        })
    }

    fn on_branch(&self, branch: &str, (commit, tree): (Oid, Oid)) -> Result<Answer, Failure> {
        let mut data = self.data();
        data["branch"] = json!(branch);
        data["commit"] = json!(commit.to_string());
        data["tree"] = json!(tree.to_string());
        let branch = Shown::text(branch);
        let reviewed = if tree.to_string() == self.verified.index.tree {
            "the reviewed tree"
        } else {
            "the reviewed changes, merged with what is here"
        };
        Ok(Answer::new(data, format!("{commit}\n"))?
            .note(format!("applied  {reviewed}, on branch {branch}"))
            .note(format!("look     git show {branch}"))
            .note(format!("take     git merge {branch}")))
    }

    fn in_working_tree(&self) -> Result<Answer, Failure> {
        let answer = Answer::new(self.data(), String::new())?;
        if self.conflicts.is_empty() {
            return Ok(
                answer.note("applied  to the working tree and the index; commit it yourself")
            );
        }
        let mut answer = answer.code(1).note("applied  to the working tree, with conflicts:");
        for path in &self.conflicts {
            answer = answer.note(format!("         {}", Shown::bytes(path)));
        }
        Ok(answer.note("resolve  git status"))
    }
}

fn unreadable(error: git2::Error) -> Failure {
    Failure::new(Kind::Corrupt, &error).hint("git fsck")
}

pub(crate) fn land_failure(error: LandError) -> Failure {
    let with = |kind, hint: &str| Failure::new(kind, &error).hint(hint);
    let listed = |failure: Failure, paths: &[Vec<u8>]| {
        let paths: Vec<JsonBytes> = paths.iter().cloned().map(JsonBytes).collect();
        failure.detail("paths", json!(paths))
    };
    match &error {
        LandError::Conflicts { conflicts } => listed(
            with(Kind::Refused, "--worktree leaves conflict markers to resolve by hand"),
            conflicts,
        ),
        LandError::Dirty { paths } => {
            listed(with(Kind::Refused, "commit or stash them, or leave --worktree out"), paths)
        }
        LandError::InTheWay { paths } => {
            listed(with(Kind::Refused, "move them away, or leave --worktree out"), paths)
        }
        LandError::Underway => with(Kind::Refused, "finish or abort it (git status)"),
        LandError::Bare => with(Kind::Refused, "leave --worktree out"),
        LandError::BranchExists { .. } => with(Kind::Exists, "--branch with another name"),
        LandError::BranchName { .. } => with(Kind::Usage, "--branch with a name that git takes"),
        LandError::NoIdentity(_) => {
            with(Kind::Refused, "git config user.name and user.email, then again")
        }
        LandError::NotChanged { .. } => {
            with(Kind::NotFound, "a path as the report has it, from the repository's root")
        }
        LandError::Clash(_) => with(Kind::Refused, "rename one of the two, in the box or here"),
        LandError::LinkEscapes { .. } => with(Kind::Refused, "take the files it needs as well"),
        LandError::Git { .. } | LandError::Io { .. } => {
            with(Kind::Io, "see that the repository is writable")
        }
        LandError::Store(store) => objects_failure(&error, store).unwrap_or_else(|| {
            with(Kind::Corrupt, "apply it where the base commit is, or export the box again")
        }),
        _ => with(Kind::Corrupt, "do not apply it; export the box again"),
    }
}
