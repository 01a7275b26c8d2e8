//! Logins that programs keep in files, and their renewal.

mod claude;
mod codex;
mod lock;
mod refresh;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use h5i_policy::{HostName, Login};

use crate::credential::{Credential, CredentialError};
use crate::json_spans::Node;
use crate::secret::Secret;
use crate::source::{HostFile, HostFileError, Variables, is_header_part};
pub(crate) use codex::CHATGPT;
use refresh::{Answer, Renewals};

/// A login is renewed when it holds no longer than this.
const SOON: Duration = Duration::from_secs(60);

/// Speaks to the service that renews logins.
///
/// It is given the addresses of the programs' own makers only, and secrets that are for those.
pub trait TokenEndpoint: Send + Sync {
    /// Posts `body` to `url` over verified TLS, follows no redirect, and gives the status and the
    /// whole answer, of which 64 KiB are enough. It may block, 30 seconds at most.
    ///
    /// # Errors
    /// [`EndpointError`] when there is no answer.
    fn exchange(
        &self,
        url: &str,
        content_type: &str,
        body: Secret,
    ) -> Result<(u16, Secret), EndpointError>;
}

/// The service that renews logins gave no answer.
#[derive(Debug, thiserror::Error)]
#[error("the service that renews it can't be reached")]
pub struct EndpointError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// Renews nothing.
pub(crate) struct NoEndpoint;

impl TokenEndpoint for NoEndpoint {
    fn exchange(&self, _: &str, _: &str, _: Secret) -> Result<(u16, Secret), EndpointError> {
        Err(EndpointError("logins are not renewed here".into()))
    }
}

