//! Where the host finds the secrets that a policy names.

mod command;
mod host_file;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use data_encoding::BASE64;
use h5i_policy::{Grant, GrantHeaders, HeaderTemplate, QueryName, SecretRef};

pub use host_file::HostFileError;
pub(crate) use host_file::{HostFile, MAX_FILE};

use crate::credential::{Credential, CredentialError, Credentials};
use crate::headers::spelling;
use crate::login::{LoginSource, NoEndpoint, TokenEndpoint};
use crate::query::percent_encoded;
use crate::secret::Secret;

/// Reads a variable of the caller's environment.
pub(crate) type Variables = Arc<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// The sources of secrets on this host.
///
/// Nothing is looked up before a secret is asked for. A file or variable is read each time, so that
/// a changed one counts at once, and nothing of it is kept but what was used last. A program is
/// asked once for each grant, and its answer kept as long as the grant.
#[derive(Clone)]
pub struct HostSources {
    variables: Variables,
    home: PathBuf,
    endpoint: Arc<dyn TokenEndpoint>,
}

impl HostSources {
    /// Sources of a person with the home directory `home`, whose environment is asked through
    /// `variables`. Logins are not renewed before [`HostSources::endpoint`] is given.
    pub fn new(
        home: &Path,
        variables: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static,
    ) -> Self {
        let (variables, home) = (Arc::new(variables), home.to_owned());
        Self { variables, home, endpoint: Arc::new(NoEndpoint) }
    }

    /// By what logins are renewed.
    #[must_use]
    pub fn endpoint(mut self, endpoint: Arc<dyn TokenEndpoint>) -> Self {
        self.endpoint = endpoint;
        self
    }

    /// The secret that `reference` names. A program is asked each time.
    ///
    /// # Errors
    /// [`CredentialError::Source`]; also for a login, which is more than one secret.
    pub fn secret(&self, reference: &SecretRef) -> Result<Secret, CredentialError> {
        let no_secret =
            |why: String| CredentialError::Source { source_name: reference.to_string(), why };
        match reference {
            SecretRef::Env(name) => match (self.variables)(name).map(OsString::into_vec) {
                Some(value) if !value.is_empty() => Ok(Secret::new(value)),
                _ => Err(no_secret("the variable is not set, or empty".to_owned())),
            },
            SecretRef::File(path, part) => host_file::read(Path::new(path.as_str()), part)
                .map_err(|error| no_secret(with_causes(&error))),
            SecretRef::Command(words) => command::ask(words, command::AT_MOST)
                .map_err(|error| no_secret(with_causes(&error))),
            SecretRef::Login(_) => Err(no_secret("a login is more than one secret".to_owned())),
            _ => Err(no_secret("this kind of source is not known here".to_owned())),
        }
    }

    /// The credentials of a grant; `None` where it names no secret.
    #[must_use]
    pub fn credentials(&self, grant: &Grant) -> Option<SourceCredentials> {
        let reference = grant.secret.clone()?;
        let login = match &reference {
            SecretRef::Login(login) => Some(LoginSource::new(
                *login,
                &grant.host,
                &self.home,
                Arc::clone(&self.variables),
                Arc::clone(&self.endpoint),
            )),
            _ => None,
        };
        let (header, query) = (grant.header.clone(), grant.query.clone());
        let state = Mutex::new(State { answer: None, last: None });
        Some(SourceCredentials { sources: self.clone(), reference, header, query, login, state })
    }
}

impl fmt::Debug for HostSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostSources").field("home", &self.home).finish_non_exhaustive()
    }
}

/// The credentials of one grant, by its secret, its headers and the parameter of its query.
///
/// As long as the secret is the same, so is the [`Arc`] that is given.
pub struct SourceCredentials {
    sources: HostSources,
    reference: SecretRef,
    header: GrantHeaders,
    query: Option<QueryName>,
    login: Option<LoginSource>,
    /// Held while a secret is looked up: no program is asked twice, no login renewed twice.
    state: Mutex<State>,
}

struct State {
    /// What a program answered.
    answer: Option<Secret>,
    last: Option<Arc<Credential>>,
}

impl SourceCredentials {
    fn look_up(&self, state: &mut State) -> Result<Credential, CredentialError> {
        if let Some(login) = &self.login {
            let found = login.current()?;
            return self.dress(found);
        }
        let secret = match (&self.reference, &state.answer) {
            (SecretRef::Command(_), Some(answer)) => answer.clone(),
            (SecretRef::Command(_), None) => {
                let answer = self.sources.secret(&self.reference)?;
                state.answer.insert(answer).clone()
            }
            _ => self.sources.secret(&self.reference)?,
        };
        if !self.is_placed() {
            return Err(self.no_secret("the grant names no header or query for it"));
        }
        self.placed(&secret)
    }

    /// Whether the grant says where the secret goes.
    fn is_placed(&self) -> bool {
        self.header.hold_secret() || self.query.is_some()
    }

