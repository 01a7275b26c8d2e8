//! `@gem`: the sources of RubyGems' configuration and the mirrors of Bundler's.

use std::path::PathBuf;

use super::url::rule_of;
use super::yaml::{Text, texts};
use super::{Configured, Group, line_of, text_of};

/// How Bundler calls the mirror of a source: the rest of the name is the source.
const MIRROR: &str = "BUNDLE_MIRROR__";

pub(super) fn group(configured: &Configured<'_>) -> Group {
    let mut group = Group::new();
    let read: Vec<_> = gem_files(configured)
        .into_iter()
        .filter_map(|path| text_of(&path).map(|text| (path, texts(&text))))
        .collect();
    let is_source = |text: &&Text| text.is_at(&[":sources"]) || text.is_at(&["sources"]);
    // The last file that says it holds.
    if let Some((path, all)) = read.iter().rev().find(|(_, all)| all.iter().any(|t| is_source(&t)))
    {
        for text in all.iter().filter(is_source) {
            add(&mut group, &text.value, line_of(path, text.line));
        }
    }
    for (name, value) in configured.surroundings.variables() {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
        if name.starts_with(MIRROR) {
            add(&mut group, value, name.to_owned());
        }
    }
    let path = bundler_file(configured);
    for text in texts(&text_of(&path).unwrap_or_default()) {
        // Variables are stronger.
        if let [key] = &text.keys[..]
            && key.starts_with(MIRROR)
            && configured.variable(key).is_none()
        {
            add(&mut group, &text.value, line_of(&path, text.line));
        }
    }
    group
}

fn add(group: &mut Group, url: &str, place: String) {
    if let Some(rule) = rule_of(url) {
        group.entry(rule).or_insert(place);
    }
}

/// RubyGems' files, weakest first: the system's, the user's, those that a variable names.
fn gem_files(configured: &Configured<'_>) -> Vec<PathBuf> {
    let user = configured.home(".gemrc");
    let user = if user.is_file() { user } else { configured.config_home().join("gem/gemrc") };
    let named = configured.variable("GEMRC").unwrap_or_default();
    let named = named.split([':', ';']).filter(|path| !path.is_empty()).map(PathBuf::from);
    [configured.system("/etc/gemrc"), user].into_iter().chain(named).collect()
}

fn bundler_file(configured: &Configured<'_>) -> PathBuf {
    if let Some(path) = configured.variable("BUNDLE_USER_CONFIG") {
        return PathBuf::from(path);
    }
    let home = configured.variable("BUNDLE_USER_HOME").map(PathBuf::from);
    home.map_or_else(|| configured.home(".bundle/config"), |home| home.join("config"))
}
