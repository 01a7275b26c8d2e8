//! Lets an ordinary parser read a file that nobody trusts: the parser sees the file and nothing
//! else, for five seconds at most.
//!
//! `cargo run -p h5i-examples --bin hostile-file -- FILE PROGRAM [ARGS…]`: the program gets the
//! file as its standard input, `… archive.tar tar -tv` say.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]
#![allow(clippy::disallowed_methods, reason = "an example reads its own environment")]

use std::error::Error;
use std::fs::File;

use h5i_confine::{Layout, Plan, Stdio, system_grants};
use h5i_policy::{Bytes, Millis, ResolvedPolicy};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let (Some(file), Some(program)) = (args.next(), args.next()) else {
        return Err("usage: hostile-file FILE PROGRAM [ARGS…]".into());
    };
    let mut policy = ResolvedPolicy::default();
    policy.fs.read = system_grants();
    policy.limits.wall = Some(Millis::seconds(5));
    policy.limits.output = Some(Bytes::mebibytes(1));
    policy.limits.processes = Some(8);
    policy.limits.file_size = Some(Bytes::new(0));

    // No workspace and no home: the parser has memory file systems only.
    let layout = Layout::default().host_id(2_000_000_001);
    let plan = Plan::for_host(&policy, &layout)?;
    let mut parser = plan.command(program);
    parser.args(args).current_dir("/tmp").stdin(Stdio::Descriptor(File::open(file)?.into()));
    parser.stdout(Stdio::Piped).stderr(Stdio::Inherit);

    let mut run = parser.spawn()?;
    let mut listing = String::new();
    if let Some(mut output) = run.stdout.take() {
        std::io::Read::read_to_string(&mut output, &mut listing)?;
    }
    let outcome = run.wait();
    println!("{} lines, {outcome}", listing.lines().count());
    Ok(())
}
