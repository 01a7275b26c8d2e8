//! H4, D8: every program of a box is on record before it starts, whatever starts it and however.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use h5i_confine::{
    Event, EventSink, Exec, ExecAttempt, Outcome, ProcessEnd, ProcessEnded, Seen, SinkClosed,
};
use h5i_policy::Debuggers;
use h5i_testkit::{Need, have};

use super::{NOT_RUN, must, scenario};
use crate::call::{A, call};
use crate::door::Scenario;
use crate::world::{Fresh, TOOLS, World};

pub(crate) const ALL: &[Scenario] = &[
    scenario("H4a", "an install script's programs are all on record", install_script),
    scenario("H4b", "a search of the path is many attempts and one program", path_search),
    scenario("H4c", "ten thousand programs in a row are all on record", burst),
    scenario("H4d", "no program starts that can't be put on record", closed_sink),
    scenario("H4e", "programs from descriptors and memory are named by what they are", nameless),
    scenario("H4f", "a script is one attempt, and its interpreter the program", script),
    scenario("H4g", "a thread that executes is its process", thread),
    scenario("H4h", "what vfork and posix_spawn start is on record", spawned),
    scenario("H4i", "what can't be read is said", unreadable),
    scenario("H4j", "long arguments are cut, and the cut is said", long),
    scenario("H4k", "ends beyond the bound on descriptors are told or known to be missing", crowd),
    scenario("H4l", "a debugger's programs are on record as well", traced),
    scenario("H4m", "a program that goes on is seen as what it is before it ends", living),
    scenario("H4n", "an orphan is known by its forebear", orphan),
];

/// What was observed of one process.
#[derive(Debug, Default)]
pub(super) struct Life {
    pub(super) attempts: Vec<ExecAttempt>,
    pub(super) execs: Vec<Exec>,
    pub(super) end: Option<ProcessEnded>,
}

