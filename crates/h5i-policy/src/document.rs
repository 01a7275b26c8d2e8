//! What people write: a policy document in TOML.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::de::{DeTable, DeValue};

pub(crate) mod error;
mod grant;
pub(crate) mod read;
pub(crate) mod setting;
#[cfg(test)]
mod tests;

use error::{DocumentError, DocumentErrorKind, Excerpt, ValueError};
use read::{Item, Read, ReadError, did_you_mean};
use setting::{FIELDS, Field, Setting};

use crate::net_rule::NetRule;

/// One policy document, read and checked by itself: every key is known, every value is of its type.
///
/// ```toml
/// version = 1
/// [profile.web]
/// extends = "default"
/// [profile.web.limits]
/// wall = "2h"
/// [group.internal]
/// allow = ["packages.example.com"]
/// ```
/// What it refers to (other profiles, groups) is looked up at resolution.
#[derive(Clone, Debug)]
pub struct PolicyDocument {
    source_name: String,
    text: String,
    /// Where each line but the first begins.
    lines: Vec<usize>,
    pub(crate) profiles: BTreeMap<String, Profile>,
    pub(crate) groups: BTreeMap<String, BTreeSet<NetRule>>,
}

/// One profile as it is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profile {
    pub(crate) extends: Option<(String, Range<usize>)>,
    pub(crate) purpose: Option<String>,
    pub(crate) settings: Vec<Placed>,
}

/// A setting with its key and its place in the document.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) key: String,
    pub(crate) span: Range<usize>,
    pub(crate) setting: Setting,
}

impl PolicyDocument {
    /// Largest document, in bytes.
    pub const LARGEST: usize = 1 << 20;

    /// Reads a document; `source_name` is how errors call it.
    ///
    /// Bounded: 1 MiB of text, 4,096 entries of a list or table.
    ///
    /// # Errors
    /// The first error in the order of the document, with its line and column.
    pub fn parse(source_name: &str, bytes: &[u8]) -> Result<Self, Box<DocumentError>> {
        let mut document = Self {
            source_name: source_name.to_owned(),
            text: String::new(),
            lines: Vec::new(),
            profiles: BTreeMap::new(),
            groups: BTreeMap::new(),
        };
        if bytes.len() > Self::LARGEST {
            let kind = DocumentErrorKind::TooLarge { limit: Self::LARGEST };
            return Err(document.error(ReadError::new(0..0, kind)));
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let at = error.valid_up_to();
                document.text = String::from_utf8_lossy(bytes).into_owned();
                return Err(document.error(ReadError::new(at..at, DocumentErrorKind::NotUtf8)));
            }
        };
        text.clone_into(&mut document.text);
        document.lines = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        let table = DeTable::parse(text).map_err(|error| {
            let message = error.message().trim().replace('\n', ", ");
            let span = error.span().unwrap_or(0..0);
            document.error(ReadError::new(span, DocumentErrorKind::Syntax { message }))
        })?;
        document.read(table.get_ref()).map_err(|error| document.error(error))?;
        Ok(document)
    }

    /// The name by which errors call the document.
    #[must_use]
    pub fn source_name(&self) -> &str {
        &self.source_name
    }

    /// The names of the profiles it writes, in order.
    pub fn profile_names(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(String::as_str)
    }

    /// The groups that it defines, in order, each with its rules.
    pub fn groups(&self) -> impl Iterator<Item = (&str, &BTreeSet<NetRule>)> {
        self.groups.iter().map(|(name, rules)| (name.as_str(), rules))
    }

    /// The line that the byte `at` is on, counted from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        1 + self.lines.partition_point(|begin| *begin <= at)
    }

    /// The built-in profiles.
    #[must_use]
    #[expect(clippy::expect_used, reason = "the text is part of the crate, and a test reads it")]
    pub fn built_in() -> Self {
        let text = include_str!("builtin.toml");
        Self::parse("built-in profiles", text.as_bytes()).expect("built-in profiles are valid")
    }

    /// Gives an error its place.
    #[expect(clippy::boxed_local, reason = "errors travel boxed, and this is where they end")]
    pub(crate) fn error(&self, error: Box<ReadError>) -> Box<DocumentError> {
        let ReadError { span, kind, suggestion } = *error;
        let (line, column, excerpt) = Excerpt::of(&self.text, span.start, span.end);
        let source_name = self.source_name.clone();
        Box::new(DocumentError { source_name, line, column, kind, excerpt, suggestion })
    }

    fn read(&mut self, table: &DeTable<'_>) -> Read<()> {
        check_version(table)?;
        for (key, span, item) in entries(table) {
            match key {
                "version" => {}
                "profile" => {
                    for (name, span, item) in entries(item.table()?) {
                        check_name(name, span)?;
                        let profile = Profile::read(name, &item)?;
                        self.profiles.insert(name.to_owned(), profile);
                    }
                }
                "group" => {
                    for (name, span, item) in entries(item.table()?) {
                        check_name(name, span)?;
                        self.groups.insert(name.to_owned(), read_group(name, &item)?);
                    }
                }
                _ => {
                    let suggestion = did_you_mean(key, ["version", "profile", "group"]);
                    return Err(unknown_key(span, key, "the document").suggesting(suggestion));
                }
            }
        }
        Ok(())
    }
}

