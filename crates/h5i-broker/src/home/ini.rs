//! Lines of `name = value` in sections.

use super::{Removed, StripError, contents, names};

/// How entries go on, and what else a line may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// npm's: one line is one entry; a name alone is one, too.
    Npm,
    /// Python's `configparser`: an indented line belongs to the entry before it.
    Indented,
}

pub(super) fn strip(text: &str, dialect: Dialect) -> Result<(String, Vec<Removed>), StripError> {
    let (mut clean, mut removed) = (String::with_capacity(text.len()), Vec::new());
    let mut gone_section = None;
    let mut lines = text.split_inclusive('\n').enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let mut entry = line.to_owned();
        let first = line.trim();
        let is_comment = first.starts_with(['#', ';']);
        let is_entry = !first.is_empty() && !is_comment && !first.starts_with('[');
        if is_entry && dialect == Dialect::Indented {
            while let Some((_, more)) = lines.next_if(|(_, line)| goes_on(line)) {
                entry.push_str(more);
            }
        }
        let why = if first.is_empty() {
            None
        } else if is_comment {
            contents::credential(None, first)
        } else if first.starts_with('[') {
            let end = first.rfind(']').ok_or(StripError::NotUnderstood)?;
            let name = &first[1..end];
            gone_section = contents::shape(name).or_else(|| names::credential(name, false));
            contents::credential(None, &first[end..])
        } else {
            let (name, value) = parted(&entry, dialect).ok_or(StripError::NotUnderstood)?;
            of_entry(name, value)
        };
        match gone_section.or(why) {
            Some(why) => removed.push(Removed::line(index + 1, why)),
            None => clean.push_str(&entry),
        }
    }
    Ok((clean, removed))
}

/// Why an entry is a credential.
pub(super) fn of_entry(name: &str, value: &str) -> Option<&'static str> {
    let plain = value.trim().trim_matches('"').trim();
    let by_name = match plain {
        "" | "true" | "false" | "yes" | "no" | "on" | "off" | "null" => None,
        _ => names::credential(name, plain.parse::<f64>().is_ok()),
    };
    by_name.or_else(|| contents::shape(name)).or_else(|| contents::credential(Some(name), value))
}

fn goes_on(line: &str) -> bool {
    line.starts_with([' ', '\t']) && !line.trim().is_empty()
}

/// An entry's name and value.
fn parted(entry: &str, dialect: Dialect) -> Option<(&str, &str)> {
    match dialect {
        // A colon is part of names like `//registry/:_authToken`.
        Dialect::Npm => Some(
            entry.split_once('=').map_or((entry.trim(), ""), |(name, value)| (name.trim(), value)),
        ),
        Dialect::Indented => {
            let (name, value) = entry.split_once(['=', ':'])?;
            (!name.trim().is_empty() && !name.contains('\n')).then_some((name.trim(), value))
        }
    }
}
