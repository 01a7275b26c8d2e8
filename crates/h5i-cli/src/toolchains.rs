//! Which of the host's programs a box may read: the system's, and toolchains found from PATH.
//!
//! What is found is written into the resolved policy, so the digest covers the readable set. Finding
//! asks a small set of facts about the host and nothing else.

mod families;
mod host_facts;
mod system;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use h5i_policy::{GrantOrigin, HostPath, ReadGrant};

pub use host_facts::{HostFacts, HostFiles};
pub use system::system_grants;

use crate::own_places::touches;
use families::FAMILIES;

/// What is asked about toolchains.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Question<'a> {
    /// The caller's home directory.
    pub home: &'a Path,
    /// The directories of the caller's PATH, in order.
    pub path: &'a [PathBuf],
    /// `CARGO_HOME`, where it is set.
    pub cargo_home: Option<&'a Path>,
    /// `RUSTUP_HOME`, where it is set.
    pub rustup_home: Option<&'a Path>,
    /// Canonical directories that are never granted, nor anything that holds them or lies in them.
    pub own: &'a [PathBuf],
}

impl<'a> Question<'a> {
    /// The question for a home and a PATH, with no other variable set.
    #[must_use]
    pub const fn new(home: &'a Path, path: &'a [PathBuf]) -> Self {
        Self { home, path, cargo_home: None, rustup_home: None, own: &[] }
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Toolchains {
    /// What the box may read beside the system's grants, by canonical path.
    pub read: BTreeMap<HostPath, ReadGrant>,
    /// PATH in the box: canonical, in the caller's order, each directory once.
    pub path: Vec<HostPath>,
    /// Variables that tell the toolchains where they stand; their defaults lie below home, and the
    /// box's home is another one.
    pub variables: BTreeMap<&'static str, HostPath>,
    /// Links in the box's home, by path relative to it: caches that a toolchain reads and that it
    /// would look for there.
    pub links: BTreeMap<&'static str, HostPath>,
    /// Directories of PATH that are not granted, and why; for `explain`.
    pub left_out: Vec<(PathBuf, LeftOut)>,
}

/// Why a directory of PATH is not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftOut {
    /// It is not there.
    Absent,
    /// It is the home directory, or holds it.
    HoldsHome,
    /// It is one that holds keys or configuration.
    Private,
    /// It is where h5i keeps boxes or its configuration, holds it, or lies in it.
    Own,
    /// Its path can't be written in a policy: not UTF-8, or with control characters.
    Unwritable,
}

/// Directories below home that are never granted, even if PATH names something in them.
const PRIVATE: [&str; 8] =
    [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config", ".mozilla"];

/// Finds the toolchains that the PATH leads to.
///
/// A known family below home brings its own roots and not more (a `.cargo/bin` on PATH grants
/// `bin`, `registry` and `git` of CARGO_HOME, never its credentials). Anything else is granted as
/// the directory itself.
#[must_use]
pub fn find_toolchains(facts: &dyn HostFacts, question: &Question<'_>) -> Toolchains {
    let home = facts.real(question.home).unwrap_or_else(|| question.home.to_owned());
    let system = system_grants(facts);
    let own = question.own;
    let mut search = Search { facts, home, own, system: &system, found: Toolchains::default() };
    for dir in question.path {
        search.directory(dir, question);
    }
    search.found
}

struct Search<'a> {
    facts: &'a dyn HostFacts,
    home: PathBuf,
    own: &'a [PathBuf],
    system: &'a BTreeMap<HostPath, ReadGrant>,
    found: Toolchains,
}

impl Search<'_> {
    fn directory(&mut self, dir: &Path, question: &Question<'_>) {
        let Some(real) = self.facts.real(dir).filter(|real| self.facts.is_dir(real)) else {
            self.found.left_out.push((dir.to_owned(), LeftOut::Absent));
            return;
        };
        if let Err(why) = self.check(&real) {
            self.found.left_out.push((dir.to_owned(), why));
            return;
        }
        let Some(place) = host_path(&real) else {
            self.found.left_out.push((dir.to_owned(), LeftOut::Unwritable));
            return;
        };
        if !self.found.path.contains(&place) {
            self.found.path.push(place);
        }
        if self.is_system(&real) {
            return;
        }
        let roots = self.family_roots(&real, question);
        // A family whose roots do not hold this directory (a tool at an unusual place) leaves it to
        // be granted by itself.
        if !roots.iter().any(|(root, _)| real.starts_with(root)) {
            self.grant(&unrooted(&real), &[]);
        }
        for (root, masks) in roots {
            self.grant(&root, masks);
        }
    }