fn check_version(table: &DeTable<'_>) -> Read<()> {
    let Some(version) = table.get("version") else {
        return Err(ReadError::new(0..0, DocumentErrorKind::MissingVersion));
    };
    let item = Item { key: "version".into(), span: version.span(), value: version.get_ref() };
    match item.value {
        DeValue::Integer(n) if (n.as_str(), n.radix()) == ("1", 10) => Ok(()),
        DeValue::Integer(n) => {
            Err(item.error(DocumentErrorKind::UnsupportedVersion { found: n.to_string() }))
        }
        _ => Err(item.wrong_type("an integer")),
    }
}

fn read_group(name: &str, item: &Item<'_>) -> Read<BTreeSet<NetRule>> {
    let mut rules = BTreeSet::new();
    for (key, span, item) in entries(item.table()?) {
        if key != "allow" {
            let suggestion = did_you_mean(key, ["allow"]);
            return Err(unknown_key(span, key, &format!("[group.{name}]")).suggesting(suggestion));
        }
        rules = item.list(setting::rule)?;
    }
    Ok(rules)
}

impl Profile {
    fn read(name: &str, item: &Item<'_>) -> Read<Self> {
        let mut profile = Self::default();
        profile.read_section(&format!("profile.{name}"), "", item.table()?)?;
        Ok(profile)
    }

    /// Reads the table whose keys stand below `prefix` (empty, or with its dot at the end).
    fn read_section(&mut self, header: &str, prefix: &str, table: &DeTable<'_>) -> Read<()> {
        for (key, span, item) in entries(table) {
            let full = format!("{prefix}{key}");
            let item = Item { key: full.clone(), ..item };
            match full.as_str() {
                "extends" => {
                    let parent = item.text()?;
                    check_name(parent, item.span.clone())?;
                    self.extends = Some((parent.to_owned(), item.span));
                }
                "purpose" => self.purpose = Some(item.text()?.to_owned()),
                "env.set" => {
                    for (name, _, item) in entries(item.table()?) {
                        let item = Item { key: format!("env.set.{name}"), ..item };
                        self.push(&item, Setting::variable(name, &item)?);
                    }
                }
                "grant" => {
                    for (name, span, item) in entries(item.table()?) {
                        check_name(name, span)?;
                        let item = Item { key: format!("grant.{name}"), ..item };
                        let section = format!("[{header}.grant.{name}]");
                        let grant = grant::grant(&section, &item)?;
                        self.push(&item, Setting::Grant(name.to_owned(), Box::new(grant)));
                    }
                }
                _ => {
                    if let Some(field) = Field::named(&full) {
                        self.push(&item, field.read(&item)?);
                    } else if keys().any(|known| known.starts_with(&format!("{full}."))) {
                        let header = format!("{header}.{key}");
                        self.read_section(&header, &format!("{full}."), item.table()?)?;
                    } else {
                        let known = keys()
                            .filter_map(|known| known.strip_prefix(prefix)?.split('.').next());
                        let suggestion = did_you_mean(key, known);
                        let section = format!("[{header}]");
                        return Err(unknown_key(span, key, &section).suggesting(suggestion));
                    }
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, item: &Item<'_>, setting: Setting) {
        self.settings.push(Placed { key: item.key.clone(), span: item.span.clone(), setting });
    }
}

/// Every key below a profile.
pub(crate) fn keys() -> impl Iterator<Item = &'static str> {
    FIELDS.iter().map(|field| field.key).chain(["extends", "purpose", "env.set", "grant"])
}

/// Whether `text` can name a profile, a group or a grant.
pub(crate) fn is_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.len() <= 63
        && text.bytes().next().is_some_and(plain)
        && text.bytes().all(|b| plain(b) || b"._-".contains(&b))
}

fn check_name(name: &str, span: Range<usize>) -> Read<()> {
    if is_name(name) {
        return Ok(());
    }
    let kind = DocumentErrorKind::BadValue { key: name.to_owned(), cause: ValueError::Name };
    Err(ReadError::new(span, kind))
}

fn unknown_key(span: Range<usize>, key: &str, section: &str) -> Box<ReadError> {
    let (key, section) = (key.to_owned(), section.to_owned());
    ReadError::new(span, DocumentErrorKind::UnknownKey { key, section })
}

/// The entries of a table in the order of the document: key, its place, value.
fn entries<'a>(table: &'a DeTable<'a>) -> impl Iterator<Item = (&'a str, Range<usize>, Item<'a>)> {
    let mut entries: Vec<_> = table
        .iter()
        .map(|(key, value)| {
            let name: &str = key.get_ref();
            let item = Item { key: name.to_owned(), span: value.span(), value: value.get_ref() };
            (name, key.span(), item)
        })
        .collect();
    entries.sort_by_key(|(_, span, _)| span.start);
    entries.into_iter()
}
