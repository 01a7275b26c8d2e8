//! A patch that was proven to give the reviewed tree.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

use git2::{FileMode, Oid};
use h5i_policy::Executables;

use super::links::{Leads, is_rules_file, resolve, target_at};
use super::refusal::{Refusal, RefusalRule};
use super::{
    Change, ChangeKind, Export, MachineCode, Proposal, Renames, ReviewError, Secrets, machine_code,
    patch,
};
use crate::apply::{Keep, apply};
use crate::patch_text::{PatchText, PatchWriter};
use crate::path::{ExportPath, NameSet};
use crate::secret::find_secrets;
use crate::store::{Base, Store, StoreError};

/// What stays in the box at a path, and how many files are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftBehind {
    /// A `.gitignore` of the base ignores it.
    Ignored {
        /// How many files.
        files: u64,
    },
    /// The policy hides it.
    Hidden {
        /// How many files.
        files: u64,
    },
    /// It is a submodule of the base; its content is not exported.
    Submodule {
        /// How many files.
        files: u64,
    },
    /// Its mode keeps its owner from reading it; see [`Closed::LeaveOut`](super::Closed::LeaveOut).
    Closed,
}

impl LeftBehind {
    /// How many files stay, as far as they could be counted.
    #[must_use]
    pub const fn files(self) -> u64 {
        match self {
            Self::Ignored { files } | Self::Hidden { files } | Self::Submodule { files } => files,
            Self::Closed => 0,
        }
    }

    /// Why they stay, in one word.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::Ignored { .. } => "ignored",
            Self::Hidden { .. } => "hidden",
            Self::Submodule { .. } => "submodule",
            Self::Closed => "closed",
        }
    }

    pub(super) const fn count_one(&mut self) {
        match self {
            Self::Ignored { files } | Self::Hidden { files } | Self::Submodule { files } => {
                *files += 1
            }
            Self::Closed => {}
        }
    }
}

/// Something in a changed file that a reader of the report must see.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flag {
    /// The file.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: FlagKind,
}

/// What a flagged file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FlagKind {
    /// It became executable.
    Executable,
    /// It is machine code that the policy lets pass.
    MachineCode(MachineCode),
    /// It holds what looks like a secret.
    Secret {
        /// What it looks like.
        shape: &'static str,
        /// The line, from 1.
        line: usize,
    },
}

/// A reviewed proposal: the patch, applied to the pinned base, gives exactly the reviewed tree,
/// nothing in it breaks a rule, and it was built from bytes that were read once.
///
/// Only [`Proposal::review`] makes one.
#[derive(Debug)]
#[non_exhaustive]
pub struct Reviewed {
    /// What the patch applies to.
    pub base: Base,
    /// The tree that it gives.
    pub tree: Oid,
    /// The patch, as `git apply --index` takes it; empty when nothing changed.
    pub patch: PatchText,
    /// What it changes, in the order of the patch.
    pub changes: Vec<Change>,
    /// How renamed files were looked for.
    pub renames: Renames,
    /// What a reader must see, by path.
    pub flags: Vec<Flag>,
    /// What stays in the box, by path.
    pub left: BTreeMap<Vec<u8>, LeftBehind>,
}

impl Proposal<'_> {
    /// Makes the patch, checks every change against the rules and proves the patch.
    ///
    /// # Errors
    /// [`ReviewError::Refused`] with everything that may not leave;
    /// [`ReviewError::PatchDiffers`] or [`ReviewError::PatchFails`] when the patch does not give the
    /// reviewed tree, in which case nothing may be written.
    pub fn review(self) -> Result<Reviewed, ReviewError> {
        let Self { export, store, compared } = self;
        let base = export.base.tree;
        let tree = compared.edits.apply(&store, Some(base))?;
        let at = patch::Where::At(compared.edits.paths());
        let mut text = PatchWriter::new(&export.scratch);
        let (changes, renames) = patch::make(&store, (base, tree), at, &mut text)?;
        let text = text.finish().map_err(StoreError::Patch)?;
        let mut check = Check { store: &store, refusals: compared.refusals, flags: Vec::new() };
        check.names(tree, &compared.added)?;
        check.links(base, tree, &compared.links, &changes)?;
        for change in changes.iter().filter(|change| change.new_mode != 0) {
            check.mode(change, export.policy.executables);
            check.content(change, &export)?;
        }
        let Check { mut refusals, mut flags, .. } = check;
        if !refusals.is_empty() {
            refusals.sort_by(|a, b| a.path.cmp(&b.path));
            return Err(ReviewError::Refused { refusals });
        }
        prove(&store, base, tree, text.reader())?;
        flags.sort_by(|a, b| (&a.path, a.kind).cmp(&(&b.path, b.kind)));
        let left = compared.left;
        Ok(Reviewed { base: export.base, tree, patch: text, changes, renames, flags, left })
    }
}

/// Fails unless the patch, applied to the base, gives the reviewed tree.
pub(super) fn prove(
    store: &Store,
    base: Oid,
    reviewed: Oid,
    patch: impl BufRead,
) -> Result<(), ReviewError> {
    let applied = apply(store, base, patch, Keep::Ids).map_err(ReviewError::PatchFails)?;
    if applied == reviewed { Ok(()) } else { Err(ReviewError::PatchDiffers { reviewed, applied }) }
}

