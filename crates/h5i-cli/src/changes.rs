//! What a box changed against its base.

use h5i_policy::ResolvedPolicy;

use crate::failure::Failure;
use crate::store::{Manifest, StoredBox};

/// The changes of a box.
#[derive(Debug)]
pub(crate) struct Changes;
impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        true
    }
    pub(crate) fn summary(&self) -> String {
        String::new()
    }
    pub(crate) fn files(&self) -> Vec<String> {
        Vec::new()
    }
}
pub(crate) fn changes_of(
    _: &StoredBox,
    _: &Manifest,
    _: &ResolvedPolicy,
) -> Result<Changes, Failure> {
    Ok(Changes)
}
