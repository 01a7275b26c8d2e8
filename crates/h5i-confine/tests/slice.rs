//! One run from end to end.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::collections::BTreeMap;

use h5i_confine::{Layout, Outcome, Plan};
use h5i_policy::{GrantOrigin, HostPath, ReadGrant, ResolvedPolicy};

fn policy() -> ResolvedPolicy {
    let mut policy = ResolvedPolicy::default();
    let paths =
        ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives"];
    policy.fs.read = paths
        .iter()
        .map(|p| (HostPath::new(p).unwrap(), ReadGrant::whole(GrantOrigin::System)))
        .collect::<BTreeMap<_, _>>();
    policy
}

#[test]
fn true_exits_with_zero() {
    let dir = tempfile::tempdir().unwrap();
    let (work, home) = (dir.path().join("work"), dir.path().join("home"));
    std::fs::create_dir(&work).unwrap();
    std::fs::create_dir(&home).unwrap();
    let mut layout = Layout::new(work, home);
    if rustix::process::geteuid().is_root() {
        layout = layout.host_id(2_000_000_001);
    }
    let plan = Plan::for_host(&policy(), &layout).unwrap();
    let out = plan.command("/bin/sh").args(["-c", "echo hello; id; ls -la / /dev /work; cat /proc/self/status | grep -E 'Cap|Sec|NoNew'; mount; unshare -U true; ps aux; ls -la /proc/self/fd"]).output().unwrap();
    println!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert_eq!(out.outcome, Outcome::Exited(0));
}
