//! The fields of a receipt as they come, each read as what it must be.

use h5i_policy::{PolicyDocument, Tier};
use serde::de::{DeserializeOwned, Error as _};

use super::Receipt;
use crate::digest::Digest;
use crate::log::ChainHead;
use crate::report::Mechanism;

/// The field that is a list of any length.
pub(super) const RECORDS: &str = "records";

/// The longest text of a name, in bytes. None is longer, however it is spelled.
pub(super) const MAX_NAME: usize = 128;

/// The longest text of a field, in bytes.
const MAX_FIELD: usize = 1 << 20;

/// The longest text of a policy: JSON spells one byte with six at most.
const MAX_POLICY: usize = 6 * PolicyDocument::LARGEST + 2;

/// Whether a field was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Yes,
    /// It was there before.
    Twice,
}

/// How long a field's text may be, in bytes; none where a receipt has no such field.
pub(super) fn longest(name: &str) -> Option<usize> {
    match name {
        "policy_text" => Some(MAX_POLICY),
        "v" | "name" | "base" | "base_tree" | "tree" | "tier" | "profile" | "policy"
        | "enforcement" | "not_enforced" | "patch" | "report" | "page" | "manifest" | "head" => {
            Some(MAX_FIELD)
        }
        _ => None,
    }
}

/// What was read of a receipt so far.
#[derive(Debug, Default)]
pub(super) struct Fields {
    v: Option<u32>,
    name: Option<String>,
    base: Option<Option<String>>,
    base_tree: Option<String>,
    tree: Option<String>,
    tier: Option<Tier>,
    profile: Option<String>,
    policy_text: Option<String>,
    policy: Option<String>,
    enforcement: Option<Vec<Mechanism>>,
    not_enforced: Option<Vec<String>>,
    patch: Option<Digest>,
    report: Option<Digest>,
    page: Option<Digest>,
    pub(super) manifest: Option<Digest>,
    pub(super) head: Option<ChainHead>,
}

impl Fields {
    /// Reads one field; the derived readers refuse a key that is twice in an object.
    pub(super) fn take(&mut self, name: &str, text: &[u8]) -> Result<Taken, serde_json::Error> {
        match name {
            "v" => keep(&mut self.v, text),
            "name" => keep(&mut self.name, text),
            "base" => keep(&mut self.base, text),
            "base_tree" => keep(&mut self.base_tree, text),
            "tree" => keep(&mut self.tree, text),
            "tier" => keep(&mut self.tier, text),
            "profile" => keep(&mut self.profile, text),
            "policy_text" => keep(&mut self.policy_text, text),
            "policy" => keep(&mut self.policy, text),
            "enforcement" => keep(&mut self.enforcement, text),
            "not_enforced" => keep(&mut self.not_enforced, text),
            "patch" => keep(&mut self.patch, text),
            "report" => keep(&mut self.report, text),
            "page" => keep(&mut self.page, text),
            "manifest" => keep(&mut self.manifest, text),
            "head" => keep(&mut self.head, text),
            _ => Err(serde_json::Error::custom("no field of a receipt")),
        }
    }

    /// The receipt, if no field is missing.
    pub(super) fn receipt(self) -> Result<Receipt, serde_json::Error> {
        Ok(Receipt {
            v: there(self.v, "v")?,
            name: there(self.name, "name")?,
            base: self.base.flatten(),
            base_tree: there(self.base_tree, "base_tree")?,
            tree: there(self.tree, "tree")?,
            tier: there(self.tier, "tier")?,
            profile: there(self.profile, "profile")?,
            policy_text: there(self.policy_text, "policy_text")?,
            policy: there(self.policy, "policy")?,
            enforcement: there(self.enforcement, "enforcement")?,
            not_enforced: there(self.not_enforced, "not_enforced")?,
            patch: there(self.patch, "patch")?,
            report: there(self.report, "report")?,
            page: there(self.page, "page")?,
            manifest: there(self.manifest, "manifest")?,
            head: there(self.head, "head")?,
        })
    }
}

fn keep<T: DeserializeOwned>(
    field: &mut Option<T>,
    text: &[u8],
) -> Result<Taken, serde_json::Error> {
    if field.is_some() {
        return Ok(Taken::Twice);
    }
    *field = Some(serde_json::from_slice(text)?);
    Ok(Taken::Yes)
}

pub(super) fn there<T>(field: Option<T>, name: &'static str) -> Result<T, serde_json::Error> {
    field.ok_or_else(|| serde_json::Error::missing_field(name))
}
