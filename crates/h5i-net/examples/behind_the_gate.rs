//! Runs a command in a box whose network has named doors, and prints what was observed.
//!
//! `behind_the_gate RULE… -- PROGRAM ARGS…`, for instance `host:8000 -- curl http://host:8000/`.
#![allow(clippy::print_stdout, reason = "its output is what it is for")]
#![allow(clippy::disallowed_methods, reason = "a program that is run by hand")]

use std::error::Error;
use std::sync::Arc;

use h5i_confine::{Layout, NoSink, Plan, Stdio, system_grants};
use h5i_net::{Budgets, Event, EventSink, HostResolver, Network, SinkClosed, requests};
use h5i_policy::{NetMode, NetPolicy, NetRule, ResolvedPolicy};

/// Prints each observation.
struct Printed;

impl EventSink for Printed {
    fn event(&self, event: Event) -> Result<(), SinkClosed> {
        println!("{event:?}");
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let at = args.iter().position(|arg| arg == "--").ok_or("RULE… -- PROGRAM ARGS…")?;
    let (rules, command) = (&args[..at], &args[at + 1..]);
    let (program, rest) = command.split_first().ok_or("no program")?;

    let mut net = NetPolicy::default();
    net.mode = if rules.is_empty() { NetMode::None } else { NetMode::Allow };
    for rule in rules {
        net.allow.insert(NetRule::new(rule)?);
    }

    let dirs = h5i_testkit::BoxDirs::new()?;
    let mut policy = ResolvedPolicy::default();
    policy.fs.read = system_grants();
    let mut layout = Layout::new(dirs.work(), dirs.home());
    layout.host_id = dirs.host_id();
    let mut plan = Plan::for_host(&policy, &layout)?;
    let slots = requests(&net)?.map(|one| plan.request_socket(one.domain, one.kind, one.protocol));

    let mut session = plan.start(Arc::new(NoSink))?;
    let sockets = slots.into_iter().filter_map(|slot| session.take_socket(slot)).collect();
    let resolver = Arc::new(HostResolver);
    let network = Network::start(sockets, &net, Budgets::default(), resolver, Arc::new(Printed))?;

    let output = session.command(program).args(rest).stdin(Stdio::Null).output()?;
    println!("{}", String::from_utf8_lossy(&output.stdout));
    println!("{}", String::from_utf8_lossy(&output.stderr));
    println!("{}", output.outcome);
    session.end();
    drop(network);
    Ok(())
}
