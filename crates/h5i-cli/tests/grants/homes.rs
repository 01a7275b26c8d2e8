//! What a box's home begins with, and a login that stays on the host.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use serde_json::json;

use crate::service::{CANARY, Service};
use crate::stand::Stand;
use crate::with_grants::With;

/// Writes a file into the person's home.
fn at_home(stand: &Stand, path: &str, text: &str) {
    let path = stand.home().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Configuration of the person's with a credential in each file.
fn configure(stand: &Stand) {
    let settings = json!({ "model": "opus", "env": { "MY_API_KEY": CANARY, "EDITOR": "vi" } });
    at_home(stand, ".claude/settings.json", &settings.to_string());
    at_home(stand, ".claude/CLAUDE.md", "Be brief.\n");
    let state = json!({ "theme": "dark", "oauthAccount": { "accessToken": CANARY } });
    at_home(stand, ".claude.json", &state.to_string());
    let login = json!({ "claudeAiOauth": {
        "accessToken": CANARY, "refreshToken": CANARY, "expiresAt": 4_102_444_800_000_u64,
        "scopes": ["user:inference"], "subscriptionType": "max" } });
    at_home(stand, ".claude/.credentials.json", &login.to_string());
    let path = stand.home().join(".claude/.credentials.json");
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let git = format!(
        "[user]\n\tname = A Person\n[credential]\n\thelper = store\n[http]\n\textraHeader = \"Authorization: Bearer {CANARY}\"\n"
    );
    at_home(stand, ".gitconfig", &git);
}

#[test]
fn a_home_begins_with_what_the_policy_names_without_credentials() {
    let stand = Stand::new();
    configure(&stand);
    stand.user_policy("version = 1\n[profile.mine]\nseed = [\"claude\", \"git\"]\n");
    let made = stand.ok(&["box", "create", "a", "-p", "mine", "--json"]).json();
    let copied = made["data"]["home"]["copied"].as_array().unwrap().clone();
    let paths: Vec<_> = copied.iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert!(paths.contains(&".claude/settings.json") && paths.contains(&".gitconfig"), "{paths:?}");
    assert!(!paths.contains(&".claude/.credentials.json"), "{paths:?}");
    let seen = stand.sh("a", "cat ~/.claude/settings.json ~/.claude/CLAUDE.md ~/.claude.json; git config --global user.name");
    assert!(seen.contains("\"model\"") && seen.contains("EDITOR") && seen.contains("Be brief."));
    assert!(seen.contains("dark") && seen.ends_with("A Person"), "{seen}");
    // Nothing of it is a credential, and all of it is the box's own.
    let search =
        format!("grep -rlF {} ~; touch ~/.claude/settings.json && echo mine", &CANARY[3..]);
    assert_eq!(stand.sh("a", &search), "mine");
    let told = stand.ok(&["box", "explain", "a"]);
    assert!(
        told.text().contains("~/.claude/settings.json, without env.MY_API_KEY"),
        "{}",
        told.text()
    );
    assert!(!told.text().contains(&CANARY[3..]));
    let home = stand.box_dir("a").join("box/home");
    let owner = fs::metadata(&home).unwrap().uid();
    assert_eq!(fs::metadata(home.join(".claude")).unwrap().uid(), owner);
    // The twin: a box whose policy names nothing gets nothing.
    stand.ok(&["box", "create", "b"]);
    assert_eq!(stand.sh("b", "ls -A ~ | grep -c claude || true"), "0");
}

#[test]
fn a_repository_may_not_ask_for_the_persons_configuration() {
    let stand = Stand::new();
    configure(&stand);
    stand.repository_policy("version = 1\n[profile.default]\nseed = [\"claude\"]\n");
    let said = stand.h5i(&["box", "create", "a"]);
    assert!(said.code == 4 && said.err.contains("seed"), "{}", said.err);
}

#[test]
fn a_login_on_the_host_is_the_credential_of_the_agent_in_the_box() {
    let (stand, service) = (Stand::new(), Service::new());
    configure(&stand);
    let with = With::of(stand, service, &|port| {
        format!(
            "version = 1\n[profile.asks]\nextends = \"agent-claude\"\n\
             [profile.asks.grant.anthropic]\nhost = \"api.anthropic.com\"\nport = {port}\n\
             secret = \"login:claude\"\nmethods = [\"POST\"]\npaths = [\"/v1/messages\"]\n\
             via = \"reverse\"\nbase_url = \"ANTHROPIC_BASE_URL\"\ntoken = \"ANTHROPIC_AUTH_TOKEN\"\n"
        )
    });
    let ask = "curl -s -w ' %{http_code}' -H \"authorization: Bearer $ANTHROPIC_AUTH_TOKEN\" \
               -H 'anthropic-beta: mine-1' -d '{}' $ANTHROPIC_BASE_URL/v1/messages";
    assert_eq!(with.sh(ask), "/v1/messages 200");
    let asked = with.service.asked();
    let bearer = format!("Bearer {CANARY}");
    assert_eq!(asked[0].header("authorization"), Some(bearer.as_str()));
    let beta = asked[0].header("anthropic-beta").unwrap();
    assert!(beta.contains("mine-1") && beta.contains("oauth-2025-04-20"), "{beta}");
    // It starts without questions, and trusts its workspace.
    let state = with.sh("cat ~/.claude.json");
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    assert_eq!((&state["hasCompletedOnboarding"], &state["theme"]), (&true.into(), &"dark".into()));
    assert_eq!(state["projects"]["/work"]["hasTrustDialogAccepted"], true);
    let search = format!("env; grep -rlF {} ~ /run /etc 2>/dev/null; true", &CANARY[3..]);
    assert!(!with.sh(&search).contains(&CANARY[3..]));
}

#[test]
fn an_odd_file_in_the_home_stops_no_session() {
    let (stand, service) = (Stand::new(), Service::new());
    configure(&stand);
    let with = With::of(stand, service, &|_| {
        "version = 1\n[profile.asks]\nextends = \"agent-claude\"\n".to_owned()
    });
    with.sh("rm ~/.claude.json; mkdir ~/.claude.json");
    let said = with.ok(&["box", "run", "a", "--", "rmdir", "/home/box/.claude.json"]);
    assert!(said.err.contains(".claude.json"), "{}", said.err);
    let notes = with.records(&["note"]);
    assert!(notes[0]["text"].as_str().unwrap().contains("was not set up"), "{notes:?}");
    // The twin: once it is gone, the runtime is set up again.
    let state = with.sh("cat ~/.claude.json");
    assert!(state.contains("hasCompletedOnboarding"), "{state}");
}
