//! What a box may do: the policy document, its layers, resolution, digest, and the order between
//! policies. Pure: no system calls, no files, no clock.
#![forbid(unsafe_code)]

mod grant;
mod host_path;
mod net_rule;
mod pattern;
mod react;
mod resolved;
mod tier;
mod units;

pub use grant::Grant;
pub use host_path::{HostPath, HostPathError};
pub use net_rule::NetRule;
pub use pattern::Pattern;
pub use react::React;
pub use resolved::{
    Combine, Debuggers, EnvPolicy, Executables, ExportPolicy, FsPolicy, GrantOrigin, History,
    LandlockMode, Limits, Namespaces, NetMode, NetPolicy, ReadGrant, RecordOutput, ResolvedPolicy,
};
pub use tier::Tier;
pub use units::{Bytes, Millis};
