//! `@go`: the module proxies and the checksum database of Go's configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::url::rule_of;
use super::{Configured, Group, line_of, text_of};

pub(super) fn group(configured: &Configured<'_>) -> Group {
    let mut group = Group::new();
    let file = configured
        .variable("GOENV")
        .map_or_else(|| configured.config_home().join("go/env"), PathBuf::from);
    let text = text_of(&file).unwrap_or_default();
    let written: BTreeMap<&str, (usize, &str)> = (1..)
        .zip(text.lines())
        .filter_map(|(line, text)| {
            let (name, value) = text.split_once('=')?;
            Some((name.trim(), (line, value.trim())))
        })
        .collect();
    // Variables are stronger than `go env -w`.
    let value = |name: &str| match (configured.variable(name), written.get(name)) {
        (Some(value), _) => Some((value.to_owned(), name.to_owned())),
        (None, Some((line, value))) => Some(((*value).to_owned(), line_of(&file, *line))),
        (None, None) => None,
    };
    if let Some((proxies, place)) = value("GOPROXY") {
        // `direct` and `off` are no URLs.
        for rule in proxies.split([',', '|']).filter_map(rule_of) {
            group.entry(rule).or_insert_with(|| place.clone());
        }
    }
    if let Some((database, place)) = value("GOSUMDB").filter(|(value, _)| value != "off") {
        // `NAME[+KEY] [URL]`: without a URL the name is the host.
        let mut words = database.split_whitespace();
        let name = words.next().and_then(|word| word.split('+').next()).unwrap_or_default();
        let url = words.next().map_or_else(|| format!("https://{name}"), str::to_owned);
        if let Some(rule) = rule_of(&url) {
            group.entry(rule).or_insert(place);
        }
    }
    group
}
