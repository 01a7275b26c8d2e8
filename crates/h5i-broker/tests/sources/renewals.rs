use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::sync::{Arc, Barrier};
use std::thread;

use h5i_broker::{Credential, CredentialError, Credentials as _, LoginError};
use serde_json::Value;

use super::logins::{claude, codex, jwt};
use super::support::{Home, headers, seconds, told};

const API: &str = "api.anthropic.com";
const FRESH: &str =
    r#"{"access_token":"new-access","refresh_token":"new-refresh","expires_in":28800}"#;

fn login_error(result: Result<Arc<Credential>, CredentialError>) -> LoginError {
    match result.expect_err("a refusal") {
        CredentialError::Login { error, .. } => error,
        other => panic!("{other}"),
    }
}

#[test]
fn a_login_that_ends_is_renewed_before_it_is_used_and_written_back() {
    let home = Home::new();
    let now = seconds();
    let old = claude(now + 30);
    let path = home.put(".claude/.credentials.json", &old);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("a mode");
    home.endpoint.answer(|_| (200, FRESH.to_owned()));

    let grant = home.grant(API, "login:claude", None);
    let credential = grant.current().expect("a credential");
    assert_eq!(headers(&credential), ["authorization: Bearer new-access"]);
    let (url, kind, body) = home.endpoint.asked.lock().expect("a lock")[0].clone();
    assert_eq!(url, "https://platform.claude.com/v1/oauth/token");
    assert_eq!(kind, "application/json");
    let body: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(body["grant_type"], "refresh_token");
    assert_eq!(body["refresh_token"], "old-refresh");
    assert_eq!(body["scope"], "user:inference user:profile");

    let text = fs::read_to_string(&path).expect("the file");
    let written: Value = serde_json::from_str(&text).expect("JSON");
    let until = written["claudeAiOauth"]["expiresAt"].as_u64().expect("a time");
    assert!((now + 28800) * 1000 <= until && until <= (seconds() + 28801) * 1000, "{until}");
    // Everything else is as it was, byte for byte.
    let expected = old
        .replace("old-access", "new-access")
        .replace("old-refresh", "new-refresh")
        .replace(&((now + 30) * 1000).to_string(), &until.to_string());
    assert_eq!(text, expected);
    let found = fs::metadata(&path).expect("the file");
    assert_eq!((found.mode() & 0o7777, found.uid()), (0o640, rustix::process::geteuid().as_raw()));

    assert!(Arc::ptr_eq(&credential, &grant.current().expect("a credential")));
    assert_eq!(home.endpoint.count(), 1);
    assert_eq!(fs::read_dir(home.path(".claude")).expect("its directory").count(), 1);
}