impl Life {
    pub(super) fn arguments(&self) -> Vec<String> {
        let last = self.attempts.last().and_then(|attempt| attempt.arguments.read());
        let words = last.map(|arguments| arguments.argv.clone()).unwrap_or_default();
        words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    pub(super) fn exe(&self) -> String {
        self.execs.last().map_or_else(String::new, |exec| text(&exec.exe))
    }

    pub(super) fn code(&self) -> Option<ProcessEnd> {
        self.end.as_ref().map(|end| end.end)
    }
}

pub(super) fn text(seen: &Seen<Vec<u8>>) -> String {
    seen.read().map_or_else(|| "?".to_owned(), |bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// The processes of a session, by their numbers.
pub(super) fn lives(fresh: &Fresh) -> BTreeMap<u64, Life> {
    let mut lives: BTreeMap<u64, Life> = BTreeMap::new();
    for event in std::mem::take(&mut *fresh.sink.0.lock().unwrap()) {
        match event {
            Event::ExecAttempt(attempt) => {
                lives.entry(attempt.process.proc).or_default().attempts.push(attempt);
            }
            Event::Exec(exec) => lives.entry(exec.process.proc).or_default().execs.push(exec),
            Event::ProcessEnded(end) => {
                let life = lives.entry(end.process.proc).or_default();
                life.end = Some(end);
            }
            _ => {}
        }
    }
    lives
}

/// Runs a shell's line in a session of its own; yields what was observed.
fn shell(fresh: &Fresh, line: &str) -> (Outcome, BTreeMap<u64, Life>) {
    let session = fresh.start();
    let output = session.command("/bin/sh").args(["-c", line]).output().unwrap();
    drop(session);
    (output.outcome, lives(fresh))
}

/// Makes an attempt in a session of its own; yields what it said and what was observed.
pub(super) fn attempt(fresh: &Fresh, words: &[&str]) -> (String, BTreeMap<u64, Life>) {
    let session = fresh.start();
    let mut command = session.command(format!("{TOOLS}/attempt"));
    let output = command.arg("attempt").args(words).output().unwrap();
    drop(session);
    (String::from_utf8_lossy(&output.stdout).trim().to_owned(), lives(fresh))
}

/// The one life whose last arguments are these.
pub(super) fn of<'a>(lives: &'a BTreeMap<u64, Life>, words: &[&str]) -> Result<&'a Life, String> {
    let found: Vec<&Life> = lives.values().filter(|life| life.arguments() == words).collect();
    match found.as_slice() {
        [life] => Ok(life),
        _ => {
            let all: Vec<_> = lives.values().map(Life::arguments).collect();
            Err(format!("{} of {words:?} among {all:?}", found.len()))
        }
    }
}

/// What a package's script may do so that nobody sees what it did.
const SCRIPT: &str = r#"
set -e
cp /bin/sleep /tmp/fetch
mkfifo /tmp/done
exec 8</tmp/fetch; rm /tmp/fetch; /proc/self/fd/8 0.001; exec 8<&-
(setsid sh -c 'exec 3>/tmp/done; sleep 0.01; exit 41' &)
cat /tmp/done
sh -c 'kill -TERM $$' || true
/bin/sh -c 'exit 7' || true
/opt/doors/attempt attempt from-memory /bin/true >/dev/null
/opt/doors/attempt attempt under-another-name /bin/echo quiet >/dev/null
rm -f "$0" ~/.sh_history
"#;

fn install_script(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let path = fresh.dirs.work().join("postinstall.sh");
    fs::write(&path, SCRIPT).unwrap();
    fresh.dirs.give(&path).unwrap();
    let (outcome, lives) = shell(&fresh, "exec sh postinstall.sh");
    must(outcome == Outcome::Exited(0), "outcome", outcome)?;
    must(!path.exists(), "the script", "is still there")?;
    let exited = |code| Some(ProcessEnd::Exited(code));
    for (words, code) in [
        (vec!["cp", "/bin/sleep", "/tmp/fetch"], exited(0)),
        (vec!["/proc/self/fd/8", "0.001"], exited(0)),
        (vec!["rm", "/tmp/fetch"], exited(0)),
        (vec!["sh", "-c", "exec 3>/tmp/done; sleep 0.01; exit 41"], exited(41)),
        (vec!["sleep", "0.01"], exited(0)),
        (vec!["sh", "-c", "kill -TERM $$"], Some(ProcessEnd::Signaled(15))),
        (vec!["/bin/sh", "-c", "exit 7"], exited(7)),
        (vec!["by-descriptor", "x"], exited(0)),
        (vec!["/bin/echo", "quiet"], exited(0)),
        (vec!["sh", "postinstall.sh"], exited(0)),
    ] {
        let life = of(&lives, &words)?;
        must(life.code() == code, &format!("end of {words:?}"), life)?;
        must(
            life.execs.len() + usize::from(life.end.as_ref().is_some_and(|e| e.unseen)) >= 1,
            &format!("{words:?}"),
            life,
        )?;
        must(life.attempts.iter().all(|attempt| attempt.run == 1), "run", life)?;
    }
    let gone = of(&lives, &["/proc/self/fd/8", "0.001"])?.exe();
    must(gone == "/tmp/fetch (deleted)", "a removed program", gone)?;
    let hidden = of(&lives, &["by-descriptor", "x"])?.exe();
    must(hidden == "/memfd:hidden (deleted)", "a program in memory", hidden)?;
    let renamed = of(&lives, &["/bin/echo", "quiet"])?;
    must(
        renamed.execs.len() == 2,
        "its own program and the one after its change of name",
        renamed,
    )?;
    // The twin: without the record nothing of all that is told.
    fs::write(&path, SCRIPT).unwrap();
    fresh.dirs.give(&path).unwrap();
    let plan = fresh.plan.clone().without_exec_record();
    let session = plan.start(Arc::clone(&fresh.sink) as Arc<dyn EventSink>).unwrap();
    let twin = session.command("/bin/sh").arg("postinstall.sh").output().unwrap();
    drop(session);
    must(twin.outcome == Outcome::Exited(0), "twin", twin.outcome)?;
    must(self::lives(&fresh).is_empty(), "twin", "programs on record")?;
    Ok(format!("{} processes", lives.len()))
}

fn path_search(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let line = "PATH=/none:/usr/none:/tmp:/opt:/usr/bin; true-or-not; env true one; exit 0";
    let (_, lives) = shell(&fresh, line);
    // A shell looks for itself first; env does not.
    let life = of(&lives, &["true", "one"])?;
    let paths: Vec<String> = life.attempts.iter().map(|attempt| text(&attempt.path)).collect();
    let expected =
        ["/usr/bin/env", "/none/true", "/usr/none/true", "/tmp/true", "/opt/true", "/usr/bin/true"];
    must(paths == expected, "attempts", &paths)?;
    let execs: Vec<(String, u32)> =
        life.execs.iter().map(|exec| (text(&exec.path), exec.failed)).collect();
    let expected = [("/usr/bin/env".to_owned(), 0), ("/usr/bin/true".to_owned(), 4)];
    must(execs == expected, "programs", &execs)?;
    let (said, lives) = attempt(&fresh, &["spawn", "nowhere"]);
    must(said == "errno 2", "a program that is nowhere", &said)?;
    let execs: usize = lives.values().map(|life| life.execs.len()).sum();
    let attempts: usize = lives.values().map(|life| life.attempts.len()).sum();
    must(execs == 1 && attempts > 2, "attempts and programs", (attempts, execs))?;
    Ok(format!("{} attempts, 2 programs", paths.len()))
}

fn burst(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|p| p.limits.wall = None);
    let started = Instant::now();
    let (said, lives) = attempt(&fresh, &["spawn-many", "10000", "4"]);
    let took = started.elapsed();
    must(said == "ok true 10000", "started", said)?;
    let count = |wanted: fn(&Life) -> usize| -> usize { lives.values().map(wanted).sum() };
    let (attempts, execs) = (count(|l| l.attempts.len()), count(|l| l.execs.len()));
    let ends = count(|l| usize::from(l.code() == Some(ProcessEnd::Exited(0))));
    // The program that starts them is one as well.
    must(
        attempts == 10_001 && execs == 10_001 && ends == 10_001,
        "counted",
        (attempts, execs, ends),
    )?;
    let named: std::collections::BTreeSet<_> = lives.values().map(Life::arguments).collect();
    must(named.len() == 10_001, "told apart", named.len())?;
    Ok(format!("10000 in {} ms", took.as_millis()))
}

