//! The gate and the evidence of a box.
//!
//! What leaves a box is a proposal; a person decides. This crate reads a box's tree as hostile
//! data, compares it with the pinned base, makes the patch and proves that it gives the reviewed
//! tree, writes the report and the receipt, and verifies them afterwards.
#![forbid(unsafe_code)]

mod digest;
mod escape;
mod log;
mod path;
mod record;
mod secret;

pub use digest::{Digest, DigestFormError};
pub use escape::Escaped;
pub use log::{
    AppendError, ChainError, ChainFault, ChainHead, Line, LogReader, LogWriter, MAX_LINE,
    OpenError, Opened, ReadError, verify_chain,
};
pub use path::{
    ExportPath, ExportPathError, MAX_DEPTH, MAX_NAME, MAX_PATH, NameClash, NameSet, PathRule,
};
pub use record::{
    Argv, ByteText, Event, Lane, Outcome, RECORD_VERSION, Record, RecordError, Timestamp,
    TimestampFormError,
};
pub use secret::{SecretFound, find_secrets, redact};
