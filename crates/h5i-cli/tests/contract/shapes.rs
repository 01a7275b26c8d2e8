//! The JSON of every verb as a program would declare it. Unknown and missing fields are failures.

#[path = "run_shapes.rs"]
mod run_shapes;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

#[allow(unused_imports, reason = "each test program uses a part of them")]
pub(crate) use run_shapes::*;

/// `{"h5i":1,"ok":true,"data":…}`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer<T> {
    pub(crate) h5i: u32,
    pub(crate) ok: bool,
    pub(crate) data: T,
}

/// `{"h5i":1,"ok":false,"error":…}`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Failed {
    pub(crate) h5i: u32,
    pub(crate) ok: bool,
    pub(crate) error: Told,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Told {
    pub(crate) kind: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) details: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Base {
    pub(crate) commit: String,
    pub(crate) tree: String,
    pub(crate) host_commit: Option<String>,
    pub(crate) branch: String,
    pub(crate) described: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreatedBox {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) tier: String,
    pub(crate) profile: String,
    pub(crate) policy: String,
    pub(crate) base: Base,
    pub(crate) network: String,
    pub(crate) workspace: String,
    pub(crate) history: Value,
    pub(crate) home: Value,
    pub(crate) artifact: Option<Artifact>,
    pub(crate) written_secrets: Vec<WrittenSecret>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "parts are read only where there are approvals")]
pub(crate) struct Artifact {
    pub(crate) bundle: String,
    pub(crate) approval: String,
    pub(crate) until: String,
}

/// Text, or bytes that are none.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub(crate) enum Bytes {
    Text(String),
    Encoded(Encoded),
}

