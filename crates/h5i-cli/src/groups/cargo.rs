//! `@cargo`: the registries of Cargo's configuration, and where they keep their crates.

use std::fs;
use std::path::{Path, PathBuf};

use h5i_policy::{NetRule, NetTarget};
use toml::{Table, Value};

use super::url::rule_of;
use super::{Configured, Group, text_of};

/// The longest chain of sources that replace each other.
const DEEPEST: usize = 16;

pub(super) fn group(configured: &Configured<'_>) -> Group {
    let home = configured.surroundings.absolute("CARGO_HOME");
    let home = home.map_or_else(|| configured.home(".cargo"), Path::to_owned);
    let mut group = Group::new();
    if let Some((path, table)) = configuration(&home) {
        let mut add = |url: Option<&Value>, key: &str| {
            if let Some(rule) = url.and_then(Value::as_str).and_then(rule_of) {
                group.entry(rule).or_insert_with(|| format!("{}, {key}", path.display()));
            }
        };
        if let Some((name, source)) = source_of_crates(&table) {
            for key in ["registry", "git"] {
                add(source.get(key), &format!("source.{name}.{key}"));
            }
        }
        for (name, registry) in
            table.get("registries").and_then(Value::as_table).into_iter().flatten()
        {
            add(registry.get("index"), &format!("registries.{name}.index"));
        }
    }
    for (name, value) in configured.surroundings.variables() {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
        let is_index = name.starts_with("CARGO_REGISTRIES_") && name.ends_with("_INDEX");
        if let Some(rule) = is_index.then(|| rule_of(value)).flatten() {
            group.entry(rule).or_insert_with(|| name.to_owned());
        }
    }
    let indexes: Vec<NetRule> = group.keys().cloned().collect();
    for index in indexes {
        for (rule, place) in downloads(&home, &index) {
            group.entry(rule).or_insert(place);
        }
    }
    group
}

/// `config.toml`, or the older name, which Cargo prefers where both are there.
fn configuration(home: &Path) -> Option<(PathBuf, Table)> {
    ["config", "config.toml"].into_iter().find_map(|name| {
        let path = home.join(name);
        let table = text_of(&path)?.parse().ok()?;
        Some((path, table))
    })
}

/// What stands for Cargo's own registry in the end, if something does.
fn source_of_crates(table: &Table) -> Option<(String, &Table)> {
    let sources = table.get("source")?.as_table()?;
    let mut name = "crates-io";
    for _ in 0..DEEPEST {
        let source = sources.get(name)?.as_table()?;
        match source.get("replace-with").and_then(Value::as_str) {
            Some(next) => name = next,
            None => return Some((name.to_owned(), source)),
        }
    }
    None
}

/// An index says in its `config.json` where its crates are; Cargo keeps what it has seen of it.
fn downloads(home: &Path, index: &NetRule) -> Vec<(NetRule, String)> {
    let NetTarget::Name(host) = index.target() else { return Vec::new() };
    let cached = home.join("registry/index");
    let Ok(entries) = fs::read_dir(&cached) else { return Vec::new() };
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name();
            // `HOST-HASH`.
            let (own, _hash) = name.to_str()?.rsplit_once('-')?;
            let path = entry.path().join("config.json");
            let text = (own == host.as_str()).then(|| text_of(&path)).flatten()?;
            let config: serde_json::Value = serde_json::from_str(&text).ok()?;
            Some((rule_of(config.get("dl")?.as_str()?)?, path.display().to_string()))
        })
        .collect()
}
