//! The patch between two trees.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::{Delta, DiffFindOptions, DiffOptions, FileMode, ObjectType, Oid, Tree};

use super::binary;
use crate::store::{Store, StoreError};

/// The largest binary content, in bytes, of which a patch says only what differs: finding that takes
/// about eight times as much memory.
const MAX_DELTA: u64 = 4 << 20;

/// Pairs of a deleted and an added file up to which contents are compared to find renamed files.
const MAX_PAIRS: usize = 160_000;
/// Bytes of deleted and added files up to which that is done.
const MAX_COMPARED: u64 = 16 << 20;
/// How many deleted files libgit2 looks at for each added one; by their ids alone it is quick.
const SOURCES_BY_ID: usize = 1000;

/// How renamed files were looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Renames {
    /// By content, wherever a file was deleted and another one added.
    ByContent,
    /// There are too many or too large ones for that: a file that changed as well as its name is told
    /// as deleted and added.
    Unchanged,
}

/// What happened to one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its content changed.
    Modified,
    /// Only its executable bit changed.
    Mode,
    /// A file became a link or the reverse.
    Type,
    /// It has a new path, perhaps with changes.
    Renamed,
    /// It is gone.
    Deleted,
}

/// One changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// What happened.
    pub kind: ChangeKind,
    /// Its path; for a deleted one the path that it had.
    pub path: Vec<u8>,
    /// The path that a renamed file had.
    pub old_path: Option<Vec<u8>>,
    /// Its mode before, as git writes it (`0o100644`); 0 when it is new.
    pub old_mode: u32,
    /// Its mode after; 0 when it is gone.
    pub new_mode: u32,
    /// Its size after in bytes; 0 when it is gone.
    pub bytes: u64,
    /// Lines added; `None` for binary content.
    pub added: Option<u64>,
    /// Lines removed; `None` for binary content.
    pub removed: Option<u64>,
    pub(crate) old_id: Oid,
    pub(crate) new_id: Oid,
}

/// Where two trees are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// Everywhere.
    All,
    /// At these paths, which are all that differ: libgit2 walks equal directories of the two trees as
    /// well, so it is told where to look. Were one missing, the patch would not give the reviewed
    /// tree.
    At(Vec<Vec<u8>>),
}

/// Writes the patch from `base` to `reviewed`, and tells what it changes, in the order of the patch.
pub(crate) fn make(
    store: &Store,
    (base, reviewed): (Oid, Oid),
    at: Where,
    text: &mut impl Write,
) -> Result<(Vec<Change>, Renames), StoreError> {
    // No path at all would mean every path.
    if matches!(&at, Where::At(paths) if paths.is_empty()) {
        return Ok((Vec::new(), Renames::ByContent));
    }
    let (old, new) = (store.tree(base)?, store.tree(reviewed)?);
    // Everything that a configuration could say is said here.
    let mut options = DiffOptions::new();
    options
        // Binary content is written here, not by libgit2, which keeps several forms of it at once.
        .show_binary(false)
        .id_abbrev(40)
        .context_lines(3)
        .interhunk_lines(0)
        // Git takes a change of type only as a deletion and an addition.
        .include_typechange(false)
        .disable_pathspec_match(true)
        .old_prefix("a/")
        .new_prefix("b/");
    if let Where::At(paths) = at {
        for path in paths {
            options.pathspec(path);
        }
    }
    let git = StoreError::git;
    let mut compare = || {
        let diff = store.repo.diff_tree_to_tree(Some(&old), Some(&new), Some(&mut options));
        diff.map_err(git("compare the trees"))
    };
    let mut diff = compare()?;
    let looked = find_renames(store, &mut diff)?;
    let renames = diff.deltas().any(|delta| delta.status() == Delta::Renamed);
    if renames && diff.deltas().any(|delta| is_crossing(&delta, &old, &new)) {
        diff = compare()?;
    }
    let mut changes: Vec<Change> = diff.deltas().map(|delta| change(&delta)).collect();
    for (at, change) in changes.iter_mut().enumerate() {
        let patch = git2::Patch::from_diff(&diff, at).map_err(git("make the patch of a file"))?;
        if let Some(mut patch) = patch {
            let binary = patch.delta().flags().is_binary();
            if !binary {
                let (_, added, removed) = patch.line_stats().map_err(git("count lines"))?;
                (change.added, change.removed) = (Some(added as u64), Some(removed as u64));
            }
            print(&mut patch, text)?;
            // What libgit2 has read of the file goes before the file is read again.
            drop(patch);
            if binary && change.old_id != change.new_id {
                content(store, change, text)?;
            }
        }
        if change.new_mode != 0 && change.new_mode != u32::from(FileMode::Commit) {
            change.bytes = store.blob_size(change.new_id)?;
        }
    }
    Ok((join_type_changes(changes), looked))
}

