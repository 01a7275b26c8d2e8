//! `@npm`: the registries of npm's user and global configuration, and those of scopes.

use std::path::PathBuf;

use h5i_policy::NetRule;

use super::ini::{Setting, settings};
use super::url::rule_of;
use super::{Configured, Group, line_of, text_of};

/// Its names: npm takes them in any case.
const REGISTRY: [&str; 2] = ["npm_config_registry", "NPM_CONFIG_REGISTRY"];

pub(super) fn group(configured: &Configured<'_>) -> Group {
    let mut files = vec![user_file(configured)];
    files.extend(global_files(configured, &files));
    group_of(configured, files)
}

/// The registries of npm's variables and of these files, strongest first.
pub(super) fn group_of(configured: &Configured<'_>, files: Vec<PathBuf>) -> Group {
    let mut group = Group::new();
    let read: Vec<(PathBuf, Vec<Setting>)> =
        files.into_iter().filter_map(|path| text_of(&path).map(|t| (path, settings(&t)))).collect();
    let in_files = || {
        read.iter().find_map(|(path, all)| {
            let own = all.iter().rfind(|setting| setting.key == "registry")?;
            Some((rule_of(&expanded(configured, &own.value)), line_of(path, own.line)))
        })
    };
    // Of one registry the strongest word holds: variables, the user's file, the host's.
    if let Some((Some(rule), place)) = by_variable(configured).or_else(in_files) {
        group.insert(rule, place);
    }
    for (path, all) in &read {
        let of_scope = |s: &&Setting| s.key.starts_with('@') && s.key.ends_with(":registry");
        for setting in all.iter().filter(of_scope) {
            if let Some(rule) = rule_of(&expanded(configured, &setting.value)) {
                group.entry(rule).or_insert_with(|| line_of(path, setting.line));
            }
        }
    }
    group
}

/// The registry that a variable names, if one does, and the variable.
pub(super) fn by_variable(configured: &Configured<'_>) -> Option<(Option<NetRule>, String)> {
    REGISTRY.into_iter().find_map(|name| {
        let rule = configured.variable(name).map(rule_of)?;
        Some((rule, name.to_owned()))
    })
}

pub(super) fn user_file(configured: &Configured<'_>) -> PathBuf {
    let named = ["npm_config_userconfig", "NPM_CONFIG_USERCONFIG"];
    let named = named.into_iter().find_map(|name| configured.variable(name));
    named.map_or_else(|| configured.home(".npmrc"), PathBuf::from)
}

/// The global file is below npm's prefix, which is above the directory of `node`, unless somebody
/// says otherwise; Debian's npm has it in `/etc`.
fn global_files(configured: &Configured<'_>, user: &[PathBuf]) -> Vec<PathBuf> {
    let named = ["npm_config_globalconfig", "NPM_CONFIG_GLOBALCONFIG"];
    if let Some(path) = named.into_iter().find_map(|name| configured.variable(name)) {
        return vec![PathBuf::from(path)];
    }
    let by_variable = ["npm_config_prefix", "NPM_CONFIG_PREFIX"];
    let by_variable = by_variable.into_iter().find_map(|name| configured.variable(name));
    let in_file = || {
        let text = user.iter().find_map(|path| text_of(path))?;
        let all = settings(&text);
        let own = all.iter().rfind(|setting| setting.key == "prefix")?;
        Some(PathBuf::from(expanded(configured, &own.value)))
    };
    let by_node = || {
        let dirs = configured.surroundings.path.iter();
        let node = dirs.map(|dir| dir.join("node")).find(|node| node.is_file())?;
        Some(node.parent()?.parent()?.to_owned())
    };
    let prefix = by_variable.map(PathBuf::from).or_else(in_file).or_else(by_node);
    prefix
        .into_iter()
        .map(|dir| dir.join("etc/npmrc"))
        .chain([configured.system("/etc/npmrc")])
        .collect()
}

/// With `${NAME}` replaced by the variable, where it is set.
pub(super) fn expanded(configured: &Configured<'_>, value: &str) -> String {
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, left)) = after.split_once('}') else { break };
        text.push_str(before);
        text.push_str(configured.variable(name.trim_end_matches('?')).unwrap_or_default());
        rest = left;
    }
    text.push_str(rest);
    text
}
