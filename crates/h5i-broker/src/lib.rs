#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod credential;
mod event;
mod redact;
mod secret;

pub use credential::{Credential, CredentialError, Credentials};
pub use event::{Denial, End, Event, EventSink, NoSink, Program, SinkClosed, Use, Way};
pub use redact::{Redactor, RedactorError, StreamRedactor};
pub use secret::Secret;
