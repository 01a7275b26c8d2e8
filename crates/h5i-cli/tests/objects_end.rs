//! When base objects go. Alone in its program: a child that another test forks at that moment holds
//! the store's lock until its exec.

mod support;

use h5i::workspace::BaseSpec;
use h5i_policy::History;
use support::{Ground, make};

#[test]
fn a_refused_box_takes_the_objects_made_for_it_along_unless_another_uses_them() {
    let ground = Ground::new();
    let store = ground.store();
    let alone = make(&ground, &BaseSpec::Head, History::Full);
    let objects = alone.objects.path.clone();
    drop(alone);
    assert!(!objects.try_exists().unwrap());
    let first = make(&ground, &BaseSpec::Head, History::Full);
    let second = make(&ground, &BaseSpec::Head, History::Full);
    drop(first);
    second.git(&["fsck"]);
    drop(second);
    // The second found them; they are gc's now.
    assert!(objects.try_exists().unwrap());
    assert_eq!(store.gc(h5i::Timestamp::now()).unwrap().collected.len(), 1);
    assert!(!objects.try_exists().unwrap());
}
