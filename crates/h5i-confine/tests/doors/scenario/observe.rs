//! F13, E: what is refused is recorded, however often and by whom.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use h5i_confine::{Event, EventSink, Outcome, RefusedCall, SinkClosed, SpawnError};
use h5i_policy::Millis;
use h5i_testkit::Moment;

use super::{must, scenario};
use crate::door::Scenario;
use crate::world::{TOOLS, World};

pub(crate) const ALL: &[Scenario] = &[
    scenario("F13a", "ten thousand refused calls are all counted", flood),
    scenario("F13b", "a flood does not keep a run from its deadline", flood_and_deadline),
    scenario("F13c", "calls of processes that die at once hold nothing up", dying),
    scenario("F13d", "more kinds than are told apart are counted as one", kinds),
    scenario("F13e", "a record that can't be kept ends the session", closed_sink),
    scenario("F13f", "a run is recorded before, at and after its life, in order", order),
];

fn attempt_in(
    session: &h5i_confine::Session,
    attempt: &[&str],
) -> Result<h5i_confine::Output, SpawnError> {
    session.command(format!("{TOOLS}/attempt")).arg("attempt").args(attempt).output()
}

fn total(calls: &[RefusedCall], name: &str) -> u64 {
    calls.iter().filter(|call| call.name == name).map(|call| call.count).sum()
}

fn flood(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let session = fresh.start();
    let started = Instant::now();
    let output = attempt_in(&session, &["refuse-many", "10000"]).unwrap();
    must(output.stdout == b"ok 10000\n", "refused", String::from_utf8_lossy(&output.stdout))?;
    let calls = fresh.sink.refused();
    must(total(&calls, "setns") == 10_000, "counted", total(&calls, "setns"))?;
    must(calls.len() == 2, "records", calls.len())?;
    let twin = attempt_in(&session, &["kind", "1"]).unwrap();
    must(twin.stdout == b"ok pipe\n" && fresh.sink.refused().is_empty(), "twin", &twin)?;
    Ok(format!("10000 in {} ms", started.elapsed().as_millis()))
}

fn flood_and_deadline(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|p| p.limits.wall = Some(Millis::new(300)));
    let started = Moment::now();
    let output = fresh.attempt(&["refuse-many", "100000000"]);
    let took = started.elapsed();
    must(matches!(output.outcome, Outcome::Stopped(_)), "outcome", output.outcome)?;
    must(took < Duration::from_secs(5), "took", took)?;
    Ok(format!("{} ms", took.as_millis()))
}

fn dying(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|p| p.limits.wall = Some(Millis::new(10_000)));
    let session = fresh.start();
    let output = attempt_in(&session, &["refuse-and-die", "200"]).unwrap();
    must(output.stdout == b"ok 200\n", "died", String::from_utf8_lossy(&output.stdout))?;
    let twin = attempt_in(&session, &["refuse-many", "1"]).unwrap();
    must(twin.stdout == b"ok 1\n", "twin", &twin)?;
    Ok(format!("{} counted", total(&fresh.sink.refused(), "setns")))
}

fn kinds(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let session = fresh.start();
    let output = attempt_in(&session, &["refuse-kinds", "2000"]).unwrap();
    must(output.stdout == b"ok 2000\n", "refused", String::from_utf8_lossy(&output.stdout))?;
    let calls = fresh.sink.refused();
    let counted = total(&calls, "socket") + total(&calls, "others");
    must(counted == 2000, "counted", counted)?;
    must(calls.len() < 1100, "records", calls.len())?;
    Ok(format!("{} records", calls.len()))
}

/// Closes at the nth event.
struct ClosesAt(AtomicUsize, usize);

impl EventSink for ClosesAt {
    fn event(&self, _: Event) -> Result<(), SinkClosed> {
        let n = self.0.fetch_add(1, Ordering::SeqCst);
        if n >= self.1 { Err(SinkClosed) } else { Ok(()) }
    }
}

fn closed_sink(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    // RunStarting, RunStarted, RefusedCall, RunEnded: each is the one that can't be kept once.
    for last in 0..4 {
        let sink = Arc::new(ClosesAt(AtomicUsize::new(0), last));
        let session = fresh.plan.start(sink).unwrap();
        attempt_in(&session, &["refuse-many", "1"]).ok();
        let after = attempt_in(&session, &["kind", "1"]);
        let over = matches!(&after, Err(SpawnError::SessionEnded));
        must(over, &format!("after {last} events"), &after)?;
    }
    let session = fresh.plan.start(Arc::new(ClosesAt(AtomicUsize::new(0), usize::MAX))).unwrap();
    attempt_in(&session, &["refuse-many", "1"]).unwrap();
    let twin = attempt_in(&session, &["kind", "1"]);
    must(twin.is_ok(), "twin", &twin)?;
    Ok("the session has ended".to_owned())
}

fn order(world: &World) -> Result<String, String> {
    let fresh = world.fresh(|_| {});
    let session = fresh.start();
    for _ in 0..50 {
        session.command("/bin/true").output().unwrap();
    }
    drop(session);
    let events = std::mem::take(&mut *fresh.sink.0.lock().unwrap());
    for n in 1..=50 {
        let of_run: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::RunStarting { run } if *run == n => Some("starting"),
                Event::RunStarted { run, .. } if *run == n => Some("started"),
                Event::RunEnded { run, .. } if *run == n => Some("ended"),
                _ => None,
            })
            .collect();
        must(of_run == ["starting", "started", "ended"], "run", (n, of_run))?;
    }
    Ok(format!("{} events", events.len()))
}
