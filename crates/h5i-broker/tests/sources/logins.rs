use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use data_encoding::BASE64URL_NOPAD;
use h5i_broker::{Credentials as _, LoginError};

use super::support::{Home, headers, seconds, told};

const API: &str = "api.anthropic.com";

pub(crate) fn claude(until: u64) -> String {
    format!(
        r#"{{"mcpOAuth":{{"x":{{"accessToken":"other"}}}},
  "claudeAiOauth":{{"accessToken":"old-access","refreshToken":"old-refresh","expiresAt":{}, "scopes":["user:inference","user:profile"],"subscriptionType":"max"}} }}
"#,
        until * 1000
    )
}

pub(crate) fn jwt(until: u64) -> String {
    let claims = format!(r#"{{"sub":"someone","exp":{until}}}"#);
    format!("eyJhbGciOiJub25lIn0.{}.c2ln", BASE64URL_NOPAD.encode(claims.as_bytes()))
}

pub(crate) fn codex(until: u64) -> String {
    format!(
        r#"{{
  "OPENAI_API_KEY": null,
  "tokens": {{
    "id_token": "old-id",
    "access_token": "{}",
    "refresh_token": "old-refresh",
    "account_id": "acc-1"
  }},
  "last_refresh": "2026-01-01T00:00:00.123456Z"
}}"#,
        jwt(until)
    )
}

#[test]
fn a_login_of_claude_is_a_bearer_and_a_member_of_the_beta_list() {
    let home = Home::new();
    home.put(".claude/.credentials.json", &claude(seconds() + 3600));
    let credential = home.grant(API, "login:claude", None).current().expect("a credential");
    assert_eq!(headers(&credential), ["authorization: Bearer old-access"]);
    assert_eq!(credential.append, [("anthropic-beta".to_owned(), "oauth-2025-04-20".to_owned())]);
    assert!(credential.until.is_some());
    let secrets: Vec<&[u8]> = credential.secrets.iter().map(|secret| secret.expose()).collect();
    assert_eq!(secrets, [&b"old-access"[..], b"old-refresh"]);
    assert_eq!(home.endpoint.count(), 0);
}

#[test]
fn a_header_of_the_policys_own_is_used_instead() {
    let home = Home::new();
    home.put(".claude/.credentials.json", &claude(seconds() + 3600));
    let grant = home.grant("gateway.example.com", "login:claude", Some("x-token: {}"));
    let credential = grant.current().expect("a credential");
    assert_eq!(headers(&credential), ["x-token: old-access"]);
    assert!(credential.append.is_empty() && credential.secrets.len() == 2);
}

#[test]
fn without_a_file_a_variable_of_the_host_counts() {
    let mut home = Home::new();
    let error = home.grant(API, "login:claude", None).current().expect_err("no login");
    let text = told(&error);
    assert!(text.contains("run `claude` and log in, or set ANTHROPIC_API_KEY"), "{text}");

    home.variables.insert("ANTHROPIC_API_KEY", "sk-key".to_owned());
    let credential = home.grant(API, "login:claude", None).current().expect("a credential");
    assert_eq!(headers(&credential), ["x-api-key: sk-key"]);
    assert!(credential.append.is_empty());

    home.variables.insert("CLAUDE_CODE_OAUTH_TOKEN", "long-lived".to_owned());
    let credential = home.grant(API, "login:claude", None).current().expect("a credential");
    assert_eq!(headers(&credential), ["authorization: Bearer long-lived"]);
    assert_eq!(credential.append.len(), 1);
}

#[test]
fn a_directory_that_was_moved_is_found_by_its_variable() {
    let mut home = Home::new();
    home.put("moved/.credentials.json", &claude(seconds() + 3600));
    home.put("codex/auth.json", &codex(seconds() + 3600));
    home.variables.insert("CLAUDE_CONFIG_DIR", home.path("moved").display().to_string());
    home.variables.insert("CODEX_HOME", home.path("codex").display().to_string());
    home.grant(API, "login:claude", None).current().expect("a credential");
    home.grant("chatgpt.com", "login:codex", None).current().expect("a credential");
}

#[test]
fn a_key_of_codex_is_for_the_api_and_tokens_are_for_chatgpt() {
    let home = Home::new();
    home.put(".codex/auth.json", r#"{"OPENAI_API_KEY":"sk-key"}"#);
    let credential =
        home.grant("api.openai.com", "login:codex", None).current().expect("a credential");
    assert_eq!(headers(&credential), ["authorization: Bearer sk-key"]);
    let error = home.grant("chatgpt.com", "login:codex", None).current().expect_err("a key only");
    assert!(told(&error).contains("log in with ChatGPT"), "{}", told(&error));

    let until = seconds() + 3600;
    home.put(".codex/auth.json", &codex(until));
    let credential =
        home.grant("chatgpt.com", "login:codex", None).current().expect("a credential");
    let bearer = format!("authorization: Bearer {}", jwt(until));
    let own = [bearer.as_str(), "chatgpt-account-id: acc-1"];
    assert_eq!(headers(&credential), own);
    // A header of the grant's takes the place of none, in any spelling.
    let headers_beside = ["chatgpt_account_id: other", "chatgpt_account: 2"];
    let beside = home.placed("chatgpt.com", "login:codex", &headers_beside, None).current();
    let beside = beside.expect("a credential");
    assert_eq!(headers(&beside), [&own[..], &["chatgpt_account: 2"]].concat());
    let error =
        home.grant("api.openai.com", "login:codex", None).current().expect_err("tokens only");
    let text = told(&error);
    assert!(
        text.contains("host = \"chatgpt.com\"") && text.contains("/backend-api/codex/**"),
        "{text}"
    );
}

#[test]
fn without_a_login_of_codex_a_variable_of_the_host_counts() {
    let mut home = Home::new();
    let error = home.grant("api.openai.com", "login:codex", None).current().expect_err("no login");
    assert!(told(&error).contains("set OPENAI_API_KEY"), "{}", told(&error));
    home.variables.insert("OPENAI_API_KEY", "sk-variable".to_owned());
    let grant = home.grant("api.openai.com", "login:codex", None);
    let credential = grant.current().expect("a credential");
    assert_eq!(headers(&credential), ["authorization: Bearer sk-variable"]);
    assert!(grant.renewed(&credential).expect("an answer").is_none());
}

#[test]
fn a_login_file_that_is_none_is_refused_without_its_text() {
    let home = Home::new();
    for text in ["canary", r#"{"claudeAiOauth":{"accessToken":"canary\n2"}}"#] {
        home.put(".claude/.credentials.json", text);
        let error = home.grant(API, "login:claude", None).current().expect_err("no login");
        let text = told(&error);
        assert!(
            text.contains("run `claude` and log in again") && !text.contains("canary"),
            "{text}"
        );
    }
    let path = home.put(".claude/.credentials.json", &claude(seconds() + 3600));
    fs::set_permissions(path, fs::Permissions::from_mode(0o622)).expect("a mode");
    let error = home.grant(API, "login:claude", None).current().expect_err("others may write");
    assert!(told(&error).contains("chmod go-w"), "{}", told(&error));
}

#[test]
fn a_login_without_a_service_to_renew_it_says_so() {
    let home = Home::new();
    home.put(".claude/.credentials.json", &claude(seconds() - 1));
    let error = home.grant(API, "login:claude", None).current().expect_err("nobody is there");
    let h5i_broker::CredentialError::Login { error, .. } = error else { panic!("{error}") };
    assert!(matches!(error, LoginError::Unreachable(_)), "{error}");
}
