#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod credential;
mod event;
pub mod home;
mod json_spans;
mod login;
mod redact;
mod secret;
mod source;

pub use credential::{Credential, CredentialError, Credentials};
pub use event::{Denial, End, Event, EventSink, NoSink, Program, SinkClosed, Use, Way};
pub use login::{EndpointError, LoginError, TokenEndpoint};
pub use redact::{Redactor, RedactorError, StreamRedactor};
pub use secret::Secret;
pub use source::{HostFileError, HostSources, SourceCredentials};