/// Closes when it is told of a program's attempt for the nth time.
struct ClosesAtAttempt(AtomicUsize, usize);

impl EventSink for ClosesAtAttempt {
    fn event(&self, event: Event) -> Result<(), SinkClosed> {
        if matches!(event, Event::ExecAttempt(_)) && self.0.fetch_add(1, Ordering::SeqCst) >= self.1
        {
            return Err(SinkClosed);
        }
        Ok(())
    }
}

fn closed_sink(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let mark = fresh.dirs.work().join("mark");
    let line = "/bin/touch /work/mark; echo > /work/after; sleep 10";
    let run = |most| {
        let sink = Arc::new(ClosesAtAttempt(AtomicUsize::new(0), most));
        let session = fresh.plan.start(sink).unwrap();
        let output = session.command("/bin/sh").args(["-c", line]).output();
        let after = session.command("/bin/true").output();
        (output, after)
    };
    let (output, after) = run(1);
    let over = output.as_ref().is_ok_and(|output| output.outcome == Outcome::CutOff);
    must(over, "outcome", &output)?;
    must(!mark.exists(), "the program", "ran")?;
    must(after.is_err(), "the session", "goes on")?;
    let (output, _) = run(0);
    must(output.is_err() || output.is_ok_and(|o| o.outcome == Outcome::CutOff), "first", "ran")?;
    // The twin: a record that is kept lets it run.
    let sink = Arc::new(ClosesAtAttempt(AtomicUsize::new(0), usize::MAX));
    let session = fresh.plan.start(sink).unwrap();
    let twin = session.command("/bin/touch").arg("/work/mark").output().unwrap();
    must(twin.outcome == Outcome::Exited(0) && mark.exists(), "twin", &twin)?;
    Ok("it did not run".to_owned())
}

fn nameless(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let mut said = Vec::new();
    for (way, path, exe) in [
        ("from-descriptor", "/usr/bin/true", "/usr/bin/true"),
        ("from-memory", "/memfd:hidden (deleted)", "/memfd:hidden (deleted)"),
    ] {
        let (line, lives) = attempt(&fresh, &[way, "/usr/bin/true"]);
        must(line == "ok 0", way, &line)?;
        let life = of(&lives, &["by-descriptor", "x"])?;
        let passed = life.attempts.last().map(|attempt| text(&attempt.path)).unwrap_or_default();
        must(passed == path && life.exe() == exe, way, life)?;
        said.push(passed);
    }
    Ok(said.join(" "))
}

