use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use h5i_policy::{History, Tier};
use tempfile::TempDir;

use super::*;
use crate::timestamp::Timestamp;

fn ground() -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("state")).unwrap();
    (dir, store)
}

fn name(text: &str) -> BoxName {
    BoxName::new(text).unwrap()
}

fn manifest(box_name: &str, objects: &[&str], expires: Option<Timestamp>) -> Manifest {
    Manifest {
        v: Manifest::VERSION,
        id: BoxId::random().unwrap(),
        name: name(box_name),
        created: Timestamp::from_millis(0),
        expires,
        base: BaseRecord {
            commit: "0".repeat(40),
            tree: "1".repeat(40),
            host_commit: None,
            branch: "main".into(),
            described: "empty".into(),
        },
        tier: Tier::Process,
        profile: "default".into(),
        purpose: None,
        policy_digest: h5i_policy::ResolvedPolicy::default().digest(),
        parent: None,
        artifact: None,
        workspace: WorkspaceKind::Checkout,
        workspace_reason: "a test".into(),
        layers: Vec::new(),
        history: History::Full,
        objects: objects
            .iter()
            .map(|key| ObjectsKey::try_from((*key).to_owned()).unwrap())
            .collect(),
        plan: vec!["a step".into()],
        host_id: None,
    }
}

fn make(store: &Store, box_name: &str) -> StoredBox {
    let draft = store.draft(&Scope::None, &name(box_name), None).unwrap();
    draft.commit(&manifest(box_name, &[], None)).unwrap().0
}

/// Every name below a directory, without the locks that stay.
fn names_below(dir: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(path) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&path) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            found.insert(path.strip_prefix(dir).unwrap().display().to_string());
            if !path.is_symlink() && path.is_dir() {
                waiting.push(path);
            }
        }
    }
    found
}

#[test]
fn a_box_is_found_after_its_commit_and_not_before() {
    let (_dir, store) = ground();
    let draft = store.draft(&Scope::None, &name("a"), None).unwrap();
    let early = store.find(&Scope::None, &name("a")).unwrap_err();
    assert!(matches!(early, FindError::NotFound { .. }), "{early:?}");
    let written = manifest("a", &[], None);
    let (made, lock) = draft.commit(&written).unwrap();
    assert_eq!(store.find(&Scope::None, &name("a")).unwrap(), made);
    assert_eq!(made.manifest().unwrap(), written);
    assert!(matches!(made.lock(), Err(LockError::Busy)));
    drop(lock);
    made.lock().unwrap();
}

