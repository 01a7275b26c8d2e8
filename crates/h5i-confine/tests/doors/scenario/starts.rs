//! Programs that can't be started say why; large arguments pass or are refused whole.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use h5i_confine::{Event, EventSink, Outcome, SpawnError, StartError};

use super::{must, scenario};
use crate::door::Scenario;
use crate::world::{Fresh, World};

pub(crate) const ALL: &[Scenario] = &[
    scenario("S1", "a program that is not there is not found", missing),
    scenario("S2", "what can't be executed says so", not_executable),
    scenario("S3", "arguments and variables up to the kernel's bound", large),
    scenario("S4", "a NUL byte is refused before anything starts", nul),
    scenario("S5", "a directory that is not there is named", bad_directory),
    scenario("S6", "three hundred grants", many_grants),
    scenario("S7", "a failed start leaves the session as it was", failed_in_session),
    scenario("S8", "a failing step is told by the first run, whose end is on record", early),
];

fn error(fresh: &Fresh, program: &str) -> Option<SpawnError> {
    fresh.plan.command(program).output().err()
}

fn put(fresh: &Fresh, name: &str, content: &[u8], mode: u32) {
    let path = fresh.dirs.work().join(name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    fresh.dirs.give(&path).unwrap();
}

fn missing(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let long = format!("/work/{}", "x/".repeat(2000));
    put(&fresh, "script", b"#!/no/interpreter\n", 0o755);
    for program in
        ["nothing-of-this-name", "/work/nothing", "/usr/bin/env/x", &long, "/work/script"]
    {
        let seen = error(&fresh, program);
        must(matches!(seen, Some(SpawnError::NotFound { .. })), program, &seen)?;
    }
    let twin = fresh.plan.command("true").output().unwrap();
    must(twin.outcome == Outcome::Exited(0), "twin", twin.outcome)?;
    Ok("not found".to_owned())
}

fn not_executable(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    // An ELF head of a machine that this is not (EM_SPARCV9), a text, a file without the bit.
    let mut foreign = fs::read("/proc/self/exe").unwrap()[..4096].to_vec();
    foreign[18] = 43;
    put(&fresh, "foreign", &foreign, 0o755);
    put(&fresh, "text", b"neither", 0o755);
    put(&fresh, "plain", b"#!/bin/sh\n", 0o644);
    let name = "x".repeat(300);
    for (program, errno) in [
        ("/work/foreign", libc::ENOEXEC),
        ("/work/text", libc::ENOEXEC),
        ("/work/plain", libc::EACCES),
        ("/work", libc::EACCES),
        (name.as_str(), libc::ENAMETOOLONG),
    ] {
        let seen = error(&fresh, program);
        let Some(SpawnError::NotExecutable { source, .. }) = &seen else {
            return Err(format!("{program}: {seen:?}"));
        };
        must(source.raw_os_error() == Some(errno), program, source)?;
    }
    put(&fresh, "plain", b"#!/bin/sh\n", 0o755);
    must(error(&fresh, "/work/plain").is_none(), "twin", ())?;
    Ok("not executable".to_owned())
}

fn large(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let part = "x".repeat(100_000);
    let mut command = fresh.plan.command("/bin/sh");
    command.args(["-c", "echo $#"]).arg("sh").args(vec![part.as_str(); 10]);
    for n in 0..9 {
        command.env(format!("V{n}"), &part);
    }
    let twin = command.output().unwrap();
    must(twin.stdout == b"10\n", "twin", String::from_utf8_lossy(&twin.stdout))?;
    let seen = fresh.plan.command("/bin/true").args(vec![part.as_str(); 70]).output().err();
    let too_big = matches!(&seen, Some(SpawnError::NotExecutable { source, .. })
        if source.raw_os_error() == Some(libc::E2BIG));
    must(too_big, "seven megabytes", &seen)?;
    Ok("E2BIG".to_owned())
}

fn nul(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let seen = fresh.plan.command("/bin/echo").arg("a\0b").output().err();
    must(matches!(seen, Some(SpawnError::Nul { .. })), "argument", &seen)?;
    let seen = fresh.plan.command("/bin/echo").env("A", "a\0b").output().err();
    must(matches!(seen, Some(SpawnError::Nul { .. })), "variable", &seen)?;
    let twin = fresh.plan.command("/bin/echo").arg("ab").output().unwrap();
    must(twin.stdout == b"ab\n", "twin", &twin.stdout)?;
    Ok("refused".to_owned())
}

fn bad_directory(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let seen = fresh.plan.command("/bin/true").current_dir("/work/none").output().err();
    let named = matches!(&seen, Some(SpawnError::Step { what: "change to the directory", .. }));
    must(named, "error", &seen)?;
    let twin = fresh.plan.command("/bin/pwd").current_dir("/home/box").output().unwrap();
    must(twin.stdout == b"/home/box\n", "twin", &twin.stdout)?;
    Ok("named".to_owned())
}

fn many_grants(world: &World) -> Result<String, String> {
    let host = tempfile::tempdir().unwrap();
    fs::set_permissions(host.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let fresh = world.fresh(|policy| {
        for n in 0..300 {
            let path = host.path().join(format!("grant-{n}"));
            fs::write(&path, n.to_string()).unwrap();
            let path = h5i_policy::HostPath::new(path.to_str().unwrap()).unwrap();
            let grant = h5i_policy::ReadGrant::whole(h5i_policy::GrantOrigin::Policy);
            policy.fs.read.insert(path, grant);
        }
    });
    let last = host.path().join("grant-299").display().to_string();
    let seen = fresh.plan.command("/bin/cat").arg(&last).output().map_err(|e| format!("{e:?}"))?;
    must(seen.stdout == b"299", "the last grant", &seen)?;
    Ok("the last grant is there".to_owned())
}

fn failed_in_session(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let session = fresh.start();
    for _ in 0..600 {
        let seen = session.command("/work/nothing").output().err();
        must(matches!(seen, Some(SpawnError::NotFound { .. })), "error", &seen)?;
    }
    let twin = session.command("/bin/true").output().unwrap();
    must(twin.outcome == Outcome::Exited(0), "twin", twin.outcome)?;
    Ok("600 failures, then a run".to_owned())
}

/// One step, a socket of no family, fails in the stage.
fn early(world: &World) -> Result<String, String> {
    let mut fresh = world.fresh(|_| {});
    let sink = Arc::clone(&fresh.sink);
    let session = |fresh: &Fresh| {
        let sink = Arc::clone(&fresh.sink) as Arc<dyn EventSink>;
        fresh.plan.launch(None).unwrap().session(sink).unwrap()
    };
    let slot = fresh.plan.request_socket(libc::AF_UNIX, libc::SOCK_STREAM, 0);
    let mut alive = session(&fresh);
    must(alive.take_socket(slot).is_some(), "twin's socket", "none")?;
    let twin = alive.command("true").spawn().map_err(|e| format!("{e:?}"))?.wait();
    must(twin == Outcome::Exited(0), "twin", twin)?;
    drop(alive);
    let slot = fresh.plan.request_socket(9999, libc::SOCK_STREAM, 0);
    for round in 0..20 {
        let mut session = session(&fresh);
        // Asked for at once, while the stage is at work, or after it has failed.
        if round % 2 == 0 {
            must(session.take_socket(slot).is_none(), "socket", "there is one")?;
        }
        let seen = session.command("true").spawn().err();
        let told = matches!(&seen, Some(SpawnError::Session(StartError::Step { step, .. }))
            if step.contains("make a socket"));
        must(told, "error", &seen)?;
        let again = session.command("true").spawn().err();
        must(matches!(again, Some(SpawnError::SessionEnded)), "told once", &again)?;
    }
    let (mut starts, mut ends) = (0, 0);
    for event in sink.0.lock().unwrap().iter() {
        match event {
            Event::RunStarting { .. } => starts += 1,
            Event::RunEnded { .. } => ends += 1,
            _ => {}
        }
    }
    must(starts == ends && ends > 0, "records", format!("{starts} starts, {ends} ends"))?;
    Ok("told".to_owned())
}
