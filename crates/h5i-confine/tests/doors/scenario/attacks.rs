//! D9: a box that attacks, beside a second box and a host that go on answering.
//!
//! What an attack takes ends by itself at some GiB: where a budget does not hold, a test fails and the
//! host lives.

use std::process::{Command as HostCommand, Stdio as HostStdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use h5i_confine::{Outcome, Session, Stdio};
use h5i_policy::{Bytes, Limits, Millis};
use h5i_testkit::Moment;

use super::{must, scenario};
use crate::door::Scenario;
use crate::world::{TOOLS, Variant, World};

pub(crate) const ALL: &[Scenario] = &[
    scenario("D9A", "beside a fork bomb others answer", fork_bomb),
    scenario("D9B", "beside a memory eater others answer", memory_eater),
    scenario("D9C", "beside a disk filler others answer", disk_filler),
    scenario("D9D", "beside an inode eater others answer", inode_eater),
    scenario("D9E", "beside a flood of output others answer", output_flood),
    scenario("D9F", "beside daemons that left their session others answer", daemons),
    scenario("D9G", "beside programs that ignore signals others answer", stubborn),
    scenario("D9H", "beside stopped processes others answer", stopped),
];

/// The slowest answer that counts as one.
const ANSWER: Duration = Duration::from_secs(5);
/// No run outlives its deadline by more.
const LATE: Duration = Duration::from_secs(1);
/// The deadline of an attack that nothing else ends.
const WALL: u32 = 2;
/// That of one which another budget ends, however long it takes on a busy machine.
const LAST: u32 = 60;

/// The slowest and the median of some answers.
#[derive(Clone, Copy, Debug)]
struct Answers {
    median: Duration,
    slowest: Duration,
}

impl Answers {
    fn of(mut all: Vec<Duration>) -> Self {
        all.sort_unstable();
        let median = all[all.len() / 2];
        Self { median, slowest: all[all.len() - 1] }
    }

    fn words(self) -> String {
        let ms = |span: Duration| span.as_micros() as f64 / 1000.0;
        format!("{:.1}/{:.1} ms", ms(self.median), ms(self.slowest))
    }
}

fn ask_box(session: &Session) -> Duration {
    let begun = Moment::now();
    let mut command = session.command("/bin/echo");
    let output = command.arg("answer").stdin(Stdio::Null).output().unwrap();
    assert_eq!(output.stdout, b"answer\n");
    begun.elapsed()
}

fn ask_host() -> Duration {
    let begun = Moment::now();
    let mut command = HostCommand::new("/bin/echo");
    let output = command.arg("answer").stdin(HostStdio::null()).output().unwrap();
    assert_eq!(output.stdout, b"answer\n");
    begun.elapsed()
}

/// Asks both until it is enough.
fn ask(session: &Session, enough: impl Fn(usize) -> bool) -> (Answers, Answers) {
    let (mut of_box, mut of_host) = (Vec::new(), Vec::new());
    while !enough(of_box.len()) || of_box.is_empty() {
        of_box.push(ask_box(session));
        of_host.push(ask_host());
    }
    (Answers::of(of_box), Answers::of(of_host))
}

/// Runs an attack in a box with these limits, and asks a second box and the host before and during
/// it. Yields how it ended and the answers in words.
fn attack(
    world: &World,
    wall: u32,
    limits: impl FnOnce(&mut Limits),
    line: &str,
) -> Result<(Outcome, String), String> {
    let attacked = world.fresh(|policy| {
        policy.limits.wall = Some(Millis::seconds(wall));
        policy.limits.processes = Some(200);
        policy.limits.output = Some(Bytes::mebibytes(64));
        limits(&mut policy.limits);
    });
    let second = world.session(Variant::Second);
    let before = ask(second, |asked| asked >= 20);
    let session = attacked.start();
    let over = AtomicBool::new(false);
    let (ended, took, during) = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let begun = Moment::now();
            let mut command = session.command("/bin/sh");
            command.args(["-c", line]).stdin(Stdio::Null);
            let outcome = command.stderr(Stdio::Null).output().map(|output| output.outcome);
            over.store(true, Ordering::Relaxed);
            (outcome, begun.elapsed())
        });
        let during = ask(second, |_| over.load(Ordering::Relaxed));
        let (outcome, took) = run.join().unwrap();
        (outcome, took, during)
    });
    let ended = ended.map_err(|error| format!("{error:?}"))?;
    must(took < Duration::from_secs(wall.into()) + LATE, "took", took)?;
    for answers in [during.0, during.1] {
        must(answers.slowest < ANSWER, "an answer", answers)?;
    }
    // The attacked box is as good as before.
    drop(session);
    let again = attacked.plan.command("/bin/echo").arg("usable").output().unwrap();
    must(again.stdout == b"usable\n", "afterwards", again)?;
    let words = format!(
        "{ended} · second box {} then {} · host {} then {} (median/slowest)",
        before.0.words(),
        during.0.words(),
        before.1.words(),
        during.1.words(),
    );
    // For a reader of the whole table, where a line is cut.
    println!("      {words}");
    Ok((ended, words))
}

/// Checks that the attack was stopped by this limit.
fn stopped_by((ended, words): (Outcome, String), limit: &str) -> Result<String, String> {
    match ended {
        Outcome::Stopped(stop) if stop.limit.name() == limit => Ok(words),
        other => Err(format!("{other:?}")),
    }
}

fn fork_bomb(world: &World) -> Result<String, String> {
    // Set off by a process of its own: a shell that can't fork ends, and this one must stay.
    stopped_by(attack(world, WALL, |_| {}, "b() { b | b & }; (b); while :; do :; done")?, "wall")
}

fn memory_eater(world: &World) -> Result<String, String> {
    let line =
        format!("for i in 1 2 3; do {TOOLS}/attempt attempt take-memory 3000 long & done; wait");
    stopped_by(attack(world, LAST, |l| l.memory = Some(Bytes::mebibytes(256)), &line)?, "memory")
}

fn disk_filler(world: &World) -> Result<String, String> {
    let line = "i=0; while [ $i -lt 64 ]; do i=$((i+1)); dd if=/dev/zero of=/work/f$i bs=1M count=64; done";
    stopped_by(attack(world, LAST, |l| l.disk = Some(Bytes::mebibytes(256)), line)?, "disk")
}

fn inode_eater(world: &World) -> Result<String, String> {
    let line = format!("{TOOLS}/attempt attempt make-files /work 100000");
    stopped_by(attack(world, LAST, |l| l.disk = Some(Bytes::mebibytes(1)), &line)?, "disk")
}

fn output_flood(world: &World) -> Result<String, String> {
    stopped_by(attack(world, LAST, |_| {}, "yes & yes & yes")?, "output")
}

fn daemons(world: &World) -> Result<String, String> {
    let line = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); \
        (setsid sh -c '(while :; do :; done) & while :; do :; done' &); done; sleep 1000";
    stopped_by(attack(world, WALL, |_| {}, line)?, "wall")
}

fn stubborn(world: &World) -> Result<String, String> {
    let line = "trap '' TERM HUP INT QUIT USR1 USR2 PIPE ALRM; i=0; \
        while [ $i -lt 40 ]; do i=$((i+1)); (while :; do :; done) & done; \
        while :; do sleep 1000; done";
    stopped_by(attack(world, WALL, |_| {}, line)?, "wall")
}

fn stopped(world: &World) -> Result<String, String> {
    let line = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); sh -c 'kill -STOP $$' & done; \
        kill -STOP $$; echo continued";
    stopped_by(attack(world, WALL, |_| {}, line)?, "wall")
}
