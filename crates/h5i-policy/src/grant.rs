//! What a box may ask of a service, and by which credential.

use serde::{Deserialize, Serialize};

/// One grant of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Grant {
    /// Host name of the service.
    pub host: String,
}
