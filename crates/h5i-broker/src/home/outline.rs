//! What formats of nested values have in common, and what of it is a credential.

use std::ops::Range;

use super::table::Keep;
use super::{Removed, contents, names};

/// A value with its name, where it has one.
pub(super) struct Item {
    pub(super) name: Option<String>,
    /// Where the name and the value stand.
    pub(super) at: Range<usize>,
    pub(super) value: Value,
}

/// A value.
pub(super) enum Value {
    Map(Vec<Item>),
    List(Vec<Item>),
    Text(String),
    Number,
    /// `true`, `null`, a reference to another value.
    Flag,
}

/// A credential, by the numbers of the items that lead to it.
pub(super) struct Find {
    pub(super) path: Vec<usize>,
    pub(super) removed: Removed,
}

/// Names by which an entry of a list says what its value is: `{name = "TOKEN", value = "…"}`.
const NAMING: &[&str] = &["name", "key", "variable", "header", "id", "env"];

/// All credentials below `root`, in order, and what is not kept, for the reason `needless`.
pub(super) fn finds(root: &Item, keep: Keep, needless: &'static str) -> Vec<Find> {
    let mut finds = Vec::new();
    let (path, place) = (Vec::new(), Vec::new());
    Judge { keep, needless, path, place, finds: &mut finds }.children(root);
    finds
}

struct Judge<'a> {
    keep: Keep,
    needless: &'static str,
    path: Vec<usize>,
    place: Vec<String>,
    finds: &'a mut Vec<Find>,
}

impl Judge<'_> {
    fn children(&mut self, item: &Item) {
        let (Value::Map(items) | Value::List(items)) = &item.value else { return };
        for (index, child) in items.iter().enumerate() {
            let name = child.name.clone().unwrap_or_else(|| index.to_string());
            self.path.push(index);
            let by_key = child.name.as_deref().and_then(contents::shape);
            // A name that is a credential itself is not told.
            self.place.push(if by_key.is_some() { "…".to_owned() } else { name });
            let kept = child.name.is_none() || self.keep.keeps(&self.place);
            let told = by_key
                .or_else(|| (!kept).then_some(self.needless))
                .or_else(|| by_sibling(items, index))
                .or_else(|| child.name.as_deref().and_then(|name| by_name(name, &child.value)))
                .or_else(|| {
                    by_content(child.name.as_deref().or(item.name.as_deref()), &child.value)
                });
            match told {
                Some(why) => {
                    let removed = Removed::at(&self.place.join("."), why);
                    self.finds.push(Find { path: self.path.clone(), removed });
                }
                None => self.children(child),
            }
            self.place.pop();
            self.path.pop();
        }
    }
}

/// Why a value under a name is a credential.
fn by_name(name: &str, value: &Value) -> Option<&'static str> {
    match value {
        Value::Flag => None,
        Value::Number => names::credential(name, true),
        Value::Text(text) if text.is_empty() => None,
        Value::Map(items) | Value::List(items) if items.is_empty() => None,
        Value::Text(_) | Value::Map(_) | Value::List(_) => names::credential(name, false),
    }
}

fn by_content(name: Option<&str>, value: &Value) -> Option<&'static str> {
    match value {
        Value::Text(text) => contents::credential(name, text),
        _ => None,
    }
}

/// Why a value is a credential by what stands beside it: the name of a pair, or the option before it
/// in a list of arguments.
fn by_sibling(items: &[Item], index: usize) -> Option<&'static str> {
    let item = &items[index];
    match &item.name {
        Some(own) => {
            let naming = |name: &str| NAMING.iter().any(|known| name.eq_ignore_ascii_case(known));
            if naming(own) {
                return None;
            }
            items.iter().find_map(|other| match (&other.name, &other.value) {
                (Some(name), Value::Text(text)) if naming(name) && is_identifier(text) => {
                    by_name(text, &item.value)
                }
                _ => None,
            })
        }
        // The option goes with its value: alone it would take the next one.
        None => {
            let before = index.checked_sub(1).and_then(|before| option(&items[before].value));
            option(&item.value).or(before)
        }
    }
}

/// Why a text is an option that takes a credential.
fn option(value: &Value) -> Option<&'static str> {
    let Value::Text(option) = value else { return None };
    let name = option.strip_prefix('-').filter(|name| is_identifier(name))?;
    names::credential(name, false)
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
}

/// The parts of a text to leave out, so that the items at `paths` go and the others stay, with one
/// separator between each two.
pub(super) fn cuts(root: &Item, paths: &[&[usize]]) -> Vec<Range<usize>> {
    let (Value::Map(items) | Value::List(items)) = &root.value else { return Vec::new() };
    let gone = |index: usize| paths.iter().any(|path| *path == [index]);
    let mut cuts = Vec::new();
    let mut index = 0;
    while index < items.len() {
        if !gone(index) {
            let below: Vec<&[usize]> = paths
                .iter()
                .filter_map(|path| path.split_first().filter(|(first, _)| **first == index))
                .map(|(_, rest)| rest)
                .collect();
            cuts.extend(cuts_below(&items[index], &below));
            index += 1;
            continue;
        }
        let first = index;
        while index < items.len() && gone(index) {
            index += 1;
        }
        cuts.push(match (items.get(index), first.checked_sub(1)) {
            (Some(next), _) => items[first].at.start..next.at.start,
            (None, Some(before)) => items[before].at.end..items[index - 1].at.end,
            (None, None) => items[first].at.start..items[index - 1].at.end,
        });
    }
    cuts
}

fn cuts_below(item: &Item, paths: &[&[usize]]) -> Vec<Range<usize>> {
    if paths.is_empty() { Vec::new() } else { cuts(item, paths) }
}

/// `text` without some of its parts, which are in order.
pub(super) fn without(text: &str, cuts: &[Range<usize>]) -> Option<String> {
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    for cut in cuts {
        out.push_str(text.get(from..cut.start.max(from))?);
        from = cut.end.max(from);
    }
    out.push_str(text.get(from..)?);
    Some(out)
}
