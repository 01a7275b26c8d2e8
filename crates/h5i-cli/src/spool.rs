//! The box's only way to say something: small files in a directory that it may write, taken in by the
//! host as claims.

mod allowance;
mod claim;
mod entry;
mod intake;

pub(crate) use claim::{Claim, Form};
pub(crate) use entry::LARGEST;
pub(crate) use intake::{Found, Spool};

/// Where a box finds this program.
pub(crate) const PROGRAM: &str = "/run/h5i/bin/h5i";
/// Its directory, the last one of a box's PATH.
pub(crate) const PROGRAM_DIR: &str = "/run/h5i/bin";
