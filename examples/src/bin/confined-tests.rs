//! A harness that runs a project's tests confined: no network, no home, no credential.
//!
//! `cargo run -p h5i-examples --bin confined-tests -- DIR PROGRAM [ARGS…]`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to its reader")]
#![allow(clippy::disallowed_methods, reason = "an example reads its own environment")]

use std::error::Error;
use std::path::PathBuf;

use h5i_confine::{Layout, Plan, system_grants};
use h5i_policy::{Millis, ResolvedPolicy};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let (Some(project), Some(program)) = (args.next(), args.next()) else {
        return Err("usage: confined-tests DIR PROGRAM [ARGS…]".into());
    };
    let home = std::env::temp_dir().join(format!("confined-tests-{}", std::process::id()));
    std::fs::create_dir(&home)?;

    let mut policy = ResolvedPolicy::default();
    policy.fs.read = system_grants();
    policy.limits.wall = Some(Millis::seconds(600));
    let layout = Layout::new(PathBuf::from(project), &home).host_id(2_000_000_001);
    let outcome = Plan::for_host(&policy, &layout)?.command(program).args(args).spawn()?.wait();

    std::fs::remove_dir_all(&home)?;
    println!("{outcome}");
    if outcome.success() { Ok(()) } else { Err("the tests did not pass".into()) }
}
