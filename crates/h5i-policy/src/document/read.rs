//! Reading one value of a document as what it must be.

use std::collections::BTreeSet;
use std::ops::Range;
use std::str::FromStr;

use toml::de::{DeTable, DeValue};

use super::error::{DocumentErrorKind, ValueError};
use crate::suggest::nearest;
use crate::units::budget;
use crate::word::Word;

/// Most entries of one list or table.
pub(crate) const MOST_ENTRIES: usize = 4096;

/// What to do about a variable that is set twice.
pub(crate) const TWO_SETTERS: &str = "leave it out of one of them, or give the grant another";

/// One value of a document with the key that holds it.
#[derive(Clone, Debug)]
pub(crate) struct Item<'a> {
    /// The key below the profile: `net.allow`.
    pub(crate) key: String,
    pub(crate) span: Range<usize>,
    pub(crate) value: &'a DeValue<'a>,
}

/// An error on the way to its place.
#[derive(Debug)]
pub(crate) struct ReadError {
    pub(crate) span: Range<usize>,
    pub(crate) kind: DocumentErrorKind,
    pub(crate) suggestion: Option<String>,
}

pub(crate) type Read<T> = Result<T, Box<ReadError>>;

impl ReadError {
    pub(crate) fn new(span: Range<usize>, kind: DocumentErrorKind) -> Box<Self> {
        let suggestion = match &kind {
            DocumentErrorKind::BadValue { cause, .. } => cause.hint(),
            DocumentErrorKind::UnknownWord { found, allowed, .. } => {
                did_you_mean(found, allowed.iter().copied())
            }
            DocumentErrorKind::RulesWithoutMode { .. } => {
                Some("write mode = \"allow\" as well, or leave the rules out".into())
            }
            DocumentErrorKind::VariableSetTwice { .. } => Some(TWO_SETTERS.into()),
            DocumentErrorKind::Loosens { .. } => Some("leave it out".into()),
            _ => None,
        };
        Box::new(Self { span, kind, suggestion })
    }

    pub(crate) fn suggesting(mut self: Box<Self>, suggestion: Option<String>) -> Box<Self> {
        self.suggestion = suggestion;
        self
    }
}

/// The suggestion of the nearest candidate.
pub(crate) fn did_you_mean<'a>(
    found: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(found, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

/// The type of a value, with its article.
fn type_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

impl<'a> Item<'a> {
    pub(crate) fn error(&self, kind: DocumentErrorKind) -> Box<ReadError> {
        ReadError::new(self.span.clone(), kind)
    }

    pub(crate) fn wrong_type(&self, expected: &'static str) -> Box<ReadError> {
        let found = type_of(self.value);
        self.error(DocumentErrorKind::WrongType { key: self.key.clone(), expected, found })
    }

    pub(crate) fn refused(&self, cause: impl Into<ValueError>) -> Box<ReadError> {
        self.error(DocumentErrorKind::BadValue { key: self.key.clone(), cause: cause.into() })
    }

    pub(crate) fn table(&self) -> Read<&'a DeTable<'a>> {
        match self.value {
            DeValue::Table(table) if table.len() > MOST_ENTRIES => Err(self.too_many()),
            DeValue::Table(table) => Ok(table),
            _ => Err(self.wrong_type("a table")),
        }
    }

    fn text_as(&self, expected: &'static str) -> Read<&'a str> {
        match self.value {
            DeValue::String(text) => Ok(text),
            _ => Err(self.wrong_type(expected)),
        }
    }

    pub(crate) fn text(&self) -> Read<&'a str> {
        let text = self.text_as("a string")?;
        if text.contains('\0') { Err(self.refused(ValueError::Nul)) } else { Ok(text) }
    }

    /// A string that its type parses.
    pub(crate) fn parsed<T: FromStr<Err: Into<ValueError>>>(&self) -> Read<T> {
        self.text()?.parse().map_err(|error: T::Err| self.refused(error))
    }

    /// One of the words of a choice.
    pub(crate) fn word<T: Word>(&self) -> Read<T> {
        let found = self.text_as("a word in quotes")?;
        match T::WORDS.iter().find(|(word, _)| *word == found) {
            Some((_, value)) => Ok(*value),
            None => Err(self.error(DocumentErrorKind::UnknownWord {
                key: self.key.clone(),
                found: found.to_owned(),
                allowed: T::WORDS.iter().map(|(word, _)| *word).collect(),
            })),
        }
    }

    /// A quantity with its unit, in quotes.
    pub(crate) fn quantity<T: FromStr<Err: Into<ValueError>>>(&self) -> Read<T> {
        let text =
            self.text_as("a quantity with its unit in quotes, such as \"2h\" or \"8GiB\"")?;
        text.parse().map_err(|error: T::Err| self.refused(error))
    }

    /// A quantity, or `"none"`.
    pub(crate) fn budget<T: FromStr<Err: Into<ValueError>>>(&self) -> Read<Option<T>> {
        match self.value {
            DeValue::String(text) if text == budget::NONE => Ok(None),
            _ => self.quantity().map(Some),
        }
    }

    /// An integer from `least` to the most that `T` holds.
    pub(crate) fn count<T: TryFrom<u64> + Into<u64>>(&self, least: u64, most: T) -> Read<T> {
        let DeValue::Integer(integer) = self.value else {
            return Err(self.wrong_type("an integer"));
        };
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        match number.filter(|n| *n >= least).map(T::try_from) {
            Some(Ok(count)) => Ok(count),
            _ => Err(self.refused(ValueError::OutOfRange { least, most: most.into() })),
        }
    }

    /// An integer of at least 1, or `"none"`.
    pub(crate) fn count_budget<T: TryFrom<u64> + Into<u64>>(&self, most: T) -> Read<Option<T>> {
        match self.value {
            DeValue::String(text) if text == budget::NONE => Ok(None),
            DeValue::Integer(_) => self.count(1, most).map(Some),
            _ => Err(self.wrong_type("an integer or \"none\"")),
        }
    }

    /// A list without order, each entry read by `read`.
    pub(crate) fn list<T: Ord>(&self, read: impl Fn(&Item<'a>) -> Read<T>) -> Read<BTreeSet<T>> {
        let DeValue::Array(entries) = self.value else { return Err(self.wrong_type("a list")) };
        if entries.len() > MOST_ENTRIES {
            return Err(self.too_many());
        }
        entries
            .iter()
            .map(|entry| {
                let key = self.key.clone();
                read(&Item { key, span: entry.span(), value: entry.get_ref() })
            })
            .collect()
    }

    pub(crate) fn too_many(&self) -> Box<ReadError> {
        self.error(DocumentErrorKind::TooMany { key: self.key.clone(), limit: MOST_ENTRIES })
    }
}