fn script(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let path = fresh.dirs.work().join("tool");
    fs::write(&path, "#!/bin/sh -e\nexit 3\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    fresh.dirs.give(&path).unwrap();
    let (_, lives) = shell(&fresh, "/work/tool a b; exit 0");
    let life = of(&lives, &["/work/tool", "a", "b"])?;
    must(life.attempts.len() == 1 && life.execs.len() == 1, "attempts", life)?;
    must(text(&life.execs[0].path) == "/work/tool", "path", life)?;
    must(life.exe().ends_with("sh") && life.code() == Some(ProcessEnd::Exited(3)), "exe", life)?;
    Ok(life.exe())
}

fn thread(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let (_, lives) = attempt(&fresh, &["from-thread", "/bin/sh", "-c", "exit 7"]);
    let life = of(&lives, &["/bin/sh", "-c", "exit 7"])?;
    must(lives.len() == 1 && life.execs.len() == 2, "one process, two programs", life)?;
    must(life.code() == Some(ProcessEnd::Exited(7)), "end", life)?;
    let pids: Vec<u32> = life.attempts.iter().map(|attempt| attempt.process.pid).collect();
    must(pids.len() == 2 && pids[0] == pids[1], "pids", &pids)?;
    Ok(format!("pid {}", pids[0]))
}

fn spawned(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let (said, lives) = attempt(&fresh, &["spawn", "/bin/sh", "-c", "exit 5"]);
    must(said == "ok Some(5)", "said", &said)?;
    let life = of(&lives, &["/bin/sh", "-c", "exit 5"])?;
    must(life.execs.len() == 1 && life.code() == Some(ProcessEnd::Exited(5)), "life", life)?;
    let [first] = &life.attempts[..] else { return Err(format!("{life:?}")) };
    let parent = lives.values().find(|life| life.execs.iter().any(|e| e.process == first.parent));
    must(parent.is_some_and(|life| life.exe().ends_with("attempt")), "parent", first)?;
    must(first.ppid == first.parent.pid && text(&first.cwd) == "/work", "place", first)?;
    Ok(format!("pid {} of {}", first.process.pid, first.ppid))
}

fn unreadable(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let (said, lives) = attempt(&fresh, &["without-arguments", "/bin/true"]);
    must(said == "ok 9", "said", &said)?;
    let bad = lives
        .values()
        .flat_map(|life| &life.attempts)
        .find(|attempt| attempt.arguments == Seen::Unread { errno: libc::EFAULT });
    must(bad.is_some_and(|attempt| text(&attempt.path) == "/bin/true"), "attempt", &lives)?;
    // The twin: arguments that are there are read.
    let (_, lives) = attempt(&fresh, &["spawn", "/bin/true"]);
    of(&lives, &["/bin/true"])?;
    Ok("EFAULT".to_owned())
}

fn long(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let line = "/bin/true $(seq 1 30000); /bin/true $(printf %05000d 7); exit 0";
    let (_, lives) = shell(&fresh, line);
    let kept = |n: usize| {
        lives.values().filter_map(|life| life.attempts.last()?.arguments.read()).find(|arguments| {
            arguments.argv.first().is_some_and(|name| name == b"/bin/true")
                && if n == 0 { arguments.argv.len() > 2 } else { arguments.argv.len() == 2 }
        })
    };
    let many = kept(0).ok_or("not on record")?;
    let total: usize = many.argv.iter().map(|word| word.len() + 1).sum();
    must(total <= 65_536 && many.argv.len() + many.cut as usize >= 16_384, "many", many.cut)?;
    let one = kept(2).ok_or("not on record")?;
    must(one.argv[1].len() == 4096 && one.cut == 1, "long", one.cut)?;
    Ok(format!("{} kept, {} cut", many.argv.len(), many.cut))
}

/// How many files this process may have open, soft and hard, until now and from now on.
pub(super) fn open_files(value: Option<[u64; 2]>) -> [u64; 2] {
    let mut old = [0u8; 16];
    let new: Vec<u8> = value.iter().flatten().flat_map(|n| n.to_ne_bytes()).collect();
    let new = if new.is_empty() { A::N(0) } else { A::In(&new) };
    call(libc::SYS_prlimit64, &mut [A::N(0), A::N(7), new, A::Out(&mut old)]).unwrap();
    [&old[..8], &old[8..]].map(|half| u64::from_ne_bytes(half.try_into().unwrap()))
}

fn crowd(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|p| p.limits.processes = None);
    // All are there until the pipe's last writer is gone.
    let line = "mkfifo /tmp/p /tmp/q /tmp/r; exec 9<>/tmp/p 8</tmp/p; n=0; \
                while [ $n -lt 300 ]; do /bin/cat <&8 8<&- 9>&- & n=$((n+1)); done; \
                until [ $(grep -lx cat /proc/[0-9]*/comm | wc -l) -ge 300 ]; do :; done; \
                /bin/sh -c 'echo > /tmp/q; read x < /tmp/r' 8<&- 9>&- & cat /tmp/q; kill -9 $!; \
                exec 9>&-; wait; exit 0";
    // A harness that may open 400 files has a quarter of them for this.
    let usual = open_files(None);
    open_files(Some([400, usual[1]]));
    let session = fresh.start();
    let output = session.command("/bin/sh").args(["-c", line]).output();
    open_files(Some(usual));
    let outcome = output.unwrap().outcome;
    drop(session);
    must(outcome == Outcome::Exited(0), "outcome", outcome)?;
    let lives = lives(&fresh);
    let cats: Vec<&Life> = lives.values().filter(|life| life.arguments() == ["/bin/cat"]).collect();
    must(cats.len() == 300, "on record", cats.len())?;
    let unwatched = cats.iter().filter(|life| !life.attempts.iter().all(|a| a.watched)).count();
    must((150..300).contains(&unwatched), "without a descriptor", unwatched)?;
    let fine = cats.iter().filter(|life| life.code() == Some(ProcessEnd::Exited(0))).count();
    must(fine == 300, "ends by a call of their own", fine)?;
    let killed = of(&lives, &["/bin/sh", "-c", "echo > /tmp/q; read x < /tmp/r"])?;
    let unheard = killed.code() == Some(ProcessEnd::Untold) && !killed.attempts[0].watched;
    must(unheard, "a signal's end that nobody heard", killed)?;
    Ok(format!("{unwatched} of 300 without a descriptor"))
}

