//! Runs every fuzz target on the stable toolchain: the seeds first, then mutated ones.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it talks to the person who runs it")]

mod corpus;
mod mutator;
mod session;
mod target;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use session::{Outcome, Session};
use target::TARGETS;

const USAGE: &str = "usage: h5i-fuzz [--seconds N] [--seed N] [TARGET]…";

/// What was asked for.
struct Asked {
    seconds: u64,
    seed: u64,
    targets: Vec<String>,
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("h5i-fuzz: {error:#}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode> {
    let asked = parse(std::env::args().skip(1))?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // A claim that fails is told by this program, with the input that it failed for.
    std::panic::set_hook(Box::new(|_| ()));
    let mut code = ExitCode::SUCCESS;
    for target in TARGETS {
        if !asked.targets.is_empty() && !asked.targets.iter().any(|name| name == target.name) {
            continue;
        }
        let seeds = corpus::read(&root.join("corpus").join(target.name))?;
        let session = Session { target: *target, seeds, seed: asked.seed };
        match session.run(Duration::from_secs(asked.seconds)) {
            Outcome::Nothing { executions } => {
                println!(
                    "{:<16} {executions} executions in {} s, nothing found",
                    target.name, asked.seconds
                );
            }
            Outcome::Found { executions, input, message } => {
                let path = corpus::keep(&artifacts(root), target.name, &input)?;
                println!("{:<16} FOUND after {executions} executions: {message}", target.name);
                println!("{:<16} the input is {}", "", path.display());
                code = ExitCode::from(1);
            }
        }
    }
    Ok(code)
}

fn artifacts(root: &Path) -> PathBuf {
    root.join("artifacts")
}

fn parse(words: impl Iterator<Item = String>) -> Result<Asked> {
    let mut asked = Asked { seconds: 30, seed: 1, targets: Vec::new() };
    let mut words = words;
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64> {
            let value = words.next().with_context(|| format!("{word} needs a number"))?;
            value.parse().with_context(|| format!("{word} needs a number, not {value}"))
        };
        match word.as_str() {
            "--seconds" => asked.seconds = number()?,
            "--seed" => asked.seed = number()?,
            name if TARGETS.iter().any(|target| target.name == name) => {
                asked.targets.push(word);
            }
            _ => bail!("no target `{word}`"),
        }
    }
    Ok(asked)
}