struct Check<'s> {
    store: &'s Store,
    refusals: Vec<Refusal>,
    flags: Vec<Flag>,
}

impl Check<'_> {
    fn refuse(&mut self, path: &[u8], rule: RefusalRule) {
        if self.refusals.len() < Refusal::MAX {
            self.refusals.push(Refusal { path: path.to_vec(), rule });
        }
    }

    /// New names against each other and against all that stands beside them.
    fn names(&mut self, tree: Oid, added: &[ExportPath]) -> Result<(), StoreError> {
        let new: BTreeSet<&[u8]> = added.iter().map(ExportPath::as_bytes).collect();
        let mut names = NameSet::new();
        let mut known: BTreeSet<Vec<u8>> = BTreeSet::new();
        for path in added {
            let components: Vec<&[u8]> = path.components().collect();
            for depth in 0..components.len() {
                let directory = components[..depth].join(&b'/');
                if known.contains(&directory) {
                    continue;
                }
                self.know(tree, &directory, &new, &mut names)?;
                known.insert(directory);
            }
        }
        for path in added {
            if let Err(clash) = names.add(path) {
                self.refuse(path.as_bytes(), RefusalRule::Clash(clash));
            }
        }
        Ok(())
    }

    /// Tells `names` what is in one directory of the reviewed tree and is not new.
    fn know(
        &self,
        root: Oid,
        directory: &[u8],
        new: &BTreeSet<&[u8]>,
        names: &mut NameSet,
    ) -> Result<(), StoreError> {
        let mut tree = self.store.tree(root)?;
        for name in directory.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            let below = tree
                .get_name_bytes(name)
                .filter(|entry| entry.filemode() == i32::from(FileMode::Tree));
            let Some(id) = below.map(|entry| entry.id()) else { return Ok(()) };
            tree = self.store.tree(id)?;
        }
        for entry in &tree {
            let mut path = directory.to_vec();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(entry.name_bytes());
            if !new.contains(&path[..]) {
                names.know(&path);
            }
        }
        Ok(())
    }

    /// Every link that is new or changed, and every other one that leads elsewhere than before.
    fn links(
        &mut self,
        base: Oid,
        tree: Oid,
        links: &[Vec<u8>],
        changes: &[Change],
    ) -> Result<(), StoreError> {
        let link = u32::from(FileMode::Link);
        let changed: BTreeSet<&[u8]> = changes
            .iter()
            .filter(|change| change.new_mode == link)
            .map(|change| &change.path[..])
            .collect();
        if changed.is_empty() {
            return Ok(());
        }
        for path in links {
            let Some(target) = target_at(self.store, tree, path)? else { continue };
            let is_new = changed.contains(&path[..]);
            if is_new && is_rules_file(path) {
                self.refuse(path, RefusalRule::LinkedRules);
            }
            if resolve(self.store, tree, path, &target)? == Leads::Inside {
                continue;
            }
            // One that led outside in the base is the base's own.
            if is_new || resolve(self.store, base, path, &target)? == Leads::Inside {
                self.refuse(path, RefusalRule::LinkEscapes { target });
            }
        }
        Ok(())
    }

    fn mode(&mut self, change: &Change, rule: Executables) {
        let executable = u32::from(FileMode::BlobExecutable);
        if change.new_mode != executable || change.old_mode == executable {
            return;
        }
        match rule {
            Executables::Allow => {}
            Executables::Flag => self.flag(change, FlagKind::Executable),
            // What a later policy may say is refused until it is known here.
            _ => self.refuse(&change.path, RefusalRule::Executable),
        }
    }

    fn content(&mut self, change: &Change, export: &Export<'_>) -> Result<(), StoreError> {
        if change.new_mode == u32::from(FileMode::Link) || change.old_id == change.new_id {
            return Ok(());
        }
        let blob = self.store.blob(change.new_id)?;
        if let Some(code) = machine_code(blob.content()) {
            if (export.binaries)(&change.path) {
                self.flag(change, FlagKind::MachineCode(code));
            } else {
                self.refuse(&change.path, RefusalRule::MachineCode(code));
            }
        }
        let known = self.known_secrets(change)?;
        let planted = export.planted.into_iter().flat_map(|all| all.find(blob.content()));
        for found in find_secrets(blob.content()).chain(planted) {
            let (shape, line) = (found.shape, found.line);
            if known.contains(&blob.content()[found.start..found.end]) {
                continue;
            }
            match export.secrets {
                Secrets::Flag => self.flag(change, FlagKind::Secret { shape, line }),
                Secrets::Refuse => self.refuse(&change.path, RefusalRule::Secret { shape, line }),
            }
        }
        Ok(())
    }

    /// Secrets that the file had in the base already.
    fn known_secrets(&self, change: &Change) -> Result<BTreeSet<Vec<u8>>, StoreError> {
        if change.kind == ChangeKind::Added {
            return Ok(BTreeSet::new());
        }
        let blob = self.store.blob(change.old_id)?;
        let content = blob.content();
        Ok(find_secrets(content).map(|found| content[found.start..found.end].to_vec()).collect())
    }

    fn flag(&mut self, change: &Change, kind: FlagKind) {
        self.flags.push(Flag { path: change.path.clone(), kind });
    }
}
