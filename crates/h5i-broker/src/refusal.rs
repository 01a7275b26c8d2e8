//! How a refused request is answered.

use bytes::Bytes;
use h5i_policy::GitUse;
use http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Response, StatusCode};

use crate::event::Denial;

/// The header that says that an answer is h5i's own, and why.
pub(crate) const REFUSED: HeaderName = HeaderName::from_static("x-h5i-refused");

/// A refusal, with what is wrong in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) denial: Denial,
    detail: Option<&'static str>,
}

impl From<Denial> for Refusal {
    fn from(denial: Denial) -> Self {
        Self { denial, detail: None }
    }
}

impl Refusal {
    pub(crate) fn because(denial: Denial, detail: &'static str) -> Self {
        Self { denial, detail: Some(detail) }
    }

    /// The status of the answer.
    pub(crate) fn status(self) -> StatusCode {
        match self.denial {
            Denial::Token | Denial::Expired | Denial::Revoked | Denial::Suspended => {
                StatusCode::UNAUTHORIZED
            }
            Denial::Malformed | Denial::Upgrade => StatusCode::BAD_REQUEST,
            Denial::OtherHost => StatusCode::MISDIRECTED_REQUEST,
            Denial::Method | Denial::Path | Denial::Program | Denial::Git => StatusCode::FORBIDDEN,
            Denial::Budget => StatusCode::TOO_MANY_REQUESTS,
            Denial::NoCredential | Denial::Unreachable | Denial::BadAnswer => {
                StatusCode::BAD_GATEWAY
            }
            Denial::AtOnce => StatusCode::SERVICE_UNAVAILABLE,
            Denial::Limits if self.detail == Some(TOO_SLOW) => StatusCode::REQUEST_TIMEOUT,
            Denial::Limits => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        }
    }

    /// The whole answer. It names the grant and the rule, and nothing that the client sent.
    pub(crate) fn response(self, grant: &str, git: &GitUse) -> Response<Bytes> {
        let what = self.detail.unwrap_or(said(self.denial));
        let lets = match self.denial {
            Denial::Git => format!("; the grant lets git {git}"),
            _ => String::new(),
        };
        let message = format!("h5i refused this request to the grant {grant}: {what}{lets}.");
        let (body, kind, challenge) = if *git == GitUse::Any {
            // The shapes in which clients of models and of most other services look for a message.
            let body = serde_json::json!({
                "type": "error",
                "error": { "type": "h5i_refused", "code": self.denial.word(), "message": message },
                "message": message,
            });
            (body.to_string(), "application/json", "Bearer realm=\"h5i\"")
        } else {
            // Git shows plain text alone, and shows passwords alone.
            (format!("{message}\n"), "text/plain", "Basic realm=\"h5i\"")
        };
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(REFUSED, HeaderValue::from_static(self.denial.word()));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if self.status() == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        response
    }
}

/// The detail of a request that came too slowly.
pub(crate) const TOO_SLOW: &str = "the request did not come in time";

impl Denial {
    /// Its word in `x-h5i-refused`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Malformed => "malformed",
            Self::Upgrade => "upgrade",
            Self::OtherHost => "other-host",
            Self::Method => "method",
            Self::Path => "path",
            Self::Program => "program",
            Self::Git => "git",
            Self::Budget => "budget",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
            Self::Suspended => "suspended",
            Self::NoCredential => "no-credential",
            Self::Unreachable => "unreachable",
            Self::AtOnce => "at-once",
            Self::BadAnswer => "bad-answer",
            Self::Limits => "limits",
        }
    }
}

/// What was refused and what to do, for whoever reads it in the box.
fn said(denial: Denial) -> &'static str {
    match denial {
        Denial::Token => {
            "it carries no token of this run; use the variables that the run was started with"
        }
        Denial::Malformed => "it is not plain HTTP/1.1",
        Denial::Upgrade => "another protocol on this connection is not carried; use plain requests",
        Denial::OtherHost => "it names another host than the grant's",
        Denial::Method => "the method is not listed; `methods` in the policy says which are",
        Denial::Path => "the path is not listed; `paths` in the policy says which are",
        Denial::Program => "the program is not listed; `programs` in the policy says which are",
        Denial::Git => "it is not what git may do",
        Denial::Budget => "the grant's budget is spent; `h5i grant show` says how much of it",
        Denial::Expired => "the grant has ended; a new run gets a new one, but for an approval's",
        Denial::Revoked => "the grant was revoked on the host",
        Denial::Suspended => "the box was frozen and the grant with it; a new run gets a new one",
        Denial::NoCredential => "the host has no credential to add; the host's log says why",
        Denial::Unreachable => "the service could not be reached from the host",
        Denial::AtOnce => "too many are under way; try again when one has ended",
        Denial::BadAnswer => "the service's answer can't be passed on",
        Denial::Limits => "its head is larger than 64 KiB or has more than 100 lines",
    }
}
