//! D9: memory and disk of a box are measured, and what takes too much is stopped, by name.

use std::time::{Duration, Instant};

use h5i_confine::{InUse, Limit, Outcome, Output, Session, Spent, Stdio, Stop};
use h5i_policy::{Bytes, Millis};

use super::{must, scenario};
use crate::door::Scenario;
use crate::world::{Fresh, TOOLS, World};

pub(crate) const ALL: &[Scenario] = &[
    scenario("D9g", "memory beyond its budget stops the run, with its program's name", memory),
    scenario("D9h", "a memory file counts, mapped or not", memory_file),
    scenario("D9i", "memory that processes share counts once", shared_memory),
    scenario("D9j", "memory file systems end at a part of the budget, files and bytes", scratch),
    scenario("D9k", "disk space beyond its budget stops the run", disk),
    scenario("D9l", "a file that was removed, and one in a closed directory, count", hidden),
    scenario("D9m", "empty files count", entries),
    scenario("D9n", "a box above its budget can be tidied and can't grow", above),
    scenario("D9o", "of several runs the one that takes the most is stopped", largest),
    scenario("D9p", "what a run that has ended left is ended, and the session goes on", left),
    scenario("D9q", "a System V segment counts, attached or not", segment),
    scenario(
        "D9s",
        "a program whose name is no text is measured and ended like any other",
        nameless,
    ),
    scenario("D9r", "System V semaphores and messages count", semaphores_and_messages),
];

fn attempt(session: &Session, attempt: &[&str]) -> Output {
    let program = format!("{TOOLS}/attempt");
    session.command(program).arg("attempt").args(attempt).output().unwrap()
}

/// Checks that a run was stopped for this budget, which was told with who spent it.
fn is_stopped(box_: &Fresh, output: &Output, limit: Limit, program: &str) -> Result<Stop, String> {
    let Outcome::Stopped(stop) = output.outcome else {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        return Err(format!("not stopped: {} {text}", output.outcome));
    };
    must(stop.limit == limit && stop.used >= stop.allowed, "stop", stop)?;
    must(output.outcome.exit_code() == 123, "code", output.outcome.exit_code())?;
    let told = box_.sink.spent();
    let [Spent { run, stop: of, program: by, pid, .. }] = told.as_slice() else {
        return Err(format!("told {told:?}"));
    };
    let by = String::from_utf8_lossy(by);
    must(run.is_some() && *of == stop && *pid > 1, "told", &told)?;
    must(by == program, "told of", by)?;
    Ok(stop)
}

