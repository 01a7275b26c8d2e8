//! Pristine trees: what boxes of the same base share, and when it goes.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::{Store, names, remove_tree};
use crate::path_error::{Action, PathError};
use crate::workspace::TreeRecord;

/// The name of a pristine tree below `trees/`: the 40 hexadecimal digits of its tree object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TreeKey(String);

/// One layer of a box's overlay: a directory of a pristine tree.
///
/// As text: the tree's name, `/`, and `files`, `index`, `over-` and the name of another tree, or
/// `git-` and 16 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LayerName {
    tree: TreeKey,
    part: String,
}

/// A text is not the name of a tree or of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a pristine tree or a layer of one")]
pub struct LayerNameError;

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'))
}

impl TreeKey {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A layer of this tree.
    ///
    /// # Errors
    /// [`LayerNameError`] when `part` is none.
    pub fn layer(&self, part: &str) -> Result<LayerName, LayerNameError> {
        let known = matches!(part, "files" | "index")
            || part.strip_prefix("over-").is_some_and(|digits| is_hex(digits, 40))
            || [LayerName::PLAIN, LayerName::ASKING]
                .into_iter()
                .any(|kind| part.strip_prefix(kind).is_some_and(|digits| is_hex(digits, 16)));
        if known {
            Ok(LayerName { tree: self.clone(), part: part.to_owned() })
        } else {
            Err(LayerNameError)
        }
    }
}

impl TryFrom<String> for TreeKey {
    type Error = LayerNameError;
    fn try_from(text: String) -> Result<Self, LayerNameError> {
        if is_hex(&text, 40) { Ok(Self(text)) } else { Err(LayerNameError) }
    }
}

impl From<TreeKey> for String {
    fn from(key: TreeKey) -> Self {
        key.0
    }
}

impl fmt::Display for TreeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl LayerName {
    /// How the part with a git directory begins.
    pub(crate) const PLAIN: &str = "git-";
    /// The same of one whose git asks h5i what to look at.
    pub(crate) const ASKING: &str = "asking-";

    /// Whether the git of a box with this layer asks h5i what to look at.
    pub(crate) fn asks(&self) -> bool {
        self.part.starts_with(Self::ASKING)
    }
}

impl TryFrom<String> for LayerName {
    type Error = LayerNameError;
    fn try_from(text: String) -> Result<Self, LayerNameError> {
        let (tree, part) = text.split_once('/').ok_or(LayerNameError)?;
        TreeKey::try_from(tree.to_owned())?.layer(part)
    }
}

impl From<LayerName> for String {
    fn from(name: LayerName) -> Self {
        format!("{}/{}", name.tree, name.part)
    }
}

impl Store {
    /// The most bytes of pristine trees that `gc` keeps, those that boxes use counted in.
    pub const TREES_KEPT: u64 = 4 << 30;

    /// Where pristine trees are kept.
    #[must_use]
    pub fn trees_dir(&self) -> PathBuf {
        self.root().join("trees")
    }

    /// Where the pristine tree of that name stands.
    #[must_use]
    pub fn tree_path(&self, key: &TreeKey) -> PathBuf {
        self.trees_dir().join(key.as_str())
    }

    /// Where a layer stands.
    #[must_use]
    pub fn layer_path(&self, layer: &LayerName) -> PathBuf {
        self.tree_path(&layer.tree).join(&layer.part)
    }

    /// Removes pristine trees (only those of `among`, where given) that no box uses, the one that
    /// was used longest ago first, until at most `keep` bytes are left. With a tree go those that
    /// are laid over it. None while somebody makes a box or a manifest can't be read.
    pub(super) fn collect_trees(
        &self,
        among: Option<&[TreeKey]>,
        keep: u64,
    ) -> Result<Vec<TreeKey>, PathError> {
        let Some(_exclusive) = self.objects_to_collect()? else { return Ok(Vec::new()) };
        let mut used = BTreeSet::new();
        for scope in self.scopes()? {
            for stored in self.boxes(&scope)? {
                let Ok(manifest) = stored.manifest() else { return Ok(Vec::new()) };
                used.extend(manifest.layers.into_iter().map(|layer| layer.tree));
            }
        }
        let mut total = 0;
        let mut over = Vec::new();
        let mut unused: Vec<(SystemTime, u64, TreeKey)> = Vec::new();
        for name in names(&self.trees_dir())? {
            let path = self.trees_dir().join(&name);
            let Ok(key) = TreeKey::try_from(name) else { continue };
            let (bytes, last_used) = TreeRecord::size_and_use(&path);
            total += bytes;
            // A box lists the layers of both: what stands on an unused tree is unused.
            over.extend(TreeRecord::stands_on(&path).map(|below| (below, key.clone(), bytes)));
            if !used.contains(&key) && among.is_none_or(|among| among.contains(&key)) {
                unused.push((last_used, bytes, key));
            }
        }
        unused.sort();
        let mut collected = Vec::new();
        for (_, bytes, key) in unused {
            let on_it = over.iter().filter(|(below, ..)| *below == key);
            let on_it: Vec<(TreeKey, u64)> = on_it.map(|(_, k, b)| (k.clone(), *b)).collect();
            for (key, bytes) in on_it.into_iter().chain([(key, bytes)]) {
                if total <= keep || collected.contains(&key) {
                    continue;
                }
                self.remove_pristine(&key)?;
                total -= bytes;
                collected.push(key);
            }
        }
        Ok(collected)
    }

    /// Away under a name that is none first: what is cut off is never taken for whole.
    fn remove_pristine(&self, key: &TreeKey) -> Result<(), PathError> {
        let gone = self.trees_dir().join(format!(".{key}.gone"));
        let path = self.tree_path(key);
        fs::rename(&path, &gone).map_err(PathError::at(Action::Rename, &path))?;
        remove_tree(&gone)
    }

    /// Removes what was cut off in the making or removing of trees, layers and trials, and yields
    /// it. Nothing while somebody makes a box.
    pub(super) fn collect_cut_off(&self) -> Result<Vec<PathBuf>, PathError> {
        let Some(_exclusive) = self.objects_to_collect()? else { return Ok(Vec::new()) };
        let hidden = |dir: &Path| -> Result<Vec<PathBuf>, PathError> {
            let names = names(dir)?.into_iter().filter(|name| name.starts_with('.'));
            Ok(names.map(|name| dir.join(name)).collect())
        };
        let mut found = hidden(&self.trees_dir())?;
        for name in names(&self.trees_dir())? {
            if let Ok(key) = TreeKey::try_from(name) {
                found.extend(hidden(&self.tree_path(&key))?);
            }
        }
        let trials = hidden(self.root())?;
        found.extend(trials.into_iter().filter(|path| path.extension() == Some("trial".as_ref())));
        for path in &found {
            remove_tree(path)?;
        }
        Ok(found)
    }
}
