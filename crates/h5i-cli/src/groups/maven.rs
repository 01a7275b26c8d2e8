//! `@maven`: the mirrors and repositories of Maven's settings.

use std::path::{Path, PathBuf};

use roxmltree::{Document, Node};

use super::url::rule_of;
use super::{Configured, Group, line_of, text_of};

pub(super) fn group(configured: &Configured<'_>) -> Group {
    let mut group = Group::new();
    for path in files(configured) {
        let text = text_of(&path).unwrap_or_default();
        // What is no XML is for Maven to complain of.
        let Ok(document) = Document::parse(&text) else { continue };
        for (url, line) in urls(&document) {
            if let Some(rule) = rule_of(&expanded(configured, url)) {
                group.entry(rule).or_insert_with(|| line_of(&path, line));
            }
        }
    }
    group
}

/// The URLs of mirrors and repositories, each with its line. A mirror that is blocked leads nowhere.
fn urls<'a>(document: &'a Document<'_>) -> Vec<(&'a str, usize)> {
    let named = |name: &'static str| move |node: &Node<'_, '_>| node.tag_name().name() == name;
    let is_source = |node: &Node<'_, '_>| {
        let blocked = node.children().find(named("blocked")).and_then(|n| n.text());
        matches!(node.tag_name().name(), "mirror" | "repository" | "pluginRepository")
            && blocked.map(str::trim) != Some("true")
    };
    let urls = document.descendants().filter(is_source).filter_map(|source| {
        let url = source.children().find(named("url"))?;
        let line = document.text_pos_at(url.range().start).row;
        Some((url.text()?.trim(), usize::try_from(line).ok()?))
    });
    urls.collect()
}

/// With `${env.NAME}` replaced by the variable, where it is set.
fn expanded(configured: &Configured<'_>, value: &str) -> String {
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${env.") {
        let Some((name, left)) = after.split_once('}') else { break };
        text.push_str(before);
        text.push_str(configured.variable(name).unwrap_or_default());
        rest = left;
    }
    text.push_str(rest);
    text
}

/// The user's settings, and those of the installation: where a variable says it is, or beside `mvn`,
/// or where Debian has them.
fn files(configured: &Configured<'_>) -> Vec<PathBuf> {
    let named = ["MAVEN_HOME", "M2_HOME"].into_iter().find_map(|name| configured.variable(name));
    let beside = || {
        let dirs = configured.surroundings.path.iter();
        let program = dirs.map(|dir| dir.join("mvn")).find(|mvn| mvn.is_file())?;
        Some(program.parent()?.parent()?.to_owned())
    };
    let home = named.map(PathBuf::from).or_else(beside);
    let installed = home.as_deref().map(|home: &Path| home.join("conf/settings.xml"));
    [configured.home(".m2/settings.xml")]
        .into_iter()
        .chain(installed)
        .chain([configured.system("/etc/maven/settings.xml")])
        .collect()
}
