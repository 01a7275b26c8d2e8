//! Programs of grants that a policy names by a link.

use std::collections::BTreeSet;
use std::path::Path;

use h5i_policy::{Allowed, Pattern, ResolvedPolicy};

use crate::toolchains::HostFacts;

/// Lists beside a program that the policy names by a link of the host the file which that leads to.
///
/// Who asks for a grant is known by the file that runs: `/usr/bin/python3` is `/usr/bin/python3.11`
/// to the kernel. Only links that the box can't change are followed, in what it reads of the host.
pub(crate) fn follow(policy: &mut ResolvedPolicy, files: &dyn HostFacts) {
    let read: Vec<&Path> = policy.fs.read.keys().map(|path| path.as_path()).collect();
    let written: Vec<&Path> = policy.fs.write.iter().map(|path| path.as_path()).collect();
    let is_hosts = |path: &Path| {
        let below = |places: &[&Path]| places.iter().any(|place| path.starts_with(place));
        below(&read) && !below(&written)
    };
    for grant in policy.grants.values_mut() {
        if let Allowed::Only(programs) = &mut grant.programs {
            let led_to: BTreeSet<Pattern> =
                programs.iter().filter_map(|program| led_to(program, files, is_hosts)).collect();
            programs.extend(led_to);
        }
    }
}

/// Where a path that is a link, or lies below one, leads.
fn led_to(
    program: &Pattern,
    files: &dyn HostFacts,
    is_hosts: impl Fn(&Path) -> bool,
) -> Option<Pattern> {
    let text = program.as_str();
    if !text.starts_with('/') || text.contains(['*', '?', '[', '\\']) || !is_hosts(text.as_ref()) {
        return None;
    }
    let file = files.real(Path::new(text)).filter(|file| file.is_file())?;
    let name = file.to_str().filter(|file| *file != text && is_hosts(file.as_ref()))?;
    // What a name has of a pattern's own characters is meant literally.
    let literal: String = name.chars().fold(String::new(), |mut literal, c| {
        literal.extend(matches!(c, '*' | '?' | '[' | '\\').then_some('\\'));
        literal.push(c);
        literal
    });
    Pattern::new(&literal).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::toolchains::HostFiles;

    #[test]
    fn a_link_of_the_hosts_leads_to_its_file() {
        let files = HostFiles::default();
        let dir = tempfile::tempdir().unwrap();
        let root = files.real(dir.path()).unwrap();
        let at = |name: &str| root.join(name).to_str().unwrap().to_owned();
        for place in ["usr", "work"] {
            fs::create_dir(root.join(place)).unwrap();
        }
        fs::write(root.join("usr/real[1]"), "").unwrap();
        symlink("usr", root.join("bin")).unwrap();
        for link in ["usr/link", "work/link"] {
            symlink(root.join("usr/real[1]"), root.join(link)).unwrap();
        }
        symlink("nothing", root.join("usr/dangling")).unwrap();
        symlink(".", root.join("usr/directory")).unwrap();
        symlink(root.join("work/tool"), root.join("usr/out")).unwrap();
        fs::write(root.join("work/tool"), "").unwrap();
        let read = [root.join("usr"), root.join("bin")];
        let is_hosts = |path: &Path| read.iter().any(|place| path.starts_with(place));
        let follow = |text: &str| led_to(&Pattern::new(text).unwrap(), &files, is_hosts);
        let real = at("usr/real[1]");
        for link in ["usr/link", "bin/link"] {
            let found = follow(&at(link)).unwrap();
            assert!(found.matches(real.as_bytes(), false), "{found}");
        }
        // What is no link, leads nowhere or to no file, is the box's, leads to the box, or is a
        // pattern, stays as it is.
        for other in ["usr/dangling", "usr/directory", "work/link", "usr/out", "usr/lin?", "usr/no"]
        {
            assert_eq!(follow(&at(other)), None, "{other}");
        }
        assert_eq!(follow("link"), None);
    }
}
