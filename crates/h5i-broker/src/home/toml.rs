//! TOML.

use std::ops::Range;

use toml_edit::{Document, DocumentMut, Item as Entry, TableLike, Value as Scalar};

use super::outline::{Item, Lines, Value, finds, without};
use super::table::{Keep, NEEDLESS};
use super::{Removed, StripError, contents};

pub(super) fn strip(text: &str, keep: Keep) -> Result<(String, Vec<Removed>), StripError> {
    let (text, mut removed) = without_comments(text)?;
    let document = parsed(&text)?;
    let root = of_table(None, document.as_table());
    let found = finds(&root, keep, NEEDLESS);
    if found.is_empty() {
        return Ok((text, removed));
    }
    let mut changed: DocumentMut = document.into_mut();
    // From the last to the first, so that the numbers of the others stay.
    for find in found.iter().rev() {
        remove(changed.as_item_mut(), &root, &find.path).ok_or(StripError::NotClean)?;
    }
    removed.extend(found.into_iter().map(|find| find.removed));
    Ok((changed.to_string(), removed))
}

fn parsed(text: &str) -> Result<Document<&str>, StripError> {
    Document::parse(text).map_err(|_cause| StripError::NotUnderstood)
}

fn of_table(name: Option<String>, table: &dyn TableLike) -> Item {
    let items = table.iter().map(|(name, entry)| of_entry(Some(name.to_owned()), entry)).collect();
    Item { name, at: 0..0, value: Value::Map(items) }
}

fn of_entry(name: Option<String>, entry: &Entry) -> Item {
    let value = match entry {
        Entry::None => Value::Flag,
        Entry::Value(value) => return of_value(name, value),
        Entry::Table(table) => return of_table(name, table),
        Entry::ArrayOfTables(tables) => {
            Value::List(tables.iter().map(|table| of_table(None, table)).collect())
        }
    };
    Item { name, at: 0..0, value }
}

fn of_value(name: Option<String>, value: &Scalar) -> Item {
    let value = match value {
        Scalar::String(text) => Value::Text(text.value().clone()),
        Scalar::Integer(_) | Scalar::Float(_) => Value::Number,
        Scalar::Boolean(_) | Scalar::Datetime(_) => Value::Flag,
        Scalar::Array(values) => {
            Value::List(values.iter().map(|value| of_value(None, value)).collect())
        }
        Scalar::InlineTable(table) => return of_table(name, table),
    };
    Item { name, at: 0..0, value }
}

/// Removes what a path leads to.
fn remove(entry: &mut Entry, item: &Item, path: &[usize]) -> Option<()> {
    let (first, rest) = path.split_first()?;
    let (Value::Map(items) | Value::List(items)) = &item.value else { return None };
    let child = items.get(*first)?;
    match &child.name {
        Some(name) if rest.is_empty() => entry.as_table_like_mut()?.remove(name).map(|_| ()),
        Some(name) => remove(entry.as_table_like_mut()?.get_mut(name)?, child, rest),
        None => match entry {
            Entry::ArrayOfTables(tables) if rest.is_empty() => {
                (*first < tables.len()).then(|| tables.remove(*first)).map(|_| ())
            }
            Entry::ArrayOfTables(tables) => remove_below(tables.get_mut(*first)?, child, rest),
            Entry::Value(value) => remove_in(value, item, path),
            _ => None,
        },
    }
}

fn remove_below(table: &mut dyn TableLike, item: &Item, path: &[usize]) -> Option<()> {
    let (first, rest) = path.split_first()?;
    let Value::Map(items) = &item.value else { return None };
    let child = items.get(*first)?;
    let name = child.name.as_deref()?;
    if rest.is_empty() {
        return table.remove(name).map(|_| ());
    }
    remove(table.get_mut(name)?, child, rest)
}

fn remove_in(value: &mut Scalar, item: &Item, path: &[usize]) -> Option<()> {
    let (first, rest) = path.split_first()?;
    let (Value::Map(items) | Value::List(items)) = &item.value else { return None };
    match value {
        Scalar::InlineTable(table) => remove_below(table, item, path),
        Scalar::Array(values) if rest.is_empty() => {
            (*first < values.len()).then(|| values.remove(*first)).map(|_| ())
        }
        Scalar::Array(values) => remove_in(values.get_mut(*first)?, items.get(*first)?, rest),
        _ => None,
    }
}

/// Without comments that hold credentials.
fn without_comments(text: &str) -> Result<(String, Vec<Removed>), StripError> {
    let document = parsed(text)?;
    let mut quoted = Vec::new();
    places(document.as_table(), &mut quoted);
    quoted.sort_by_key(|place| place.start);
    let (mut cuts, mut removed, mut at) = (Vec::new(), Vec::new(), 0);
    let mut lines = Lines::of(text);
    while let Some(found) = text[at..].find('#') {
        let start = at + found;
        // The last one that begins before it: they do not lie in each other.
        let before = quoted.partition_point(|place| place.start <= start);
        if let Some(place) = before.checked_sub(1).map(|last| &quoted[last])
            && place.contains(&start)
        {
            at = place.end;
            continue;
        }
        let end = text[start..].find('\n').map_or(text.len(), |length| start + length);
        if let Some(why) = contents::credential(None, &text[start..end]) {
            cuts.push(start..end);
            removed.push(Removed::line(lines.at(start), why));
        }
        at = end;
    }
    let text = without(text, &cuts).ok_or(StripError::NotClean)?;
    Ok((text, removed))
}

/// Where names and scalar values stand: a `#` in those begins no comment.
fn places(table: &dyn TableLike, quoted: &mut Vec<Range<usize>>) {
    for (name, entry) in table.iter() {
        if let Some((key, _)) = table.get_key_value(name) {
            quoted.extend(key.span());
        }
        match entry {
            Entry::None => {}
            Entry::Value(value) => places_in(value, quoted),
            Entry::Table(below) => places(below, quoted),
            Entry::ArrayOfTables(tables) => {
                tables.iter().for_each(|below| places(below, quoted));
            }
        }
    }
}

fn places_in(value: &Scalar, quoted: &mut Vec<Range<usize>>) {
    match value {
        Scalar::Array(values) => values.iter().for_each(|value| places_in(value, quoted)),
        Scalar::InlineTable(table) => places(table, quoted),
        other => quoted.extend(other.span()),
    }
}
