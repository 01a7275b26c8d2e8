//! How much of the repository's past the box receives.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How much of the repository's past the box receives.
///
/// The order is by how much that is: `None < Depth(1) < Depth(2) < Full < Borrow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum History {
    /// One synthetic commit of the base tree.
    None,
    /// The last N commits reachable from the base; N is at least 1.
    Depth(u32),
    /// What is reachable from the base.
    Full,
    /// The host's whole object store, said aloud.
    Borrow,
}

/// Why a text is not a [`History`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("history is full, depth:N with N of at least 1, none or borrow")]
pub struct HistoryError;

impl FromStr for History {
    type Err = HistoryError;
    fn from_str(text: &str) -> Result<Self, HistoryError> {
        match text {
            "none" => Ok(Self::None),
            "full" => Ok(Self::Full),
            "borrow" => Ok(Self::Borrow),
            _ => {
                let digits = text.strip_prefix("depth:").ok_or(HistoryError)?;
                match digits.parse() {
                    Ok(n) if !digits.starts_with(['0', '+']) => Ok(Self::Depth(n)),
                    _ => Err(HistoryError),
                }
            }
        }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Depth(n) => write!(f, "depth:{n}"),
            Self::Full => f.write_str("full"),
            Self::Borrow => f.write_str("borrow"),
        }
    }
}

impl TryFrom<String> for History {
    type Error = HistoryError;
    fn try_from(text: String) -> Result<Self, HistoryError> {
        text.parse()
    }
}

impl From<History> for String {
    fn from(history: History) -> Self {
        history.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{History, HistoryError};

    #[test]
    fn each_history_has_one_text() {
        for (text, history) in [
            ("full", History::Full),
            ("none", History::None),
            ("borrow", History::Borrow),
            ("depth:1", History::Depth(1)),
            ("depth:4294967295", History::Depth(u32::MAX)),
        ] {
            assert_eq!(text.parse(), Ok(history));
            assert_eq!(history.to_string(), text);
        }
        for text in ["", "Full", "depth", "depth:", "depth:0", "depth:01", "depth:+1", "depth:-1"] {
            assert_eq!(text.parse::<History>(), Err(HistoryError), "{text:?}");
        }
    }

    #[test]
    fn more_of_the_past_is_greater() {
        let ascending =
            [History::None, History::Depth(1), History::Depth(9), History::Full, History::Borrow];
        assert!(ascending.is_sorted_by(|a, b| a < b));
    }
}
