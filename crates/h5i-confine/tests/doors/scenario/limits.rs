//! D7, D9: budgets stop a run, legibly and in time.

use std::time::Duration;

use h5i_confine::{Limit, Outcome, Output};
use h5i_policy::{Bytes, Millis};
use h5i_testkit::Moment;

use super::{must, scenario};
use crate::door::Scenario;
use crate::world::{Fresh, World};

pub(crate) const ALL: &[Scenario] = &[
    scenario("D7a", "a stubborn family is gone within a second of its deadline", stubborn),
    scenario("D7b", "the same in a session that goes on", stubborn_in_session),
    scenario("D7c", "a stopped run is killed at its deadline", stopped),
    scenario("D9a", "output stops at exactly what is allowed", output),
    scenario("D9b", "processor time stops a run", cpu),
    scenario("D9d", "a file that is too large stops its program, legibly", file_size),
    scenario("D9e", "a fork bomb ends at the allowed number", processes),
    scenario("D9f", "open files end at the allowed number", open_files),
];

const SECOND: Duration = Duration::from_secs(1);

fn stop_of(output: &Output) -> Option<Limit> {
    if let Outcome::Stopped(stop) = output.outcome { Some(stop.limit) } else { None }
}

/// Ignores what it can, leaves its session, forks twice and holds the output open.
const STUBBORN: &str = "trap '' TERM HUP INT; \
    (setsid sh -c 'trap \"\" TERM HUP; (sleep 1000 & sleep 1000)' &) ; \
    (sleep 1000 &) ; echo ready; while :; do sleep 1000; done";

/// A box with more time than a twin takes on any machine.
fn ample(world: &World) -> Fresh {
    world.fresh(|p| p.limits.wall = Some(Millis::seconds(60)))
}

fn stubborn(world: &World) -> Result<String, String> {
    let wall = Duration::from_secs(4);
    let limited = world.fresh(|p| p.limits.wall = Some(Millis::seconds(4)));
    let (output, took) = limited.shell(STUBBORN);
    must(stop_of(&output) == Some(Limit::Wall), "outcome", output.outcome)?;
    must(output.stdout == b"ready\n", "output", &output.stdout)?;
    must(took < wall + SECOND, "took", took)?;
    let (twin, _) = ample(world).shell("echo ready");
    must(twin.outcome == Outcome::Exited(0), "twin", twin.outcome)?;
    Ok(format!("{} after {} ms", output.outcome, took.as_millis()))
}

fn stubborn_in_session(world: &World) -> Result<String, String> {
    let limited = world.fresh(|p| p.limits.wall = Some(Millis::new(300)));
    let session = limited.start();
    let started = Moment::now();
    let output = session.command("/bin/sh").args(["-c", STUBBORN]).output().unwrap();
    let took = started.elapsed();
    must(stop_of(&output) == Some(Limit::Wall), "outcome", output.outcome)?;
    must(took < Duration::from_millis(300) + SECOND, "took", took)?;
    Ok(format!("{} after {} ms", output.outcome, took.as_millis()))
}

fn stopped(world: &World) -> Result<String, String> {
    let limited = world.fresh(|p| p.limits.wall = Some(Millis::new(300)));
    let (output, took) = limited.shell("kill -STOP $$; echo continued");
    must(stop_of(&output) == Some(Limit::Wall), "outcome", output.outcome)?;
    must(took < Duration::from_millis(300) + SECOND, "took", took)?;
    let (twin, _) = ample(world).shell("kill -CONT $$; echo continued");
    must(twin.stdout == b"continued\n", "twin", &twin.stdout)?;
    Ok(format!("{} after {} ms", output.outcome, took.as_millis()))
}

fn output(world: &World) -> Result<String, String> {
    let limited = world.fresh(|p| p.limits.output = Some(Bytes::new(100_000)));
    let (over, took) = limited.shell("yes");
    must(stop_of(&over) == Some(Limit::Output), "outcome", over.outcome)?;
    must(over.stdout.len() == 100_000, "bytes", over.stdout.len())?;
    must(took < SECOND, "took", took)?;
    let (both, _) = limited.shell("yes >&2 & yes");
    must(both.stdout.len() + both.stderr.len() == 100_000, "both outputs", both.stdout.len())?;
    let (twin, _) = limited.shell("yes | head -c 100000");
    must(twin.outcome == Outcome::Exited(0), "twin", twin.outcome)?;
    must(twin.stdout.len() == 100_000, "twin bytes", twin.stdout.len())?;
    Ok(format!("{}", over.outcome))
}

fn cpu(world: &World) -> Result<String, String> {
    let limited = world.fresh(|p| {
        p.limits.cpu = Some(Millis::new(400));
        p.limits.wall = Some(Millis::new(20_000));
    });
    let (over, _) = limited.shell("(while :; do :; done) & (while :; do :; done) & wait");
    must(stop_of(&over) == Some(Limit::Cpu), "outcome", over.outcome)?;
    let (twin, _) = limited.shell("sleep 0.6");
    must(twin.outcome == Outcome::Exited(0), "twin", twin.outcome)?;
    Ok(format!("{}", over.outcome))
}

fn file_size(world: &World) -> Result<String, String> {
    let limited = world.fresh(|p| p.limits.file_size = Some(Bytes::new(1_000_000)));
    let write = |count: &str| {
        let args = ["if=/dev/zero", "of=/work/large", "bs=1000", count, "status=none"];
        limited.plan.command("/bin/dd").args(args).output().unwrap()
    };
    let over = write("count=1001");
    must(stop_of(&over) == Some(Limit::FileSize), "outcome", over.outcome)?;
    let length = std::fs::metadata(limited.dirs.work().join("large")).unwrap().len();
    must(length == 1_000_000, "file's length", length)?;
    let twin = write("count=1000");
    must(twin.outcome == Outcome::Exited(0), "twin", twin.outcome)?;
    Ok(format!("{}", over.outcome))
}

fn processes(world: &World) -> Result<String, String> {
    let few = world.fresh(|p| p.limits.processes = Some(20));
    let many = world.fresh(|p| p.limits.processes = Some(200));
    let text = |output: &Output| String::from_utf8_lossy(&output.stdout).trim().to_owned();
    // The stage, init and the attempting program count as well.
    let (seen, twin) = (few.attempt(&["fork-until", "100"]), many.attempt(&["fork-until", "100"]));
    must(text(&seen) == format!("ok 17 errno {}", libc::EAGAIN), "forked", text(&seen))?;
    must(text(&twin) == "ok 100", "twin", text(&twin))?;
    // A bomb: each process forks for ever, but for the first, which could not stay if it did.
    let bomb = world.fresh(|p| {
        p.limits.processes = Some(50);
        p.limits.wall = Some(Millis::new(500));
    });
    let (output, took) = bomb.shell("b() { b | b & }; (b); while :; do :; done");
    must(stop_of(&output) == Some(Limit::Wall), "bomb", output.outcome)?;
    must(took < Duration::from_millis(500) + SECOND, "bomb took", took)?;
    Ok(text(&seen))
}

fn open_files(world: &World) -> Result<String, String> {
    let limited = world.fresh(|p| p.limits.open_files = Some(40));
    let text = |output: &Output| String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let seen = limited.attempt(&["open-until", "100"]);
    must(text(&seen) == format!("ok 37 errno {}", libc::EMFILE), "opened", text(&seen))?;
    let twin = limited.attempt(&["open-until", "37"]);
    must(text(&twin) == "ok 37", "twin", text(&twin))?;
    Ok(text(&seen))
}
