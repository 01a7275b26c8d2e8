//! What a box may ask of a service, and by which credential.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::git_use::GitUse;
use crate::grant_headers::GrantHeaders;
use crate::host_name::HostName;
use crate::pattern::Pattern;
use crate::query_name::QueryName;
use crate::secret_ref::SecretRef;
use crate::units::{Bytes, Millis, budget};
use crate::word::words;

/// One grant: a service, the requests that may pass, the credential that the host adds, and the
/// budgets of one run.
///
/// A grant without a secret says which requests may pass. The service is always spoken to over
/// TLS. The broker enforces it; the box never sees the credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Grant {
    /// Host name of the service.
    pub host: HostName,
    /// Port of the service.
    pub port: u16,
    /// Where the host finds the credential; `None` adds none.
    #[serde(with = "budget")]
    pub secret: Option<SecretRef>,
    /// The headers that carry the credential, and others that are not the box's to choose; none
    /// where there is no secret. A login has headers of its own, whose place those with a place for
    /// the secret take.
    pub header: GrantHeaders,
    /// The parameter of the query that carries the credential.
    ///
    /// Left out of the text where there is none: the digest of a grant says nothing of what it does
    /// not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<QueryName>,
    /// Request methods that may pass.
    pub methods: Allowed<Method>,
    /// Request paths that may pass, after one normalisation, without the query.
    pub paths: Allowed<Pattern>,
    /// What git may do, for a grant that is for git alone.
    pub git: GitUse,
    /// Programs in the box that may use the grant, by the absolute path of the executable, as the
    /// kernel has it: no link (the command line lists what a link of the host leads to, too). A
    /// pattern that is not anchored matches files anywhere in the box.
    pub programs: Allowed<Pattern>,
    /// The way from the box to the broker.
    pub via: Via,
    /// The variables through which a program in the box finds the broker; for `reverse` only.
    pub variables: Variables,
    /// Requests of one run.
    #[serde(with = "budget::count")]
    pub requests: Option<u64>,
    /// Bytes of one run's requests.
    #[serde(with = "budget")]
    pub bytes_up: Option<Bytes>,
    /// Bytes of one run's answers.
    #[serde(with = "budget")]
    pub bytes_down: Option<Bytes>,
    /// How long the grant holds after it was issued at the start of a run.
    #[serde(with = "budget")]
    pub lasts: Option<Millis>,
}

/// The variables through which a program in the box finds the broker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Variables {
    /// Set to the base URL of the broker.
    pub base_url: BTreeSet<String>,
    /// What the base URL has behind the broker's address, such as `/v1`; mostly nothing.
    pub base_path: String,
    /// Set to the token of the run, which is worth nothing outside of it.
    pub token: BTreeSet<String>,
}

/// Which of a kind may pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Allowed<T: Ord> {
    /// All of them.
    Any,
    /// Those that are listed; an empty list lets nothing pass.
    Only(BTreeSet<T>),
}

/// The way from the box to the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Via {
    /// The program is told the broker's address by a variable.
    Reverse,
    /// The flow to the service is terminated on the host with a certificate that only this box
    /// trusts; the program is unchanged.
    Intercept,
}
words!(Via { Reverse => "reverse", Intercept => "intercept" });

/// A request method that a grant can list. RFC 9110, section 9; RFC 5789.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum Method {
    /// GET.
    Get,
    /// HEAD.
    Head,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
    /// OPTIONS.
    Options,
}
words!(Method {
    Get => "GET",
    Head => "HEAD",
    Post => "POST",
    Put => "PUT",
    Patch => "PATCH",
    Delete => "DELETE",
    Options => "OPTIONS",
});

impl Grant {
    /// A grant that lets every request to `host` pass, with no credential and no budget. A
    /// starting point for code; a document must say what it allows.
    #[must_use]
    pub fn to(host: HostName) -> Self {
        Self {
            host,
            port: 443,
            secret: None,
            header: GrantHeaders::default(),
            query: None,
            methods: Allowed::Any,
            paths: Allowed::Any,
            git: GitUse::Any,
            programs: Allowed::Any,
            via: Via::Reverse,
            variables: Variables::default(),
            requests: None,
            bytes_up: None,
            bytes_down: None,
            lasts: None,
        }
    }
}

impl<T: Ord + Clone> Allowed<T> {
    /// Whether everything that may pass here may pass `outer` too.
    #[must_use]
    pub fn is_within(&self, outer: &Self) -> bool {
        match (self, outer) {
            (_, Self::Any) => true,
            (Self::Any, Self::Only(_)) => false,
            (Self::Only(own), Self::Only(outer)) => own.is_subset(outer),
        }
    }

    /// What may pass here and there.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Any, narrow) | (narrow, Self::Any) => narrow.clone(),
            (Self::Only(a), Self::Only(b)) => Self::Only(a & b),
        }
    }
}
