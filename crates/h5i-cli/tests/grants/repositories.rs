//! Git in a box, as it is, by grants that are for git.

use std::sync::Arc;

use h5i_testkit::GitService;

use crate::service::{CANARY, Service};
use crate::stand::Stand;
use crate::with_grants::With;

const MAIN: &str = "refs/heads/main";
const AGENT: &str = "refs/heads/agent";

/// A box with a grant for a repository, and the repository; `git` says what git may do there.
fn repository(git: &str) -> (With, Arc<GitService>) {
    let repository = Arc::new(GitService::new());
    let document = |port| {
        format!(
            "version = 1\n[profile.asks]\ntier = \"supervised\"\n\
             [profile.asks.grant.code]\nhost = \"api.test\"\nport = {port}\n\
             secret = \"env:API_KEY\"\nheader = \"authorization: Bearer {{}}\"\n\
             via = \"intercept\"\npaths = [\"/repo.git\"]\n{git}\n"
        )
    };
    let service = Service::with_repository(&repository);
    (With::of(Stand::new(), service, &document), repository)
}

/// Clones, makes a commit, and pushes it to each of these.
fn script(with: &With, pushes: &[&str]) -> String {
    let commit = "git -c user.name=A -c user.email=a@example.com commit -q --allow-empty -m More";
    let mut script = format!(
        "export LC_ALL=C; git clone -q https://api.test:{}/repo.git clone && cd clone && cat a && \
         {commit} && git rev-parse HEAD",
        with.service.port
    );
    for push in pushes {
        script += &format!("; git push -q origin {push} 2>&1 && echo pushed || echo refused");
    }
    script
}

#[test]
fn git_clones_by_a_grant_to_fetch_and_is_told_that_it_may_not_push() {
    let (with, repository) = repository("git = \"fetch\"");
    let main = repository.tip(MAIN);
    let script = script(&with, &["HEAD:main"]);
    let said = with.ok(&["box", "run", "a", "--", "sh", "-c", &script]);
    let out = String::from_utf8(said.out).unwrap();
    assert!(out.starts_with("one\n"), "{out}");
    let sentence = "remote: h5i refused this request to the grant code: it would push; the grant \
                    lets git fetch.\n";
    assert!(out.contains(sentence) && out.contains("error: 403"), "{out}");
    assert!(out.ends_with("refused\n"), "{out}");
    assert_eq!(repository.tip(MAIN), main);
    let asked = with.service.asked();
    assert!(!asked.is_empty() && !asked.iter().any(|one| one.line.contains("receive-pack")));
    let key = format!("Bearer {CANARY}");
    assert!(asked.iter().all(|one| one.header("authorization") == Some(&key)), "{asked:?}");
    // What a person is told.
    let told = "refused  grant code: GET /repo.git/info/refs git-receive-pack by ";
    assert!(said.err.contains(told) && said.err.contains("git may not do this"), "{}", said.err);
    let refused = with.records(&["grant-refused"]);
    assert_eq!(refused[0]["reason"], "git may not do this");
}

#[test]
fn who_wants_git_over_ssh_is_told_of_https() {
    let (with, _repository) = repository("git = \"fetch\"");
    let told = "connection api.test:22 ×1 by /usr/bin/bash: no rule lists it; allow at create: --allow api.test:22; \
                git over SSH needs a key; a grant for https does not: git remote set-url origin \
                https://…\n";
    for (port, ssh) in [(22, true), (23, false)] {
        let script = format!("(: < /dev/tcp/api.test/{port}) 2>/dev/null || echo refused");
        let said = with.ok(&["box", "run", "a", "--", "bash", "-c", &script]);
        assert_eq!(String::from_utf8_lossy(&said.out), "refused\n");
        assert!(
            said.err.contains(&format!("connection api.test:{port} ×1 by /usr/bin/bash")),
            "{}",
            said.err
        );
        assert_eq!(said.err.contains(told), ssh, "{}", said.err);
    }
}

#[test]
fn git_pushes_to_the_branch_that_a_grant_lists_and_to_no_other() {
    let (with, repository) = repository(&format!("git.push = [\"{AGENT}\"]"));
    let main = repository.tip(MAIN);
    let out = with.sh(&script(
        &with,
        &["HEAD:main", "HEAD:main HEAD:agent", "HEAD:agent", ":agent", "HEAD:agents"],
    ));
    let lines: Vec<&str> = out.lines().collect();
    let ends = |line: &&&str| matches!(**line, "pushed" | "refused");
    let ends: Vec<&str> = lines.iter().filter(ends).copied().collect();
    assert_eq!(ends, ["refused", "refused", "pushed", "refused", "refused"], "{out}");
    assert_eq!(repository.tip(AGENT).as_deref(), Some(lines[1]), "{out}");
    assert_eq!(repository.tip(MAIN), main);
    assert_eq!(repository.tip("refs/heads/agents"), None);
    let posted = |one: &&crate::service::Asked| one.line.starts_with("POST /repo.git/git-receive");
    assert_eq!(with.service.asked().iter().filter(posted).count(), 1);
    let used = with.records(&["grant-use"]);
    let pushes: Vec<_> = used.iter().filter(|record| record["method"] == "POST").collect();
    let path = "/repo.git/git-receive-pack refs/heads/agent";
    assert!(pushes.iter().any(|record| record["path"] == path), "{pushes:?}");
    let shown = with.ok(&["grant", "show", "a", "code"]);
    let shown = shown.text();
    assert!(shown.contains("git may    fetch and push to refs/heads/agent\n"), "{shown}");
}
