//! One target for some time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::mutator::Mutator;
use crate::target::Target;

/// A target, its seeds, and where chance begins.
pub(crate) struct Session {
    pub(crate) target: Target,
    pub(crate) seeds: Vec<Vec<u8>>,
    pub(crate) seed: u64,
}

/// How a session ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Every claim held.
    Nothing { executions: u64 },
    /// One did not.
    Found { executions: u64, input: Vec<u8>, message: String },
}

impl Session {
    /// Tries every seed, then mutated ones until the time is up or something is found.
    pub(crate) fn run(&self, time: Duration) -> Outcome {
        let end = Instant::now() + time;
        let mut executions = 0;
        let mut mutator = Mutator::new(self.seed);
        let mut waiting = self.seeds.iter();
        loop {
            let input = match waiting.next() {
                Some(seed) => seed.clone(),
                None if Instant::now() >= end => return Outcome::Nothing { executions },
                None => mutator.input(&self.seeds, self.target.words),
            };
            executions += 1;
            if let Err(message) = self.try_one(&input) {
                return Outcome::Found { executions, input, message };
            }
        }
    }

    fn try_one(&self, input: &[u8]) -> Result<(), String> {
        catch_unwind(AssertUnwindSafe(|| (self.target.harness)(input))).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_else(|| "a panic without words".to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::{Outcome, Session};
    use crate::corpus;
    use crate::target::{TARGETS, Target};

    #[test]
    fn every_claim_holds_for_every_seed() {
        for target in TARGETS {
            let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
            let seeds = corpus::read(&directory).unwrap();
            let number = seeds.len() as u64;
            let session = Session { target: *target, seeds, seed: 1 };
            assert_eq!(session.run(Duration::ZERO), Outcome::Nothing { executions: number });
        }
    }

    #[test]
    fn a_claim_that_fails_is_found_with_its_input() {
        let picky = Target {
            name: "picky",
            harness: |data| assert!(!data.windows(3).any(|window| window == b"bad"), "found bad"),
            words: &[b"bad"],
        };
        let session = Session { target: picky, seeds: vec![b"good".to_vec()], seed: 1 };
        match session.run(Duration::from_secs(60)) {
            Outcome::Found { input, message, .. } => {
                assert!(input.windows(3).any(|window| window == b"bad"));
                assert_eq!(message, "found bad");
                let kept = tempfile::tempdir().unwrap();
                let path = corpus::keep(kept.path(), "picky", &input).unwrap();
                assert_eq!(std::fs::read(path).unwrap(), input);
            }
            Outcome::Nothing { executions } => panic!("nothing found in {executions}"),
        }
    }
}
