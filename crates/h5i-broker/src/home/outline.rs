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
        let named = pair_names(items);
        for (index, child) in items.iter().enumerate() {
            let name = child.name.clone().unwrap_or_else(|| index.to_string());
            self.path.push(index);
            let by_key = child.name.as_deref().and_then(contents::shape);
            // A name that is a credential itself is not told.
            self.place.push(if by_key.is_some() { "…".to_owned() } else { name });
            let kept = child.name.is_none() || self.keep.keeps(&self.place);
            let told = by_key
                .or_else(|| by_sibling(items, index, &named))
                .or_else(|| child.name.as_deref().and_then(|name| by_name(name, &child.value)))
                .or_else(|| {
                    by_content(child.name.as_deref().or(item.name.as_deref()), &child.value)
                })
                .or_else(|| (!kept).then_some(self.needless));
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

fn naming(name: &str) -> bool {
    NAMING.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// What the entries of a map are called by members of it.
fn pair_names(items: &[Item]) -> Vec<&str> {
    let called = items.iter().filter_map(|item| match (&item.name, &item.value) {
        (Some(name), Value::Text(text)) if naming(name) && is_identifier(text) => {
            Some(text.as_str())
        }
        _ => None,
    });
    called.take(NAMING.len()).collect()
}

/// Why a value is a credential by what stands beside it: the name of a pair, or the option before it
/// in a list of arguments.
fn by_sibling(items: &[Item], index: usize, named: &[&str]) -> Option<&'static str> {
    let item = &items[index];
    match &item.name {
        Some(own) if naming(own) => None,
        Some(_) => named.iter().find_map(|name| by_name(name, &item.value)),
        // The option goes with its value: alone it would take the next one.
        None => {
            let pair =
                |at: usize| user_and_password(&items.get(at)?.value, &items.get(at + 1)?.value);
            let before = |before: usize| option(&items[before].value).or_else(|| pair(before));
            option(&item.value)
                .or_else(|| pair(index))
                .or_else(|| index.checked_sub(1).and_then(before))
        }
    }
}

/// Why what follows an option is a user's name with a password: `-u`, then `name:password`.
fn user_and_password(option: &Value, value: &Value) -> Option<&'static str> {
    let (Value::Text(option), Value::Text(value)) = (option, value) else { return None };
    let takes = matches!(option.as_str(), "-u" | "--user" | "--proxy-user" | "-U");
    let password = contents::password_of(value);
    (takes && password.is_some_and(contents::is_value)).then_some("a password after a user's name")
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

/// The parts of a text to leave out, so that the items at `paths`, which are in order, go and the
/// others stay, with one separator between each two.
pub(super) fn cuts(root: &Item, paths: &[&[usize]]) -> Vec<Range<usize>> {
    let (Value::Map(items) | Value::List(items)) = &root.value else { return Vec::new() };
    let (mut cuts, mut paths) = (Vec::new(), paths);
    // The first of a row of items that go.
    let mut gone: Option<usize> = None;
    for (index, item) in items.iter().enumerate() {
        let own = paths.partition_point(|path| path.first() == Some(&index));
        let (here, later) = paths.split_at(own);
        paths = later;
        if here.iter().any(|path| path.len() == 1) {
            gone = gone.or(Some(index));
            continue;
        }
        if let Some(first) = gone.take() {
            cuts.push(items[first].at.start..item.at.start);
        }
        let below: Vec<&[usize]> = here.iter().map(|path| &path[1..]).collect();
        if !below.is_empty() {
            cuts.extend(self::cuts(item, &below));
        }
    }
    if let (Some(first), Some(last)) = (gone, items.last()) {
        let start = first.checked_sub(1).map_or(items[first].at.start, |kept| items[kept].at.end);
        cuts.push(start..last.at.end);
    }
    cuts
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

/// Numbers the lines of a text, from its beginning to its end.
pub(super) struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// The line of a place that is not before the last one.
    pub(super) fn at(&mut self, place: usize) -> usize {
        self.line += self.text.get(self.at..place).unwrap_or_default().matches('\n').count();
        self.at = place.max(self.at);
        self.line
    }
}
