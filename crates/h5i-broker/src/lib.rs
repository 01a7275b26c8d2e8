#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod answer;
mod authority;
mod broker;
mod credential;
mod endpoint;
mod engine;
mod error;
mod event;
mod exchange;
#[doc(hidden)]
pub mod fuzzing;
mod git;
mod h1;
mod h2;
mod headers;
pub mod home;
mod issue;
mod json_spans;
mod ledger;
mod login;
mod peers;
mod query;
mod redact;
mod refusal;
mod resolve;
mod scrub;
mod secret;
mod served;
mod setup;
mod source;
mod state;
mod target;
mod tls;
mod token;
mod upload;
mod upstream;
mod wire;

pub use broker::Broker;
pub use credential::{Credential, CredentialError, Credentials};
pub use endpoint::HostEndpoint;
pub use engine::Diverted;
pub use error::{ChangeError, IssueError, StartError};
pub use event::{Denial, End, Event, EventSink, NoSink, Program, SinkClosed, Use, Way};
pub use issue::{Issue, Uses, Which};
pub use login::{EndpointError, LoginError, TokenEndpoint};
pub use peers::{Holder, NoPeers, Peers};
pub use redact::{Redactor, RedactorError, StreamRedactor};
pub use resolve::{HostResolver, Resolve};
pub use secret::Secret;
pub use setup::{Patience, Roots, Service, Setup};
pub use source::{HostFileError, HostSources, SourceCredentials};
pub use state::{GrantState, Left};