impl Bytes {
    /// The text; bytes that are none are a failure.
    #[allow(dead_code, reason = "some test binaries compare with a whole value")]
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Encoded(encoded) => panic!("no text: {}", encoded.b64),
        }
    }
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Encoded {
    pub(crate) b64: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listed {
    pub(crate) boxes: Vec<ListedBox>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListedBox {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) session: Option<Value>,
    pub(crate) tier: String,
    pub(crate) profile: String,
    pub(crate) base: Base,
    pub(crate) created: String,
    pub(crate) expires: Option<String>,
    pub(crate) purpose: Option<String>,
    pub(crate) scope: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mechanism {
    pub(crate) mechanism: String,
    pub(crate) state: String,
    pub(crate) detail: String,
}

/// A name or a destination that was refused.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefusedPlace {
    pub(crate) what: String,
    pub(crate) count: u64,
    pub(crate) programs: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefusedKind {
    pub(crate) call: String,
    pub(crate) program: String,
    pub(crate) count: u64,
}

/// A rule of the network and where it came from.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "parts are read only where there is a network")]
pub(crate) struct Reach {
    pub(crate) rule: String,
    pub(crate) from: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "parts are read only where there is a network")]
pub(crate) struct Explained {
    pub(crate) reach: Vec<Reach>,
    pub(crate) home: Value,
    pub(crate) grants: Value,
    pub(crate) artifact: Option<Value>,
    pub(crate) name: String,
    pub(crate) answers: Vec<Answered>,
    pub(crate) workspace: WorkspaceLaid,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answered {
    pub(crate) question: String,
    pub(crate) answer: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) step: String,
    pub(crate) reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemovedBoxes {
    pub(crate) removed: Vec<RemovedBox>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemovedBox {
    pub(crate) name: String,
    pub(crate) archive: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CollectedRemains {
    pub(crate) removed: Vec<CollectedThing>,
    pub(crate) busy: Vec<String>,
    pub(crate) damaged: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CollectedThing {
    pub(crate) kind: String,
    pub(crate) what: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Probed {
    pub(crate) tier: String,
    pub(crate) kernel: String,
    pub(crate) landlock_abi: u32,
    pub(crate) mechanisms: Vec<ProbedMechanism>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProbedMechanism {
    pub(crate) mechanism: String,
    pub(crate) holds: bool,
    pub(crate) attempts: String,
    pub(crate) problem: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShownPolicy {
    pub(crate) profile: String,
    pub(crate) digest: String,
    pub(crate) policy: BTreeMap<String, Value>,
    pub(crate) explained: Vec<ExplainedField>,
    pub(crate) written_secrets: Vec<WrittenSecret>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExplainedField {
    pub(crate) field: String,
    pub(crate) text: String,
    pub(crate) from: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyDigest {
    pub(crate) profile: String,
    pub(crate) digest: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckedPolicies {
    pub(crate) checked: Vec<String>,
    pub(crate) written_secrets: Vec<OfProfile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfProfile {
    pub(crate) profile: String,
    pub(crate) secret: WrittenSecret,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenSecret {
    pub(crate) place: String,
    pub(crate) shape: String,
    pub(crate) in_box: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyDifference {
    #[serde(rename = "box")]
    pub(crate) frozen: String,
    pub(crate) now: String,
    pub(crate) changes: Vec<ChangedField>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangedField {
    pub(crate) field: String,
    #[serde(rename = "box")]
    pub(crate) frozen: Option<String>,
    pub(crate) now: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BoxStatus {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) in_use: bool,
    pub(crate) session: Option<Value>,
    pub(crate) export_held_by: Option<String>,
    pub(crate) tier: String,
    pub(crate) profile: String,
    pub(crate) policy: String,
    pub(crate) network: String,
    pub(crate) base: Base,
    pub(crate) created: String,
    pub(crate) expires: Option<String>,
    pub(crate) purpose: Option<String>,
    pub(crate) runs: u64,
    pub(crate) refused: Vec<RefusedKind>,
    pub(crate) refused_network: Vec<RefusedPlace>,
    pub(crate) canaries: Vec<Value>,
    pub(crate) refused_grants: Vec<Value>,
    pub(crate) allow: Vec<String>,
    pub(crate) grants: Value,
    pub(crate) artifact: Option<Value>,
    pub(crate) home: Vec<HomeFile>,
    pub(crate) changed: Vec<ChangedFile>,
    pub(crate) workspace: WorkspaceLaid,
    pub(crate) enforcement: Option<Vec<Mechanism>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkspaceLaid {
    pub(crate) kind: String,
    pub(crate) reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BoxDiff {
    pub(crate) name: String,
    pub(crate) base: String,
    pub(crate) tree: String,
    pub(crate) files: Vec<ChangedFile>,
    pub(crate) patch: Bytes,
    pub(crate) left_out: Vec<Bytes>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exported {
    pub(crate) name: String,
    pub(crate) directory: Bytes,
    pub(crate) bundle: String,
    pub(crate) tree: String,
    pub(crate) changed: Vec<ChangedFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangedFile {
    pub(crate) kind: String,
    pub(crate) path: Bytes,
    pub(crate) old_path: Option<Bytes>,
    pub(crate) added: Option<u64>,
    pub(crate) removed: Option<u64>,
    pub(crate) bytes: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VerifiedBundle {
    pub(crate) name: String,
    pub(crate) bundle: String,
    pub(crate) tree: String,
    pub(crate) records: u64,
    pub(crate) applied: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Receipts {
    pub(crate) receipts: Vec<ArchivedReceipt>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArchivedReceipt {
    pub(crate) receipt: String,
    pub(crate) name: Option<String>,
    pub(crate) created: Option<String>,
    pub(crate) last: Option<String>,
    pub(crate) tier: Option<String>,
    pub(crate) purpose: Option<String>,
    pub(crate) runs: u64,
    pub(crate) refused: u64,
    pub(crate) records: u64,
    pub(crate) bundles: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PurgedReceipts {
    pub(crate) purged: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AppliedBundle {
    pub(crate) name: String,
    pub(crate) bundle: String,
    pub(crate) onto: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) commit: Option<String>,
    pub(crate) tree: Option<String>,
    pub(crate) conflicts: Vec<Bytes>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HomeFile {
    pub(crate) path: Bytes,
    pub(crate) why: String,
}
