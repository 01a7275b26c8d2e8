//! H4: what came of an attempt is the kernel's word, and what can't be recorded does not begin.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::time::Duration;

use h5i_confine::{Event, Exec, Outcome, ProcessEnd, Stdio};
use h5i_policy::Debuggers;

use super::programs::{Life, attempt, lives, of, open_files, text};
use super::{must, scenario};
use crate::door::Scenario;
use crate::world::{Fresh, TOOLS, World};

pub(crate) const ALL: &[Scenario] = &[
    scenario("H4o", "what can't be looked at for want of descriptors does not begin", starved),
    scenario("H4p", "a failed attempt of one that has ended is no program", failed),
    scenario("H4q", "a process whose first thread has ended is seen as what it is", leaderless),
    scenario("H4r", "a program whose memory lies like the last one's is another one", alike),
    scenario("H4s", "a life ends with its last call, however late it is waited for", reaped_late),
];

/// Runs two programs in a shell, once without a free descriptor, and, if so wished, without any
/// that could be opened. Yields what it said, and what was observed.
fn without_descriptors(fresh: &Fresh, most: Option<u64>) -> (String, BTreeMap<u64, Life>, u64) {
    let line = "read go; for word in one two; do /bin/echo $word || echo none; done";
    let session = fresh.start();
    let mut run = session.command("/bin/sh");
    run.args(["-c", line]).stdin(Stdio::Piped).stdout(Stdio::Piped).stderr(Stdio::Null);
    let mut run = run.spawn().unwrap();
    let (mut stdin, mut stdout) = (run.stdin.take().unwrap(), run.stdout.take().unwrap());
    let usual = open_files(None);
    let now = fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    open_files(Some([now + 64, usual[1]]));
    let taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    // What is given back has a number above that.
    most.map(|most| open_files(Some([most, usual[1]])));
    stdin.write_all(b"go\n").unwrap();
    let mut said = String::new();
    stdout.read_to_string(&mut said).unwrap();
    let outcome = run.wait();
    open_files(Some(usual));
    drop(taken);
    assert_eq!(outcome, Outcome::Exited(0));
    // The twin: with descriptors all is as before.
    let after = session.command("/bin/echo").arg("after").output().unwrap();
    assert_eq!(after.stdout, b"after\n");
    drop(session);
    let refused = |event: &Event| match event {
        Event::RefusedCall(call) if call.name == "execve" => call.count,
        _ => 0,
    };
    let refused = fresh.sink.0.lock().unwrap().iter().map(refused).sum();
    (said, lives(fresh), refused)
}

fn starved(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    // A few are kept for this.
    let (said, lives, refused) = without_descriptors(&fresh, None);
    must(
        (said.as_str(), refused) == ("one\ntwo\n", 0),
        "with those that are kept",
        (said, refused),
    )?;
    for word in ["one", "two"] {
        of(&lives, &["/bin/echo", word])?;
    }
    of(&lives, &["/bin/echo", "after"])?;
    let (said, lives, refused) = without_descriptors(&fresh, Some(12));
    must((said.as_str(), refused) == ("none\nnone\n", 2), "without any", (said, refused))?;
    must(lives.values().all(|life| life.arguments() != ["/bin/echo", "one"]), "on record", "one")?;
    of(&lives, &["/bin/echo", "after"])?;
    Ok(format!("{refused} refused"))
}

fn failed(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let program = format!("{TOOLS}/attempt");
    for how in ["signal", "exit"] {
        let words = ["reap-late", "400", &program, "attempt", "fail-and-end", "/usr/bin/none", how];
        let (said, lives) = attempt(&fresh, &words);
        let wanted = if how == "signal" { "9" } else { "768" };
        must(said == format!("ok {wanted}"), "said", &said)?;
        let asks =
            |life: &&Life| life.attempts.iter().any(|one| text(&one.path) == "/usr/bin/none");
        let found: Vec<&Life> = lives.values().filter(asks).collect();
        let [life] = found.as_slice() else { return Err(format!("{how}: {found:?}")) };
        must(life.attempts.len() == 2 && life.execs.len() == 1, how, life)?;
        must(life.exe().ends_with("/attempt"), how, life)?;
    }
    Ok("two".to_owned())
}

fn leaderless(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let program = format!("{TOOLS}/attempt");
    let (_, lives) = attempt(&fresh, &["without-leader", &program, "2"]);
    let [life] = lives.values().collect::<Vec<_>>()[..] else { return Err(format!("{lives:?}")) };
    // Each is this program, and each is on record as one that ran.
    must(life.attempts.len() == 3 && life.execs.len() == 3, "programs", life)?;
    let own = life.execs.iter().all(|exec| text(&exec.exe).ends_with("/attempt"));
    must(own && life.code() == Some(ProcessEnd::Exited(7)), "what they are", life)?;
    Ok(format!("{} programs", life.execs.len()))
}

fn alike(world: &World) -> Result<String, String> {
    let seen = by_turns(world, "755")?;
    must(seen == (6, false), "programs", seen)?;
    // Of what can only be executed nobody but root is told anything: that is not taken for failed.
    let (ran, unseen) = by_turns(world, "111")?;
    must(ran == 6 || ran < 6 && unseen, "programs that can't be read", (ran, unseen))?;
    Ok(format!("6 in turn, {ran} of those that can't be read"))
}

/// Has two programs of this mode execute each other, six in all, each with its memory where the one
/// before had it. Yields how many were seen to, and whether the last attempt was left undecided.
fn by_turns(world: &World, mode: &str) -> Result<(usize, bool), String> {
    let fresh = world.fresh(|p| p.debuggers = Debuggers::Allowed);
    let session = fresh.start();
    let copies = "cp \"$0\" /work/one; cp \"$0\" /work/two; chmod $1 /work/one /work/two; \
                  exec \"$0\" attempt unrandomised /work/one /work/two 6";
    let program = format!("{TOOLS}/attempt");
    let output = session.command("/bin/sh").args(["-c", copies, &program, mode]).output().unwrap();
    drop(session);
    must(output.outcome == Outcome::Exited(0), "outcome", &output)?;
    let lives = lives(&fresh);
    let asks = |life: &&Life| life.attempts.iter().any(|one| text(&one.path) == "/work/one");
    let life = lives.values().find(asks).ok_or("not on record")?;
    let copies = |exec: &&Exec| text(&exec.path).starts_with("/work/");
    let unseen = life.end.as_ref().is_some_and(|end| end.unseen);
    Ok((life.execs.iter().filter(copies).count(), unseen))
}

fn reaped_late(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let (said, lives) = attempt(&fresh, &["reap-late", "3000", "/bin/true"]);
    must(said == "ok 0", "said", &said)?;
    let life = of(&lives, &["/bin/true"])?;
    let end = life.end.as_ref().ok_or("no end")?;
    must(end.end == ProcessEnd::Exited(0), "end", end)?;
    must(end.wall < Duration::from_millis(2500), "wall", end.wall)?;
    Ok(format!("{} ms", end.wall.as_millis()))
}
