//! Runtimes that start without a login.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use h5i_broker::home::{Runtime, Tool, set_up};
use serde_json::{Value, json};

const REVERSE: Runtime<'_> = Runtime {
    workspace: "/work",
    host: "api.openai.com",
    base_url: Some("http://127.0.0.1:8080"),
    token_variable: "OPENAI_API_KEY",
};

#[test]
fn claude_has_finished_its_introduction_and_trusts_the_workspace() {
    let home = tempfile::tempdir().expect("a directory");
    let to = File::open(home.path()).expect("a home");
    for existing in [None, Some("no JSON"), Some(r#"{"projects": 1}"#)] {
        if let Some(text) = existing {
            fs::write(home.path().join(".claude.json"), text).expect("a file");
        }
        assert_eq!(set_up(&to, Tool::Claude, &REVERSE).expect("set up"), [".claude.json"]);
        let text = fs::read_to_string(home.path().join(".claude.json")).expect("a file");
        assert_eq!(
            serde_json::from_str::<Value>(&text).expect("JSON"),
            json!({"hasCompletedOnboarding": true, "projects": {"/work": {"hasTrustDialogAccepted": true}}})
        );
    }
    let own = r#"{"theme":"light","projects":{"/work":{"history":[1]},"/x":{}}}"#;
    fs::write(home.path().join(".claude.json"), own).expect("a file");
    set_up(&to, Tool::Claude, &REVERSE).expect("set up");
    let text = fs::read_to_string(home.path().join(".claude.json")).expect("a file");
    assert_eq!(
        serde_json::from_str::<Value>(&text).expect("JSON"),
        json!({
            "hasCompletedOnboarding": true,
            "theme": "light",
            "projects": {"/work": {"history": [1], "hasTrustDialogAccepted": true}, "/x": {}},
        })
    );
}

#[test]
fn codex_finds_the_broker_as_its_model_provider() {
    let home = tempfile::tempdir().expect("a directory");
    let to = File::open(home.path()).expect("a home");
    fs::create_dir(home.path().join(".codex")).expect("a directory");
    fs::write(home.path().join(".codex/config.toml"), "# mine\nmodel = \"m\"\n\n[tui]\nx = 1\n")
        .expect("a file");
    // Twice, as at the start of each session.
    for _ in 0..2 {
        assert_eq!(set_up(&to, Tool::Codex, &REVERSE).expect("set up"), [".codex/config.toml"]);
        let text = fs::read_to_string(home.path().join(".codex/config.toml")).expect("a file");
        assert!(text.starts_with("# mine\nmodel = \"m\"\n"), "{text}");
        assert_eq!(
            toml::from_str::<Value>(&text).expect("TOML"),
            json!({
                "model": "m",
                "model_provider": "h5i",
                "tui": {"x": 1},
                "projects": {"/work": {"trust_level": "trusted"}},
                "model_providers": {"h5i": {
                    "name": "OpenAI",
                    "base_url": "http://127.0.0.1:8080/v1",
                    "env_key": "OPENAI_API_KEY",
                    "wire_api": "responses",
                }},
            })
        );
    }
}

#[test]
fn codex_asks_chatgpt_at_paths_of_its_own() {
    let home = tempfile::tempdir().expect("a directory");
    let to = File::open(home.path()).expect("a home");
    let runtime = Runtime { host: "chatgpt.com", ..REVERSE };
    set_up(&to, Tool::Codex, &runtime).expect("set up");
    let text = fs::read_to_string(home.path().join(".codex/config.toml")).expect("a file");
    assert!(text.contains("\"http://127.0.0.1:8080/backend-api/codex\""), "{text}");
}

#[test]
fn codex_without_a_base_url_gets_a_key_that_is_none() {
    let home = tempfile::tempdir().expect("a directory");
    let to = File::open(home.path()).expect("a home");
    let runtime = Runtime { base_url: None, ..REVERSE };
    let files = set_up(&to, Tool::Codex, &runtime).expect("set up");
    assert_eq!(files, [".codex/config.toml", ".codex/auth.json"]);
    let login = home.path().join(".codex/auth.json");
    let text = fs::read_to_string(&login).expect("a file");
    let key = serde_json::from_str::<Value>(&text).expect("JSON")["OPENAI_API_KEY"].clone();
    assert_eq!(key, "the-key-stays-on-the-host");
    assert_eq!(fs::metadata(&login).expect("a file").permissions().mode() & 0o777, 0o600);
    // What the box logged in to by itself stays.
    fs::write(&login, "its own").expect("a file");
    assert_eq!(set_up(&to, Tool::Codex, &runtime).expect("set up"), [".codex/config.toml"]);
}

#[test]
fn what_a_box_left_in_the_way_leads_nowhere_else() {
    let scratch = tempfile::tempdir().expect("a directory");
    let (home, outside) = (scratch.path().join("home"), scratch.path().join("outside"));
    fs::create_dir(&home).expect("a home");
    fs::create_dir(&outside).expect("a directory");
    fs::write(outside.join("secret"), r#"{"canary":1}"#).expect("a file");
    symlink(outside.join("secret"), home.join(".claude.json")).expect("a link");
    symlink(&outside, home.join(".codex")).expect("a link");
    let to = File::open(&home).expect("a home");

    set_up(&to, Tool::Claude, &REVERSE).expect("set up");
    let text = fs::read_to_string(home.join(".claude.json")).expect("a file");
    assert!(text.contains("hasCompletedOnboarding") && !text.contains("canary"), "{text}");
    assert!(!home.join(".claude.json").is_symlink());
    assert_eq!(fs::read_to_string(outside.join("secret")).expect("a file"), r#"{"canary":1}"#);

    set_up(&to, Tool::Codex, &REVERSE).expect_err("a link in the way");
    assert_eq!(fs::read_dir(&outside).expect("a directory").count(), 1);
}
