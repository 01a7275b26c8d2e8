//! The gate and the evidence of a box.
//!
//! What leaves a box is a proposal; a person decides. This crate reads a box's tree as hostile
//! data, compares it with the pinned base, makes the patch and proves that it gives the reviewed
//! tree, writes the report and the receipt, and verifies them afterwards.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use h5i_export::{Base, Export, TreeSource};
//! use h5i_policy::ExportPolicy;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904".parse()?;
//! let base = Base::tree("host/objects", tree);
//! let reviewed = Export::new(base, ExportPolicy::default(), Path::new("host/scratch"))
//!     .read(TreeSource::checkout(Path::new("box/work"))?)?
//!     .review()?;
//! std::fs::write("patch.diff", reviewed.patch.to_vec()?)?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod apply;
mod base85;
mod bundle;
mod digest;
mod escape;
#[cfg(test)]
mod fixture;
#[doc(hidden)]
pub mod fuzzing;
mod home;
mod ignore;
mod landing;
mod log;
mod patch_text;
mod path;
mod quarantine;
mod receipt;
mod record;
mod report;
mod review;
#[cfg(test)]
mod schema;
mod secret;
mod store;
mod tree;

pub use apply::{PatchError, PatchFault};
pub use bundle::{
    Applied, BUNDLE_SCHEMA, BUNDLE_VERSION, BundleError, BundleIndex, BundleInput, Existing, INDEX,
    PAGE, PATCH, RECEIPT, REPORT, Verified, VerifyError, WholeLog, payload_name, verify_bundle,
    verify_receipt, write_bundle,
};
pub use digest::{Digest, DigestFormError};
pub use escape::Escaped;
pub use home::{HomeError, HomeFinding, home_findings};
pub use landing::{LandError, Landing, Merged, Message};
pub use log::{
    AppendError, ChainError, ChainFault, ChainHead, Line, LogReader, LogWriter, MAX_LINE,
    OpenError, Opened, ReadError, verify_chain,
};
pub use patch_text::PatchText;
pub use path::{
    ExportPath, ExportPathError, MAX_DEPTH, MAX_NAME, MAX_PATH, NameClash, NameSet, PathRule,
};
pub use quarantine::{QUARANTINE, collect_quarantines};
pub use receipt::{PieceError, RECEIPT_SCHEMA, RECEIPT_VERSION, Receipt, ReceiptError};
pub use record::{
    Argv, ByteText, CanaryLoss, Event, FlowVerdict, Gap, GrantChange, GrantEnd, Lane,
    NetworkChange, Outcome, RECORD_VERSION, Record, RecordError, SpoolFault, Stream, Timestamp,
    TimestampFormError, Unread,
};
pub use report::{Completeness, History, Mechanism, MechanismState, ReportInput};
pub use review::{
    Attention, Change, ChangeKind, Closed, Export, Flag, FlagKind, LeftBehind, MachineCode,
    Proposal, Refusal, RefusalRule, Renames, ReviewError, Reviewed, Secrets, When, attention_of,
    machine_code,
};
pub use secret::{PlantedError, PlantedValues, Redactor, SecretFound, find_secrets, redact};
pub use store::{Base, StoreError};
pub use tree::{ReadLimits, Special, TreeError, TreeSource};
