use std::fs;
use std::path::Path;

use h5i_policy::{GrantOrigin, HostPath, ReadGrant, ResolvedPolicy};

use super::{LARGEST_COPY, grants};
use crate::error::PlanError;
use crate::layout::Access;
use crate::step::Step;

fn path(path: &Path) -> HostPath {
    HostPath::new(path.to_str().unwrap()).unwrap()
}

fn planned(policy: &ResolvedPolicy) -> Result<Vec<Step>, PlanError> {
    let mut steps = Vec::new();
    grants(policy, &mut steps, &mut Vec::new())?;
    Ok(steps)
}

fn words(steps: &[Step], root: &Path) -> Vec<String> {
    steps.iter().map(|step| step.to_string().replace(root.to_str().unwrap(), "R")).collect()
}

#[test]
fn of_nested_grants_the_deeper_one_decides() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    fs::create_dir_all(root.join("a/secret/shared")).unwrap();
    fs::create_dir_all(root.join("a/plain")).unwrap();
    let mut policy = ResolvedPolicy::default();
    let mut outer = ReadGrant::whole(GrantOrigin::Policy);
    outer.mask.insert("secret".to_owned());
    policy.fs.read.insert(path(&root.join("a")), outer);
    let whole = ReadGrant::whole(GrantOrigin::Policy);
    policy.fs.read.insert(path(&root.join("a/plain")), whole.clone());
    policy.fs.read.insert(path(&root.join("a/secret/shared")), whole);
    let found = words(&planned(&policy).unwrap(), root);
    // The one that is readable anyway is not mounted twice; the one below the mask is.
    assert_eq!(
        found,
        ["mount R/a read-only", "mount memory at R/a/secret", "mount R/a/secret/shared read-only"]
    );
}

#[test]
fn a_read_grant_below_a_write_grant_is_read_only_and_the_reverse_writable() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    fs::create_dir_all(root.join("w/r/w")).unwrap();
    let mut policy = ResolvedPolicy::default();
    policy.fs.write.insert(path(&root.join("w")));
    policy.fs.read.insert(path(&root.join("w/r")), ReadGrant::whole(GrantOrigin::Policy));
    policy.fs.write.insert(path(&root.join("w/r/w")));
    let accesses: Vec<Access> = planned(&policy)
        .unwrap()
        .into_iter()
        .filter_map(|step| match step {
            Step::Bind { access, .. } => Some(access),
            _ => None,
        })
        .collect();
    assert_eq!(accesses, [Access::Write, Access::Read, Access::Write]);
}

#[test]
fn the_boxs_own_places_and_the_kernels_are_refused_and_their_neighbours_granted() {
    for reserved in ["/", "/proc", "/proc/sys", "/sys", "/dev", "/etc", "/tmp", "/home", "/work"] {
        let mut policy = ResolvedPolicy::default();
        policy
            .fs
            .read
            .insert(HostPath::new(reserved).unwrap(), ReadGrant::whole(GrantOrigin::Policy));
        let refused = matches!(planned(&policy), Err(PlanError::Reserved { .. }));
        assert!(refused, "{reserved}");
    }
    let mut policy = ResolvedPolicy::default();
    for fine in ["/usr", "/etc/ld.so.cache"] {
        policy.fs.read.insert(HostPath::new(fine).unwrap(), ReadGrant::whole(GrantOrigin::System));
    }
    assert_eq!(planned(&policy).unwrap().len(), 2);
}

#[test]
fn a_missing_path_of_the_policy_is_refused_and_one_of_the_system_left_out() {
    let gone = HostPath::new("/nowhere/at-all").unwrap();
    let mut policy = ResolvedPolicy::default();
    policy.fs.read.insert(gone.clone(), ReadGrant::whole(GrantOrigin::Policy));
    assert!(matches!(planned(&policy), Err(PlanError::Grant { .. })));
    policy.fs.read.insert(gone, ReadGrant::whole(GrantOrigin::System));
    assert!(planned(&policy).unwrap().is_empty());
}

#[test]
fn only_small_public_files_of_the_system_may_be_copied() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let mut policy = ResolvedPolicy::default();
    let mut grant = |name: &str, origin, mode: u32, size: u64| {
        let file = root.join(name);
        fs::File::create(&file).unwrap().set_len(size).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        policy.fs.read.insert(path(&file), ReadGrant::whole(origin));
    };
    grant("public", GrantOrigin::System, 0o644, 9);
    grant("largest", GrantOrigin::System, 0o644, LARGEST_COPY);
    grant("larger", GrantOrigin::System, 0o644, LARGEST_COPY + 1);
    grant("private", GrantOrigin::System, 0o640, 9);
    grant("persons", GrantOrigin::Policy, 0o644, 9);
    let copies = grants(&policy, &mut Vec::new(), &mut Vec::new()).unwrap();
    let names: Vec<_> = copies.keys().map(|path| path.file_name().unwrap()).collect();
    assert_eq!(names, ["largest", "public"]);
}
