//! Where a shallow history ends.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use git2::{Oid, Repository};

/// The commits reachable from `tip` whose parents the box does not receive: those of the host's own
/// shallow boundary, and those at a distance of `depth - 1`.
///
/// Distance is along the shortest way, as `git clone --depth` counts it. Sorted.
pub(super) fn boundary(
    repo: &Repository,
    tip: Oid,
    depth: Option<u32>,
    host_shallow: &BTreeSet<Oid>,
) -> Result<Vec<Oid>, git2::Error> {
    if depth.is_none() && host_shallow.is_empty() {
        return Ok(Vec::new());
    }
    let last = depth.map(|depth| depth.max(1));
    let mut seen = BTreeMap::from([(tip, 1_u32)]);
    let mut queue = VecDeque::from([(tip, 1_u32)]);
    let mut ends = BTreeSet::new();
    while let Some((id, level)) = queue.pop_front() {
        if host_shallow.contains(&id) {
            ends.insert(id);
            continue;
        }
        let commit = repo.find_commit(id)?;
        if last.is_some_and(|last| level >= last) {
            // A root commit ends by itself.
            if commit.parent_count() > 0 {
                ends.insert(id);
            }
            continue;
        }
        for parent in commit.parent_ids() {
            if seen.insert(parent, level + 1).is_none() {
                queue.push_back((parent, level + 1));
            }
        }
    }
    Ok(ends.into_iter().collect())
}
