//! Whose a box's files are, and names that must not become files.

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use h5i::store::{BoxName, Store};
use h5i::workspace::{
    BaseObjects, BaseSpec, Checkout, CheckoutError, HostRepository, Identity, ObjectsAt,
    ObjectsRequest, Owner, Workspace, WorkspaceError,
};
use h5i_policy::History;
use support::{Ground, host_git, make, picture, raw_name, try_git};

const FULL: ObjectsRequest<'static> = ObjectsRequest { history: History::Full, hidden: None };

#[test]
fn a_box_of_root_belongs_to_its_own_id_and_a_users_to_the_user() {
    let ground = Ground::new();
    std::os::unix::fs::symlink("a.txt", ground.repo().join("link")).unwrap();
    ground.commit("link");
    let store = ground.store();
    let host = ground.host();
    let base = host.pin(&BaseSpec::Head).unwrap();
    let mut draft = store.draft(&host.scope(), &BoxName::new("a").unwrap(), None).unwrap();
    let objects = BaseObjects::make(&mut draft, Some(&host), &base, &FULL, &host_git()).unwrap();
    let id = store.allocate_host_id(&store.living_host_ids().unwrap()).unwrap();
    let me = rustix::process::geteuid().as_raw();
    let made = Workspace {
        base: &base,
        objects: &objects,
        identity: &Identity::default(),
        objects_at: ObjectsAt::InBox("/run/h5i/objects".into()),
        owner: Owner::Box(id),
        inside: (1000, 1000),
    }
    .create(&draft.box_dir(), &Checkout);
    if me != 0 {
        // Only root can give files away; the refusal names the file.
        let refused = made.unwrap_err();
        assert!(matches!(refused, WorkspaceError::Checkout(CheckoutError::Io(_))), "{refused:?}");
        return;
    }
    made.unwrap();
    for (path, ..) in picture(&draft.box_dir()) {
        let meta = fs::symlink_metadata(&path).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (id.number(), id.number()), "{}", path.display());
    }
    assert_eq!(fs::metadata(draft.host_dir()).unwrap().uid(), 0);
    // Readable for the box's id where they are shown to it, and not writable.
    for (path, _, mode, ..) in picture(&objects.path.join("objects")) {
        let expected = if path.is_dir() { 0o755 } else { 0o444 };
        assert_eq!(mode & 0o777, expected, "{}", path.display());
    }
    let index = git2::Index::open(&draft.box_dir().join("work/.git/index")).unwrap();
    assert!(index.iter().all(|entry| (entry.uid, entry.gid) == (1000, 1000)));
    drop(draft);
    assert_eq!(h5i_boxes(&store, &host), 0);
}

fn h5i_boxes(store: &Store, host: &HostRepository) -> usize {
    store.boxes(&host.scope()).map_or(usize::MAX, |boxes| boxes.len())
}

#[test]
fn a_tree_whose_names_would_escape_is_refused() {
    for name in ["..", ".git", ".GIT", "."] {
        let ground = Ground::new();
        let blob = ground.git(&["rev-parse", "HEAD:a.txt"]);
        let mut tree = format!("100644 {name}\0").into_bytes();
        tree.extend(git2::Oid::from_str(&blob).unwrap().as_bytes());
        let repo = git2::Repository::open(ground.repo()).unwrap();
        let tree = repo.odb().unwrap().write(git2::ObjectType::Tree, &tree).unwrap();
        let commit = ground.git(&["commit-tree", "-m", "hostile", &tree.to_string()]);
        let store = ground.store();
        let host = ground.host();
        let base = host.pin(&BaseSpec::Revision(commit)).unwrap();
        let mut draft = store.draft(&host.scope(), &BoxName::new("a").unwrap(), None).unwrap();
        let objects =
            BaseObjects::make(&mut draft, Some(&host), &base, &FULL, &host_git()).unwrap();
        let refused = Workspace {
            base: &base,
            objects: &objects,
            identity: &Identity::default(),
            objects_at: ObjectsAt::Host,
            owner: Owner::Caller,
            inside: (1000, 1000),
        }
        .create(&draft.box_dir(), &Checkout)
        .unwrap_err();
        assert!(
            matches!(refused, WorkspaceError::Checkout(CheckoutError::Name { .. })),
            "{name}: {refused:?}"
        );
    }
}

#[test]
fn a_repository_and_a_state_directory_of_raw_bytes_work() {
    let ground = Ground::new();
    let odd = ground.path().join(raw_name(b"r\xffepo"));
    fs::rename(ground.repo(), &odd).unwrap();
    let state = ground.path().join(raw_name(b"st\xfeate"));
    let store = Store::open(&state).unwrap();
    let host = HostRepository::discover(&odd.join("dir")).unwrap();
    let base = host.pin(&BaseSpec::Head).unwrap();
    let mut draft =
        store.draft(&host.scope(), &BoxName::new("a").unwrap(), Some(&host.origin())).unwrap();
    let objects = BaseObjects::make(&mut draft, Some(&host), &base, &FULL, &host_git()).unwrap();
    let me = fs::metadata(ground.path()).unwrap();
    Workspace {
        base: &base,
        objects: &objects,
        identity: &Identity::default(),
        objects_at: ObjectsAt::Host,
        owner: Owner::Caller,
        inside: (me.uid(), me.gid()),
    }
    .create(&draft.box_dir(), &Checkout)
    .unwrap();
    let status = try_git(&draft.box_dir().join("work"), &["status", "--porcelain"]);
    assert!(status.status.success(), "{status:?}");
    assert!(status.stdout.is_empty(), "{status:?}");
}

#[test]
fn a_repository_path_that_is_too_long_is_refused_in_words() {
    let deep = format!("/{}", ["d".repeat(199).as_str(); 20].join("/"));
    assert_eq!(deep.len(), 4000);
    let refused = HostRepository::discover(deep.as_ref()).unwrap_err();
    assert!(refused.to_string().contains("no git repository"), "{refused}");
    let one = format!("/{}", "d".repeat(3999));
    let refused = h5i::failure::Failure::from(HostRepository::discover(one.as_ref()).unwrap_err());
    assert!(refused.message.contains("File name too long"), "{}", refused.message);
}

#[test]
fn two_boxes_of_one_base_share_no_file() {
    let ground = Ground::new();
    let first = make(&ground, &BaseSpec::Head, History::Full);
    let second = make(&ground, &BaseSpec::Head, History::Full);
    fs::write(first.work().join("a.txt"), b"changed in the first\n").unwrap();
    fs::write(first.work().join(".git/config"), b"[core]\n").unwrap();
    assert_eq!(fs::read(second.work().join("a.txt")).unwrap(), b"one and more\n");
    let inode = |path: std::path::PathBuf| fs::metadata(path).unwrap().ino();
    assert_ne!(inode(first.work().join("dir/b.txt")), inode(second.work().join("dir/b.txt")));
}
