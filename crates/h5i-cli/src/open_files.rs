//! The descriptors that this process may have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What a box with its 1,024 processes, a thousand joined runs and thousands of connections takes.
/// What this process starts has it as well (a program that tells a grant's secret, a box whose
/// policy bounds no open files), so it is no more than what programs are used to.
const WANTED: u64 = 16_384;

/// Has this process have as many descriptors as a session may take, where the hard limit lets it:
/// most systems give 1,024 to whoever does not ask. What it has already it keeps. Every bound of a
/// session on descriptors is reckoned from what it may have when it begins.
pub(crate) fn make_room() {
    let now = getrlimit(Resource::Nofile);
    let room = now.maximum.map_or(WANTED, |hard| hard.min(WANTED));
    if now.current.is_some_and(|soft| soft < room) {
        // Up to the hard limit anybody may. With fewer a session is smaller, and says where it is.
        setrlimit(Resource::Nofile, Rlimit { current: Some(room), ..now }).ok();
    }
}
