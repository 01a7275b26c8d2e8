#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod access;
#[cfg(test)]
mod builtin_tests;
mod canaries;
mod cidr;
mod diff;
mod digest;
mod document;
mod env_name;
mod escape;
mod explain;
#[doc(hidden)]
pub mod fuzzing;
mod git_use;
mod grant;
mod grant_headers;
mod header_template;
mod history;
mod home_path;
mod host_facts;
mod host_name;
mod host_path;
mod layer;
mod live;
mod meet;
mod net_rule;
mod order;
mod pattern;
#[cfg(test)]
mod properties;
mod provenance;
mod public_suffix;
mod query_name;
mod react;
mod request_path;
mod resolve;
mod resolved;
mod secret_part;
mod secret_ref;
mod seed;
mod stand_in;
#[cfg(test)]
mod strategy;
mod suggest;
mod text;
mod tier;
mod unenforced;
mod units;
mod variables;
mod word;

pub use canaries::{Canaries, CanariesError};
pub use cidr::{Cidr, CidrError};
pub use diff::{Change, diff};
pub use digest::{DigestError, FrozenError, PolicyDigest};
pub use document::PolicyDocument;
pub use document::error::{DocumentError, DocumentErrorKind, Excerpt, ValueError};
pub use escape::Escaped;
pub use explain::{Line, explain};
pub use git_use::GitUse;
pub use grant::{Allowed, Grant, Method, Variables, Via};
pub use grant_headers::{GrantHeaders, GrantHeadersError};
pub use header_template::{HeaderTemplate, HeaderTemplateError};
pub use history::{History, HistoryError};
pub use home_path::{HomePath, HomePathError};
pub use host_facts::{HostFacts, HostGroup};
pub use host_name::{HostName, HostNameError};
pub use host_path::{HostPath, HostPathError};
pub use layer::{Layer, Origin, OverrideError, OverrideErrorKind, Overrides, Trust};
pub use live::{LiveChange, LiveError};
pub use meet::MeetError;
pub use net_rule::{NetRule, NetRuleError, NetTarget, Protocol, ServerName};
pub use order::Loosening;
pub use pattern::{Pattern, PatternError};
pub use provenance::{GroupUse, Provenance, Source};
pub use query_name::{QueryName, QueryNameError};
pub use react::{React, Reaction, Violation};
pub use request_path::RequestPathError;
pub use resolve::{
    Conflict, ResolveError, ResolveRequest, Resolved, WorkspaceContent, profile_names, resolve,
};
pub use resolved::{
    Combine, Debuggers, EnvPolicy, Executables, ExportPolicy, FsPolicy, GrantOrigin, LandlockMode,
    Limits, Namespaces, NetBudget, NetMode, NetPolicy, ReadGrant, RecordOutput, ResolvedPolicy,
};
pub use secret_part::{JsonPointer, SecretPart};
pub use secret_ref::{Login, SecretRef, SecretRefError};
pub use seed::Seed;
pub use tier::Tier;
pub use unenforced::{Unenforced, unenforced};
pub use units::{Bytes, Millis, UnitError};
