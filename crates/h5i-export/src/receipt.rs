//! receipt.json: what is known about a box, in one object that others can check.

mod fields;
mod once;
mod pieces;
mod read;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, Write};

use h5i_policy::Tier;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::log::ChainHead;
use crate::report::{Mechanism, ReportInput};

pub use pieces::PieceError;
pub use read::ReceiptError;
pub(crate) use read::{Found, read};

/// The version of the receipt that this crate writes and reads.
pub const RECEIPT_VERSION: u32 = 1;

/// The JSON Schema (draft 2020-12) of receipt.json and of the records in it.
pub const RECEIPT_SCHEMA: &str = include_str!("../schema/receipt.schema.json");

/// The receipt of a box at one export, but for its records: they are read one after the other, since
/// there may be any number of them. Unknown fields are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Receipt {
    /// [`RECEIPT_VERSION`].
    pub v: u32,
    /// The box's name.
    pub name: String,
    /// The base commit in hex; none when the box was made from a plain tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The base tree in hex.
    pub base_tree: String,
    /// The tree that the patch gives, in hex.
    pub tree: String,
    /// The tier.
    pub tier: Tier,
    /// The profile's name.
    pub profile: String,
    /// The policy document that the box was made with.
    pub policy_text: String,
    /// The digest of the resolved policy.
    pub policy: String,
    /// Each mechanism and whether it was on.
    pub enforcement: Vec<Mechanism>,
    /// What was not enforced or not observed.
    pub not_enforced: Vec<String>,
    /// The digest of patch.diff.
    pub patch: Digest,
    /// The digest of report.md.
    pub report: Digest,
    /// The digest of report.html.
    pub page: Digest,
    /// The digest of the box's manifest, which the first record follows.
    pub manifest: Digest,
    /// Where the log ended. Every record of the log up to then follows in the file, as `records`.
    pub head: ChainHead,
}

/// The digests of the files that a receipt vouches for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digests {
    pub(crate) patch: Digest,
    pub(crate) report: Digest,
    pub(crate) page: Digest,
}

impl Receipt {
    /// The receipt of a reviewed export with these files.
    pub(crate) fn new(
        input: &ReportInput<'_>,
        policy_text: &str,
        manifest: Digest,
        head: ChainHead,
        Digests { patch, report, page }: Digests,
    ) -> Self {
        Self {
            v: RECEIPT_VERSION,
            name: input.name.to_owned(),
            base: input.reviewed.base.commit.map(|commit| commit.to_string()),
            base_tree: input.reviewed.base.tree.to_string(),
            tree: input.reviewed.tree.to_string(),
            tier: input.tier,
            profile: input.profile.to_owned(),
            policy_text: policy_text.to_owned(),
            policy: input.policy.to_owned(),
            enforcement: input.enforcement.to_vec(),
            not_enforced: input.not_enforced.to_vec(),
            patch,
            report,
            page,
            manifest,
            head,
        }
    }

    /// Writes the receipt: its fields as one reads them, then the records of `log`, each in a line as
    /// the log has it.
    ///
    /// # Errors
    /// What `log` or `out` fails with.
    pub(crate) fn write(&self, mut log: impl BufRead, mut out: impl Write) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        // The records are the last field.
        text.truncate(text.len().saturating_sub("\n}".len()));
        out.write_all(text.as_bytes())?;
        out.write_all(b",\n  \"records\": [")?;
        let mut line = Vec::new();
        let mut before: &[u8] = b"\n";
        loop {
            line.clear();
            log.read_until(b'\n', &mut line)?;
            let Some(record) = line.strip_suffix(b"\n") else { break };
            out.write_all(before)?;
            out.write_all(record)?;
            before = b",\n";
        }
        out.write_all(b"\n]\n}\n")
    }
}
