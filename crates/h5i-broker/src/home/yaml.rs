//! YAML.

use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span};

use super::outline::{Item, Lines, Value, cuts, finds, without};
use super::table::{Keep, NEEDLESS};
use super::{Removed, StripError, contents};

/// How deep collections may lie in each other.
const MAX_DEPTH: usize = 100;

pub(super) fn strip(text: &str) -> Result<(String, Vec<Removed>), StripError> {
    let (_, comments) = read(text)?;
    let mut removed = Vec::new();
    let (mut gone, mut lines) = (Vec::new(), Lines::of(text));
    for comment in comments {
        if let Some(why) = contents::credential(None, &text[comment.clone()]) {
            removed.push(Removed::line(lines.at(comment.start), why));
            gone.push(comment);
        }
    }
    let text = without(text, &gone).ok_or(StripError::NotClean)?;
    let (root, _) = read(&text)?;
    let found = finds(&root, Keep::All, NEEDLESS);
    let paths: Vec<&[usize]> = found.iter().map(|find| find.path.as_slice()).collect();
    let clean = without(&text, &cuts(&root, &paths)).ok_or(StripError::NotClean)?;
    removed.extend(found.into_iter().map(|find| find.removed));
    Ok((clean, removed))
}

/// A collection that has not ended.
struct Open {
    item: Item,
    /// In a mapping, the name whose value comes next.
    name: Option<(String, usize)>,
}

/// The documents as a list, and where the comments are.
fn read(text: &str) -> Result<(Item, Vec<Range<usize>>), StripError> {
    let documents = Item { name: None, at: 0..text.len(), value: Value::List(Vec::new()) };
    let mut open = vec![Open { item: documents, name: None }];
    let mut comments = Vec::new();
    for next in Parser::new_from_str(text) {
        let (event, span) = next.map_err(|_cause| StripError::NotUnderstood)?;
        let at = place(&span).ok_or(StripError::NotUnderstood)?;
        match event {
            Event::Comment(..) => comments.push(at),
            Event::Scalar(value, style, ..) => {
                let value = scalar(&value, style);
                add(&mut open, Item { name: None, at, value })?;
            }
            Event::Alias(_) => add(&mut open, Item { name: None, at, value: Value::Flag })?,
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                let mapping = matches!(event, Event::MappingStart(..));
                let value = if mapping { Value::Map(Vec::new()) } else { Value::List(Vec::new()) };
                if open.len() > MAX_DEPTH {
                    return Err(StripError::NotUnderstood);
                }
                open.push(Open { item: Item { name: None, at, value }, name: None });
            }
            Event::MappingEnd | Event::SequenceEnd => {
                let ended = open.pop().ok_or(StripError::NotUnderstood)?;
                let (Value::Map(items) | Value::List(items)) = &ended.item.value else {
                    return Err(StripError::NotUnderstood);
                };
                // The end of a block is only known where the next thing begins.
                let flow = text[..at.end].ends_with(['}', ']']) && at.end > at.start;
                let last = items.last().map_or(ended.item.at.end, |item| item.at.end);
                let end = if flow { at.end } else { last };
                let at = ended.item.at.start..end;
                add(&mut open, Item { at, ..ended.item })?;
            }
            _ => {}
        }
    }
    match (open.pop(), open.pop()) {
        (Some(documents), None) => Ok((documents.item, comments)),
        _ => Err(StripError::NotUnderstood),
    }
}

/// Adds a node to the collection that is open: the value of a name, or the next name.
fn add(open: &mut [Open], node: Item) -> Result<(), StripError> {
    let into = open.last_mut().ok_or(StripError::NotUnderstood)?;
    match (&mut into.item.value, into.name.take()) {
        (Value::List(items), None) => items.push(node),
        (Value::Map(items), Some((name, start))) => {
            items.push(Item {
                name: Some(name),
                at: start..node.at.end.max(start),
                value: node.value,
            });
        }
        (Value::Map(_), None) => {
            let start = node.at.start;
            into.name = match node.value {
                Value::Text(name) => Some((name, start)),
                Value::Number | Value::Flag => Some((String::new(), start)),
                // A collection as a name.
                Value::Map(_) | Value::List(_) => return Err(StripError::NotUnderstood),
            };
        }
        _ => return Err(StripError::NotUnderstood),
    }
    Ok(())
}

/// YAML 1.2, section 10.3.2: what is not quoted may be something else than a text.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::Text(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" | "true" | "True" | "TRUE" | "false" | "False"
        | "FALSE" => Value::Flag,
        number if number.parse::<f64>().is_ok() => Value::Number,
        _ => Value::Text(text.to_owned()),
    }
}

fn place(span: &Span) -> Option<Range<usize>> {
    Some(span.start.byte_offset()?..span.end.byte_offset()?)
}
