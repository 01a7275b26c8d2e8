//! Codex's login, as `codex-rs/login` of its public repository writes it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::refresh::{Answer, edited, literal};
use super::{Format, LoginError, LoginSource, Tokens, bearer};
use crate::credential::Credential;
use crate::json_spans::Node;
use crate::secret::Secret;

/// In its directory, `~/.codex`.
pub(super) const FILE: &str = "auth.json";
/// Where tokens of a ChatGPT login are taken; the API takes keys only.
pub(crate) const CHATGPT: &str = "chatgpt.com";
/// What Codex asks for there.
pub(super) const CHATGPT_PATHS: &str = "/backend-api/codex/**";
/// Says which of the person's accounts pays.
pub(super) const ACCOUNT: &str = "chatgpt-account-id";
/// Who Codex says it is: public, in its source.
const CLIENT: &str = "app_EMoamEEZ73f0CkXaXp7hrann";

pub(super) const FORMAT: Format = Format {
    program: "codex",
    url: "https://auth.openai.com/oauth/token",
    read,
    request,
    updated,
    locks,
};

fn string(text: &str, node: &Node, pointer: &str) -> Option<Zeroizing<String>> {
    node.pointed(text, pointer)?.string(text).filter(|found| !found.is_empty())
}

fn read(text: &str, node: &Node) -> Option<Tokens> {
    let secret =
        |pointer| string(text, node, pointer).map(|found| Secret::new(found.as_bytes().to_vec()));
    let access = secret("/tokens/access_token")?;
    let until = ends(access.expose());
    Some(Tokens {
        refresh: secret("/tokens/refresh_token"),
        until,
        account: string(text, node, "/tokens/account_id").map(|account| account.to_string()),
        scopes: Vec::new(),
        access,
    })
}

/// When a signed token ends by its own word. RFC 7519, section 4.1.4.
fn ends(token: &[u8]) -> Option<SystemTime> {
    let claims = token.split(|byte| *byte == b'.').nth(1)?;
    let claims = Zeroizing::new(BASE64URL_NOPAD.decode(claims).ok()?);
    let text = std::str::from_utf8(&claims).ok()?;
    let node = Node::parse(text)?;
    let seconds = text[node.pointed(text, "/exp")?.at.clone()].parse().ok()?;
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

fn request(refresh: &str, _: &Tokens) -> Value {
    json!({"client_id": CLIENT, "grant_type": "refresh_token", "refresh_token": refresh})
}

fn updated(text: &str, node: &Node, answer: &Answer, now: SystemTime) -> Option<Zeroizing<String>> {
    let mut changes = vec![("access_token", literal(&answer.access))];
    changes.extend(answer.refresh.as_ref().map(|token| ("refresh_token", literal(token))));
    changes.extend(answer.identity.as_ref().map(|token| ("id_token", literal(token))));
    let text = edited(text, node.pointed(text, "/tokens")?, &changes)?;
    let node = Node::parse(&text)?;
    edited(&text, &node, &[("last_refresh", Zeroizing::new(format!("\"{}\"", timestamp(now)?)))])
}

/// It takes none; it reads the file again when a renewal fails.
fn locks(_: &Path) -> Vec<PathBuf> {
    Vec::new()
}

/// The API key of the file or of the environment.
pub(super) fn key(source: &LoginSource) -> Result<Credential, LoginError> {
    let mut stored = None;
    let mut has_tokens = false;
    if let Some(file) = source.file()? {
        let (text, node) = source.parsed(&file)?;
        stored = string(text, &node, "/OPENAI_API_KEY");
        has_tokens = read(text, &node).is_some();
    }
    if source.host.as_str() == CHATGPT {
        return Err(match stored {
            Some(_) => LoginError::ApiKeyOnly,
            None => source.not_logged_in("CODEX_HOME"),
        });
    }
    let stored = stored.map(|key| Secret::new(key.as_bytes().to_vec()));
    let stored = stored.filter(|key| crate::source::is_header_part(key.expose()));
    let key = stored.or_else(|| source.variable("CODEX_API_KEY"));
    match key.or_else(|| source.variable("OPENAI_API_KEY")) {
        Some(key) => Ok(Credential {
            headers: vec![bearer(&key)],
            query: None,
            append: Vec::new(),
            secrets: vec![key],
            until: None,
        }),
        None if has_tokens => Err(LoginError::ChatGptOnly { host: source.host.clone() }),
        None => Err(source.not_logged_in("OPENAI_API_KEY")),
    }
}

/// RFC 3339, in seconds. Days are counted in years that begin in March, so that a leap day is the last.
fn timestamp(now: SystemTime) -> Option<String> {
    let seconds = i64::try_from(now.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()?;
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day + 2) / 153;
    let day = day - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::timestamp;

    #[test]
    fn a_time_is_written_as_rfc_3339_says() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(timestamp(time).as_deref(), Some(text));
        }
    }
}