/// Waits until what the box takes was measured as less than its budget again.
fn has_room(session: &Session, taken: fn(InUse) -> Option<u64>, budget: u64) -> Result<(), String> {
    let patience = Instant::now() + Duration::from_secs(30);
    loop {
        let seen = taken(session.handle().in_use());
        if seen.is_some_and(|bytes| bytes < budget) {
            return Ok(());
        }
        must(Instant::now() < patience, "in use", seen)?;
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_whole(output: &Output) -> Result<(), String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    must(output.outcome == Outcome::Exited(0) && text.starts_with("ok"), "twin", (output, text))
}

const ATTEMPT: &str = "/opt/doors/attempt";
/// Has an attempt hold what it took until it is stopped, or for a minute.
const LONG: &str = "long";

fn memory(world: &World) -> Result<String, String> {
    let limited = world.fresh(|p| p.limits.memory = Some(Bytes::mebibytes(64)));
    let session = limited.start();
    let over = attempt(&session, &["take-memory", "4096", LONG]);
    let stop = is_stopped(&limited, &over, Limit::Memory, ATTEMPT)?;
    // What it had taken when it was noticed: the host has far more than that.
    must(stop.used < 4 << 30, "used", stop.used)?;
    is_whole(&attempt(&session, &["take-memory", "32"]))?;
    has_room(&session, |seen| seen.memory, 64 << 20)?;
    Ok(format!("{}", over.outcome))
}

fn memory_file(world: &World) -> Result<String, String> {
    let limited = world.fresh(|p| p.limits.memory = Some(Bytes::mebibytes(64)));
    let session = limited.start();
    let over = attempt(&session, &["take-memory-file", "256", LONG]);
    is_stopped(&limited, &over, Limit::Memory, ATTEMPT)?;
    is_whole(&attempt(&session, &["take-memory-file", "32"]))?;
    Ok(format!("{}", over.outcome))
}

fn nameless(world: &World) -> Result<String, String> {
    let limited = world.fresh(|p| {
        p.limits.memory = Some(Bytes::mebibytes(64));
        p.limits.cpu = Some(Millis::seconds(4));
    });
    let session = limited.start();
    // Left by a run with a keeper, so that it is found by what `/proc` tells alone.
    let over =
        format!("(setsid {ATTEMPT} attempt nameless take-memory 256 {LONG} &); exec sleep 60");
    let mut run = session.command("/bin/sh");
    let over = run.args(["-c", &over]).keeper().output().unwrap();
    let stop = is_stopped(&limited, &over, Limit::Memory, ATTEMPT)?;
    has_room(&session, |seen| seen.memory, 64 << 20)?;
    is_whole(&attempt(&session, &["nameless", "take-memory", "32"]))?;
    let spins = attempt(&session, &["nameless", "spin"]);
    let Outcome::Stopped(spent) = spins.outcome else { return Err(format!("{}", spins.outcome)) };
    must(spent.limit == Limit::Cpu, "spins", spent)?;
    Ok(format!("{stop}; {spent}"))
}

fn segment(world: &World) -> Result<String, String> {
    let limited = world.fresh(|p| p.limits.memory = Some(Bytes::mebibytes(64)));
    let session = limited.start();
    is_whole(&attempt(&session, &["take-segment", "32"]))?;
    let over = attempt(&session, &["take-segment", "256", LONG]);
    let stop = is_stopped(&limited, &over, Limit::Memory, ATTEMPT)?;
    // It is gone with the session only; until then nothing else has room.
    let after = attempt(&session, &["take-memory", "1", LONG]);
    must(matches!(after.outcome, Outcome::Stopped(_)), "after", after.outcome)?;
    drop(session);
    let limited = world.fresh(|p| p.limits.memory = Some(Bytes::mebibytes(64)));
    is_whole(&attempt(&limited.start(), &["take-memory", "1"]))?;
    Ok(format!("{stop}"))
}

fn semaphores_and_messages(world: &World) -> Result<String, String> {
    let mut stops = Vec::new();
    for what in ["take-semaphores", "take-messages"] {
        let limited = world.fresh(|p| p.limits.memory = Some(Bytes::mebibytes(64)));
        is_whole(&attempt(&limited.start(), &[what, "16"]))?;
        let limited = world.fresh(|p| p.limits.memory = Some(Bytes::mebibytes(64)));
        let over = attempt(&limited.start(), &[what, "200", LONG]);
        stops.push(is_stopped(&limited, &over, Limit::Memory, ATTEMPT)?.to_string());
    }
    Ok(stops.join("; "))
}

fn shared_memory(world: &World) -> Result<String, String> {
    let limited = world.fresh(|p| p.limits.memory = Some(Bytes::mebibytes(128)));
    let session = limited.start();
    // Counted for each it would be 420 MiB.
    is_whole(&attempt(&session, &["share-memory", "20", "20"]))?;
    must(limited.sink.spent().is_empty(), "told", ())?;
    let over = attempt(&session, &["share-memory", "200", "3", LONG]);
    let stop = is_stopped(&limited, &over, Limit::Memory, ATTEMPT)?;
    Ok(format!("{stop}"))
}

fn scratch(world: &World) -> Result<String, String> {
    let limited = world.fresh(|p| p.limits.memory = Some(Bytes::mebibytes(64)));
    let session = limited.start();
    let fill = |path: &str| {
        let of = format!("of={path}");
        let args = ["if=/dev/zero", &of, "bs=1M", "status=none"];
        let output = session.command("/bin/dd").args(args).output().unwrap();
        (output.outcome, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for path in ["/tmp/full", "/dev/shm/full", "/tmp/again"] {
        let (outcome, said) = fill(path);
        must(outcome == Outcome::Exited(1), path, (outcome, &said))?;
        must(said.contains("No space left"), path, said)?;
    }
    // All of them are full, and the box can still be used and emptied.
    let empty = "rm /tmp/* /dev/shm/* && echo empty";
    let output = session.command("/bin/sh").args(["-c", empty]).output().unwrap();
    must(output.stdout == b"empty\n", "emptied", &output)?;
    let files = attempt(&session, &["make-files", "/tmp", "1000000"]);
    let said = String::from_utf8_lossy(&files.stdout).trim().to_owned();
    must(said.ends_with(&format!("errno {}", libc::ENOSPC)), "files", &said)?;
    // The twin: without a budget they hold far more.
    let free = world.fresh(|_| {}).start();
    let line = "dd if=/dev/zero of=/tmp/f bs=1M count=64 status=none && echo written";
    let twin = free.command("/bin/sh").args(["-c", line]).output().unwrap();
    must(twin.stdout == b"written\n", "twin", &twin)?;
    Ok(said)
}

fn disk(world: &World) -> Result<String, String> {
    let limited = world.fresh(|p| p.limits.disk = Some(Bytes::mebibytes(32)));
    let session = limited.start();
    let fill = |count: &str| {
        let args = ["if=/dev/zero", "of=/work/large", "bs=1M", count, "status=none"];
        session.command("/bin/dd").args(args).output().unwrap()
    };
    let twin = fill("count=16");
    must(twin.outcome == Outcome::Exited(0), "twin", &twin)?;
    let large = limited.dirs.work().join("large");
    // A file system may write back at its end what a file is that was written anew.
    std::fs::remove_file(&large).unwrap();
    let over = fill("count=3000");
    let stop = is_stopped(&limited, &over, Limit::Disk, "/usr/bin/dd")?;
    must(stop.used < 8 << 30, "used", stop.used)?;
    // A short one, which may have ended before anybody could look, and by much: others give room
    // free meanwhile.
    std::fs::remove_file(&large).unwrap();
    has_room(&session, |seen| seen.disk, 32 << 20)?;
    let home = "dd if=/dev/zero of=/home/box/f bs=1M count=160 status=none";
    let output = session.command("/bin/sh").args(["-c", home]).output().unwrap();
    must(matches!(output.outcome, Outcome::Stopped(_)), "short", output.outcome)?;
    Ok(format!("{stop}"))
}

fn hidden(world: &World) -> Result<String, String> {
    let limited = world.fresh(|p| p.limits.disk = Some(Bytes::mebibytes(32)));
    let session = limited.start();
    let removed = attempt(&session, &["write-removed", "/work/removed", "64", LONG]);
    is_stopped(&limited, &removed, Limit::Disk, ATTEMPT)?;
    has_room(&session, |seen| seen.disk, 32 << 20)?;
    is_whole(&attempt(&session, &["write-removed", "/work/removed", "8"]))?;
    let closed = attempt(&session, &["write-closed", "/work/closed", "64", LONG]);
    let stop = is_stopped(&limited, &closed, Limit::Disk, ATTEMPT)?;
    Ok(format!("{stop}"))
}

fn entries(world: &World) -> Result<String, String> {
    let limited = world.fresh(|p| p.limits.disk = Some(Bytes::mebibytes(4)));
    let session = limited.start();
    is_whole(&attempt(&session, &["make-files", "/work", "500"]))?;
    let over = attempt(&session, &["make-files", "/work", "1000000"]);
    let stop = is_stopped(&limited, &over, Limit::Disk, ATTEMPT)?;
    Ok(format!("{stop}"))
}

fn above(world: &World) -> Result<String, String> {
    let limited = world.fresh(|p| p.limits.disk = Some(Bytes::mebibytes(8)));
    for name in ["one", "two"] {
        let path = limited.dirs.work().join(name);
        std::fs::write(&path, vec![1; 6 << 20]).unwrap();
        limited.dirs.give(&path).unwrap();
    }
    // Longer than a tick of the clock by which a file is known to be older than the session.
    std::thread::sleep(std::time::Duration::from_millis(20));
    let session = limited.start();
    let sh = |line: &str| session.command("/bin/sh").args(["-c", line]).output().unwrap();
    let looks = sh("ls /work; sleep 0.3");
    must(looks.outcome == Outcome::Exited(0), "looks", &looks)?;
    let grows = sh("dd if=/dev/zero of=/work/three bs=1536K count=1 status=none; sleep 60");
    must(matches!(grows.outcome, Outcome::Stopped(_)), "grows", &grows)?;
    let tidies = sh("rm /work/one /work/three; sleep 0.3; echo tidy");
    must(tidies.stdout == b"tidy\n", "tidies", &tidies)?;
    Ok(format!("{}", grows.outcome))
}

fn largest(world: &World) -> Result<String, String> {
    let limited = world.fresh(|p| p.limits.memory = Some(Bytes::mebibytes(96)));
    let session = limited.start();
    let mut small = session.command("/bin/sh");
    small.args(["-c", "read line; echo $line"]).keeper();
    let mut small = small.stdin(Stdio::Piped).stdout(Stdio::Piped).spawn().unwrap();
    let mut large = session.command(ATTEMPT);
    large.args(["attempt", "take-memory", "2000", LONG]).keeper().stdin(Stdio::Null);
    let stopped = large.stdout(Stdio::Null).spawn().unwrap().wait();
    must(matches!(stopped, Outcome::Stopped(stop) if stop.limit == Limit::Memory), "", stopped)?;
    let mut stdin = small.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"still there\n").unwrap();
    let mut said = String::new();
    let mut stdout = small.stdout.take().unwrap();
    std::io::Read::read_to_string(&mut stdout, &mut said).unwrap();
    must(said == "still there\n", "the small one", said)?;
    must(small.wait() == Outcome::Exited(0), "its end", ())?;
    Ok(format!("{stopped}"))
}

fn left(world: &World) -> Result<String, String> {
    let limited = world.fresh(|p| p.limits.memory = Some(Bytes::mebibytes(64)));
    let session = limited.start();
    // It begins when the run has ended: then another one opens the pipe.
    let takes = format!("exec setsid {ATTEMPT} attempt take-memory 4096 {LONG} > /tmp/said 2>&1");
    let line = format!("mkfifo /tmp/held; (exec 9> /tmp/held; {takes}) & exit 0");
    let mut leaves = session.command("/bin/sh");
    leaves.args(["-c", &line]).keeper().stdin(Stdio::Null).stdout(Stdio::Null);
    must(leaves.spawn().unwrap().wait() == Outcome::Exited(0), "the run", ())?;
    // It holds the pipe until it has taken too much: then nothing is left of it. `ps` would not do:
    // a program that is just beginning has no arguments yet.
    let look = "cat /tmp/held /tmp/said; echo gone";
    let gone = session.command("/bin/sh").args(["-c", look]).output().unwrap();
    must(gone.stdout == b"gone\n", "looks", &gone)?;
    let told = limited.sink.spent();
    let [Spent { run: None, stop, program, .. }] = told.as_slice() else {
        return Err(format!("told {told:?}"));
    };
    must(program == ATTEMPT.as_bytes(), "program", program)?;
    Ok(format!("{stop}"))
}
