//! `@uv`: the indexes, link pages and Python mirrors of uv's configuration.

use std::path::PathBuf;

use toml::{Table, Value};

use super::url::rule_of;
use super::{Configured, Group, text_of};

/// Of each the strongest word holds: the variables, then the user's file, then the system's.
const ONE: [(&[&str], &str); 3] = [
    (&["UV_DEFAULT_INDEX", "UV_INDEX_URL"], "index-url"),
    (&["UV_PYTHON_INSTALL_MIRROR"], "python-install-mirror"),
    (&["UV_PYPY_INSTALL_MIRROR"], "pypy-install-mirror"),
];
/// Of these all hold.
const MORE: [(&[&str], &str); 2] =
    [(&["UV_INDEX", "UV_EXTRA_INDEX_URL"], "extra-index-url"), (&["UV_FIND_LINKS"], "find-links")];

pub(super) fn group(configured: &Configured<'_>) -> Group {
    let mut group = Group::new();
    let read: Vec<(PathBuf, Table)> = files(configured)
        .into_iter()
        .filter_map(|path| Some((text_of(&path)?.parse().ok()?, path)))
        .map(|(table, path)| (path, table))
        .collect();
    for (variables, key) in ONE {
        let by_variable = variables
            .iter()
            .find_map(|name| Some((configured.variable(name)?.to_owned(), (*name).to_owned())));
        let in_files = || {
            read.iter().find_map(|(path, table)| {
                let value = table.get(key).and_then(Value::as_str)?;
                Some((value.to_owned(), format!("{}, {key}", path.display())))
            })
        };
        if let Some((value, place)) = by_variable.or_else(in_files) {
            add(&mut group, &value, &place);
        }
    }
    for (variables, key) in MORE {
        for name in variables {
            add(&mut group, configured.variable(name).unwrap_or_default(), name);
        }
        for (path, table) in &read {
            for value in texts(table.get(key)) {
                add(&mut group, value, &format!("{}, {key}", path.display()));
            }
        }
    }
    for (path, table) in &read {
        let place = format!("{}, index", path.display());
        let indexes = table.get("index").and_then(Value::as_array).into_iter().flatten();
        for url in indexes.filter_map(|index| index.get("url")?.as_str()) {
            add(&mut group, url, &place);
        }
        // `uv pip` has a table of its own over the others.
        for key in ["index-url", "extra-index-url", "find-links"] {
            for value in texts(table.get("pip").and_then(|pip| pip.get(key))) {
                add(&mut group, value, &format!("{}, pip.{key}", path.display()));
            }
        }
    }
    group
}

/// Adds the URLs of a value; a variable may have several, each with a name before it.
fn add(group: &mut Group, values: &str, place: &str) {
    for value in values.split([' ', ',', '\n', '\t']) {
        let url = match value.split_once('=') {
            Some((name, url)) if !name.contains(':') => url,
            _ => value,
        };
        if let Some(rule) = rule_of(url) {
            group.entry(rule).or_insert_with(|| place.to_owned());
        }
    }
}

/// A text, or the texts of a list.
fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let (one, all) = (value.and_then(Value::as_str), value.and_then(Value::as_array));
    one.into_iter().chain(all.into_iter().flatten().filter_map(Value::as_str))
}

/// Its files, strongest first. Of the system's only the first that is there is read.
fn files(configured: &Configured<'_>) -> Vec<PathBuf> {
    if configured.variable("UV_NO_CONFIG").is_some_and(|value| !matches!(value, "0" | "false")) {
        return Vec::new();
    }
    if let Some(path) = configured.variable("UV_CONFIG_FILE") {
        return vec![PathBuf::from(path)];
    }
    let system = ["/etc/xdg/uv/uv.toml", "/etc/uv/uv.toml"].map(|path| configured.system(path));
    let system = system.into_iter().find(|path| path.is_file());
    [configured.config_home().join("uv/uv.toml")].into_iter().chain(system).collect()
}
