//! Where each field of a resolved policy came from.

use std::collections::BTreeMap;
use std::fmt;

use crate::escape::Escaped;
use crate::layer::Origin;

/// Where each field came from, by the field's key in a policy document.
///
/// A key is there for every field that something set; what nothing set has its default. Entries of
/// `net.allow`, `fs.read`, `env.set`, `grant` have keys of their own (`net.allow.RULE`) beside the
/// whole field's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance(BTreeMap<String, Source>);

/// What set a field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// Nothing: the default of this version.
    Default,
    /// A profile of a document.
    Profile {
        /// Whose document.
        origin: Origin,
        /// The document's name.
        document: String,
        /// The profile.
        profile: String,
        /// The line, counted from 1.
        line: usize,
        /// The group that brought it.
        group: Option<GroupUse>,
    },
    /// The command line.
    CommandLine {
        /// The group that brought it.
        group: Option<GroupUse>,
    },
    /// Found on this host.
    Host,
    /// It follows from another field.
    Follows {
        /// The other field.
        from: &'static str,
    },
}

/// A group of rules that was asked for by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupUse {
    /// Its name, without `@`.
    pub name: String,
    /// Where the rule was found, if the group is one of the host's tools.
    pub found: Option<String>,
}

impl Provenance {
    /// What set the field, or the nearest field that holds it.
    #[must_use]
    pub fn source(&self, key: &str) -> &Source {
        let mut at = key;
        loop {
            if let Some(source) = self.0.get(at) {
                return source;
            }
            match at.rfind('.') {
                Some(dot) => at = &at[..dot],
                None => return &Source::Default,
            }
        }
    }

    /// Every key that was set, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.0.iter().map(|(key, source)| (key.as_str(), source))
    }

    /// Says who set `key`, and forgets who set what is below it.
    pub(crate) fn replace(&mut self, key: &str, source: Source) {
        let below = format!("{key}.");
        let after = self.0.range(below.clone()..);
        let gone: Vec<String> = after
            .map(|(other, _)| other.clone())
            .take_while(|other| other.starts_with(&below))
            .collect();
        for other in gone {
            self.0.remove(&other);
        }
        self.0.insert(key.to_owned(), source);
    }

    /// Says who set `key`, which stands beside others.
    pub(crate) fn add(&mut self, key: String, source: Source) {
        self.0.insert(key, source);
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Profile { origin: Origin::BuiltIn, profile, .. } => {
                write!(f, "built-in profile {profile}")
            }
            Self::Profile { document, profile, line, group, .. } => {
                write!(f, "{}:{line}, profile {profile}", Escaped(document))?;
                via(f, group.as_ref())
            }
            Self::CommandLine { group } => {
                f.write_str("command line")?;
                via(f, group.as_ref())
            }
            Self::Host => f.write_str("found on this host"),
            Self::Follows { from } => write!(f, "follows from {from}"),
        }
    }
}

fn via(f: &mut fmt::Formatter<'_>, group: Option<&GroupUse>) -> fmt::Result {
    let Some(GroupUse { name, found }) = group else { return Ok(()) };
    write!(f, ", group @{name}")?;
    match found {
        Some(place) => write!(f, " of {}", Escaped(place)),
        None => Ok(()),
    }
}
