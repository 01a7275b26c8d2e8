//! The bundle: a directory with patch, report, receipt and the digests of them.

#[cfg(test)]
mod tests;
mod verify;
mod whole_log;
mod write;

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::digest::Digest;
use crate::record::{Event, Record, Stream};
use crate::report::Completeness;

pub use verify::{Applied, Verified, VerifyError, verify_bundle, verify_receipt};
pub use whole_log::WholeLog;
pub use write::{BundleError, BundleInput, Existing, write_bundle};

/// The version of the bundle that this crate writes and reads.
pub const BUNDLE_VERSION: u32 = 1;

/// The JSON Schema (draft 2020-12) of bundle.json.
pub const BUNDLE_SCHEMA: &str = include_str!("../schema/bundle.schema.json");

/// The patch, for `git apply --index`.
pub const PATCH: &str = "patch.diff";
/// The report.
pub const REPORT: &str = "report.md";
/// The same report as one page for a browser.
pub const PAGE: &str = "report.html";
/// The receipt.
pub const RECEIPT: &str = "receipt.json";
/// The name of kept output of a run, in a bundle and on the host.
#[must_use]
pub fn payload_name(run: u64, stream: Stream) -> String {
    format!("output-{run}-{}.txt", stream.name())
}

/// The kept output that a record tells of: its name and its digest.
pub(crate) fn payload_of(record: &Record) -> Option<(String, Digest)> {
    match (&record.event, record.run) {
        (Event::Output { stream, payload, .. }, Some(run)) => {
            Some((payload_name(run, *stream), *payload))
        }
        _ => None,
    }
}

/// The digests of the other files; its own digest names the bundle.
pub const INDEX: &str = "bundle.json";

/// What bundle.json says. Unknown fields are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct BundleIndex {
    /// [`BUNDLE_VERSION`].
    pub v: u32,
    /// The box's name.
    pub name: String,
    /// The base commit in hex, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The base tree in hex.
    pub base_tree: String,
    /// The tree that the patch gives, in hex.
    pub tree: String,
    /// Whether a run was stopped or cut off before the export.
    pub completeness: Completeness,
    /// The digest of each other file by its name: patch, reports, receipt, and kept output.
    #[serde(deserialize_with = "each_once")]
    pub files: BTreeMap<String, Digest>,
}

/// Reads a map; a name that is there twice is refused, since readers differ in which one they take.
fn each_once<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Digest>, D::Error> {
    struct EachOnce;

    impl<'de> Visitor<'de> for EachOnce {
        type Value = BTreeMap<String, Digest>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("names and digests")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut given: A) -> Result<Self::Value, A::Error> {
            let mut files = BTreeMap::new();
            while let Some((name, digest)) = given.next_entry()? {
                if files.insert(name, digest).is_some() {
                    return Err(A::Error::custom("a file is there twice"));
                }
            }
            Ok(files)
        }
    }

    deserializer.deserialize_map(EachOnce)
}
