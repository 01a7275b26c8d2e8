use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{HostFacts, LeftOut, Question, Toolchains, find_toolchains, system_grants};

/// A host that is a table: a path, and what it leads to (itself where it is no link).
#[derive(Debug)]
struct Table(BTreeMap<PathBuf, PathBuf>);

impl Table {
    fn new(paths: &[&str], links: &[(&str, &str)]) -> Self {
        let mut table = BTreeMap::new();
        for path in paths.iter().copied().chain(["/usr/bin", "/etc/ssl/private", "/etc/shadow"]) {
            for above in Path::new(path).ancestors() {
                table.insert(above.to_owned(), above.to_owned());
            }
        }
        for (link, target) in links {
            table.insert(link.into(), target.into());
        }
        Self(table)
    }
}

impl HostFacts for Table {
    fn real(&self, path: &Path) -> Option<PathBuf> {
        for above in path.ancestors() {
            match self.0.get(above) {
                Some(target) if target != above => {
                    return self.real(&target.join(path.strip_prefix(above).ok()?));
                }
                _ => {}
            }
        }
        self.0.contains_key(path).then(|| path.to_owned())
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.0.contains_key(path)
    }

    fn names(&self, dir: &Path) -> Vec<String> {
        let below = self.0.keys().filter(|path| path.parent() == Some(dir));
        below.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect()
    }
}

fn found(table: &Table, path: &[&str]) -> Toolchains {
    let path: Vec<PathBuf> = path.iter().map(PathBuf::from).collect();
    find_toolchains(table, &Question::new(Path::new("/home/u"), &path))
}

fn granted(found: &Toolchains) -> Vec<&str> {
    found.read.keys().map(h5i_policy::HostPath::as_str).collect()
}

#[test]
fn system_directories_need_no_toolchain_grant() {
    let table = Table::new(&["/home/u", "/usr/local/bin"], &[("/bin", "/usr/bin")]);
    let found = found(&table, &["/usr/local/bin", "/bin", "/usr/bin"]);
    assert_eq!(granted(&found), Vec::<&str>::new());
    let path: Vec<_> = found.path.iter().map(h5i_policy::HostPath::as_str).collect();
    assert_eq!(path, ["/usr/local/bin", "/usr/bin"]);
}

#[test]
fn cargo_on_path_grants_programs_sources_and_rustup_but_no_credentials() {
    let table = Table::new(
        &[
            "/home/u/.cargo/bin",
            "/home/u/.cargo/registry",
            "/home/u/.cargo/credentials.toml",
            "/home/u/.rustup/toolchains",
        ],
        &[],
    );
    let found = found(&table, &["/home/u/.cargo/bin"]);
    assert_eq!(
        granted(&found),
        ["/home/u/.cargo/bin", "/home/u/.cargo/registry", "/home/u/.rustup"]
    );
}

#[test]
fn moved_cargo_and_rustup_homes_are_followed() {
    let table = Table::new(&["/home/u", "/srv/cargo/bin", "/srv/rustup"], &[]);
    let path = [PathBuf::from("/srv/cargo/bin")];
    let mut question = Question::new(Path::new("/home/u"), &path);
    question.cargo_home = Some(Path::new("/srv/cargo"));
    question.rustup_home = Some(Path::new("/srv/rustup"));
    let found = find_toolchains(&table, &question);
    assert_eq!(granted(&found), ["/srv/cargo/bin", "/srv/rustup"]);
}

#[test]
fn credential_files_inside_a_root_are_masked() {
    let table = Table::new(&["/home/u/.nvm/versions/node/v22/bin", "/home/u/.nvm/.npmrc"], &[]);
    let found = found(&table, &["/home/u/.nvm/versions/node/v22/bin"]);
    let grant = found.read.values().next().unwrap();
    assert_eq!(granted(&found), ["/home/u/.nvm"]);
    assert_eq!(grant.mask.iter().collect::<Vec<_>>(), [".npmrc"]);
}

