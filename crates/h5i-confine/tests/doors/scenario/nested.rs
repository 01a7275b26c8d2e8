//! D2, D6, D11: sandboxes, debuggers and set-id programs inside a box work or fail at once.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use h5i_confine::Outcome;
use h5i_policy::{Debuggers, Millis};
use h5i_testkit::{Moment, Need, have};

use super::{NOT_RUN, must, scenario};
use crate::door::Scenario;
use crate::world::World;

pub(crate) const ALL: &[Scenario] = &[
    scenario("D6a", "a set-id program gains nothing", set_id),
    scenario("D11d", "bubblewrap in a box fails at once", bubblewrap),
    scenario("D2j", "strace works or fails at once, as the policy says", strace),
    scenario("D2k", "gdb works or fails at once, as the policy says", gdb),
];

fn set_id(world: &World) -> Result<String, String> {
    if !have("D6a", Need::SecondUid) {
        return Ok(NOT_RUN.to_owned());
    }
    let fresh = world.fresh(|_| {});
    let program = fresh.dirs.work().join("set-id");
    fs::copy(world.host("tools/attempt"), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let seen = fresh.plan.command("/work/set-id").args(["attempt", "euid"]).output().unwrap();
    must(seen.stdout == b"ok 1000\n", "in the box", String::from_utf8_lossy(&seen.stdout))?;
    // The twin: the same file gives its owner's id to another user of the host.
    let mut twin = Command::new(&program);
    std::os::unix::process::CommandExt::uid(&mut twin, h5i_testkit::HOST_ID);
    let twin = twin.args(["attempt", "euid"]).output().unwrap();
    must(twin.stdout == b"ok 0\n", "twin", String::from_utf8_lossy(&twin.stdout))?;
    Ok("1000".to_owned())
}

fn bubblewrap(world: &World) -> Result<String, String> {
    if !have("D11d", Need::Program("/usr/bin/bwrap")) {
        return Ok(NOT_RUN.to_owned());
    }
    let args = ["--ro-bind", "/", "/", "--unshare-user", "/bin/true"];
    let fresh = world.fresh(|p| p.limits.wall = Some(Millis::new(5000)));
    let started = Moment::now();
    let seen = fresh.plan.command("/usr/bin/bwrap").args(args).output().unwrap();
    must(seen.outcome == Outcome::Exited(1), "in the box", &seen)?;
    must(started.elapsed() < Duration::from_secs(1), "took", started.elapsed())?;
    let twin = Command::new("/usr/bin/bwrap").args(args).output().unwrap();
    must(twin.status.success(), "twin", &twin)?;
    Ok(String::from_utf8_lossy(&seen.stderr).trim().to_owned())
}

/// Runs a debugger in a box that refuses it and in one that allows it.
fn debugger(
    world: &World,
    program: &'static str,
    args: &[&str],
    says: &str,
) -> Result<String, String> {
    if !have(program, Need::Program(program)) {
        return Ok(NOT_RUN.to_owned());
    }
    let run = |debuggers| {
        let fresh = world.fresh(|p| {
            p.debuggers = debuggers;
            p.limits.wall = Some(Millis::seconds(60));
        });
        let output = fresh.plan.command(program).args(args).output().unwrap();
        let text = [output.stdout.as_slice(), &output.stderr].concat();
        (output.outcome, String::from_utf8_lossy(&text).into_owned())
    };
    let (outcome, text) = run(Debuggers::Refused);
    let ended = !matches!(outcome, Outcome::Stopped(_));
    must(ended && !text.contains(says), "refused", (outcome, &text))?;
    let (outcome, text) = run(Debuggers::Allowed);
    must(outcome == Outcome::Exited(0) && text.contains(says), "allowed", (outcome, text))?;
    Ok(says.to_owned())
}

fn strace(world: &World) -> Result<String, String> {
    debugger(world, "/usr/bin/strace", &["-f", "/bin/sh", "-c", "exit 0"], "+++ exited with 0 +++")
}

fn gdb(world: &World) -> Result<String, String> {
    let args = ["-batch", "-nx", "-ex", "run", "/bin/true"];
    debugger(world, "/usr/bin/gdb", &args, "exited normally")
}
