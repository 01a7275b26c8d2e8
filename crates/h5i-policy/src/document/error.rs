//! What is wrong with a policy document, where, and what was probably meant.

use std::fmt::{self, Write};

use crate::canaries::CanariesError;
use crate::cidr::CidrError;
use crate::escape::{Escaped, is_deceptive};
use crate::grant_headers::GrantHeadersError;
use crate::history::HistoryError;
use crate::home_path::HomePathError;
use crate::host_name::HostNameError;
use crate::host_path::HostPathError;
use crate::net_rule::NetRuleError;
use crate::order::Loosening;
use crate::pattern::PatternError;
use crate::query_name::QueryNameError;
use crate::request_path::RequestPathError;
use crate::secret_ref::SecretRefError;
use crate::units::UnitError;

/// One error of a policy document, with its place.
///
/// Display gives one line, `policy.toml:14:3: unknown key …`; [`render`](Self::render) adds the
/// line of the document with a mark. All text of the document is escaped in both.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DocumentError {
    /// The name of the document, as the caller gave it.
    pub source_name: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// What is wrong.
    pub kind: DocumentErrorKind,
    /// The line of the document.
    pub excerpt: Excerpt,
    /// What to write instead, if that is known.
    pub suggestion: Option<String>,
}

/// The part of a line that an error is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Excerpt {
    /// The line, or a window of it, as it is in the document (not escaped).
    pub text: String,
    /// Where the marked part begins in `text`, in characters.
    pub from: usize,
    /// How many characters are marked, at least 1.
    pub length: usize,
}

/// What is wrong with a policy document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentErrorKind {
    /// It has more bytes than the bound.
    #[error("a policy document must not be larger than {limit} bytes")]
    TooLarge {
        /// The bound in bytes.
        limit: usize,
    },
    /// It is not UTF-8.
    #[error("a policy document must be UTF-8")]
    NotUtf8,
    /// It is not TOML.
    #[error("{}", Escaped(message))]
    Syntax {
        /// What the TOML parser says.
        message: String,
    },
    /// It has no `version`.
    #[error("a policy document starts with `version = 1`")]
    MissingVersion,
    /// Its version is not 1.
    #[error("policy documents have version 1, this one says {}", Escaped(found))]
    UnsupportedVersion {
        /// The version as written.
        found: String,
    },
    /// A key that this table doesn't have.
    #[error("unknown key `{}` in {}", Escaped(key), Escaped(section))]
    UnknownKey {
        /// The key as written.
        key: String,
        /// The table, in brackets, or "the document".
        section: String,
    },
    /// A key that this table must have.
    #[error("{} needs `{key}`", Escaped(section))]
    MissingKey {
        /// The key.
        key: &'static str,
        /// The table, in brackets.
        section: String,
    },
    /// A key that makes no sense beside the others.
    #[error("`{key}` in {} has no meaning {because}", Escaped(section))]
    IdleKey {
        /// The key.
        key: &'static str,
        /// The table, in brackets.
        section: String,
        /// Beside what.
        because: &'static str,
    },
    /// A value of another type.
    #[error("`{}` must be {expected}, not {found}", Escaped(key))]
    WrongType {
        /// The key.
        key: String,
        /// What it must be, with its article.
        expected: &'static str,
        /// What it is, with its article.
        found: &'static str,
    },
    /// A word that this key doesn't know.
    #[error("`{}` must be one of {}, not \"{}\"", Escaped(key), allowed.join(", "), Escaped(found))]
    UnknownWord {
        /// The key.
        key: String,
        /// The word as written.
        found: String,
        /// Every word that the key knows.
        allowed: Vec<&'static str>,
    },
    /// A value that its own rules refuse.
    #[error("`{}`: {cause}", Escaped(key))]
    BadValue {
        /// The key.
        key: String,
        /// The rule that refuses it.
        cause: ValueError,
    },
    /// More entries than the bound.
    #[error("`{}` must not have more than {limit} entries", Escaped(key))]
    TooMany {
        /// The key.
        key: String,
        /// The bound.
        limit: usize,
    },
    /// `extends` names no profile.
    #[error("unknown profile `{}`", Escaped(name))]
    UnknownProfile {
        /// The name as written.
        name: String,
    },
    /// `extends` leads back to where it began.
    #[error("profiles extend each other in a circle: {}", Escaped(&profiles.join(" → ")))]
    ExtendsCircle {
        /// The profiles in order, the first one again at the end.
        profiles: Vec<String>,
    },
    /// `extends` goes deeper than the bound.
    #[error("profiles extend each other more than {limit} deep")]
    ExtendsTooDeep {
        /// The bound.
        limit: usize,
    },
    /// A group that no document and no tool of the host defines.
    #[error("unknown group `@{}`", Escaped(name))]
    UnknownGroup {
        /// The name as written, without `@`.
        name: String,
    },
    /// `net.allow` lists rules and `net.mode` is not `allow`.
    #[error("`net.allow` lists rules, and `net.mode` is {mode}")]
    RulesWithoutMode {
        /// The mode.
        mode: &'static str,
    },
    /// A grant gives a run a variable that something else gives it as well.
    #[error("{} is set by `{}` and by `{}`", Escaped(name), Escaped(first), Escaped(second))]
    VariableSetTwice {
        /// The variable.
        name: String,
        /// The key that sets it: `env.pass`, `env.set.NAME` or `grant.NAME`.
        first: String,
        /// The key of the grant that sets it as well.
        second: String,
    },
    /// The repository's layer loosens what stands below it.
    #[error("the repository's policy may only tighten: {loosening}")]
    Loosens {
        /// The field with both values.
        loosening: Loosening,
    },
}