#[test]
fn everything_is_closed_to_other_users() {
    let (_dir, store) = ground();
    let made = make(&store, "a");
    for path in [store.root(), made.dir(), &made.host_dir(), &made.box_dir()] {
        assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o700, "{}", path.display());
    }
    let file = made.host_dir().join("manifest.json");
    assert_eq!(fs::metadata(file).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_dropped_draft_leaves_nothing() {
    let (_dir, store) = ground();
    let scope = Scope::Repository(RepoId::of_common_dir(Path::new("/srv/a/.git")));
    let origin = Origin::new(Path::new("/srv/a/.git"));
    let draft = store.draft(&scope, &name("a"), Some(&origin)).unwrap();
    fs::write(draft.box_dir().join("file"), b"x").unwrap();
    assert!(names_below(store.root()).len() > 5);
    drop(draft);
    let left = names_below(store.root());
    let expected = ["objects", "objects/.lock", "repos"].map(str::to_owned);
    assert_eq!(left, BTreeSet::from(expected));
}

#[test]
fn a_name_that_is_taken_is_refused_and_the_box_stays() {
    let (_dir, store) = ground();
    let first = make(&store, "a");
    let kept = first.manifest().unwrap();
    let refused = store.draft(&Scope::None, &name("a"), None).unwrap_err();
    assert!(matches!(refused, DraftError::Exists { .. }), "{refused:?}");
    assert_eq!(first.manifest().unwrap(), kept);
}

#[test]
fn of_two_drafts_of_one_name_one_becomes_the_box() {
    let (_dir, store) = ground();
    let first = store.draft(&Scope::None, &name("a"), None).unwrap();
    let second = store.draft(&Scope::None, &name("a"), None).unwrap();
    let (winner, _lock) = first.commit(&manifest("a", &[], None)).unwrap();
    let kept = winner.manifest().unwrap();
    let refused = second.commit(&manifest("a", &[], None)).unwrap_err();
    assert!(matches!(refused, CommitError::Exists { .. }), "{refused:?}");
    assert_eq!(winner.manifest().unwrap(), kept);
    let boxes = names(&store.boxes_dir(&Scope::None)).unwrap();
    assert_eq!(boxes, ["a"]);
}

#[test]
fn a_box_that_is_not_there_names_those_that_are() {
    let (_dir, store) = ground();
    make(&store, "fix-auth");
    match store.find(&Scope::None, &name("fix-oauth")) {
        Err(FindError::NotFound { names, .. }) => assert_eq!(names, [name("fix-auth")]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_manifest_of_another_version_or_with_more_fields_is_refused() {
    let json = manifest("a", &[], None).to_json().unwrap();
    Manifest::parse(&json).unwrap();
    let text = String::from_utf8(json).unwrap();
    let newer = text.replacen("\"v\": 1", "\"v\": 2", 1);
    assert!(matches!(Manifest::parse(newer.as_bytes()), Err(ManifestError::Version { found: 2 })));
    let more = text.replacen("\"v\": 1", "\"v\": 1, \"later\": true", 1);
    assert!(matches!(Manifest::parse(more.as_bytes()), Err(ManifestError::Malformed(_))));
}

#[test]
fn removal_archives_the_receipt_and_frees_the_name() {
    let (_dir, store) = ground();
    let made = make(&store, "a");
    let id = made.manifest().unwrap().id;
    fs::write(made.host_dir().join("receipt.jsonl"), b"{}\n").unwrap();
    fs::create_dir(made.box_dir().join("work")).unwrap();
    let removed = store.remove(&made, Retain::Receipt).unwrap();
    let archive = removed.archive.unwrap();
    assert_eq!(archive, store.archive_dir().join(format!("a-{id}")));
    assert_eq!(fs::read(archive.join("receipt.jsonl")).unwrap(), b"{}\n");
    assert!(!archive.join("lock").try_exists().unwrap());
    assert_eq!(names(&store.boxes_dir(&Scope::None)).unwrap(), Vec::<String>::new());
    make(&store, "a");
}

#[test]
fn purging_leaves_no_receipt() {
    let (_dir, store) = ground();
    let made = make(&store, "a");
    assert_eq!(store.remove(&made, Retain::Nothing).unwrap().archive, None);
    assert!(!store.archive_dir().try_exists().unwrap());
}

#[test]
fn a_box_in_use_is_not_removed() {
    let (_dir, store) = ground();
    let made = make(&store, "a");
    let lock = made.lock().unwrap();
    assert!(matches!(store.remove(&made, Retain::Receipt), Err(RemoveError::Busy)));
    made.manifest().unwrap();
    drop(lock);
    store.remove(&made, Retain::Receipt).unwrap();
}

#[test]
fn removal_does_not_follow_links_and_opens_closed_directories() {
    let (dir, store) = ground();
    let outside = dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("canary"), b"stays").unwrap();
    let made = make(&store, "a");
    let work = made.box_dir().join("work");
    fs::create_dir_all(work.join("closed/below/deeper")).unwrap();
    fs::write(work.join("closed/below/file"), b"x").unwrap();
    symlink(&outside, work.join("link")).unwrap();
    symlink(&outside, work.join("closed/below/link")).unwrap();
    for closed in ["closed/below", "closed"] {
        fs::set_permissions(work.join(closed), Permissions::from_mode(0o0)).unwrap();
    }
    store.remove(&made, Retain::Nothing).unwrap();
    assert_eq!(names(&store.boxes_dir(&Scope::None)).unwrap(), Vec::<String>::new());
    assert_eq!(fs::read(outside.join("canary")).unwrap(), b"stays");
}

#[test]
fn removal_takes_trees_deeper_than_a_path_or_the_stack_can_be() {
    let (_dir, store) = ground();
    let made = make(&store, "a");
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let mut at = rustix::fs::open(made.box_dir(), flags, rustix::fs::Mode::empty()).unwrap();
    for _ in 0..2500 {
        rustix::fs::mkdirat(&at, "d", rustix::fs::Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, "d", flags, rustix::fs::Mode::empty()).unwrap();
    }
    drop(at);
    store.remove(&made, Retain::Nothing).unwrap();
    assert_eq!(names(&store.boxes_dir(&Scope::None)).unwrap(), Vec::<String>::new());
}

#[test]
fn removal_takes_more_names_than_it_reads_at_a_time() {
    let (dir, _) = ground();
    let tree = dir.path().join("tree");
    for wide in [tree.clone(), tree.join("a/b")] {
        fs::create_dir_all(&wide).unwrap();
        for number in 0..5000 {
            fs::write(wide.join(format!("file-{number}")), "").unwrap();
        }
    }
    // Each level has more than the one directory that leads on.
    let mut level = tree.join("deep");
    for number in 0..60 {
        for side in ["left", "right", "on"] {
            fs::create_dir_all(level.join(side)).unwrap();
            fs::write(level.join(side).join("file"), "").unwrap();
        }
        level = level.join("on").join(number.to_string());
    }
    fs::write(dir.path().join("beside"), "").unwrap();
    remove_tree(&tree).unwrap();
    assert_eq!(names_below(dir.path()), BTreeSet::from(["beside".to_owned()]));
}

#[test]
fn gc_finishes_what_a_crash_left_and_leaves_what_is_in_use() {
    let (_dir, store) = ground();
    let boxes = store.boxes_dir(&Scope::None);
    make(&store, "alive");
    let gone = make(&store, "half");
    fs::write(gone.host_dir().join("receipt.jsonl"), b"{}\n").unwrap();
    fs::rename(gone.dir(), boxes.join(".half.0a0a0a0a.gone")).unwrap();
    fs::create_dir_all(boxes.join(".b.c.11111111.new/host")).unwrap();
    let draft = store.draft(&Scope::None, &name("in-the-making"), None).unwrap();
    let report = store.gc(Timestamp::now()).unwrap();
    assert_eq!(report.collected.len(), 2, "{report:?}");
    let left = names(&boxes).unwrap();
    assert_eq!(left.len(), 2, "{left:?}");
    draft.commit(&manifest("in-the-making", &[], None)).unwrap();
    let kept = names(&store.archive_dir()).unwrap();
    assert!(kept[0].starts_with("half-"), "{kept:?}");
}

#[test]
fn gc_removes_expired_boxes_at_their_time_and_unused_ones_only() {
    let (_dir, store) = ground();
    let end = Timestamp::from_millis(1000);
    for box_name in ["idle", "used"] {
        let draft = store.draft(&Scope::None, &name(box_name), None).unwrap();
        draft.commit(&manifest(box_name, &[], Some(end))).unwrap();
    }
    let used = store.find(&Scope::None, &name("used")).unwrap();
    let lock = used.lock().unwrap();
    let early = store.gc(Timestamp::from_millis(999)).unwrap();
    assert_eq!(early, GcReport::default());
    let late = store.gc(end).unwrap();
    assert_eq!(late.collected, [Collected::Expired(name("idle"))]);
    assert_eq!(late.busy, [name("used")]);
    drop(lock);
}

#[test]
fn gc_collects_objects_that_no_box_borrows() {
    let (_dir, store) = ground();
    let (used, unused) = ("a".repeat(40), "b".repeat(40));
    let draft = store.draft(&Scope::None, &name("a"), None).unwrap();
    for key in [&used, &unused] {
        fs::create_dir_all(store.objects_dir().join(key)).unwrap();
    }
    // While a draft holds its lease nothing is collected.
    assert_eq!(store.gc(Timestamp::now()).unwrap().collected, []);
    draft.commit(&manifest("a", &[&used], None)).unwrap();
    let unused = ObjectsKey::try_from(unused).unwrap();
    let report = store.gc(Timestamp::now()).unwrap();
    assert_eq!(report.collected, [Collected::Objects(unused)]);
    assert!(store.objects_dir().join(&used).try_exists().unwrap());
}

#[test]
fn a_damaged_box_keeps_all_objects_and_is_named() {
    let (_dir, store) = ground();
    let made = make(&store, "a");
    fs::write(made.host_dir().join("manifest.json"), b"{").unwrap();
    fs::create_dir_all(store.objects_dir().join("b".repeat(40))).unwrap();
    let report = store.gc(Timestamp::now()).unwrap();
    assert_eq!((report.collected.len(), report.damaged), (0, vec![name("a")]));
}

#[test]
fn host_ids_differ_are_not_root_and_skip_living_boxes() {
    let (_dir, store) = ground();
    let first = store.allocate_host_id(&BTreeSet::new()).unwrap();
    let second = store.allocate_host_id(&BTreeSet::new()).unwrap();
    assert_eq!(second.number(), first.number() + 1);
    assert!((2_000_000_000..2_100_000_000).contains(&first.number()));
    let living = BTreeSet::from([HostId::try_from(second.number() + 1).unwrap()]);
    let third = store.allocate_host_id(&living).unwrap();
    assert_eq!(third.number(), second.number() + 2);
    assert!(matches!(HostId::try_from(0), Err(HostIdError::OutOfRange(0))));
}

#[test]
fn a_state_directory_that_can_not_be_written_leaves_nothing_and_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    let store = Store::open(&file.join("state")).unwrap();
    match store.draft(&Scope::None, &name("a"), None) {
        Err(DraftError::Io(e)) => assert!(e.to_string().contains("file/state"), "{e}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(names_below(dir.path()), BTreeSet::from(["file".to_owned()]));
}

#[test]
fn state_directories_that_leave_no_room_are_refused_before_anything_is_written() {
    let long = format!("/{}", "d".repeat(3999));
    assert_eq!(
        Store::open(Path::new(&long)).unwrap_err(),
        OpenError::TooLong { length: 4000, most: 3583 }
    );
    assert!(matches!(Store::open(Path::new("a/b")), Err(OpenError::Relative { .. })));
    assert!(matches!(Store::open(Path::new("/a\nb")), Err(OpenError::Unwritable { .. })));
    let raw = tempfile::tempdir().unwrap();
    let raw = raw.path().join(std::ffi::OsStr::from_bytes(b"st\xffate"));
    let store = Store::open(&raw).unwrap();
    make(&store, "a").manifest().unwrap();
}

/// A pristine tree of that many bytes, with one file.
fn tree(store: &Store, digit: char, bytes: u64) -> TreeKey {
    let key = TreeKey::try_from(digit.to_string().repeat(40)).unwrap();
    let path = store.tree_path(&key);
    make_private_dirs(&path.join("files")).unwrap();
    let record = format!(
        r#"{{"v":1,"boot":"b","bytes":{bytes},"files":1,"over":null,"submodules":[],"lfs_pointers":[]}}"#
    );
    fs::write(path.join("tree.json"), record).unwrap();
    let used = std::time::UNIX_EPOCH + std::time::Duration::from_secs(u64::from(digit));
    fs::File::options()
        .write(true)
        .open(path.join("tree.json"))
        .unwrap()
        .set_times(fs::FileTimes::new().set_modified(used))
        .unwrap();
    key
}

#[test]
fn trees_over_the_kept_size_go_longest_unused_first_and_used_ones_stay() {
    let (_dir, store) = ground();
    let [used, old, new] = ['1', '2', '3'].map(|digit| tree(&store, digit, 100));
    let draft = store.draft(&Scope::None, &name("b"), None).unwrap();
    // While a box is being made nothing is collected.
    assert_eq!(store.collect_trees(None, 0).unwrap(), []);
    drop(draft);
    let (stored, lock) = draft_with_layers(&store, &[&used]);
    assert_eq!(store.collect_trees(None, 300).unwrap(), []);
    assert_eq!(store.collect_trees(None, 299).unwrap(), [old]);
    assert_eq!(store.collect_trees(None, 0).unwrap(), [new]);
    assert!(store.tree_path(&used).try_exists().unwrap());
    store.remove_locked(&stored, lock, Retain::Nothing).unwrap();
    assert_eq!(store.collect_trees(None, 0).unwrap(), [used]);
}

#[test]
fn what_is_laid_over_a_tree_goes_with_it_and_not_before_its_time() {
    let (_dir, store) = ground();
    let [below, over] = ['1', '2'].map(|digit| tree(&store, digit, 100));
    let record = store.tree_path(&over).join("tree.json");
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, text.replace("null", &format!("\"{below}\""))).unwrap();
    let (stored, lock) = draft_with_layers(&store, &[&over, &below]);
    assert_eq!(store.collect_trees(None, 0).unwrap(), []);
    store.remove_locked(&stored, lock, Retain::Nothing).unwrap();
    assert_eq!(store.collect_trees(None, 200).unwrap(), []);
    // The one below was used longest ago; without it the other one is nothing.
    assert_eq!(store.collect_trees(None, 100).unwrap(), [over]);
    assert_eq!(store.collect_trees(None, 0).unwrap(), [below]);
}

fn draft_with_layers(store: &Store, trees: &[&TreeKey]) -> (StoredBox, BoxLock) {
    let draft = store.draft(&Scope::None, &name("b"), None).unwrap();
    let mut with_layers = manifest("b", &[], None);
    with_layers.layers = trees.iter().map(|tree| tree.layer("files").unwrap()).collect();
    draft.commit(&with_layers).unwrap()
}

#[test]
fn a_layers_name_leads_nowhere_else() {
    let tree = "0".repeat(40);
    let over = format!("over-{tree}");
    for good in ["files", "index", "git-0123456789abcdef", &over] {
        let text = format!("{tree}/{good}");
        assert_eq!(String::from(LayerName::try_from(text.clone()).unwrap()), text);
    }
    for bad in [
        "",
        "..",
        "files/..",
        "git-",
        "over-",
        "over-0123456789abcdef",
        "git-0123456789abcdeg",
        "tree.json",
    ] {
        LayerName::try_from(format!("{tree}/{bad}")).unwrap_err();
    }
    LayerName::try_from("../objects/files".to_owned()).unwrap_err();
}
