//! What a set of file grants means: the access that each path of the host has.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::host_path::HostPath;
use crate::resolved::{FsPolicy, GrantOrigin, ReadGrant};

/// What the box may do with one path of the host, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    /// Nothing: it does not exist in the box, or is masked.
    Absent,
    /// Read and execute. The origin is part of the order only to give the meet one answer.
    Read(Reverse<GrantOrigin>),
    /// Read, execute and write.
    Write,
}

impl Access {
    /// Whether this allows no more than `outer`, whatever the origins.
    pub(crate) fn is_within(self, outer: Self) -> bool {
        let rank = |access| match access {
            Self::Absent => 0,
            Self::Read(_) => 1,
            Self::Write => 2,
        };
        rank(self) <= rank(outer)
    }

    pub(crate) const fn describe(self) -> &'static str {
        match self {
            Self::Absent => "not granted",
            Self::Read(_) => "read",
            Self::Write => "write",
        }
    }
}

/// The directories above `path`, deepest first; not `path` itself.
fn above(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(parent(path), |path| parent(path))
}

fn parent(path: &str) -> Option<&str> {
    match path.rfind('/')? {
        0 if path == "/" => None,
        0 => Some("/"),
        at => Some(&path[..at]),
    }
}

/// `path` with the relative `below` at its end.
fn join(path: &str, below: &str) -> String {
    if path == "/" { format!("/{below}") } else { format!("{path}/{below}") }
}

/// `path` relative to `top`, which covers it and is not equal to it.
fn relative<'a>(path: &'a str, top: &str) -> &'a str {
    path.strip_prefix(top).unwrap_or(path).trim_start_matches('/')
}

impl FsPolicy {
    /// The access that `path` has: the deepest grant that covers it decides.
    pub(crate) fn access(&self, path: &str) -> Access {
        for top in std::iter::once(path).chain(above(path)) {
            if self.write.contains(top) {
                return Access::Write;
            }
            if let Some(grant) = self.read.get(top) {
                let below = relative(path, top);
                let masked = path != top
                    && (grant.mask.contains(below)
                        || below
                            .match_indices('/')
                            .any(|(at, _)| grant.mask.contains(&below[..at])));
                return if masked { Access::Absent } else { Access::Read(Reverse(grant.origin)) };
            }
        }
        Access::Absent
    }

    /// Every path at which the access can change: grants and masks.
    pub(crate) fn boundaries(&self) -> BTreeSet<String> {
        let grants = self.read.keys().chain(&self.write).map(|path| path.as_str().to_owned());
        let masks = self.read.iter().flat_map(|(path, grant)| {
            grant.mask.iter().map(move |below| join(path.as_str(), below))
        });
        grants.chain(masks).collect()
    }

    /// The same grants in their one canonical form: none that changes nothing, each mask at the
    /// grant that it cuts.
    #[must_use]
    pub(crate) fn canonical_grants(&self) -> Self {
        let accesses =
            self.boundaries().into_iter().map(|path| (self.access(&path), path)).collect();
        let (hide, canaries) = (self.hide.clone(), self.canaries.clone());
        Self { hide, canaries, ..Self::from_accesses(accesses) }
    }

    /// The grants that give each of these paths, and what is below it, its access.
    pub(crate) fn from_accesses(accesses: Vec<(Access, String)>) -> Self {
        let accesses: BTreeMap<String, Access> =
            accesses.into_iter().map(|(access, path)| (path, access)).collect();
        let mut grants = Self::default();
        // A parent sorts before what is below it, so its grant is there when its masks come.
        for (path, access) in &accesses {
            let around = above(path).find_map(|top| accesses.get(top)).copied();
            if *access == around.unwrap_or(Access::Absent) {
                continue;
            }
            match access {
                Access::Absent => {
                    let top = above(path).find(|top| grants.read.contains_key(*top));
                    if let Some(grant) = top.and_then(|top| {
                        let grant = grants.read.get_mut(top)?;
                        Some((grant, relative(path, top)))
                    }) {
                        grant.0.mask.insert(grant.1.to_owned());
                    }
                }
                Access::Read(Reverse(origin)) => {
                    if let Ok(path) = HostPath::new(path) {
                        grants.read.insert(path, ReadGrant::whole(*origin));
                    }
                }
                Access::Write => {
                    if let Ok(path) = HostPath::new(path) {
                        grants.write.insert(path);
                    }
                }
            }
        }
        grants
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use super::Access;
    use crate::host_path::HostPath;
    use crate::resolved::{FsPolicy, GrantOrigin, ReadGrant};

    fn path(text: &str) -> HostPath {
        HostPath::new(text).expect(text)
    }

    fn grants(read: &[(&str, &[&str])], write: &[&str]) -> FsPolicy {
        let mut fs = FsPolicy::default();
        for (top, masks) in read {
            let mut grant = ReadGrant::whole(GrantOrigin::Policy);
            grant.mask = masks.iter().map(|mask| (*mask).to_owned()).collect();
            fs.read.insert(path(top), grant);
        }
        fs.write = write.iter().map(|top| path(top)).collect();
        fs
    }

    const READ: Access = Access::Read(Reverse(GrantOrigin::Policy));

    #[test]
    fn the_deepest_grant_decides() {
        let fs = grants(&[("/a", &["m", "x/y"]), ("/a/m/again", &[]), ("/w/ro", &[])], &["/w"]);
        for (at, access) in [
            ("/a", READ),
            ("/a/b", READ),
            ("/ab", Access::Absent),
            ("/a/m", Access::Absent),
            ("/a/m/deep", Access::Absent),
            ("/a/mm", READ),
            ("/a/x", READ),
            ("/a/x/y/z", Access::Absent),
            ("/a/m/again/z", READ),
            ("/w/x", Access::Write),
            ("/w/ro/x", READ),
            ("/", Access::Absent),
        ] {
            assert_eq!(fs.access(at), access, "{at}");
        }
        assert_eq!(grants(&[("/", &["etc"])], &[]).access("/usr"), READ);
        assert_eq!(grants(&[("/", &["etc"])], &[]).access("/etc/x"), Access::Absent);
    }

    #[test]
    fn grants_and_masks_that_change_nothing_are_dropped() {
        let full = grants(&[("/a", &["m", "m/n"]), ("/a/b", &[]), ("/a-b", &[])], &["/w", "/w/x"]);
        assert_eq!(full.canonical_grants(), grants(&[("/a", &["m"]), ("/a-b", &[])], &["/w"]));
    }

    #[test]
    fn a_grant_below_a_mask_is_kept() {
        let fs = grants(&[("/a", &["m"]), ("/a/m/again", &["k"])], &[]);
        assert_eq!(fs.canonical_grants(), fs);
    }
}
