//! What the host adds to a request.

use std::sync::Arc;
use std::time::SystemTime;

use h5i_policy::QueryName;

use crate::login::LoginError;
use crate::secret::Secret;

/// What a request to the service carries in the place of the box's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Headers by their names in lower case, with whole values.
    pub headers: Vec<(String, Secret)>,
    /// A parameter of the query with its value as it is: it is percent-encoded when it is sent. At
    /// most some 16 KiB then, or no request passes.
    pub query: Option<(QueryName, Secret)>,
    /// Members of lists that the service wants beside the box's own, by the header's name in lower
    /// case: each is added at the end of the box's list, unless it is a member already. They are no
    /// secrets.
    pub append: Vec<(String, String)>,
    /// What must not come back to the box nor go into any record: the secrets in the headers and in
    /// the query, as they are sent, and those that they were made of.
    pub secrets: Vec<Secret>,
    /// When the service stops taking it, where that is known.
    pub until: Option<SystemTime>,
}

/// A source of credentials that is asked before a request, unless it was asked within the last
/// tenth of a second. Both calls may block (a file is read,
/// a program is run, a login is refreshed) and are made on a thread that may.
pub trait Credentials: Send + Sync {
    /// The credential of now.
    ///
    /// # Errors
    /// [`CredentialError`]; the request is refused then, and never sent without.
    fn current(&self) -> Result<Arc<Credential>, CredentialError>;

    /// The service answered 401 to `used`: another one, if there is one. The default has none.
    ///
    /// # Errors
    /// As [`Credentials::current`].
    fn renewed(&self, used: &Credential) -> Result<Option<Arc<Credential>>, CredentialError> {
        let _ = used;
        Ok(None)
    }
}

/// Why there is no credential. No variant holds any part of a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// The source can't be read, or its program failed.
    #[error("{source_name} gives no secret: {why}")]
    Source {
        /// The reference, which is no secret.
        source_name: String,
        /// Why, in a few words.
        why: String,
    },
    /// The secret can't be a part of a header or query: it is empty, begins or ends with a space, or
    /// has a byte that is no printable ASCII, a line's end in its middle for instance.
    #[error(
        "the secret of {source_name} can't stand in a header or query; it must be one line of ASCII"
    )]
    NoHeaderValue {
        /// The reference, which is no secret.
        source_name: String,
    },
    /// A login can't be used.
    #[error("the login of {program} can't be used")]
    Login {
        /// The program's command.
        program: &'static str,
        /// Why, and what to do.
        #[source]
        error: LoginError,
    },
}