    /// A login's own headers, unless the grant says where its token goes. Those of the grant that
    /// do not carry it never take the place of one that does.
    fn dress(&self, found: Credential) -> Result<Credential, CredentialError> {
        let Some(token) = found.secrets.first() else { return Ok(found) };
        let own = self.placed(token)?;
        let secrets = [found.secrets.as_slice(), own.secrets.get(1..).unwrap_or_default()].concat();
        if self.is_placed() {
            return Ok(Credential { secrets, until: found.until, ..own });
        }
        let mut headers = found.headers;
        for (name, value) in own.headers {
            if headers.iter().all(|(taken, _)| spelling(taken) != spelling(&name)) {
                headers.push((name, value));
            }
        }
        Ok(Credential { headers, secrets, ..found })
    }

    /// The grant's headers and query with the secret in its places.
    fn placed(&self, secret: &Secret) -> Result<Credential, CredentialError> {
        if !is_header_part(secret.expose()) {
            return Err(CredentialError::NoHeaderValue { source_name: self.reference.to_string() });
        }
        let mut secrets = vec![secret.clone()];
        let mut headers = Vec::new();
        for header in self.header.iter() {
            let (value, other) = in_header(header, secret);
            headers.push((header.name().to_owned(), value));
            secrets.extend(other);
        }
        let mut query = None;
        if let Some(name) = &self.query {
            let spellings = in_query(secret);
            if spellings.iter().any(|spelling| spelling.expose().len() > LONGEST_IN_QUERY) {
                return Err(self.no_secret("it is longer than a query takes: 16 KiB, encoded"));
            }
            secrets.extend(spellings);
            query = Some((name.clone(), secret.clone()));
        }
        Ok(Credential { headers, query, append: Vec::new(), secrets, until: None })
    }

    fn no_secret(&self, why: &str) -> CredentialError {
        CredentialError::Source { source_name: self.reference.to_string(), why: why.to_owned() }
    }
}

/// Longest secret in a query, percent-encoded, in bytes.
const LONGEST_IN_QUERY: usize = 16 * 1024;

/// A header's value with the secret in its place, and what else of it is a secret.
fn in_header(header: &HeaderTemplate, secret: &Secret) -> (Secret, Option<Secret>) {
    let (before, after) = header.around();
    let around = |inner: &[u8]| [before.as_bytes(), inner, after.as_bytes()].concat();
    match header.user() {
        Some(user) => {
            let pair = Secret::new([user.as_bytes(), b":", secret.expose()].concat());
            let pair = Secret::new(BASE64.encode(pair.expose()).into_bytes());
            (Secret::new(around(pair.expose())), Some(pair))
        }
        None if header.holds_secret() => {
            (Secret::new(around(secret.expose())), basic_password(before, secret))
        }
        None => (Secret::new(around(b"")), None),
    }
}

/// The secret as a query has it, and as a service would write it that takes `+` for a blank, where
/// these are other bytes.
fn in_query(secret: &Secret) -> Vec<Secret> {
    let encoded = percent_encoded(secret.expose());
    let with_plus = zeroize::Zeroizing::new(encoded.replace("%20", "+"));
    let mut spellings = Vec::new();
    for text in [encoded, with_plus] {
        let spelling = Secret::new(text.as_bytes().to_vec());
        if spelling != *secret && !spellings.contains(&spelling) {
            spellings.push(spelling);
        }
    }
    spellings
}

impl Credentials for SourceCredentials {
    fn current(&self) -> Result<Arc<Credential>, CredentialError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let found = self.look_up(&mut state)?;
        Ok(state.keep(found))
    }

    fn renewed(&self, used: &Credential) -> Result<Option<Arc<Credential>>, CredentialError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match &self.login {
            Some(login) => match login.renewed(used)? {
                Some(found) => self.dress(found)?,
                None => return Ok(None),
            },
            None => self.look_up(&mut state)?,
        };
        let found = state.keep(found);
        Ok((*found != *used).then_some(found))
    }
}

impl State {
    /// Keeps what was found, and gives the same again for the same.
    fn keep(&mut self, found: Credential) -> Arc<Credential> {
        match &self.last {
            Some(last) if **last == found => Arc::clone(last),
            _ => Arc::clone(self.last.insert(Arc::new(found))),
        }
    }
}

impl fmt::Debug for SourceCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceCredentials")
            .field("reference", &self.reference)
            .finish_non_exhaustive()
    }
}

/// Whether a secret can stand in a header's value: visible ASCII, with spaces only inside. RFC 9110,
/// section 5.5.
pub(crate) fn is_header_part(secret: &[u8]) -> bool {
    let visible = |byte: &u8| (b' '..=b'~').contains(byte);
    !secret.is_empty() && secret.iter().all(visible) && secret.trim_ascii() == secret
}

/// The password in a value for Basic authentication: a service may give it back alone. RFC 7617.
fn basic_password(before: &str, secret: &Secret) -> Option<Secret> {
    let basic = before.trim_end().to_ascii_lowercase().ends_with("basic");
    let pair = zeroize::Zeroizing::new(BASE64.decode(secret.expose()).ok().filter(|_| basic)?);
    let colon = pair.iter().position(|byte| *byte == b':')?;
    let password = &pair[colon + 1..];
    (!password.is_empty()).then(|| Secret::new(password.to_vec()))
}

/// An error and its causes, in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
