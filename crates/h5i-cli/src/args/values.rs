//! Words of the command line that are more than text.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use h5i_policy::{Millis, Tier};

use crate::shown::Shown;

/// `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assignment {
    /// What stands before the first `=`.
    pub name: String,
    /// What stands after it; may be empty.
    pub value: String,
}

/// A word is not `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not NAME=VALUE", Shown::text(.0))]
pub struct AssignmentError(String);

impl FromStr for Assignment {
    type Err = AssignmentError;

    fn from_str(word: &str) -> Result<Self, AssignmentError> {
        match word.split_once('=') {
            Some((name, value)) if !name.is_empty() && !name.contains('\0') => {
                Ok(Self { name: name.to_owned(), value: value.to_owned() })
            }
            _ => Err(AssignmentError(word.to_owned())),
        }
    }
}

/// A variable of a run: its name is of letters, digits and `_`, no digit first, as in a policy.
pub(super) fn variable(word: &str) -> Result<Assignment, ValueError> {
    let set: Assignment = word.parse().map_err(ValueError::Assignment)?;
    let plain = set.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if plain && !set.name.starts_with(|first: char| first.is_ascii_digit()) {
        Ok(set)
    } else {
        Err(ValueError::Variable(set.name))
    }
}

/// The name of a profile: letters, digits, `-` and `_`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileName(String);

/// Why a word is not a value of its kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// Not an assignment at all.
    #[error(transparent)]
    Assignment(AssignmentError),
    /// Not the name of a variable.
    #[error("`{}` is no name of a variable: letters, digits and `_`, no digit first", Shown::text(.0))]
    Variable(String),
    /// Not the name of a profile.
    #[error("a profile's name has letters, digits, `-` and `_` only")]
    Profile,
    /// Not a span of time.
    #[error("a span of time is a whole number with a unit: 500ms, 90s, 15m, 2h")]
    Duration,
    /// Not a moment.
    #[error("a moment is written as the log writes it: 2026-05-01T14:02:11.482913Z")]
    Moment,
    /// A span of time that ends at once or lasts longer than can be counted.
    #[error("a span of time is at least 1ms and at most 10000h")]
    DurationRange,
}

impl ProfileName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ProfileName {
    type Err = ValueError;

    fn from_str(word: &str) -> Result<Self, ValueError> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        if !word.is_empty() && word.bytes().all(plain) {
            Ok(Self(word.to_owned()))
        } else {
            Err(ValueError::Profile)
        }
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A span of time as policies write it.
pub(super) fn duration(word: &str) -> Result<Millis, ValueError> {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = word.split_at(digits);
    let factor = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(ValueError::Duration),
    };
    if number.is_empty() {
        return Err(ValueError::Duration);
    }
    let most = 10_000 * 3_600_000;
    let millis = number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor));
    match millis {
        Some(millis) if (1..=most).contains(&millis) => Ok(Millis::new(millis)),
        _ => Err(ValueError::DurationRange),
    }
}

/// How far back to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Since {
    /// This long before now.
    Ago(Millis),
    /// From this moment on.
    Moment(h5i_export::Timestamp),
}

/// A span of time before now, or a moment.
pub(super) fn since(word: &str) -> Result<Since, ValueError> {
    match word.parse() {
        Ok(moment) => Ok(Since::Moment(moment)),
        Err(_) if word.contains('T') => Err(ValueError::Moment),
        Err(_) => duration(word).map(Since::Ago),
    }
}

/// A tier by its name.
pub(super) fn tier() -> impl TypedValueParser<Value = Tier> {
    PossibleValuesParser::new(Tier::ALL.map(Tier::name)).map(|name| {
        // The parser lets only these names through.
        Tier::ALL.into_iter().find(|tier| tier.name() == name).unwrap_or(Tier::Microvm)
    })
}

/// How a workspace is to be laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum WorkspaceChoice {
    /// An overlay where the base is not small and the host allows it, else a checkout
    #[default]
    Auto,
    /// Files shared with other boxes of the same base below, the box's own above
    Overlay,
    /// Files of its own
    Checkout,
}

/// Who observed a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum Lane {
    /// Lifecycle and exits
    Host,
    /// Programs and refused system calls
    Kernel,
    /// Connections and names
    Net,
    /// Uses of credentials
    Broker,
    /// Browser actions; none in this version
    Browser,
    /// Claims from inside the box
    Box,
}
