//! JSON.

use super::outline::{Item, Value, cuts, finds, without};
use super::table::{Keep, NEEDLESS};
use super::{Removed, StripError, contents};
use crate::json_spans::{Kind, Node, string};

pub(super) fn strip(text: &str, keep: Keep) -> Result<(String, Vec<Removed>), StripError> {
    let node = Node::parse(text).ok_or(StripError::NotUnderstood)?;
    let root = item(text, None, node.at.start, &node).ok_or(StripError::NotUnderstood)?;
    // A document that is a single text has no name and no place.
    if let Value::Text(text) = &root.value
        && contents::credential(None, text).is_some()
    {
        return Err(StripError::NotClean);
    }
    let found = finds(&root, keep, NEEDLESS);
    let paths: Vec<&[usize]> = found.iter().map(|find| find.path.as_slice()).collect();
    let clean = without(text, &cuts(&root, &paths)).ok_or(StripError::NotClean)?;
    Ok((clean, found.into_iter().map(|find| find.removed).collect()))
}

fn item(text: &str, name: Option<String>, start: usize, node: &Node) -> Option<Item> {
    let value = match &node.kind {
        Kind::Object(members) => {
            let items = members.iter().map(|member| {
                let name = string(text, &member.key)?.to_string();
                item(text, Some(name), member.key.start, &member.value)
            });
            Value::Map(items.collect::<Option<_>>()?)
        }
        Kind::Array(nodes) => {
            let items = nodes.iter().map(|node| item(text, None, node.at.start, node));
            Value::List(items.collect::<Option<_>>()?)
        }
        Kind::Text => Value::Text(node.string(text)?.to_string()),
        Kind::Other if text[node.at.clone()].starts_with(['t', 'f', 'n']) => Value::Flag,
        Kind::Other => Value::Number,
    };
    Some(Item { name, at: start..node.at.end, value })
}
