//! receipt.json: what is known about a box, in one object that others can check.

use h5i_policy::Tier;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::log::{ChainError, ChainHead, Follow};
use crate::record::Record;
use crate::report::{Mechanism, ReportInput};

/// The version of the receipt that this crate writes and reads.
pub const RECEIPT_VERSION: u32 = 1;

/// The JSON Schema (draft 2020-12) of receipt.json and of the records in it.
pub const RECEIPT_SCHEMA: &str = include_str!("../schema/receipt.schema.json");

/// The receipt of a box at one export. Unknown fields are refused.
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
    /// Where the log ended.
    pub head: ChainHead,
    /// Every record of the log up to then.
    pub records: Vec<Record>,
}

/// The digests of the files that a receipt vouches for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digests {
    pub(crate) patch: Digest,
    pub(crate) report: Digest,
    pub(crate) page: Digest,
}

impl Receipt {
    /// The receipt of a reviewed export with these files, but for its records.
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
            records: Vec::new(),
        }
    }

    /// The receipt of these records as it is written: its fields as one reads them, then the records,
    /// each in a line as the log has it.
    ///
    /// # Errors
    /// None in practice, as of [`Record::to_line`].
    pub(crate) fn to_text(&self, records: &[Record]) -> Result<Vec<u8>, serde_json::Error> {
        let mut text = serde_json::to_string_pretty(self)?;
        // The records are the last field.
        let end = "[]\n}";
        text.truncate(text.len().saturating_sub(end.len()));
        text.push('[');
        for (number, record) in records.iter().enumerate() {
            text.push_str(if number == 0 { "\n" } else { ",\n" });
            text.push_str(&record.to_line()?);
        }
        text.push_str("\n]\n}\n");
        Ok(text.into_bytes())
    }

    /// Checks that the records follow one another from the manifest to the head, all of them and
    /// no more.
    ///
    /// # Errors
    /// [`ChainError`] names the first bad record.
    pub fn verify_records(&self) -> Result<(), ChainError> {
        let head = chain_of(self.manifest, &self.records, Some(self.head))?;
        if head == self.head {
            return Ok(());
        }
        Err(ChainError {
            record: self.head.records,
            fault: crate::log::ChainFault::Surplus { expected: self.head.records },
        })
    }
}

/// Where these records lead, checked as a log is.
pub(crate) fn chain_of(
    manifest: Digest,
    records: &[Record],
    expected: Option<ChainHead>,
) -> Result<ChainHead, ChainError> {
    let mut follow = Follow::new(manifest, expected);
    for record in records {
        // A record that has no line makes a gap that the next one finds.
        let line = record.to_line().unwrap_or_default();
        follow.step(record, Digest::of(line.as_bytes()))?;
    }
    follow.end()
}
