//! A door: an attempt, what must come of it in a box, and where it must succeed.

use std::path::Path;
use std::process::Command;

use crate::interpreter::{ALLOW, USER_NOTIF, verdict};
use crate::world::{Variant, World};

/// What must come of an attempt.
#[derive(Clone, Debug)]
pub(crate) enum Expect {
    /// It succeeds.
    Succeeds,
    /// It succeeds and sees exactly this.
    Sees(String),
    /// It succeeds and sees none of these.
    SeesNone(Vec<String>),
    /// It fails with this errno.
    Errno(i32),
    /// It fails because the file or its file system can't be written: who of several refuses first
    /// depends on who owns the file.
    Unwritable,
    /// It fails with this errno, and the supervisor records the call by this name.
    Refused(&'static str),
    /// This signal ends it.
    Killed(i32),
}

/// Where the same attempt, or a like one, must go another way.
#[derive(Clone, Debug)]
pub(crate) enum Twin {
    /// It succeeds outside of the box.
    Outside,
    /// It succeeds outside of the box, and sees something else there.
    Differs,
    /// It succeeds outside, in user and mount namespaces of its own.
    OwnNamespaces,
    /// It succeeds there and sees something else.
    DiffersInOwnNamespaces,
    /// It succeeds in a box with another policy.
    In(Variant),
    /// This other attempt succeeds in the same box.
    Like(Vec<String>),
    /// This other attempt succeeds outside of the box.
    LikeOutside(Vec<String>),
    /// The host gives the same errno without a box. The box's own filter refuses the call with
    /// these arguments, and lets its neighbour pass.
    Filter {
        /// Number and arguments of the refused call.
        refused: (i64, [u64; 3]),
        /// Number and arguments of a call beside it that passes.
        passes: (i64, [u64; 3]),
    },
}

/// One rehearsal of one boundary by one attempt.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) id: &'static str,
    pub(crate) claim: String,
    pub(crate) variant: Variant,
    pub(crate) attempt: Vec<String>,
    pub(crate) expect: Expect,
    pub(crate) twin: Twin,
}

/// A rehearsal that needs more than one attempt; its twin is part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub(crate) id: &'static str,
    pub(crate) claim: &'static str,
    pub(crate) check: fn(&World) -> Result<String, String>,
}

/// A door in the usual box.
pub(crate) fn door(
    id: &'static str,
    claim: &str,
    attempt: &[&str],
    expect: Expect,
    twin: Twin,
) -> Door {
    let attempt = words(attempt);
    Door { id, claim: claim.to_owned(), variant: Variant::Usual, attempt, expect, twin }
}

pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

impl Door {
    pub(crate) fn in_box(mut self, variant: Variant) -> Self {
        self.variant = variant;
        self
    }

    /// Makes the attempt and its twin; yields the evidence, or what went another way.
    pub(crate) fn rehearse(&self, world: &World) -> Result<String, String> {
        world.recorded(self.variant);
        let saw = world.attempt(self.variant, &self.attempt);
        check(&saw, &self.expect).map_err(|why| format!("in the box: {why}"))?;
        let mut evidence = saw.clone();
        if let Expect::Refused(name) = self.expect {
            let calls = world.recorded(self.variant);
            let Some(call) = calls.iter().find(|call| call.name == name) else {
                return Err(format!("{saw}, and no record of {name} among {}", calls.len()));
            };
            let program = String::from_utf8_lossy(&call.program);
            // The first of a kind is told with its process, its repetitions by their number.
            let told = call.pid != 0 || world.told(self.variant, name, call.args);
            if !told || program != world.program() || call.errno != libc::EPERM {
                return Err(format!("the record says pid {}, {program}", call.pid));
            }
            evidence.push_str(" recorded");
        }
        let twin = self.twin(world, &saw).map_err(|why| format!("twin: {why}"))?;
        Ok(format!("{evidence} | twin {twin}"))
    }

    fn twin(&self, world: &World, in_box: &str) -> Result<String, String> {
        let succeeds = |saw: String| check(&saw, &Expect::Succeeds).map(|()| saw);
        let differs = |saw: String| {
            let saw = succeeds(saw)?;
            // What the host shows is not for a log.
            if saw == in_box {
                Err(format!("{saw:?} as in the box"))
            } else {
                Ok("sees something else".to_owned())
            }
        };
        match &self.twin {
            Twin::Outside => succeeds(outside("attempt", &self.attempt)),
            Twin::Differs => differs(outside("attempt", &self.attempt)),
            Twin::OwnNamespaces => succeeds(outside("own-namespaces", &self.attempt)),
            Twin::DiffersInOwnNamespaces => differs(outside("own-namespaces", &self.attempt)),
            Twin::In(variant) => succeeds(world.attempt(*variant, &self.attempt)),
            Twin::Like(attempt) => succeeds(world.attempt(self.variant, attempt)),
            Twin::LikeOutside(attempt) => succeeds(outside("attempt", attempt)),
            Twin::Filter { refused, passes } => {
                let filter = world.filter(self.variant);
                let of = |call: &(i64, [u64; 3])| verdict(filter, call.0, call.1);
                match (of(refused), of(passes)) {
                    (USER_NOTIF, ALLOW) => Ok("by the filter's verdicts".to_owned()),
                    (a, b) => Err(format!("verdicts {a:#x} and {b:#x}")),
                }
            }
        }
    }
}

/// Makes an attempt outside of any box.
pub(crate) fn outside(mode: &str, attempt: &[String]) -> String {
    let output =
        Command::new(Path::new("/proc/self/exe")).arg(mode).args(attempt).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn check(saw: &str, expect: &Expect) -> Result<(), String> {
    let held = match expect {
        Expect::Succeeds => saw == "ok" || saw.starts_with("ok "),
        Expect::Sees(text) => saw.strip_prefix("ok").is_some_and(|seen| seen.trim() == text),
        Expect::SeesNone(texts) => {
            saw.starts_with("ok") && !texts.iter().any(|text| saw.contains(text.as_str()))
        }
        Expect::Errno(errno) => saw == format!("errno {errno}"),
        Expect::Unwritable => {
            [libc::EACCES, libc::EROFS].iter().any(|errno| saw == format!("errno {errno}"))
        }
        Expect::Refused(_) => saw == format!("errno {}", libc::EPERM),
        Expect::Killed(signal) => saw == format!("errno {}", 1000 + signal),
    };
    if held { Ok(()) } else { Err(format!("{saw:?} instead of {expect:?}")) }
}
