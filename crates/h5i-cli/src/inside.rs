//! Whether h5i itself runs inside a box.

use h5i_confine::SPOOL;

use crate::failure::{Failure, Kind};

/// Refuses a verb that a person has to give, when h5i runs inside a box.
///
/// The box's state is on the host and can't be reached from inside whatever this says; the refusal
/// is for the program that tried, so that it is told why. The spool is a mount that every box has,
/// at a place where no ordinary user of a host can make a directory.
///
/// # Errors
/// `refused`, inside a box.
pub(crate) fn refuse(verb: &str) -> Result<(), Failure> {
    refuse_verb(&format!("box {verb}"))
}

/// The same for a verb that is not one of `h5i box`.
///
/// # Errors
/// `refused`, inside a box.
pub(crate) fn refuse_verb(verb: &str) -> Result<(), Failure> {
    if !is_inside() {
        return Ok(());
    }
    let message = format!("h5i {verb} is a person's, and this is the inside of a box");
    Err(Failure::told(Kind::Refused, message).hint("ask the person outside to do it"))
}

/// Whether this is the inside of a box.
pub(crate) fn is_inside() -> bool {
    std::fs::symlink_metadata(SPOOL).is_ok()
}
