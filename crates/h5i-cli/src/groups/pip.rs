//! `@pip`: the indexes and link pages of pip's configuration.

use std::path::PathBuf;

use super::ini::{Setting, settings};
use super::url::rule_of;
use super::{Configured, Group, line_of, text_of};

/// The key of a file and the variable that is stronger.
const KEYS: [(&str, &str); 3] = [
    ("index-url", "PIP_INDEX_URL"),
    ("extra-index-url", "PIP_EXTRA_INDEX_URL"),
    ("find-links", "PIP_FIND_LINKS"),
];

pub(super) fn group(configured: &Configured<'_>) -> Group {
    let mut group = Group::new();
    let read: Vec<(PathBuf, Vec<Setting>)> = files(configured)
        .into_iter()
        .filter_map(|path| text_of(&path).map(|text| (path, settings(&text))))
        .collect();
    for (key, variable) in KEYS {
        if let Some(value) = configured.variable(variable) {
            add(&mut group, value, variable);
            continue;
        }
        // The last file that says it holds; each of its sections is another command's.
        let said = |(_, all): &&(PathBuf, Vec<Setting>)| all.iter().any(|s| s.key == key);
        if let Some((path, all)) = read.iter().rev().find(said) {
            for setting in all.iter().filter(|setting| setting.key == key) {
                add(&mut group, &setting.value, &line_of(path, setting.line));
            }
        }
    }
    group
}

fn add(group: &mut Group, values: &str, place: &str) {
    for rule in values.split_whitespace().filter_map(rule_of) {
        group.entry(rule).or_insert_with(|| place.to_owned());
    }
}

/// Its files, weakest first.
fn files(configured: &Configured<'_>) -> Vec<PathBuf> {
    let mut files = vec![
        configured.system("/etc/xdg/pip/pip.conf"),
        configured.system("/etc/pip.conf"),
        configured.home(".pip/pip.conf"),
        configured.config_home().join("pip/pip.conf"),
    ];
    files.extend(configured.variable("VIRTUAL_ENV").map(|dir| PathBuf::from(dir).join("pip.conf")));
    match configured.variable("PIP_CONFIG_FILE") {
        // How a person has pip read none.
        Some("/dev/null") => return Vec::new(),
        Some(path) => files.push(PathBuf::from(path)),
        None => {}
    }
    files
}
