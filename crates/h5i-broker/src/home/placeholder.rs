//! What makes a runtime start as if it was logged in: it is told where the broker is, and asks
//! nothing.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toml_edit::{DocumentMut, Item, Table, value};

use super::Tool;
use super::beneath::{Found, Links, read, replace};
use crate::login::CHATGPT;

/// Where a runtime runs, and how it finds the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runtime<'a> {
    /// The directory in the box that the person trusts it with.
    pub workspace: &'a str,
    /// The host of the service that the grant is for: Codex asks at other paths where it is
    /// ChatGPT's.
    pub host: &'a str,
    /// The broker's base URL, without a path, where the runtime's configuration has to name it;
    /// without, the runtime speaks to its own service.
    pub base_url: Option<&'a str>,
    /// The variable with the run's token.
    pub token_variable: &'a str,
}

/// A file of a runtime that can't be set up.
#[derive(Debug, thiserror::Error)]
#[error("can't set up `{}` in the box's home", path.display())]
#[non_exhaustive]
pub struct SetUpError {
    /// The file, below the home.
    pub path: PathBuf,
    /// The failure.
    #[source]
    pub source: io::Error,
}

/// The name of the broker among Codex's model providers.
const PROVIDER: &str = "h5i";
/// Stands where a key is expected, and is none.
const NO_KEY: &str = "the-key-stays-on-the-host";

/// Sets up `tool` in the box's home `to`, and tells the files. What it says there of other things
/// stays, also what the box wrote; a file that can't be read as what it is, is made anew. Nothing is
/// read or written outside of `to`.
///
/// - Claude Code (2.1) has finished its introduction, and trusts the workspace. It takes the
///   broker's address and the token from `ANTHROPIC_BASE_URL` and `ANTHROPIC_AUTH_TOKEN`.
/// - Codex (0.171) trusts the workspace. It takes no address from the environment: with a base URL
///   its model provider is the broker, whose token is in the variable that is named; without one
///   its login file has a key that is none, where there is no login file.
///
/// # Errors
/// [`SetUpError`].
pub fn set_up(
    to: impl AsFd,
    tool: Tool,
    runtime: &Runtime<'_>,
) -> Result<Vec<&'static str>, SetUpError> {
    let mut files: Vec<(&'static str, Option<String>)> = Vec::new();
    let existing = |path: &'static str| {
        let text = match read(&to, Path::new(path), Links::Refused) {
            Ok(Found::Bytes(bytes)) => Some(String::from_utf8(bytes).unwrap_or_default()),
            Ok(_) => None,
            Err(source) => return Err(SetUpError { path: path.into(), source }),
        };
        Ok(text)
    };
    match tool {
        Tool::Claude => {
            let path = ".claude.json";
            files.push((path, Some(claude(existing(path)?.as_deref(), runtime))));
        }
        Tool::Codex => {
            let path = ".codex/config.toml";
            files.push((path, Some(codex(existing(path)?.as_deref(), runtime))));
            let path = ".codex/auth.json";
            let needed = runtime.base_url.is_none() && existing(path)?.is_none();
            let login = json!({"OPENAI_API_KEY": NO_KEY});
            files.push((path, needed.then(|| format!("{login:#}\n"))));
        }
        _ => {}
    }
    let mut written = Vec::new();
    for (path, text) in files {
        let Some(text) = text else { continue };
        replace(&to, Path::new(path), text.as_bytes())
            .map_err(|source| SetUpError { path: path.into(), source })?;
        written.push(path);
    }
    Ok(written)
}

fn claude(existing: Option<&str>, runtime: &Runtime<'_>) -> String {
    let mut state: Map<String, Value> =
        existing.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    state.insert("hasCompletedOnboarding".to_owned(), true.into());
    let projects = object(&mut state, "projects");
    if let Some(project) = projects.and_then(|projects| object(projects, runtime.workspace)) {
        project.insert("hasTrustDialogAccepted".to_owned(), true.into());
    }
    format!("{:#}\n", Value::Object(state))
}

/// The object of that name, or a new one in its place.
fn object<'a>(
    parent: &'a mut Map<String, Value>,
    name: &str,
) -> Option<&'a mut Map<String, Value>> {
    let member = parent.entry(name).or_insert_with(|| json!({}));
    if !member.is_object() {
        *member = json!({});
    }
    member.as_object_mut()
}

fn codex(existing: Option<&str>, runtime: &Runtime<'_>) -> String {
    let mut config: DocumentMut = existing.and_then(|text| text.parse().ok()).unwrap_or_default();
    let mut project = Table::new();
    project.insert("trust_level", value("trusted"));
    put(config.as_table_mut(), "projects", runtime.workspace, project);
    if let Some(url) = runtime.base_url {
        config.insert("model_provider", value(PROVIDER));
        let mut provider = Table::new();
        provider.insert("name", value("OpenAI"));
        provider.insert("base_url", value(format!("{url}{}", codex_root(runtime.host))));
        provider.insert("env_key", value(runtime.token_variable));
        provider.insert("wire_api", value("responses"));
        put(config.as_table_mut(), "model_providers", PROVIDER, provider);
    }
    config.to_string()
}

/// What Codex has in front of the paths that it asks for.
fn codex_root(host: &str) -> &'static str {
    if host == CHATGPT { "/backend-api/codex" } else { "/v1" }
}

/// Puts a table into the one that is called `name`, or into a new one in its place.
fn put(config: &mut Table, name: &str, key: &str, table: Table) {
    let mut holder = Table::new();
    // Not written itself as long as it only holds others.
    holder.set_implicit(true);
    let item = config.entry(name).or_insert_with(|| Item::Table(holder.clone()));
    if !item.is_table_like() {
        *item = Item::Table(holder);
    }
    if let Some(tables) = item.as_table_like_mut() {
        tables.insert(key, Item::Table(table));
    }
}