/// Why a value is refused by its own rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error(transparent)]
pub enum ValueError {
    /// A quantity.
    Unit(#[from] UnitError),
    /// A pattern.
    Pattern(#[from] PatternError),
    /// A pattern of request paths.
    RequestPath(#[from] RequestPathError),
    /// A network rule.
    NetRule(#[from] NetRuleError),
    /// An address range.
    Cidr(#[from] CidrError),
    /// A path of the host.
    HostPath(#[from] HostPathError),
    /// A path of the box's home.
    HomePath(#[from] HomePathError),
    /// Planted credentials that can't stand beside each other.
    Canaries(#[from] CanariesError),
    /// A host name.
    HostName(#[from] HostNameError),
    /// An address in the place of a service's name.
    #[error("a grant names its service, whose certificate has a name")]
    GrantAddress,
    /// `localhost`, or a name below it, as a service whose connections are intercepted.
    #[error(
        "`localhost` is the box itself in the box, and nothing is intercepted on the way to it"
    )]
    GrantLocalhost,
    /// A secret reference.
    SecretRef(#[from] SecretRefError),
    /// The headers of a grant.
    Header(#[from] GrantHeadersError),
    /// The name of a parameter of a query.
    QueryName(#[from] QueryNameError),
    /// How much history.
    History(#[from] HistoryError),
    /// A count or a port out of its range.
    #[error("the number must be from {least} to {most}")]
    OutOfRange {
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// A name of a profile, group or grant.
    #[error(
        "a name is of a-z, 0-9, `.`, `_` and `-`, starts with a letter or digit, and has at most 63"
    )]
    Name,
    /// A name of a variable.
    #[error("a variable's name is of letters, digits and `_`, and starts with no digit")]
    EnvName,
    /// What is put behind a broker's address.
    #[error("a base path is empty or `/` and segments of letters, digits and `-._~`")]
    BasePath,
    /// A variable of a grant that programs are steered by.
    #[error("{name} steers programs, and a grant must not set it")]
    Steering {
        /// The variable.
        name: String,
    },
    /// One variable for two things that a grant tells.
    #[error("{name} is named twice")]
    VariableTwice {
        /// The variable.
        name: String,
    },
    /// A variable whose host value must not enter a box.
    #[error("the host's value of this variable must not enter a box")]
    NeverPassed,
    /// A reference of git that may be pushed to.
    #[error("a reference is written in full, as in refs/heads/main")]
    Reference,
    /// A NUL byte.
    #[error("a value must not have a NUL byte")]
    Nul,
}

impl ValueError {
    /// What to do instead, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Pattern(error) => Some(error.hint().into()),
            Self::NetRule(error) => Some(error.hint()),
            Self::Cidr(error) => Some(error.hint()),
            Self::HostName(error) => Some(error.hint().into()),
            Self::HomePath(error) => Some(error.hint().into()),
            Self::Canaries(error) => Some(error.hint().into()),
            Self::RequestPath(error) => Some(error.hint().into()),
            Self::Header(error) => error.hint().map(Into::into),
            Self::QueryName(error) => Some(error.hint().into()),
            Self::BasePath => Some("write \"/v1\", or leave it out".into()),
            Self::Steering { .. } => {
                Some("name the variable in which the program looks, as API_URL or API_TOKEN".into())
            }
            Self::VariableTwice { .. } => Some("give each its own variable".into()),
            Self::NeverPassed => Some("set it to a value with env.set".into()),
            _ => None,
        }
    }
}

/// Widest window of a line that an excerpt shows, in characters.
const WINDOW: usize = 100;

impl Excerpt {
    /// The line of `text` that holds the byte range `from..to`, cut to a window around it, with
    /// the line's and the column's number.
    pub(crate) fn of(text: &str, from: usize, to: usize) -> (usize, usize, Self) {
        let boundary = |mut at: usize| {
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let from = boundary(from.min(text.len()));
        let to = boundary(to.clamp(from, text.len()));
        let begin = text[..from].rfind('\n').map_or(0, |at| at + 1);
        let end = text[from..].find('\n').map_or(text.len(), |at| from + at);
        let line = 1 + text[..from].bytes().filter(|b| *b == b'\n').count();
        let before = text[begin..from].chars().count();
        let length = text[from..to.min(end).max(from)].chars().count().max(1);
        let skip = before.saturating_sub(WINDOW / 2);
        let shown: String = text[begin..end].trim_end().chars().skip(skip).take(WINDOW).collect();
        let from = before - skip;
        (
            line,
            before + 1,
            Self { text: shown, from, length: length.min(WINDOW - from.min(WINDOW - 1)) },
        )
    }
}

impl DocumentError {
    /// The error as several lines: what and where, the line of the document, a mark under the
    /// part that is meant, and the suggestion. No newline at the end.
    #[must_use]
    pub fn render(&self) -> String {
        let number = self.line.to_string();
        let (mut shown, mut from, mut length) = (String::new(), 0, 0);
        for (at, c) in self.excerpt.text.chars().enumerate() {
            let text = match c {
                '\t' => " ".to_owned(),
                c if is_deceptive(c) => format!("\\u{{{:x}}}", u32::from(c)),
                c => c.to_string(),
            };
            let width = text.chars().count();
            if at < self.excerpt.from {
                from += width;
            } else if at < self.excerpt.from + self.excerpt.length {
                length += width;
            }
            shown.push_str(&text);
        }
        let suggestion = match &self.suggestion {
            Some(suggestion) => format!(" {suggestion}"),
            None => String::new(),
        };
        let mut out = self.to_string();
        // Writing to a string can't fail.
        let written = write!(
            out,
            "\n  {number} | {shown}\n  {:margin$} | {:from$}{}{suggestion}",
            "",
            "",
            "^".repeat(length.max(1)),
            margin = number.len(),
        );
        debug_assert!(written.is_ok());
        out
    }
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", Escaped(&self.source_name), self.line, self.column, self.kind)
    }
}

impl std::error::Error for DocumentError {}
