//! D8, J1, J5: sessions end with everything in them, and leave nothing behind.

use std::fs;
use std::process::{Command, Stdio as HostStdio};
use std::time::{Duration, Instant};

use h5i_confine::{Outcome, Stdio};
use h5i_testkit::{BoxDirs, Moment};

use super::{must, scenario};
use crate::door::Scenario;
use crate::world::World;

pub(crate) const ALL: &[Scenario] = &[
    scenario("D8a", "a killed supervisor takes every process of its box along", killed),
    scenario("D8b", "a dropped session takes its runs along", dropped),
    scenario("D8c", "a killed init ends its session", dead_init),
    scenario("J2a", "a hundred sessions leave no descriptor and no thread", no_leak),
    scenario("J2b", "runs that nobody waits for leave no descriptor", no_leak_of_runs),
    scenario("J5a", "no variable loosens the box", variables),
    scenario("J1c", "sessions start side by side", side_by_side),
];

/// A helper that becomes the reaper of what a supervisor leaves behind, and kills supervisors at
/// moments spread over their first milliseconds.
fn killed(world: &World) -> Result<String, String> {
    let dirs = BoxDirs::new().unwrap();
    let output = Command::new("/proc/self/exe")
        .args(["parent", "assassin", &dirs.path().display().to_string()])
        .env("DOORS_TOOLS", world.host("tools"))
        .stdin(HostStdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    must(output.status.success(), "assassin", (text.clone(), errors))?;
    Ok(text)
}

fn dropped(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let session = fresh.start();
    let mut command = session.command("/bin/sh");
    let line = "trap '' TERM HUP; (setsid sleep 1000 &); while :; do sleep 1000; done";
    let run = command.args(["-c", line]).stdin(Stdio::Null).spawn().unwrap();
    let started = Moment::now();
    drop(session);
    must(started.elapsed() < Duration::from_secs(1), "drop took", started.elapsed())?;
    let outcome = run.wait();
    must(outcome == Outcome::Ended, "outcome", outcome)?;
    Ok(format!("{outcome}"))
}

fn dead_init(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let session = fresh.start();
    // A number of seconds that no other process of this host sleeps for.
    let seconds = format!("1000.{}", std::process::id());
    let run = session.command("/bin/sleep").arg(&seconds).stdin(Stdio::Null).spawn().unwrap();
    // A program that is just beginning has no arguments yet.
    let init = until(|| parent_of(&seconds)).ok_or("the box's init was not found")?;
    Command::new("/bin/kill").args(["-9", &init.to_string()]).status().unwrap();
    let outcome = run.wait();
    must(outcome == Outcome::CutOff, "outcome", outcome)?;
    let after = session.command("/bin/true").output();
    must(after.is_err(), "after", &after)?;
    Ok(format!("{outcome}"))
}

/// Asks again until there is an answer, for ten seconds.
fn until<T>(mut answer: impl FnMut() -> Option<T>) -> Option<T> {
    let patience = Instant::now() + Duration::from_secs(10);
    loop {
        let found = answer();
        if found.is_some() || Instant::now() > patience {
            return found;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The parent of the process that sleeps for so long.
fn parent_of(seconds: &str) -> Option<u32> {
    let mut parents = fs::read_dir("/proc").ok()?.filter_map(|entry| {
        let path = entry.ok()?.path();
        if fs::read_to_string(path.join("cmdline")).ok()? != format!("/bin/sleep\0{seconds}\0") {
            return None;
        }
        let status = fs::read_to_string(path.join("status")).ok()?;
        status.lines().find_map(|l| l.strip_prefix("PPid:"))?.trim().parse().ok()
    });
    parents.next()
}

fn count(directory: &str) -> usize {
    fs::read_dir(directory).unwrap().count()
}

fn no_leak(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let once = || fresh.plan.command("/bin/true").output().unwrap();
    once();
    let now = || (count("/proc/self/fd"), count("/proc/self/task"));
    // A thread that was waited for is listed a little longer.
    let before = (0..20).map(|_| {
        std::thread::sleep(Duration::from_millis(5));
        now()
    });
    let before = before.min().unwrap();
    for _ in 0..100 {
        let output = once();
        must(output.outcome == Outcome::Exited(0), "outcome", output.outcome)?;
    }
    // One of those before may only now have gone.
    let is_settled = |now: &(usize, usize)| now.0 <= before.0 && now.1 <= before.1;
    let after = until(|| Some(now()).filter(is_settled)).unwrap_or_else(now);
    must(is_settled(&after), "descriptors and threads", (before, after))?;
    Ok(format!("{after:?}"))
}

fn no_leak_of_runs(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let session = fresh.start();
    let before = count("/proc/self/fd");
    for _ in 0..100 {
        let mut command = session.command("/bin/true");
        command.stdin(Stdio::Null).stdout(Stdio::Null).stderr(Stdio::Null);
        drop(command.spawn().unwrap());
    }
    // A run that is waited for comes after all of them.
    session.command("/bin/true").output().unwrap();
    let ended = || {
        let events = fresh.sink.0.lock().unwrap();
        events.iter().filter(|e| matches!(e, h5i_confine::Event::RunEnded { .. })).count()
    };
    while ended() < 101 {
        std::thread::yield_now();
    }
    session.command("/bin/true").output().unwrap();
    let after = count("/proc/self/fd");
    must(after <= before + 2, "descriptors", (before, after))?;
    Ok(format!("{before} and {after}"))
}

fn variables(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let mut command = fresh.plan.command(world.program());
    command.args(["attempt", "unshare", &libc::CLONE_NEWUSER.to_string()]);
    for name in ["H5I_OFF", "H5I_POLICY", "H5I_TIER", "H5I_REQUIRE", "LD_PRELOAD", "DOCKER_HOST"] {
        command.env(name, "workspace");
    }
    let seen = command.output().unwrap();
    must(seen.stdout == b"errno 1\n", "seen", String::from_utf8_lossy(&seen.stdout))?;
    let twin = fresh.plan.command("/usr/bin/env").env("H5I_OFF", "1").output().unwrap();
    let text = String::from_utf8_lossy(&twin.stdout).into_owned();
    must(text.contains("H5I_OFF=1") && !text.contains("CARGO"), "twin", &text)?;
    Ok("errno 1".to_owned())
}

fn side_by_side(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let failed: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|n: u32| {
                let plan = &fresh.plan;
                scope.spawn(move || {
                    (0..5)
                        .filter(|_| {
                            let text = n.to_string();
                            let output = plan.command("/bin/echo").arg(&text).output();
                            !output.is_ok_and(|o| o.stdout == format!("{text}\n").into_bytes())
                        })
                        .count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    must(failed == 0, "failed", failed)?;
    Ok("40 sessions in 8 threads".to_owned())
}
