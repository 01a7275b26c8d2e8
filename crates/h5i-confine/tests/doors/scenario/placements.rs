//! C2, C3: what an earlier session of the box left behind where the next one mounts.

use std::fs;
use std::os::unix::fs::symlink;

use h5i_confine::{Access, Layout, Outcome, Plan, StartError};
use h5i_policy::HostPath;

use super::{must, scenario};
use crate::door::Scenario;
use crate::world::{World, policy};

pub(crate) const ALL: &[Scenario] = &[
    scenario("C3t", "a planted link does not lead a mount point out of the box", planted_target),
    scenario("C2o", "a planted link does not lead a grant out of its place", planted_source),
    scenario("C2p", "a grant below a link of the host's own is mounted", host_link),
    scenario("C3u", "the box has no name for what it may not see", mount_over),
];

/// A placement whose target lies in the workspace, where the box put a link.
fn planted_target(world: &World) -> Result<String, String> {
    let cache = h5i_testkit::BoxDirs::new().unwrap();
    let prepared = cache.path().join("roots");
    planted_target_with(world, |layout| layout)?;
    planted_target_with(world, |layout| layout.prepared_roots(&prepared))
}

fn planted_target_with(
    world: &World,
    root: impl FnOnce(Layout) -> Layout,
) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let victim = fresh.dirs.path().join("victim");
    let part = fresh.dirs.path().join("part");
    for directory in [&victim, &part] {
        fs::create_dir(directory).unwrap();
        fresh.dirs.give(directory).unwrap();
    }
    fs::write(part.join("inside"), "part").unwrap();
    let layout = world.layout(&fresh.dirs).place(&part, "/work/sub/cache", Access::Read);
    let layout = root(layout);
    let start = || {
        let plan = Plan::for_host(&policy(), &layout).unwrap();
        plan.command("/bin/cat").arg("/work/sub/cache/inside").output()
    };
    let twin = start().map_err(|e| format!("twin: {e:?}"))?;
    must(twin.stdout == b"part", "twin", &twin)?;
    let sub = fresh.dirs.work().join("sub");
    fs::remove_dir_all(&sub).unwrap();
    // By the place where the host's root may stand, and by the way above the box's root.
    for way in ["/.host", "/.."] {
        symlink(format!("{way}{}", victim.display()), &sub).unwrap();
        let seen = start();
        let left = fs::read_dir(&victim).unwrap().count();
        must(left == 0, "made on the host", left)?;
        let refused =
            matches!(&seen, Err(h5i_confine::SpawnError::Session(StartError::Step { .. })));
        must(refused, "start", &seen)?;
        fs::remove_file(&sub).unwrap();
    }
    Ok("the start is refused".to_owned())
}

/// A grant for reading below one for writing, whose middle the box replaced by a link.
fn planted_source(world: &World) -> Result<String, String> {
    let host = h5i_testkit::BoxDirs::new().unwrap();
    let outside = host.path().join("outside");
    let data = host.path().join("data");
    fs::create_dir_all(outside.join("sub")).unwrap();
    fs::write(outside.join("sub/secret"), "secret").unwrap();
    fs::create_dir_all(data.join("middle/sub")).unwrap();
    fs::write(data.join("middle/sub/secret"), "public").unwrap();
    for path in [&data, &data.join("middle"), &data.join("middle/sub")] {
        host.give(path).unwrap();
    }
    let sub = data.join("middle/sub");
    let path = |p: &std::path::Path| HostPath::new(p.to_str().unwrap()).unwrap();
    let fresh = world.fresh(|policy| {
        policy.fs.write.insert(path(&data));
        let grant = h5i_policy::ReadGrant::whole(h5i_policy::GrantOrigin::Policy);
        policy.fs.read.insert(path(&sub), grant);
    });
    let cat = || fresh.plan.command("/bin/cat").arg(sub.join("secret")).output();
    let twin = cat().map_err(|e| format!("twin: {e:?}"))?;
    must(twin.stdout == b"public", "twin", &twin)?;
    fs::rename(data.join("middle"), data.join("moved")).unwrap();
    symlink("../outside", data.join("middle")).unwrap();
    let seen = cat();
    let leaked = seen.as_ref().is_ok_and(|o| o.stdout == b"secret");
    must(!leaked, "read", &seen)?;
    Ok("not read".to_owned())
}

/// The host's own links above a grant are followed as on the host.
fn host_link(world: &World) -> Result<String, String> {
    let host = h5i_testkit::BoxDirs::new().unwrap();
    fs::create_dir_all(host.path().join("real/sdk")).unwrap();
    fs::write(host.path().join("real/sdk/file"), "sdk").unwrap();
    symlink(host.path().join("real"), host.path().join("link")).unwrap();
    let granted = host.path().join("link/sdk");
    let fresh = world.fresh(|policy| {
        let grant = h5i_policy::ReadGrant::whole(h5i_policy::GrantOrigin::Policy);
        policy.fs.read.insert(HostPath::new(granted.to_str().unwrap()).unwrap(), grant);
    });
    let seen = fresh.plan.command("/bin/cat").arg(granted.join("file")).output();
    let read = seen.as_ref().is_ok_and(|o| o.stdout == b"sdk" && o.outcome == Outcome::Exited(0));
    must(read, "read", &seen)?;
    Ok("read".to_owned())
}

/// The parent directories of a grant hold nothing but the way to it.
fn mount_over(world: &World) -> Result<String, String> {
    let host = h5i_testkit::BoxDirs::new().unwrap();
    for name in ["granted", "beside"] {
        fs::create_dir(host.path().join(name)).unwrap();
    }
    let fresh = world.fresh(|policy| {
        let path = HostPath::new(host.path().join("granted").to_str().unwrap()).unwrap();
        let grant = h5i_policy::ReadGrant::whole(h5i_policy::GrantOrigin::Policy);
        policy.fs.read.insert(path, grant);
    });
    let list = fresh.plan.command("/bin/ls").arg(host.path()).output().unwrap();
    must(list.stdout == b"granted\n", "beside the grant", String::from_utf8_lossy(&list.stdout))?;
    let twin = fs::read_dir(host.path()).unwrap().count();
    must(twin == 4, "twin", twin)?;
    Ok("granted".to_owned())
}
