//! The one matcher for workspace files, grants and export.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

mod glob;
#[cfg(test)]
mod tests;

use glob::Glob;

/// A gitignore-like pattern over bytes, case-sensitive.
///
/// - `*` matches any bytes but `/`, `?` one byte but `/`, `[a-z]` and `[!a-z]` one byte of a class,
///   `\` takes the next character literally.
/// - `**` as a whole component matches any number of components.
/// - A pattern with a `/` at its start or in its middle is anchored at the root of the tree; one
///   without matches at any depth.
/// - A trailing `/` matches directories only.
/// - Everything below a matched directory is matched.
///
/// There is no negation. Matching costs at most the product of the two lengths. A pattern is at
/// most 4,096 bytes. The rules are those of gitignore(5), without `!`, comments and trailing
/// blanks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    text: String,
    components: Vec<Component>,
    matches: Kind,
}

/// What kind of entry the last component may match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Anything,
    Directory,
}

/// One component of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Component {
    /// `**`: any number of components, also none.
    AnyDepth,
    One(Glob),
}

/// Why a text is not a [`Pattern`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// Nothing, or only `/`.
    #[error("a pattern must name something")]
    Empty,
    /// It starts with `!`.
    #[error("a pattern can't be negated")]
    Negated,
    /// It has an empty, `.` or `..` component, which no path has.
    #[error("a pattern must not have `.`, `..` or empty components")]
    NotNormal,
    /// It has a control character.
    #[error("a pattern must not have control characters")]
    Control,
    /// A `[` without its `]`, a class that is empty, backwards, named or not ASCII.
    #[error("a `[` class must be closed, not empty, in order, and of single ASCII characters")]
    BadClass,
    /// A `\` at its end.
    #[error("a pattern must not end in `\\`")]
    DanglingEscape,
    /// Longer than 4,096 bytes.
    #[error("a pattern must not be longer than 4096 bytes")]
    TooLong,
}

impl PatternError {
    /// What to do instead.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Negated => "list what is meant, or write \\! for a name that starts with `!`",
            Self::BadClass => "write \\[ for a name that has a `[`",
            Self::DanglingEscape => "write \\\\ for a name that has a `\\`",
            Self::NotNormal => "write the path from the root of the tree, with a leading /",
            _ => "see the pattern rules of gitignore(5)",
        }
    }
}

/// Longest pattern, in bytes.
const LONGEST: usize = 4096;

impl Pattern {
    /// Checks and compiles `text`.
    ///
    /// # Errors
    /// One variant of [`PatternError`] for each rule.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        if text.len() > LONGEST {
            return Err(PatternError::TooLong);
        }
        if text.starts_with('!') {
            return Err(PatternError::Negated);
        }
        if text.chars().any(char::is_control) {
            return Err(PatternError::Control);
        }
        let (rest, matches) = match text.strip_suffix('/') {
            Some(rest) => (rest, Kind::Directory),
            None => (text, Kind::Anything),
        };
        let anchored = rest.contains('/');
        let rest = rest.strip_prefix('/').unwrap_or(rest);
        if rest.is_empty() {
            return Err(PatternError::Empty);
        }
        let mut components = Vec::new();
        if !anchored {
            components.push(Component::AnyDepth);
        }
        for part in rest.split('/') {
            match part {
                "" | "." | ".." => return Err(PatternError::NotNormal),
                "**" if components.last() == Some(&Component::AnyDepth) => {}
                "**" => components.push(Component::AnyDepth),
                _ => components.push(Component::One(Glob::new(part)?)),
            }
        }
        // `a/**` is what is in `a`, not `a` itself.
        if components.last() == Some(&Component::AnyDepth) {
            components.push(Component::One(Glob::anything()));
        }
        Ok(Self { text: text.to_owned(), components, matches })
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it matches from the root of the tree only, and not at any depth.
    #[must_use]
    pub fn is_anchored(&self) -> bool {
        self.components.first() != Some(&Component::AnyDepth)
    }

    /// Whether the entry at `path` (relative to the root of the tree, a leading `/` is ignored) or
    /// a directory above it is matched. `is_dir` says whether the entry itself is a directory.
    #[must_use]
    pub fn matches(&self, path: &[u8], is_dir: bool) -> bool {
        let last = self.components.len();
        // `live[i]`: the components before `i` have been matched by what was read so far.
        let mut live = vec![false; last + 1];
        live[0] = true;
        self.skip(&mut live);
        let mut names = path.split(|b| *b == b'/').filter(|name| !name.is_empty()).peekable();
        while let Some(name) = names.next() {
            let mut next = vec![false; last + 1];
            for (i, component) in self.components.iter().enumerate() {
                if live[i] {
                    match component {
                        Component::AnyDepth => next[i] = true,
                        Component::One(glob) => next[i + 1] |= glob.matches(name),
                    }
                }
            }
            self.skip(&mut next);
            let is_dir = is_dir || names.peek().is_some();
            if next[last] && (is_dir || self.matches == Kind::Anything) {
                return true;
            }
            live = next;
        }
        false
    }

    /// Lets every `**` that was reached match nothing.
    fn skip(&self, live: &mut [bool]) {
        for (i, component) in self.components.iter().enumerate() {
            if live[i] && *component == Component::AnyDepth {
                live[i + 1] = true;
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Pattern {
    type Err = PatternError;
    fn from_str(text: &str) -> Result<Self, PatternError> {
        Self::new(text)
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;
    fn try_from(text: String) -> Result<Self, PatternError> {
        Self::new(&text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.text
    }
}