    /// The roots of the families that this directory is a sign of.
    fn family_roots(
        &mut self,
        dir: &Path,
        question: &Question<'_>,
    ) -> Vec<(PathBuf, &'static [&'static str])> {
        let mut roots = Vec::new();
        for family in FAMILIES {
            let base = match family.variable {
                Some("CARGO_HOME") => question.cargo_home,
                Some("RUSTUP_HOME") => question.rustup_home,
                _ => None,
            };
            let base = base
                .and_then(|base| self.facts.real(base))
                .or_else(|| self.facts.real(&self.home.join(family.base)))
                .filter(|base| self.check(base).is_ok());
            let Some(base) = base else { continue };
            let sign = family.signs.iter().any(|sign| {
                let place = if let Some(sign) = sign.strip_prefix("~/") {
                    self.home.join(sign)
                } else if let Some(sign) = sign.strip_prefix("$CARGO_HOME/") {
                    let cargo = question.cargo_home.map(Path::to_owned);
                    cargo.unwrap_or_else(|| self.home.join(".cargo")).join(sign)
                } else {
                    base.join(sign)
                };
                dir.starts_with(self.facts.real(&place).unwrap_or(place))
            });
            if sign {
                let root =
                    |root: &&str| if root.is_empty() { base.clone() } else { base.join(root) };
                if let (Some(name), Some(place)) = (family.tells, host_path(&base)) {
                    self.found.variables.insert(name, place);
                }
                for (link, target) in family.links {
                    let target = self.facts.real(&base.join(target));
                    if let Some(place) = target.as_deref().and_then(host_path) {
                        self.found.links.insert(link, place);
                    }
                }
                roots.extend(family.roots.iter().map(|r| (root(r), family.masks)));
            }
        }
        roots
    }

    /// Grants a root if it is there and nothing forbids it.
    fn grant(&mut self, root: &Path, masks: &[&str]) {
        let Some(real) = self.facts.real(root) else { return };
        if self.is_system(&real) || self.check(&real).is_err() {
            return;
        }
        let Some(place) = host_path(&real) else { return };
        let mut mask: BTreeSet<String> = BTreeSet::new();
        for name in masks {
            if self.facts.real(&real.join(name)).is_some() {
                mask.insert((*name).to_owned());
            }
        }
        let grant = self
            .found
            .read
            .entry(place)
            .or_insert_with(|| ReadGrant::whole(GrantOrigin::Toolchain));
        grant.mask.extend(mask);
    }

    fn check(&self, dir: &Path) -> Result<(), LeftOut> {
        if self.home.starts_with(dir) {
            return Err(LeftOut::HoldsHome);
        }
        if self.own.iter().any(|own| touches(own, dir)) {
            return Err(LeftOut::Own);
        }
        if PRIVATE.iter().any(|private| dir.starts_with(self.home.join(private))) {
            return Err(LeftOut::Private);
        }
        Ok(())
    }

    fn is_system(&self, dir: &Path) -> bool {
        self.system.keys().any(|granted| {
            dir.starts_with(granted.as_path())
                || self.facts.real(granted.as_path()).is_some_and(|real| dir.starts_with(real))
        })
    }
}

/// What to grant for a directory of no family: the package's own root where the layout is known
/// (`/opt/NAME`, the Nix store, Homebrew's prefix), else the directory itself.
fn unrooted(dir: &Path) -> PathBuf {
    if dir.starts_with("/nix") {
        return PathBuf::from("/nix/store");
    }
    if dir.starts_with("/home/linuxbrew/.linuxbrew") {
        return PathBuf::from("/home/linuxbrew/.linuxbrew");
    }
    if let Ok(rest) = dir.strip_prefix("/opt")
        && let Some(package) = rest.components().next()
    {
        return Path::new("/opt").join(package);
    }
    dir.to_owned()
}

fn host_path(path: &Path) -> Option<HostPath> {
    HostPath::new(path.to_str()?).ok()
}
