use super::*;

/// A directory tree that looks like a cgroup file system to who reads it.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new(directories: &[&str]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for name in directories {
            fs::create_dir_all(tree.at(name)).unwrap();
            fs::write(tree.at(name).join("cgroup.procs"), "").unwrap();
        }
        tree
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn mounts(&self, root: &str, kind: &str, options: &str) -> String {
        let at = self.0.path().display();
        format!("41 31 0:38 {root} {at} rw,relatime - {kind} {kind} {options}\n")
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.at(name), text).unwrap();
    }

    /// Gives a place to the caller, as a manager does.
    fn delegate(&self, name: &str) {
        if rustix::process::geteuid().is_root() {
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::setxattr(self.at(name), "user.delegate", b"1", flags).unwrap();
        }
    }
}

fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

const OTHER: u32 = 4_000_000_001;

#[test]
fn version_2_is_found_above_the_own_cgroup_where_memory_is_passed_on() {
    let tree = Tree::new(&["user", "user/app", "user/app/own"]);
    let mounts = tree.mounts("/", "cgroup2", "rw");
    let own = "0::/user/app/own\n";
    ["user", "user/app", "user/app/own"].iter().for_each(|name| tree.delegate(name));
    assert_eq!(Place::among(own, &mounts, uid()), None, "nobody passes memory on");
    tree.write("user/app/cgroup.subtree_control", "memory pids\n");
    let found = Place::among(own, &mounts, uid()).unwrap();
    assert_eq!((found.version, found.parent), (Version::V2, tree.at("user/app")));
    tree.write("user/app/cgroup.subtree_control", "hugetlb\n");
    tree.write("user/cgroup.subtree_control", "cpu memory\n");
    assert_eq!(Place::among(own, &mounts, uid()).unwrap().parent, tree.at("user"));
    assert_eq!(Place::among(own, &mounts, OTHER), None, "it belongs to somebody else");
}

#[test]
fn version_1_is_found_at_the_own_cgroup_only() {
    let tree = Tree::new(&["a", "a/b"]);
    tree.write("a/memory.limit_in_bytes", "");
    let own = "9:name=systemd:/\n4:memory:/a/b\n1:cpu:/\n0::/\n";
    let mounts = tree.mounts("/", "cgroup", "rw,memory");
    ["a", "a/b"].iter().for_each(|name| tree.delegate(name));
    assert_eq!(Place::among(own, &mounts, uid()), None);
    tree.write("a/b/memory.limit_in_bytes", "");
    let found = Place::among(own, &mounts, uid()).unwrap();
    assert_eq!((found.version, found.parent), (Version::V1, tree.at("a/b")));
    assert_eq!(Place::among(own, &tree.mounts("/", "cgroup", "rw,cpu"), uid()), None);
    // A container sees its part of the tree at the mount's root.
    let below = Place::among("4:memory:/x/a/b\n", &tree.mounts("/x", "cgroup", "memory"), uid());
    assert_eq!(below.unwrap().parent, tree.at("a/b"));
}

#[test]
fn root_leaves_alone_what_is_not_marked_as_delegated() {
    let tree = Tree::new(&["a"]);
    tree.write("a/cgroup.subtree_control", "memory\n");
    let found = |uid| Place::among("0::/a\n", &tree.mounts("/", "cgroup2", "rw"), uid);
    assert_eq!(found(0), None);
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(tree.at("a"), "user.delegate", b"1", flags).unwrap();
    assert_eq!(found(0).unwrap().parent, tree.at("a"));
}

/// A file system that refuses what is written out of order can't be had without the kernel's; the
/// order is what this holds still.
#[test]
fn bounds_are_set_before_anybody_is_taken_in_and_swap_after_memory() {
    let names = |version| -> Vec<&'static str> {
        bounds(version, 1).into_iter().map(|(bound, _)| bound.name).collect()
    };
    assert_eq!(names(Version::V2), ["memory.max", "memory.swap.max"]);
    assert_eq!(names(Version::V1), ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"]);
    let tree = Tree::new(&["a"]);
    let place = Place { version: Version::V2, parent: tree.at("a") };
    let made = place.make(1 << 20).unwrap();
    let read = |name: &str| fs::read_to_string(made.directory.join(name)).ok();
    assert_eq!(read("memory.max").as_deref(), Some("1048576"));
    assert_eq!(read("memory.swap.max").as_deref(), Some("0"));
    assert_eq!(read("cgroup.procs"), None);
    made.take_in(12).unwrap();
    assert_eq!(read("cgroup.procs").as_deref(), Some("12"));
}

#[test]
fn use_is_without_file_pages_and_kills_are_told_once() {
    let tree = Tree::new(&["one", "two"]);
    tree.write("two/memory.current", "1000\n");
    tree.write("two/memory.stat", "anon 1\ninactive_file 300\nactive_file 100\n");
    tree.write("two/memory.events", "low 0\noom 9\noom_kill 2\noom_group_kill 7\n");
    let mut two = Cgroup { version: Version::V2, directory: tree.at("two"), kills: 0 };
    assert_eq!(two.used(), Some(600));
    assert_eq!((two.new_kills(), two.new_kills()), (2, 0));
    tree.write("one/memory.usage_in_bytes", "1000\n");
    tree.write("one/memory.stat", "inactive_file 9\ntotal_inactive_file 20\ntotal_active_file 1\n");
    tree.write("one/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
    let mut one = Cgroup { version: Version::V1, directory: tree.at("one"), kills: 4 };
    assert_eq!(one.used(), Some(979));
    assert_eq!((one.new_kills(), one.new_kills()), (1, 0));
}

#[test]
fn what_a_dead_caller_left_is_removed_and_nobody_elses() {
    let tree = Tree::new(&[]);
    let place = Place { version: Version::V2, parent: tree.0.path().to_owned() };
    // No process has a number beyond the kernel's largest.
    for name in ["h5i-4194305-0", "other-4194305-0"] {
        fs::create_dir(tree.at(name)).unwrap();
    }
    let living = format!("h5i-{}-900", std::process::id());
    fs::create_dir(tree.at(&living)).unwrap();
    place.remove_left();
    assert!(!tree.at("h5i-4194305-0").is_dir());
    assert!(tree.at("other-4194305-0").is_dir() && tree.at(&living).is_dir());
}