/// Why a login can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// There is none.
    #[error("there is none in `{}`; run `{program}` and log in, or set {variable}", path.display())]
    NotLoggedIn {
        /// The program's command.
        program: &'static str,
        /// Its login file.
        path: PathBuf,
        /// A variable that may hold a key instead.
        variable: &'static str,
    },
    /// Its file can't be read.
    #[error("`{}` can't be used", path.display())]
    Read {
        /// The login file.
        path: PathBuf,
        /// Why.
        #[source]
        error: HostFileError,
    },
    /// Its file is not as the program writes it.
    #[error("`{}` has no login that is understood; run `{program}` and log in again", path.display())]
    Unknown {
        /// The program's command.
        program: &'static str,
        /// The login file.
        path: PathBuf,
    },
    /// Codex is logged in with ChatGPT, and the grant is for the API.
    #[error(
        "codex is logged in with ChatGPT, which `{host}` does not take; write a grant with host = \
         \"{}\" and paths = [\"{}\"], or set OPENAI_API_KEY",
        codex::CHATGPT,
        codex::CHATGPT_PATHS
    )]
    ChatGptOnly {
        /// The grant's host.
        host: HostName,
    },
    /// Codex is logged in with an API key, and the grant is for ChatGPT.
    #[error(
        "codex is logged in with an API key, which {} does not take; write a grant with host = \
         \"api.openai.com\", or log in with ChatGPT",
        codex::CHATGPT
    )]
    ApiKeyOnly,
    /// It has ended, and can't be renewed.
    #[error("it has ended; run `{program}` and log in again")]
    Ended {
        /// The program's command.
        program: &'static str,
    },
    /// It must be renewed, and the service gives no answer.
    #[error("it must be renewed")]
    Unreachable(#[source] EndpointError),
    /// It must be renewed, and the service can't do it now.
    #[error("it must be renewed, and the service answered {status}; try again later")]
    Refused {
        /// The service's status.
        status: u16,
    },
    /// It was tried less than a minute ago.
    #[error("it must be renewed, which failed less than a minute ago")]
    TriedJustNow,
    /// The program itself has been renewing it for half a minute.
    #[error("another program has been renewing it for half a minute; try again")]
    Busy,
    /// Its file can't be written.
    #[error("the renewed login can't be written to `{}`", path.display())]
    Write {
        /// The login file.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
}

/// What a login file holds.
struct Tokens {
    access: Secret,
    refresh: Option<Secret>,
    until: Option<SystemTime>,
    /// Names the account to the service; no secret.
    account: Option<String>,
    /// What it may be used for, as the file says.
    scopes: Vec<String>,
}

/// How a program keeps its login.
struct Format {
    program: &'static str,
    /// Where it is renewed.
    url: &'static str,
    read: fn(&str, &Node) -> Option<Tokens>,
    /// The request for renewal, as JSON.
    request: fn(&str, &Tokens) -> serde_json::Value,
    /// The changes of the file's text that a renewal makes.
    updated: fn(&str, &Node, &Answer, SystemTime) -> Option<zeroize::Zeroizing<String>>,
    /// Locks that the program itself takes while it renews, by its directory.
    locks: fn(&Path) -> Vec<PathBuf>,
}

/// One login, for one host.
pub(crate) struct LoginSource {
    login: Login,
    host: HostName,
    variables: Variables,
    directory: PathBuf,
    endpoint: Arc<dyn TokenEndpoint>,
    renewals: Renewals,
}

impl LoginSource {
    pub(crate) fn new(
        login: Login,
        host: &HostName,
        home: &Path,
        variables: Variables,
        endpoint: Arc<dyn TokenEndpoint>,
    ) -> Self {
        let (variable, below) = match login {
            Login::Codex => ("CODEX_HOME", ".codex"),
            _ => ("CLAUDE_CONFIG_DIR", ".claude"),
        };
        let moved = variables(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        let directory = moved.unwrap_or_else(|| home.join(below));
        let host = host.clone();
        Self { login, host, variables, directory, endpoint, renewals: Renewals::default() }
    }

    /// The credential of now. Its first secret is the token.
    pub(crate) fn current(&self) -> Result<Credential, CredentialError> {
        self.find().map_err(|error| self.failed(error))
    }

    /// The service did not take `used`: another one, if there is one.
    pub(crate) fn renewed(&self, used: &Credential) -> Result<Option<Credential>, CredentialError> {
        let again = || match self.stored()? {
            Some(tokens) if used.secrets.first() == Some(&tokens.access) => {
                match self.renew(&tokens) {
                    Ok(tokens) => Ok(Some(self.credential(&tokens)?)),
                    Err(LoginError::TriedJustNow) => Ok(None),
                    Err(error) => Err(error),
                }
            }
            // The program has renewed it meanwhile, or it is a key, which is never renewed.
            _ => self.find().map(Some),
        };
        again().map_err(|error| self.failed(error))
    }

    fn find(&self) -> Result<Credential, LoginError> {
        if let Some(tokens) = self.stored()? {
            let now = SystemTime::now();
            if tokens.until.is_none_or(|until| until > now + SOON) {
                return self.credential(&tokens);
            }
            return match self.renew(&tokens) {
                Ok(tokens) => self.credential(&tokens),
                // It holds for a moment yet.
                Err(_) if tokens.until.is_some_and(|until| until > now) => self.credential(&tokens),
                Err(error) => Err(error),
            };
        }
        match self.login {
            Login::Codex => codex::key(self),
            _ => claude::from_environment(self),
        }
    }

    /// The tokens in the file, where there are some for this host.
    fn stored(&self) -> Result<Option<Tokens>, LoginError> {
        if self.login == Login::Codex && self.host.as_str() != codex::CHATGPT {
            return Ok(None);
        }
        let Some(file) = self.file()? else { return Ok(None) };
        let (text, node) = self.parsed(&file)?;
        Ok((self.format().read)(text, &node))
    }

    /// The file's bytes; `None` where there is no file.
    fn file(&self) -> Result<Option<HostFile>, LoginError> {
        let path = self.path();
        match HostFile::read(&path) {
            Ok(file) => Ok(Some(file)),
            Err(HostFileError::Read(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LoginError::Read { path, error }),
        }
    }

    fn parsed<'a>(&self, file: &'a HostFile) -> Result<(&'a str, Node), LoginError> {
        let text = std::str::from_utf8(&file.bytes).ok();
        let parsed = text.and_then(|text| Some((text, Node::parse(text)?)));
        let program = self.format().program;
        parsed.ok_or_else(|| LoginError::Unknown { program, path: self.path() })
    }

    fn credential(&self, tokens: &Tokens) -> Result<Credential, LoginError> {
        if !is_header_part(tokens.access.expose()) {
            let program = self.format().program;
            return Err(LoginError::Unknown { program, path: self.path() });
        }
        let mut headers = vec![bearer(&tokens.access)];
        let mut append = Vec::new();
        match (self.login, &tokens.account) {
            (Login::Codex, Some(account)) if is_header_part(account.as_bytes()) => {
                headers
                    .push((codex::ACCOUNT.to_owned(), Secret::new(account.clone().into_bytes())));
            }
            (Login::Codex, _) => {}
            _ => append.push((claude::BETA.0.to_owned(), claude::BETA.1.to_owned())),
        }
        let mut secrets = vec![tokens.access.clone()];
        secrets.extend(tokens.refresh.clone());
        Ok(Credential { headers, query: None, append, secrets, until: tokens.until })
    }

    fn path(&self) -> PathBuf {
        self.directory.join(match self.login {
            Login::Codex => codex::FILE,
            _ => claude::FILE,
        })
    }

    fn format(&self) -> &'static Format {
        match self.login {
            Login::Codex => &codex::FORMAT,
            _ => &claude::FORMAT,
        }
    }

    /// A variable's value that can stand in a header.
    fn variable(&self, name: &str) -> Option<Secret> {
        use std::os::unix::ffi::OsStringExt as _;
        let value = Secret::new((self.variables)(name)?.into_vec());
        is_header_part(value.expose()).then_some(value)
    }

    fn not_logged_in(&self, variable: &'static str) -> LoginError {
        let program = self.format().program;
        LoginError::NotLoggedIn { program, path: self.path(), variable }
    }

    fn failed(&self, error: LoginError) -> CredentialError {
        CredentialError::Login { program: self.format().program, error }
    }
}

/// RFC 6750, section 2.1.
fn bearer(token: &Secret) -> (String, Secret) {
    ("authorization".to_owned(), Secret::new([b"Bearer ", token.expose()].concat()))
}
