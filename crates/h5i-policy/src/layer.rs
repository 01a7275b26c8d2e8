//! The layers of which a policy is made, weakest word first.

use std::fmt;

use crate::document::PolicyDocument;
use crate::document::error::{DocumentErrorKind, ValueError};
use crate::document::read::{Item, ReadError};
use crate::document::setting::{AllowEntry, Field, Setting, allow_entry};
use crate::document::{keys, read::did_you_mean};
use crate::tier::Tier;
use toml::de::DeValue;

/// One document with its place among the layers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Layer {
    /// Whose word it is.
    pub origin: Origin,
    /// What it says.
    pub document: PolicyDocument,
}

/// Whose word a layer is, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The built-in profiles.
    BuiltIn,
    /// The user's own document.
    User,
    /// The repository's document, read from the pinned base.
    Repository(Trust),
}

/// How far the repository's document is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Trust {
    /// It may only tighten.
    TightenOnly,
    /// The person trusted exactly this document.
    Trusted,
}

impl Layer {
    /// The layer of the built-in profiles.
    #[must_use]
    pub fn built_in() -> Self {
        Self { origin: Origin::BuiltIn, document: PolicyDocument::built_in() }
    }

    /// The user's layer.
    #[must_use]
    pub fn user(document: PolicyDocument) -> Self {
        Self { origin: Origin::User, document }
    }

    /// The repository's layer.
    #[must_use]
    pub fn repository(document: PolicyDocument, trust: Trust) -> Self {
        Self { origin: Origin::Repository(trust), document }
    }

    /// Whether the layer may only tighten what the others give.
    pub(crate) fn only_tightens(&self) -> bool {
        self.origin == Origin::Repository(Trust::TightenOnly)
    }
}

/// What a person asks for on the command line, over all documents.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    pub(crate) tier: Option<Tier>,
    pub(crate) allow: Vec<AllowEntry>,
    pub(crate) set: Vec<(String, Setting)>,
}

/// An option of the command line that asks for something that can't be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
#[non_exhaustive]
pub struct OverrideError {
    /// The option: `--allow` or `--set`.
    pub option: &'static str,
    /// Which of its uses, counted from 1.
    pub ordinal: usize,
    /// What is wrong.
    pub kind: OverrideErrorKind,
    /// What to write instead, if that is known.
    pub suggestion: Option<String>,
}

/// What is wrong with an option of the command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OverrideErrorKind {
    /// There is no `=`.
    #[error("`--set` is followed by KEY=VALUE")]
    NoValue,
    /// A key that can't be set there.
    #[error("`--set` has no key `{}`", crate::escape::Escaped(key))]
    UnknownKey {
        /// The key as written.
        key: String,
    },
    /// A value that is refused.
    #[error("{}", describe(.0))]
    Value(DocumentErrorKind),
}

/// A refused rule speaks for itself; every other value is named by its key.
fn describe(kind: &DocumentErrorKind) -> String {
    match kind {
        DocumentErrorKind::BadValue { cause: cause @ ValueError::NetRule(_), .. } => {
            cause.to_string()
        }
        _ => kind.to_string(),
    }
}

impl OverrideError {
    /// Where it stands: `command line, --allow (1st)`.
    #[must_use]
    pub fn place(&self) -> String {
        let suffix = match (self.ordinal % 10, self.ordinal % 100) {
            (_, 11..=13) => "th",
            (1, _) => "st",
            (2, _) => "nd",
            (3, _) => "rd",
            _ => "th",
        };
        format!("command line, {} ({}{suffix})", self.option, self.ordinal)
    }
}

impl Overrides {
    /// Asks for nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// `--tier TIER`.
    #[must_use]
    pub fn tier(mut self, tier: Tier) -> Self {
        self.tier = Some(tier);
        self
    }

    /// `--allow RULE`, a rule or a `@group`; adds to what the profile lists, and makes a network
    /// of mode `none` one of mode `allow`.
    ///
    /// # Errors
    /// The rule's own, with the option's place.
    pub fn allow(mut self, rule: &str) -> Result<Self, Box<OverrideError>> {
        let value = DeValue::String(rule.into());
        let item = Item { key: "net.allow".into(), span: 0..0, value: &value };
        match allow_entry(&item) {
            Ok(entry) => self.allow.push(entry),
            Err(error) => return Err(refusal("--allow", self.allow.len() + 1, *error)),
        }
        Ok(self)
    }

    /// `--set KEY=VALUE`; the key is one of a profile (`limits.wall`, `env.set.CI`), the value is
    /// written as in a document, where strings need no quotes.
    ///
    /// # Errors
    /// [`OverrideErrorKind::UnknownKey`] also for keys that are no part of the command line:
    /// `extends`, `purpose` and grants.
    pub fn set(mut self, text: &str) -> Result<Self, Box<OverrideError>> {
        let ordinal = self.set.len() + 1;
        let error = |kind, suggestion| {
            Box::new(OverrideError { option: "--set", ordinal, kind, suggestion })
        };
        let Some((key, value)) = text.split_once('=') else {
            let suggestion = Some("write --set limits.wall=2h".into());
            return Err(error(OverrideErrorKind::NoValue, suggestion));
        };
        let read = |value: &DeValue<'_>| {
            let item = Item { key: key.to_owned(), span: 0..0, value };
            match (Field::named(key), key.strip_prefix("env.set.")) {
                (Some(field), _) => Some(field.read(&item)),
                (None, Some(name)) => Some(Setting::variable(name, &item)),
                (None, None) => None,
            }
        };
        let bare = DeValue::String(value.into());
        let typed = DeValue::parse(value).map_or(bare.clone(), |value| value.into_inner());
        // `CI=1` is an integer in TOML and text here: what has the wrong type is read as text.
        let setting = match (read(&typed), read(&bare)) {
            (None, _) | (_, None) => {
                let suggestion = did_you_mean(key, keys());
                let kind = OverrideErrorKind::UnknownKey { key: key.to_owned() };
                return Err(error(kind, suggestion));
            }
            (Some(Ok(setting)), _) | (_, Some(Ok(setting))) => setting,
            (Some(Err(as_typed)), _) => return Err(refusal("--set", ordinal, *as_typed)),
        };
        self.set.push((key.to_owned(), setting));
        Ok(self)
    }
}

/// Gives an error of a value its place on the command line.
pub(crate) fn refusal(
    option: &'static str,
    ordinal: usize,
    error: ReadError,
) -> Box<OverrideError> {
    let kind = OverrideErrorKind::Value(error.kind);
    Box::new(OverrideError { option, ordinal, kind, suggestion: error.suggestion })
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BuiltIn => "built-in",
            Self::User => "user",
            Self::Repository(Trust::TightenOnly) => "repository",
            Self::Repository(Trust::Trusted) => "repository, trusted",
        })
    }
}