/// Makes renames of deletions and additions. Comparing contents costs time by the pair and by the
/// byte, and a box says how many there are: beyond a bound equal contents only are found.
fn find_renames(store: &Store, diff: &mut git2::Diff<'_>) -> Result<Renames, StoreError> {
    let git = StoreError::git;
    let has = |diff: &git2::Diff<'_>, status| diff.deltas().any(|delta| delta.status() == status);
    let mut find = DiffFindOptions::new();
    find.renames(true).copies(false).rename_threshold(50);
    if is_comparable(store, diff)? {
        find.rename_limit(MAX_PAIRS);
        diff.find_similar(Some(&mut find)).map_err(git("find renamed files"))?;
        return Ok(Renames::ByContent);
    }
    find.rename_limit(SOURCES_BY_ID).exact_match_only(true);
    diff.find_similar(Some(&mut find)).map_err(git("find renamed files"))?;
    match has(diff, Delta::Deleted) && has(diff, Delta::Added) {
        true => Ok(Renames::Unchanged),
        false => Ok(Renames::ByContent),
    }
}

/// Whether the contents of all deleted files can be compared with those of all added ones.
fn is_comparable(store: &Store, diff: &git2::Diff<'_>) -> Result<bool, StoreError> {
    let of = |status| diff.deltas().filter(move |delta| delta.status() == status);
    let pairs = of(Delta::Deleted).count().saturating_mul(of(Delta::Added).count());
    if pairs == 0 || pairs > MAX_PAIRS {
        return Ok(pairs == 0);
    }
    let deleted = of(Delta::Deleted).map(|delta| (delta.old_file().id(), delta.old_file().mode()));
    let added = of(Delta::Added).map(|delta| (delta.new_file().id(), delta.new_file().mode()));
    let mut bytes = 0u64;
    for (id, mode) in deleted.chain(added) {
        if mode != FileMode::Commit {
            bytes = bytes.saturating_add(store.blob_size(id)?);
        }
        if bytes > MAX_COMPARED {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes the patch of one file; of binary content only what stands above it.
fn print(patch: &mut git2::Patch<'_>, text: &mut impl Write) -> Result<(), StoreError> {
    print_lines(patch, |origin, content| match origin {
        // "Binary files differ".
        b'B' => Ok(()),
        b' ' | b'+' | b'-' => text.write_all(&[origin]).and_then(|()| text.write_all(content)),
        _ => text.write_all(content),
    })
}

fn print_lines(
    patch: &mut git2::Patch<'_>,
    mut write: impl FnMut(u8, &[u8]) -> io::Result<()>,
) -> Result<(), StoreError> {
    let mut written = Ok(());
    let printed = patch.print(&mut |_, _, line| {
        written = write(line.origin() as u8, line.content());
        written.is_ok()
    });
    // A failure to write ends the printing with an error of libgit2's that says nothing of it.
    written.map_err(StoreError::Patch)?;
    printed.map_err(StoreError::git("print the patch"))
}

/// Writes the content of a binary file, forward and reverse.
fn content(store: &Store, change: &Change, text: &mut impl Write) -> Result<(), StoreError> {
    let git = StoreError::git;
    let size = |id: Oid| if id.is_zero() { Ok(0) } else { store.blob_size(id) };
    let (old, new) = (size(change.old_id)?, size(change.new_id)?);
    if old.min(new) > 0 && old.max(new) <= MAX_DELTA {
        let blob = |id| store.repo.find_blob(id).map_err(git("read a changed file"));
        let mut options = DiffOptions::new();
        options.show_binary(true).force_binary(true);
        let (old, new) = (blob(change.old_id)?, blob(change.new_id)?);
        let patch = git2::Patch::from_blobs(&old, None, &new, None, Some(&mut options));
        let mut patch = patch.map_err(git("make the patch of a file"))?;
        return print_lines(&mut patch, |origin, content| match origin {
            b'B' => text.write_all(content),
            _ => Ok(()),
        });
    }
    text.write_all(b"GIT binary patch\n").map_err(StoreError::Patch)?;
    for id in [change.new_id, change.old_id] {
        if id.is_zero() {
            binary::literal(&[], text).map_err(StoreError::Patch)?;
        } else {
            let blob = store.repo.find_blob(id).map_err(git("read a changed file"))?;
            binary::literal(blob.content(), text).map_err(StoreError::Patch)?;
        }
    }
    Ok(())
}

/// Whether a file comes to or goes from a name that has something of another kind on the other
/// side. Beside renames git takes such a patch only in some orders, which libgit2 does not keep.
fn is_crossing(delta: &git2::DiffDelta<'_>, old: &Tree<'_>, new: &Tree<'_>) -> bool {
    let occupied = |tree: &Tree<'_>, file: &git2::DiffFile<'_>| {
        let path = file.path_bytes().unwrap_or_default();
        let ends = (0..=path.len()).filter(|&end| path.get(end).is_none_or(|&byte| byte == b'/'));
        ends.map(|end| &path[..end]).any(|here| {
            let entry = tree.get_path(Path::new(OsStr::from_bytes(here)));
            entry.is_ok_and(|entry| here == path || entry.kind() != Some(ObjectType::Tree))
        })
    };
    match delta.status() {
        Delta::Added => occupied(old, &delta.new_file()),
        Delta::Renamed => occupied(new, &delta.old_file()) || occupied(old, &delta.new_file()),
        _ => false,
    }
}

/// A deletion and an addition of one path are a change of its type.
fn join_type_changes(changes: Vec<Change>) -> Vec<Change> {
    let mut joined: Vec<Change> = Vec::with_capacity(changes.len());
    for mut change in changes {
        match joined.last_mut() {
            Some(last)
                if last.path == change.path
                    && last.kind == ChangeKind::Deleted
                    && change.kind == ChangeKind::Added =>
            {
                change.kind = ChangeKind::Type;
                change.removed = last.removed;
                (change.old_mode, change.old_id) = (last.old_mode, last.old_id);
                *last = change;
            }
            _ => joined.push(change),
        }
    }
    joined
}

fn change(delta: &git2::DiffDelta<'_>) -> Change {
    let (old, new) = (delta.old_file(), delta.new_file());
    let path = |file: &git2::DiffFile<'_>| file.path_bytes().unwrap_or_default().to_vec();
    let (old_mode, new_mode) = (u32::from(old.mode()), u32::from(new.mode()));
    let kind = match delta.status() {
        Delta::Added => ChangeKind::Added,
        Delta::Deleted => ChangeKind::Deleted,
        Delta::Renamed => ChangeKind::Renamed,
        _ if old.id() == new.id() => ChangeKind::Mode,
        _ => ChangeKind::Modified,
    };
    Change {
        kind,
        path: path(if kind == ChangeKind::Deleted { &old } else { &new }),
        old_path: (kind == ChangeKind::Renamed).then(|| path(&old)),
        old_mode: if kind == ChangeKind::Added { 0 } else { old_mode },
        new_mode: if kind == ChangeKind::Deleted { 0 } else { new_mode },
        bytes: 0,
        added: None,
        removed: None,
        old_id: old.id(),
        new_id: new.id(),
    }
}
