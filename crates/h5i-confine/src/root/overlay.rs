//! The steps that show several directories as one.

use std::path::{Path, PathBuf};

use crate::host::HostFacts;
use crate::layout::Access;
use crate::step::{BindKind, Step};

/// Where the layers of an overlay stand until it is mounted: in memory, for the root itself may be
/// one that was made before.
const LAYERS: &str = "/run/.layers";

/// An ordinary user's layers are named by their paths below one directory of the host, which is
/// where the mount's options begin: no path of the host shows, and nothing has to be mounted and
/// unmounted (each unmounting waits for every processor). A root caller's layers have their ids
/// mapped, which takes mounts, and so do layers that have nothing in common.
pub(crate) fn steps(
    facts: &HostFacts,
    lowers: &[PathBuf],
    area: &Path,
    target: PathBuf,
) -> Vec<Step> {
    if facts.is_root() {
        return mounted(lowers, area, target);
    }
    match common(lowers, area) {
        Some(base) => {
            let (lowers, area) = (lowers.to_vec(), area.to_owned());
            vec![Step::Overlay { target, lowers, area, base: Some(base) }]
        }
        None => mounted(lowers, area, target),
    }
}

/// The directory that all lie in, unless that would say too much or the mount's options can't name
/// what lies below it.
fn common(lowers: &[PathBuf], area: &Path) -> Option<PathBuf> {
    let all = || lowers.iter().map(PathBuf::as_path).chain([area]);
    let base = area.ancestors().skip(1).find(|above| all().all(|path| path.starts_with(above)))?;
    let plain = |path: &Path| {
        let below = path.strip_prefix(base).ok().and_then(Path::to_str);
        below.is_some_and(|below| !below.is_empty() && !below.contains([':', ',', '\\']))
    };
    (base.components().count() > 2 && all().all(plain)).then(|| base.to_owned())
}

fn mounted(lowers: &[PathBuf], area: &Path, target: PathBuf) -> Vec<Step> {
    let kind = BindKind::Layer;
    let place = |name: String| Path::new(LAYERS).join(name);
    // One mount below which the others stand, so that they go together.
    let mut steps = vec![Step::Scratch { path: LAYERS.into(), mode: 0o700, bound: None }];
    let mut places = Vec::new();
    for (number, source) in lowers.iter().enumerate() {
        let (source, target) = (source.clone(), place(number.to_string()));
        places.push(target.clone());
        steps.push(Step::Bind { source, target, access: Access::Read, kind });
    }
    let (source, written) = (area.to_owned(), place("written".to_owned()));
    let (access, kind) = (Access::Write, BindKind::Directory);
    steps.push(Step::Bind { source, target: written.clone(), access, kind });
    steps.push(Step::Overlay { target, lowers: places, area: written, base: None });
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(lowers: &[&str], area: &str) -> Option<String> {
        let lowers: Vec<PathBuf> = lowers.iter().map(PathBuf::from).collect();
        common(&lowers, Path::new(area)).map(|base| base.to_str().unwrap().to_owned())
    }

    #[test]
    fn layers_are_named_below_what_they_have_in_common() {
        let found = base(&["/s/h5i/trees/a/files", "/s/h5i/trees/a/index"], "/s/h5i/boxes/b/o");
        assert_eq!(found.as_deref(), Some("/s/h5i"));
        // Nothing in common, hardly anything, the same directory, and what options can't say.
        assert_eq!(base(&["/a/b/c"], "/d/e/f"), None);
        assert_eq!(base(&["/home/u/x"], "/home/v/y"), None);
        assert_eq!(base(&["/s/h5i"], "/s/h5i/o"), None);
        assert_eq!(base(&["/s/h5i/a:b"], "/s/h5i/o"), None);
        assert_eq!(base(&["/s/h5i/a"], "/s/h5i/o,x"), None);
        assert_eq!(base(&["/s/h:i/a"], "/s/h:i/o").as_deref(), Some("/s/h:i"));
    }
}
