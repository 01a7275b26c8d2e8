//! Claude Code's login, as version 2.1 of its npm package writes it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::refresh::{Answer, edited, literal};
use super::{Format, LoginError, LoginSource, Tokens, bearer};
use crate::credential::Credential;
use crate::json_spans::{Kind, Node};
use crate::secret::Secret;

/// In its directory, `~/.claude`.
pub(super) const FILE: &str = ".credentials.json";
/// Without this the API does not take a login's token.
pub(super) const BETA: (&str, &str) = ("anthropic-beta", "oauth-2025-04-20");
/// Who Claude Code says it is: public, in its package.
const CLIENT: &str = "9d1c250a-e61b-44d9-88ed-5944d1962f5e";

pub(super) const FORMAT: Format = Format {
    program: "claude",
    url: "https://platform.claude.com/v1/oauth/token",
    read,
    request,
    updated,
    locks,
};

fn read(text: &str, node: &Node) -> Option<Tokens> {
    let string = |pointer: &str| {
        let found = node.pointed(text, pointer)?.string(text)?;
        (!found.is_empty()).then(|| Secret::new(found.as_bytes().to_vec()))
    };
    let until = node.pointed(text, "/claudeAiOauth/expiresAt");
    let until = until.and_then(|node| text[node.at.clone()].parse().ok());
    let scopes = match node.pointed(text, "/claudeAiOauth/scopes").map(|node| &node.kind) {
        Some(Kind::Array(items)) => items
            .iter()
            .filter_map(|item| item.string(text))
            .map(|scope| scope.to_string())
            .collect(),
        _ => Vec::new(),
    };
    Some(Tokens {
        access: string("/claudeAiOauth/accessToken")?,
        refresh: string("/claudeAiOauth/refreshToken"),
        until: until.and_then(|ms| UNIX_EPOCH.checked_add(Duration::from_millis(ms))),
        account: None,
        scopes,
    })
}

fn request(refresh: &str, tokens: &Tokens) -> Value {
    let mut request =
        json!({"grant_type": "refresh_token", "refresh_token": refresh, "client_id": CLIENT});
    if !tokens.scopes.is_empty() {
        request["scope"] = tokens.scopes.join(" ").into();
    }
    request
}

fn updated(text: &str, node: &Node, answer: &Answer, now: SystemTime) -> Option<Zeroizing<String>> {
    let login = node.pointed(text, "/claudeAiOauth")?;
    let mut changes = vec![("accessToken", literal(&answer.access))];
    changes.extend(answer.refresh.as_ref().map(|token| ("refreshToken", literal(token))));
    if let Some(lasts) = answer.lasts {
        let until = now.checked_add(lasts)?.duration_since(UNIX_EPOCH).ok()?;
        changes.push(("expiresAt", Zeroizing::new(until.as_millis().to_string())));
    }
    edited(text, login, &changes)
}

/// It makes these two directories before it renews a login, and touches them every five seconds.
fn locks(directory: &Path) -> Vec<PathBuf> {
    let mut beside = directory.as_os_str().to_owned();
    beside.push(".lock");
    vec![directory.join(".oauth_refresh.lock"), PathBuf::from(beside)]
}

/// Without a login file: a long-lived token, or a key.
pub(super) fn from_environment(source: &LoginSource) -> Result<Credential, LoginError> {
    if let Some(token) = source.variable("CLAUDE_CODE_OAUTH_TOKEN") {
        let append = vec![(BETA.0.to_owned(), BETA.1.to_owned())];
        return Ok(Credential {
            headers: vec![bearer(&token)],
            query: None,
            append,
            secrets: vec![token],
            until: None,
        });
    }
    let key = source.variable("ANTHROPIC_API_KEY");
    let key = key.ok_or_else(|| source.not_logged_in("ANTHROPIC_API_KEY"))?;
    let headers = vec![("x-api-key".to_owned(), key.clone())];
    Ok(Credential { headers, query: None, append: Vec::new(), secrets: vec![key], until: None })
}
