//! Where the host finds a secret; never the secret.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::env_name::is_env_name;
use crate::host_path::{HostPath, HostPathError};
use crate::secret_part::SecretPart;

/// Where the host finds a secret when a grant is issued.
///
/// It is a reference and holds no secret: it may be printed, digested and recorded. Nothing is
/// looked up here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum SecretRef {
    /// `env:NAME`: a variable of the caller's environment.
    Env(String),
    /// `file:PATH`, `file:PATH#L2`, `file:PATH#/json/pointer`: a file of the host, or a part of it.
    /// The path has no `#`.
    File(HostPath, SecretPart),
    /// `command:PROGRAM ARG…`: the output of a program of the host. The words are split at single
    /// spaces; there is no quoting and no shell.
    Command(Vec<String>),
    /// `login:claude` or `login:codex`: the login file of that program.
    Login(Login),
}

/// A program whose login file holds a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Login {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
}
crate::word::words!(Login { Claude => "claude", Codex => "codex" });

/// Why a text is not a [`SecretRef`].
///
/// The text itself is in no variant: what is wrongly written here may be the secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretRefError {
    /// It does not start with a known kind of source.
    #[error("a secret is given as env:NAME, file:PATH, command:PROGRAM or login:NAME")]
    UnknownSource,
    /// The variable's name is none.
    #[error("env: is followed by the name of a variable")]
    BadVariable,
    /// The path is none.
    #[error("file: is followed by an absolute path")]
    BadPath(#[source] HostPathError),
    /// What stands behind the `#` is no part of a file.
    #[error("behind the # of a file: stands a line, as in #L2, or a JSON Pointer, as in #/token")]
    BadPart,
    /// The command is empty, has double spaces or control characters.
    #[error("command: is followed by a program and its arguments, one space between them")]
    BadCommand,
    /// The login is of no known program.
    #[error("login: is followed by claude or codex")]
    UnknownLogin,
}

impl FromStr for SecretRef {
    type Err = SecretRefError;
    fn from_str(text: &str) -> Result<Self, SecretRefError> {
        use crate::word::Word;
        let (source, rest) = text.split_once(':').ok_or(SecretRefError::UnknownSource)?;
        match source {
            "env" if is_env_name(rest) => Ok(Self::Env(rest.to_owned())),
            "env" => Err(SecretRefError::BadVariable),
            "file" => {
                let (path, part) = match rest.split_once('#') {
                    Some((path, part)) => (path, SecretPart::parse(part)),
                    None => (rest, Some(SecretPart::Whole)),
                };
                let path = HostPath::new(path).map_err(SecretRefError::BadPath)?;
                part.map(|part| Self::File(path, part)).ok_or(SecretRefError::BadPart)
            }
            "command" => {
                let words: Vec<String> = rest.split(' ').map(str::to_owned).collect();
                let bad = |word: &String| word.is_empty() || word.chars().any(char::is_control);
                if words.iter().any(bad) {
                    return Err(SecretRefError::BadCommand);
                }
                Ok(Self::Command(words))
            }
            "login" => {
                let login = Login::WORDS.iter().find(|(word, _)| *word == rest);
                login.map(|(_, login)| Self::Login(*login)).ok_or(SecretRefError::UnknownLogin)
            }
            _ => Err(SecretRefError::UnknownSource),
        }
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path, part) => write!(f, "file:{path}{part}"),
            Self::Command(words) => write!(f, "command:{}", words.join(" ")),
            Self::Login(login) => write!(f, "login:{login}"),
        }
    }
}

impl TryFrom<String> for SecretRef {
    type Error = SecretRefError;
    fn try_from(text: String) -> Result<Self, SecretRefError> {
        text.parse()
    }
}

impl From<SecretRef> for String {
    fn from(reference: SecretRef) -> Self {
        reference.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{SecretRef, SecretRefError};

    #[test]
    fn references_print_as_they_were_written() {
        for text in [
            "env:GITHUB_TOKEN",
            "file:/home/u/.token",
            "file:/home/u/.token#L2",
            "file:/home/u/auth.json#/tokens/a~1b#c/",
            "file:/home/u/auth.json#/",
            "command:pass show api",
            "login:claude",
        ] {
            assert_eq!(text.parse::<SecretRef>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_not_a_reference_is_refused_by_its_reason() {
        type E = SecretRefError;
        let refused = |text: &str| text.parse::<SecretRef>().expect_err(text);
        for text in ["", "GITHUB_TOKEN", "vault:x", "ENV:X"] {
            assert_eq!(refused(text), E::UnknownSource, "{text:?}");
        }
        for text in ["env:", "env:A B", "env:1A", "env:A=b"] {
            assert_eq!(refused(text), E::BadVariable, "{text:?}");
        }
        assert!(matches!(refused("file:relative"), E::BadPath(_)));
        for part in ["", "#", "L", "L0", "L01", "L+1", "L4294967296", "token", "/~2", "/a~", "/a\n"]
        {
            assert_eq!(refused(&format!("file:/a#{part}")), E::BadPart, "{part:?}");
        }
        for text in ["command:", "command:a  b", "command:a\nb"] {
            assert_eq!(refused(text), E::BadCommand, "{text:?}");
        }
        assert_eq!(refused("login:other"), E::UnknownLogin);
    }

    #[test]
    fn a_secret_written_in_place_of_its_reference_is_not_repeated() {
        let error = "ghp_canary0123456789".parse::<SecretRef>().expect_err("no reference");
        assert!(!format!("{error} {error:?}").contains("canary"));
    }
}