#[test]
fn a_linked_home_is_resolved_once_and_everywhere() {
    let table =
        Table::new(&["/data/u/.cargo/bin", "/data/u/.rustup", "/home"], &[("/home/u", "/data/u")]);
    let found = found(&table, &["/home/u/.cargo/bin"]);
    assert_eq!(granted(&found), ["/data/u/.cargo/bin", "/data/u/.rustup"]);
    assert_eq!(found.path[0].as_str(), "/data/u/.cargo/bin");
}

#[test]
fn home_what_holds_it_and_private_directories_are_left_out() {
    let table = Table::new(&["/home/u/.ssh/bin", "/home/u/tools"], &[]);
    let found =
        found(&table, &["/home/u", "/home", "/", "/home/u/.ssh/bin", "/gone", "/home/u/tools"]);
    let why: Vec<_> = found.left_out.iter().map(|(_, why)| *why).collect();
    assert_eq!(
        why,
        [
            LeftOut::HoldsHome,
            LeftOut::HoldsHome,
            LeftOut::HoldsHome,
            LeftOut::Private,
            LeftOut::Absent
        ]
    );
    // The twin: an ordinary directory beside them is granted, and only itself.
    assert_eq!(granted(&found), ["/home/u/tools"]);
}

#[test]
fn a_link_that_leads_into_a_private_directory_is_left_out() {
    let table = Table::new(&["/home/u/.ssh"], &[("/home/u/tools", "/home/u/.ssh")]);
    let found = found(&table, &["/home/u/tools"]);
    assert_eq!(found.left_out, [(PathBuf::from("/home/u/tools"), LeftOut::Private)]);
}

#[test]
fn packages_with_a_known_layout_are_granted_from_their_root() {
    let table = Table::new(
        &["/home/u", "/opt/tool/bin", "/nix/store/abc-x/bin", "/srv/x/bin"],
        &[("/nix/profile/bin", "/nix/store/abc-x/bin")],
    );
    let found = found(&table, &["/opt/tool/bin", "/nix/profile/bin", "/srv/x/bin"]);
    assert_eq!(granted(&found), ["/nix/store", "/opt/tool", "/srv/x/bin"]);
}

#[test]
fn the_system_grants_have_certificates_and_no_secret() {
    let table = Table::new(&["/etc/java-17-openjdk", "/etc/passwd", "/etc/sudoers"], &[]);
    let grants = system_grants(&table);
    let names: Vec<_> = grants.keys().map(h5i_policy::HostPath::as_str).collect();
    assert_eq!(names, ["/etc/java-17-openjdk", "/etc/ssl", "/usr"]);
    let ssl = &grants[&h5i_policy::HostPath::new("/etc/ssl").unwrap()];
    assert_eq!(ssl.mask.iter().collect::<Vec<_>>(), ["private"]);
}

#[test]
fn where_boxes_are_kept_is_left_out_with_what_holds_it_and_what_is_in_it() {
    let dirs = ["/home/u/.local/bin", "/home/u/.local/state/h5i/trees", "/home/u/.local/share"];
    let table = Table::new(&dirs, &[("/home/u/link", "/home/u/.local/state")]);
    let own = [PathBuf::from("/home/u/.local/state/h5i")];
    let path = [
        "/home/u/.local",
        "/home/u/.local/state",
        "/home/u/link",
        "/home/u/.local/state/h5i",
        "/home/u/.local/state/h5i/trees",
        "/home/u/.local/bin",
    ]
    .map(PathBuf::from);
    let question = Question { own: &own, ..Question::new(Path::new("/home/u"), &path) };
    let found = find_toolchains(&table, &question);
    let why: Vec<_> = found.left_out.iter().map(|(_, why)| *why).collect();
    assert_eq!(why, [LeftOut::Own; 5]);
    // The twin: a directory beside it is granted.
    assert_eq!(granted(&found), ["/home/u/.local/bin"]);
}
