//! `@pnpm`, `@yarn`, `@bun` and `@deno`: what they read beside npm's own configuration.

use toml::{Table, Value};

use super::npm::{self, expanded};
use super::url::rule_of;
use super::yaml::texts;
use super::{Configured, Group, line_of, text_of};

/// npm's user file is stronger than pnpm's own `rc`, both than what pnpm writes as YAML.
pub(super) fn pnpm(configured: &Configured<'_>) -> Group {
    let own = configured.config_home().join("pnpm");
    let mut group = npm::group_of(configured, vec![npm::user_file(configured), own.join("rc")]);
    let path = own.join("config.yaml");
    for text in texts(&text_of(&path).unwrap_or_default()) {
        let is_one = text.is_at(&["registry"]) || text.is_at(&["registries", "*"]);
        add(&mut group, is_one.then_some(&text.value), || line_of(&path, text.line));
    }
    group
}

/// Yarn from version 2 on has a YAML file, version 1 lines of `key "value"` and npm's files.
pub(super) fn yarn(configured: &Configured<'_>) -> Group {
    let mut group = Group::new();
    let variables = ["YARN_NPM_REGISTRY_SERVER", "YARN_REGISTRY"];
    let named = variables.iter().any(|name| configured.variable(name).is_some());
    for name in variables {
        add(&mut group, configured.variable(name), || name.to_owned());
    }
    let path = configured.home(".yarnrc.yml");
    for text in texts(&text_of(&path).unwrap_or_default()) {
        let is_one = text.is_at(&["npmRegistryServer"]) && !named
            || text.is_at(&["npmScopes", "*", "npmRegistryServer"]);
        let value = expanded(configured, &text.value);
        add(&mut group, is_one.then_some(&value), || line_of(&path, text.line));
    }
    let path = configured.home(".yarnrc");
    for (line, text) in (1..).zip(text_of(&path).unwrap_or_default().lines()) {
        let words = text.trim().split_once(char::is_whitespace);
        let (key, value) = words.map_or(("", ""), |(key, value)| (key, value.trim()));
        let bare = |text: &str| text.trim_matches(['"', '\'']).to_owned();
        let (key, value) = (bare(key), bare(value));
        let is_one =
            key == "registry" && !named || key.starts_with('@') && key.ends_with(":registry");
        add(&mut group, is_one.then_some(&value), || line_of(&path, line));
    }
    for (rule, place) in npm::group(configured) {
        group.entry(rule).or_insert(place);
    }
    group
}

/// Bun has a file of its own, and reads npm's.
pub(super) fn bun(configured: &Configured<'_>) -> Group {
    let mut group = Group::new();
    let by_variable = configured.variable("BUN_CONFIG_REGISTRY");
    add(&mut group, by_variable, || "BUN_CONFIG_REGISTRY".to_owned());
    let named = by_variable.is_some() || npm::by_variable(configured).is_some();
    let places = [configured.config_home().join(".bunfig.toml"), configured.home(".bunfig.toml")];
    let read = places.into_iter().find_map(|path| {
        let table: Table = text_of(&path)?.parse().ok()?;
        Some((table.get("install")?.as_table()?.clone(), path))
    });
    if let Some((install, path)) = read {
        let own = install.get("registry").filter(|_| !named).and_then(url_of);
        add(&mut group, own, || format!("{}, install.registry", path.display()));
        for (name, scope) in install.get("scopes").and_then(Value::as_table).into_iter().flatten() {
            let place = || format!("{}, install.scopes.{name}", path.display());
            add(&mut group, url_of(scope), place);
        }
    }
    for (rule, place) in npm::group_of(configured, vec![npm::user_file(configured)]) {
        group.entry(rule).or_insert(place);
    }
    group
}

/// Deno has npm's file for packages of npm, and a variable for those of its own registry.
pub(super) fn deno(configured: &Configured<'_>) -> Group {
    let mut group = npm::group_of(configured, vec![npm::user_file(configured)]);
    add(&mut group, configured.variable("JSR_URL"), || "JSR_URL".to_owned());
    group
}

/// A registry as `"URL"` or as `{ url = "URL", … }`.
fn url_of(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("url")?.as_str())
}

fn add(group: &mut Group, url: Option<impl AsRef<str>>, place: impl FnOnce() -> String) {
    if let Some(rule) = url.and_then(|url| rule_of(url.as_ref())) {
        group.entry(rule).or_insert_with(place);
    }
}