#[test]
fn a_login_of_codex_is_renewed_and_written_back() {
    let home = Home::new();
    let (old, fresh) = (codex(seconds() + 30), jwt(seconds() + 3600));
    let path = home.put(".codex/auth.json", &old);
    let answer = format!(r#"{{"access_token":"{fresh}","id_token":"new-id"}}"#);
    home.endpoint.answer(move |_| (200, answer.clone()));

    let credential =
        home.grant("chatgpt.com", "login:codex", None).current().expect("a credential");
    let bearer = format!("authorization: Bearer {fresh}");
    assert_eq!(headers(&credential), [&bearer, "chatgpt-account-id: acc-1"]);
    let (url, _, body) = home.endpoint.asked.lock().expect("a lock")[0].clone();
    assert_eq!(url, "https://auth.openai.com/oauth/token");
    let body: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(body["refresh_token"], "old-refresh");

    let text = fs::read_to_string(&path).expect("the file");
    let written: Value = serde_json::from_str(&text).expect("JSON");
    let at = written["last_refresh"].as_str().expect("a time").to_owned();
    let known: Value = serde_json::from_str(&old).expect("JSON");
    let expected = old
        .replace(known["tokens"]["access_token"].as_str().expect("a token"), &fresh)
        .replace("old-id", "new-id")
        .replace("2026-01-01T00:00:00.123456Z", &at);
    assert_eq!(text, expected, "the refresh token stays where none is given");
}

#[test]
fn a_token_that_the_service_refuses_is_renewed_once_a_minute_at_most() {
    let home = Home::new();
    home.put(".claude/.credentials.json", &claude(seconds() + 3600));
    home.endpoint.answer(|_| (200, FRESH.to_owned()));
    let grant = home.grant(API, "login:claude", None);
    let first = grant.current().expect("a credential");
    let second = grant.renewed(&first).expect("an answer").expect("another");
    assert_eq!(headers(&second), ["authorization: Bearer new-access"]);
    assert!(grant.renewed(&second).expect("an answer").is_none());
    assert_eq!(home.endpoint.count(), 1);
    // Who comes with the old one gets what there is.
    let again = grant.renewed(&first).expect("an answer").expect("another");
    assert!(Arc::ptr_eq(&again, &second));
}

#[test]
fn a_login_that_is_refused_says_what_to_do_and_is_not_tried_again() {
    let home = Home::new();
    let path = home.put(".claude/.credentials.json", &claude(seconds() - 1));
    let before = fs::read_to_string(&path).expect("the file");
    home.endpoint.answer(|_| (400, r#"{"error":"invalid_grant","canary":"canary"}"#.to_owned()));
    let grant = home.grant(API, "login:claude", None);
    for _ in 0..3 {
        let error = grant.current().expect_err("it has ended");
        let text = told(&error);
        assert!(text.contains("run `claude` and log in again"), "{text}");
        assert!(!text.contains("canary") && !text.contains("refresh\""), "{text}");
    }
    assert_eq!(home.endpoint.count(), 1);
    assert_eq!(fs::read_to_string(&path).expect("the file"), before);
}

#[test]
fn a_service_in_trouble_does_not_end_a_login_that_still_holds() {
    let home = Home::new();
    home.put(".claude/.credentials.json", &claude(seconds() + 40));
    home.endpoint.answer(|_| (503, "canary".to_owned()));
    let credential = home.grant(API, "login:claude", None).current().expect("a credential");
    assert_eq!(headers(&credential), ["authorization: Bearer old-access"]);

    home.put(".claude/.credentials.json", &claude(seconds() - 1));
    let grant = home.grant(API, "login:claude", None);
    assert!(matches!(login_error(grant.current()), LoginError::Refused { status: 503 }));
    assert!(matches!(login_error(grant.current()), LoginError::TriedJustNow));
    home.endpoint.answer(|_| (200, "canary".to_owned()));
    let grant = home.grant(API, "login:claude", None);
    assert!(matches!(login_error(grant.current()), LoginError::Refused { status: 200 }));
}

#[test]
fn sessions_at_once_renew_a_login_once() {
    for (file, old, host, login, fresh) in [
        (".claude/.credentials.json", claude(seconds() - 1), API, "login:claude", "new".to_owned()),
        (
            ".codex/auth.json",
            codex(seconds() - 1),
            "chatgpt.com",
            "login:codex",
            jwt(seconds() + 99),
        ),
    ] {
        let home = Home::new();
        home.put(file, &old);
        let answer = format!(r#"{{"access_token":"{fresh}","expires_in":99}}"#);
        home.endpoint.answer(move |_| (200, answer.clone()));
        let ready = Arc::new(Barrier::new(6));
        let sessions: Vec<_> = (0..6)
            .map(|_| {
                let (grant, ready) = (home.grant(host, login, None), Arc::clone(&ready));
                thread::spawn(move || {
                    ready.wait();
                    headers(&grant.current().expect("a credential"))
                })
            })
            .collect();
        for session in sessions {
            let headers = session.join().expect("a session");
            assert_eq!(headers[0], format!("authorization: Bearer {fresh}"));
        }
        assert_eq!(home.endpoint.count(), 1, "{login}");
    }
}

#[test]
fn a_file_that_the_program_wrote_meanwhile_wins() {
    let home = Home::new();
    let path = home.put(".claude/.credentials.json", &claude(seconds() - 1));
    let theirs = claude(seconds() + 3600).replace("old-", "their-");
    let (write, text) = (path.clone(), theirs.clone());
    home.endpoint.answer(move |_| {
        fs::write(&write, &text).expect("the program writes");
        (200, FRESH.to_owned())
    });
    let credential = home.grant(API, "login:claude", None).current().expect("a credential");
    assert_eq!(headers(&credential), ["authorization: Bearer their-access"]);
    assert_eq!(fs::read_to_string(&path).expect("the file"), theirs);
}

#[test]
fn a_link_to_the_login_file_stays_one() {
    let home = Home::new();
    let path = home.put("dotfiles/login", &claude(seconds() - 1));
    fs::create_dir(home.path(".claude")).expect("a directory");
    symlink("../dotfiles/login", home.path(".claude/.credentials.json")).expect("a link");
    home.endpoint.answer(|_| (200, FRESH.to_owned()));
    home.grant(API, "login:claude", None).current().expect("a credential");
    assert!(fs::read_to_string(path).expect("the file").contains("new-access"));
    assert!(home.path(".claude/.credentials.json").is_symlink());
}

#[test]
fn a_login_that_could_not_be_written_back_is_not_renewed() {
    let home = Home::new();
    // A directory whose path is so long that no name of a new file fits, not even for root.
    let mut directory = home.path("long").display().to_string();
    while directory.len() < 4088 {
        directory.push('/');
        directory.push_str(&"d".repeat((4088 - directory.len()).min(200)));
    }
    let path = home.put(&format!("{directory}/a"), &claude(seconds() - 1));
    fs::create_dir(home.path(".claude")).expect("a directory");
    symlink(&path, home.path(".claude/.credentials.json")).expect("a link");
    home.endpoint.answer(|_| (200, FRESH.to_owned()));
    let error = login_error(home.grant(API, "login:claude", None).current());
    assert!(matches!(error, LoginError::Write { .. }), "{error}");
    assert_eq!(home.endpoint.count(), 0);
}
