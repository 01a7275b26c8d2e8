//! Credentials that are planted in a box's home: nothing real, and who opens one is on record.
//!
//! They are written when the box is made, and again at the start of a session where they are missing.
//! From then on until the session ends their inodes are watched: what is renamed or linked is still
//! seen, what only looks at names is not. The host opens none while it watches.

mod bait;
mod beneath;
mod planted;
mod watch;

pub(crate) use planted::{FILE, Planted, PlantedFile, check_claims, plant};
pub(crate) use watch::{Heard, Watch};
