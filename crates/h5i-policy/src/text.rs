//! A resolved policy as text: what `policy show` prints and what is frozen in a box.

use std::fmt::Write;

use serde::Deserialize;
use toml::de::DeTable;
use toml::{Table, Value};

use crate::document::PolicyDocument;
use crate::document::error::{DocumentError, DocumentErrorKind, Excerpt};
use crate::resolved::ResolvedPolicy;

/// The version of the text.
const VERSION: i64 = 1;

/// Longest list that is written on one line, in characters.
const LINE: usize = 90;

impl ResolvedPolicy {
    /// The policy as TOML, every default written out, in one order, one entry a line where there
    /// are many.
    ///
    /// It is not a policy document: it has one policy and no profile, and names what was found on
    /// the host. Reading it back gives the same policy.
    #[must_use]
    #[expect(
        clippy::expect_used,
        reason = "every key is text and every number fits 64 bits, so there is nothing to fail on"
    )]
    pub fn to_toml(&self) -> String {
        let table = Table::try_from(self).expect("a policy is representable in TOML");
        let mut out = format!("version = {VERSION}\n");
        section(&mut out, "", &table);
        out
    }

    /// Reads what [`to_toml`](Self::to_toml) wrote; `source_name` is how errors call it.
    ///
    /// # Errors
    /// The first error, with its line and column: unknown, missing or doubled keys, wrong types,
    /// values that their own rules refuse, a version other than 1, more than 1 MiB.
    pub fn from_toml(source_name: &str, text: &str) -> Result<Self, Box<DocumentError>> {
        let refused = |span: Option<std::ops::Range<usize>>, kind| {
            let span = span.unwrap_or(0..0);
            let (line, column, excerpt) = Excerpt::of(text, span.start, span.end);
            let source_name = source_name.to_owned();
            Box::new(DocumentError { source_name, line, column, kind, excerpt, suggestion: None })
        };
        let syntax = |error: &toml::de::Error| {
            let message = error.message().trim().replace('\n', ", ");
            refused(error.span(), DocumentErrorKind::Syntax { message })
        };
        if text.len() > PolicyDocument::LARGEST {
            let kind = DocumentErrorKind::TooLarge { limit: PolicyDocument::LARGEST };
            return Err(refused(None, kind));
        }
        let mut table = DeTable::parse(text).map_err(|error| syntax(&error))?;
        let Some(version) = table.get_mut().remove("version") else {
            return Err(refused(None, DocumentErrorKind::MissingVersion));
        };
        let is_one = version.get_ref().as_integer().is_some_and(|n| n.as_str() == "1");
        if !is_one {
            let found = text.get(version.span()).unwrap_or_default().to_owned();
            return Err(refused(
                Some(version.span()),
                DocumentErrorKind::UnsupportedVersion { found },
            ));
        }
        Self::deserialize(toml::de::Deserializer::from(table)).map_err(|error| syntax(&error))
    }
}

/// The order of the top of the text: what the boundary is first, what is long last.
const ORDER: &[&str] = &[
    "tier",
    "namespaces",
    "landlock",
    "debuggers",
    "combine",
    "history",
    "record_output",
    "seed",
    "expires",
    "net",
    "env",
    "limits",
    "grant",
    "export",
    "react",
    "fs",
];

/// Writes a table: plain values first, then each table in it under its own header.
fn section(out: &mut String, header: &str, table: &Table) {
    let is_section = |value: &Value| matches!(value, Value::Table(_));
    let mut entries: Vec<(&String, &Value)> = table.iter().collect();
    if header.is_empty() {
        entries.sort_by_key(|(name, _)| ORDER.iter().position(|known| known == name));
    }
    for (name, value) in entries.iter().filter(|(_, value)| !is_section(value)) {
        entry(out, name, value);
    }
    for (name, value) in entries {
        let Value::Table(inner) = value else { continue };
        let dot = if header.is_empty() { "" } else { "." };
        let header = format!("{header}{dot}{}", key(name));
        // Read grants are many and short: one line each.
        if header == "fs.read" {
            push(out, format_args!("\n[{header}]\n"));
            for (path, grant) in inner {
                entry(out, path, grant);
            }
            continue;
        }
        push(out, format_args!("\n[{header}]\n"));
        section(out, &header, inner);
    }
}

fn entry(out: &mut String, name: &str, value: &Value) {
    let name = key(name);
    let flat = inline(value);
    match value {
        Value::Array(entries) if name.len() + flat.chars().count() > LINE => {
            push(out, format_args!("{name} = [\n"));
            for entry in entries {
                push(out, format_args!("  {},\n", inline(entry)));
            }
            push(out, format_args!("]\n"));
        }
        _ => push(out, format_args!("{name} = {flat}\n")),
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(entries) => {
            format!("[{}]", entries.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        Value::Table(table) => {
            let entry =
                |(name, value): (&String, &Value)| format!("{} = {}", key(name), inline(value));
            format!("{{ {} }}", table.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn key(name: &str) -> String {
    let bare = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if !name.is_empty() && name.bytes().all(bare) { name.to_owned() } else { quoted(name) }
}

/// A basic string of TOML on one line; what a person can't see is escaped.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if crate::escape::is_deceptive(c) => {
                push(&mut out, format_args!("\\U{:08x}", u32::from(c)))
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Writing to a string can't fail.
fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    let written = out.write_fmt(text);
    debug_assert!(written.is_ok());
}
