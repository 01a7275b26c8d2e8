//! What is told of a run: its end, programs, grants and flows, and what was refused.

use serde::Deserialize;
use serde_json::Value;

use super::Bytes;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Denied {
    pub(crate) call: String,
    pub(crate) args: Vec<u64>,
    pub(crate) program: Bytes,
    pub(crate) count: u64,
    pub(crate) reason: String,
    pub(crate) allowed_by: Option<String>,
}

/// The programs of a run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RanPrograms {
    pub(crate) total: u64,
    pub(crate) names: Vec<RanProgram>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RanProgram {
    pub(crate) name: Bytes,
    pub(crate) count: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BoxRun {
    #[serde(rename = "box")]
    pub(crate) name: String,
    pub(crate) run: u64,
    pub(crate) outcome: String,
    pub(crate) exit_code: u8,
    pub(crate) wall_ms: u64,
    pub(crate) cpu_ms: u64,
    pub(crate) max_rss_bytes: u64,
    pub(crate) stdout: Bytes,
    pub(crate) stderr: Bytes,
    pub(crate) truncated: bool,
    pub(crate) programs: RanPrograms,
    pub(crate) denied: Vec<Denied>,
    pub(crate) flows: Vec<RanFlow>,
    pub(crate) denied_network: Vec<DeniedNetwork>,
    pub(crate) network_untold: u64,
    pub(crate) grants: Vec<GrantUsed>,
    pub(crate) denied_grants: Vec<DeniedGrant>,
    pub(crate) stopped: Option<Value>,
    pub(crate) canaries: Vec<Value>,
}

/// How a run used a grant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "parts are read only where there are grants")]
pub(crate) struct GrantUsed {
    pub(crate) grant: String,
    pub(crate) uses: u64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// Requests that a grant did not let pass.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "parts are read only where there are grants")]
pub(crate) struct DeniedGrant {
    pub(crate) grant: String,
    pub(crate) request: Option<String>,
    pub(crate) program: Option<Bytes>,
    pub(crate) reason: String,
    pub(crate) count: u64,
}

/// A flow of a run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "parts are read only where there is a network")]
pub(crate) struct RanFlow {
    pub(crate) flow: u64,
    pub(crate) protocol: String,
    pub(crate) address: String,
    pub(crate) port: u16,
    pub(crate) names: Vec<String>,
    pub(crate) rules: Vec<String>,
    pub(crate) pid: Option<u32>,
    pub(crate) program: Option<String>,
    pub(crate) named: Option<String>,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) duration_ms: u64,
    pub(crate) verdict: String,
    pub(crate) reason: Option<String>,
}

/// What a run was refused on the network.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeniedNetwork {
    pub(crate) kind: String,
    pub(crate) what: String,
    pub(crate) count: u64,
    pub(crate) reason: String,
    pub(crate) allowed_by: Option<String>,
    pub(crate) programs: Vec<String>,
}
