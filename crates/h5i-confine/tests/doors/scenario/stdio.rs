//! C2, C3, C4: what is handed in as input and output.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use h5i_confine::{Outcome, Stdio};
use h5i_testkit::Moment;

use super::{must, scenario};
use crate::door::Scenario;
use crate::world::{Fresh, TOOLS, World};

pub(crate) const ALL: &[Scenario] = &[
    scenario("C2j", "a plain file as input is neither named, reopened nor changed", input_file),
    scenario("C2k", "a plain file as output is neither reopened nor changed", output_file),
    scenario("C2l", "a socket as input or output is not handed in", socket),
    scenario("C2m", "a named pipe as input is not handed in", named_pipe),
    scenario("C2n", "a directory as input is not handed in", directory),
    scenario("D7d", "input that is closed early ends nothing", closed_input),
    scenario("D7e", "a run ends with its program, whoever still holds its output", held_output),
    scenario("D7f", "a large input and output pass whole", whole),
];

/// Makes an attempt with these descriptors as input and output; yields what it printed as errors
/// or output.
fn with(fresh: &Fresh, stdin: Stdio, attempt: &[&str]) -> String {
    let mut command = fresh.plan.command(format!("{TOOLS}/attempt"));
    command.arg("attempt").args(attempt).stdin(stdin).stdout(Stdio::Piped).stderr(Stdio::Null);
    let mut run = command.spawn().unwrap();
    let mut text = String::new();
    run.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    run.wait();
    text.trim().to_owned()
}

fn input_file(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let path = fresh.dirs.path().join("input");
    fs::write(&path, "what it says").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    // As root's boxes do, the file belongs to the id that the box runs under.
    fresh.dirs.give(&path).unwrap();
    let before = fs::metadata(&path).unwrap();
    let given = || Stdio::Descriptor(OwnedFd::from(File::open(&path).unwrap()));
    for attempt in ["fchmod", "futimens", "fsetxattr", "reopen-write"] {
        with(&fresh, given(), &[attempt, "0"]);
        let after = fs::metadata(&path).unwrap();
        let same = (before.mode(), before.mtime(), before.ctime(), before.ctime_nsec())
            == (after.mode(), after.mtime(), after.ctime(), after.ctime_nsec());
        must(same, attempt, &after)?;
    }
    let name = with(&fresh, given(), &["readlink", "/proc/self/fd/0"]);
    must(!name.contains("input"), "its name", &name)?;
    let twin = with(&fresh, given(), &["read", "/proc/self/fd/0"]);
    must(twin == "ok what it says", "twin", &twin)?;
    Ok(name)
}

fn output_file(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let path = fresh.dirs.path().join("output");
    let open = || OpenOptions::new().create(true).append(true).open(&path).unwrap();
    drop(open());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fresh.dirs.give(&path).unwrap();
    for attempt in ["fchmod", "reopen-write", "kind"] {
        let mut command = fresh.plan.command(format!("{TOOLS}/attempt"));
        command.args(["attempt", attempt, "1"]).stdin(Stdio::Null).stderr(Stdio::Null);
        let outcome = command.stdout(Stdio::Descriptor(open().into())).status().unwrap();
        must(outcome == Outcome::Exited(0), "outcome", outcome)?;
    }
    let after = fs::metadata(&path).unwrap();
    must(after.mode() & 0o777 == 0o600, "mode", after.mode())?;
    let text = fs::read_to_string(&path).unwrap();
    // The twin: what is written arrives, through a pipe of the supervisor's.
    must(text.ends_with("ok pipe\n"), "arrived", &text)?;
    Ok(text)
}

fn socket(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    ours.write_all(b"by socket").unwrap();
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    let given = || Stdio::Descriptor(theirs.try_clone().unwrap().into());
    let kind = with(&fresh, given(), &["kind", "0"]);
    must(kind == "ok pipe", "kind", &kind)?;
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    ours.write_all(b"by socket").unwrap();
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    let twin = with(&fresh, Stdio::Descriptor(theirs.into()), &["read", "/dev/stdin"]);
    must(twin == "ok by socket", "twin", &twin)?;
    Ok(kind)
}

fn named_pipe(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let path = fresh.dirs.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    must(made.success(), "mkfifo", made)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fresh.dirs.give(&path).unwrap();
    let both = || OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let keep = both();
    with(&fresh, Stdio::Descriptor(both().into()), &["fchmod", "0"]);
    let mode = fs::metadata(&path).unwrap().mode() & 0o777;
    must(mode == 0o600, "mode", format!("{mode:o}"))?;
    let kind = with(&fresh, Stdio::Descriptor(both().into()), &["kind", "0"]);
    must(kind == "ok pipe", "twin", &kind)?;
    drop(keep);
    Ok(format!("mode {mode:o}"))
}

fn directory(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let given = || Stdio::Descriptor(File::open("/etc").unwrap().into());
    let listed = with(&fresh, given(), &["list", "/proc/self/fd/0"]);
    must(listed == format!("errno {}", libc::ENOTDIR), "listed", &listed)?;
    let twin = with(&fresh, given(), &["kind", "0"]);
    must(twin == "ok pipe", "twin", &twin)?;
    Ok(listed)
}

fn closed_input(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![b'x'; 4_000_000]).unwrap();
    file.rewind().unwrap();
    let mut command = fresh.plan.command("/bin/sh");
    command.args(["-c", "exec 0<&-; echo done"]).stdin(Stdio::Descriptor(file.into()));
    let mut run = command.stdout(Stdio::Piped).spawn().unwrap();
    let mut text = String::new();
    run.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let outcome = run.wait();
    must(outcome == Outcome::Exited(0) && text == "done\n", "outcome", (outcome, &text))?;
    Ok(format!("{outcome}"))
}

fn held_output(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let started = Moment::now();
    let (output, took) = fresh.shell("setsid sleep 1000 & echo first; exit 3");
    must(output.outcome == Outcome::Exited(3), "outcome", output.outcome)?;
    must(output.stdout == b"first\n", "output", &output.stdout)?;
    must(took < Duration::from_secs(1), "took", took)?;
    let (twin, _) = fresh.shell("sleep 0.05; echo second");
    must(twin.stdout == b"second\n", "twin", &twin.stdout)?;
    Ok(format!("{} ms", started.elapsed().as_millis()))
}

fn whole(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let mut file = tempfile::tempfile().unwrap();
    let bytes: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    file.write_all(&bytes).unwrap();
    file.rewind().unwrap();
    let mut command = fresh.plan.command("/bin/cat");
    let mut run =
        command.stdin(Stdio::Descriptor(file.into())).stdout(Stdio::Piped).spawn().unwrap();
    let mut seen = Vec::new();
    run.stdout.take().unwrap().read_to_end(&mut seen).unwrap();
    let outcome = run.wait();
    must(outcome == Outcome::Exited(0) && seen == bytes, "arrived", (outcome, seen.len()))?;
    Ok(format!("{} bytes", seen.len()))
}