fn traced(world: &World) -> Result<String, String> {
    if !have("H4l", Need::Program("/usr/bin/strace")) {
        return Ok(NOT_RUN.to_owned());
    }
    let fresh = world.fresh(|p| p.debuggers = Debuggers::Allowed);
    let (outcome, lives) = shell(
        &fresh,
        "strace -f -o /tmp/t sh -c '/bin/true; exit 4'; grep -c execve /tmp/t; exit 0",
    );
    must(outcome == Outcome::Exited(0), "outcome", outcome)?;
    let life = of(&lives, &["sh", "-c", "/bin/true; exit 4"])?;
    must(life.execs.len() == 1 && life.code() == Some(ProcessEnd::Exited(4)), "life", life)?;
    of(&lives, &["/bin/true"])?;
    Ok(format!("{} processes", lives.len()))
}

fn living(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let session = fresh.start();
    let run = session.command("/bin/sleep").arg("100").spawn().unwrap();
    let started = Instant::now();
    let exec = loop {
        let events = fresh.sink.0.lock().unwrap().clone();
        let exec = events.into_iter().find_map(|event| match event {
            Event::Exec(exec) => Some(exec),
            _ => None,
        });
        if let Some(exec) = exec {
            break exec;
        }
        must(started.elapsed().as_secs() < 60, "seen", "not in a minute")?;
        std::thread::yield_now();
    };
    must(text(&exec.exe) == "/usr/bin/sleep", "exe", &exec)?;
    drop(session);
    must(run.wait() == Outcome::Ended, "outcome", "?")?;
    let lives = lives(&fresh);
    let life = of(&lives, &["/bin/sleep", "100"])?;
    must(life.code() == Some(ProcessEnd::Signaled(9)), "end", life)?;
    Ok(format!("after {} ms", exec.since_start.as_millis()))
}

fn orphan(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let line = "mkfifo /tmp/go /tmp/done; \
                sh -c '/bin/true; (read go < /tmp/go; /bin/echo deep > /tmp/done) & exit 0'; \
                echo > /tmp/go; cat /tmp/done; exit 0";
    let (_, lives) = shell(&fresh, line);
    let deep = of(&lives, &["/bin/echo", "deep"])?;
    let forebear = lives.get(&deep.attempts[0].parent.proc).map(Life::arguments);
    let expected =
        ["sh", "-c", "/bin/true; (read go < /tmp/go; /bin/echo deep > /tmp/done) & exit 0"];
    must(forebear.as_deref() == Some(&expected.map(str::to_owned)[..]), "forebear", &forebear)?;
    must(deep.attempts[0].run == 1, "run", deep)?;
    Ok(format!("ppid {}", deep.attempts[0].ppid))
}
