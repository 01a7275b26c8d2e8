//! Kills a program of the host before a step of its own, told by number.

use std::path::PathBuf;
use std::process::Stdio;

use crate::stand::{H5I, Stand};

/// What ptraces the program; see there what a step is.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/soak/at_step.c");

/// The killer, built for a stand.
pub(crate) struct Killer(PathBuf);

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    Killed,
    /// It ended by itself, with 0, after so many steps.
    Ended(u64),
}

impl Killer {
    pub(crate) fn build(stand: &Stand) -> Self {
        let path = stand.path().join("at_step");
        let mut cc = stand.program("cc");
        let said = cc.args(["-O1", "-Wall", "-Werror", "-o"]).arg(&path).arg(SOURCE).output();
        let said = said.unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        Self(path)
    }

    /// Runs h5i, and kills it before that step.
    pub(crate) fn kill(&self, stand: &Stand, words: &[&str], step: u64) -> Walk {
        let mut command = stand.program(self.0.to_str().unwrap());
        command.arg(step.to_string()).arg(H5I).args(words);
        // h5i may print what it likes: the killer's word is the last line.
        let said = command.stderr(Stdio::null()).output().unwrap();
        let told = String::from_utf8(said.stdout).unwrap();
        let (code, last) = (said.status.code(), told.lines().last().unwrap_or_default().parse());
        match (code, last) {
            (Some(0), _) => Walk::Killed,
            (Some(1), Ok(steps)) => Walk::Ended(steps),
            other => panic!("{words:?}, step {step}: {other:?}"),
        }
    }

    /// How many steps it makes when nobody kills it.
    pub(crate) fn steps(&self, stand: &Stand, words: &[&str]) -> u64 {
        match self.kill(stand, words, u64::MAX >> 1) {
            Walk::Ended(steps) => steps,
            Walk::Killed => panic!("nobody was to kill it"),
        }
    }
}
