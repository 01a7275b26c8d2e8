//! The built-in profiles, as they are.

use std::fmt::Write;

use crate::document::PolicyDocument;
use crate::host_facts::HostFacts;
use crate::layer::{Layer, Overrides};
use crate::resolve::{ResolveRequest, Resolved, WorkspaceContent, profile_names, resolve};
use crate::resolved::ResolvedPolicy;
use crate::{explain, unenforced};

fn resolved(profile: &str) -> Resolved {
    let workspace = match profile {
        "research" => WorkspaceContent::Empty,
        _ => WorkspaceContent::Private,
    };
    let request = ResolveRequest::new(profile).workspace(workspace);
    resolve(&[Layer::built_in()], &request, &HostFacts::new()).expect(profile)
}

fn each(line: impl Fn(&Resolved) -> String) -> String {
    let mut out = String::new();
    for profile in profile_names(&[Layer::built_in()]) {
        writeln!(out, "{profile:<13}{}", line(&resolved(&profile))).expect("a string");
    }
    out
}

#[test]
fn digests_of_built_in_profiles_change_only_on_purpose() {
    insta::assert_snapshot!(each(|resolved| resolved.policy.digest().to_string()), @r#"
    agent-claude sha256:ac7e9c5307133faa6211a104d768525717fd28a6034028122232e60c4c57f307
    agent-codex  sha256:8d18c4d33c1280579377688dcfffdf5383fffe16154d56b2af2786e10dedbf5b
    agent-local  sha256:b573aecfeea39efb65e6700318e4157bf1c94c05cdb410044fc0a473fe0c3379
    browser      sha256:5dd22bf204d1d12373365a6ad9d20ecfb3855fb540ee1c3079e6a50f0abe0f2a
    default      sha256:3bb759d1de7be138d9723de4f9b8253f693a6f29fbd6d7de00935f81c77872d2
    deploy       sha256:ba085085fc19cf1dfe268c9b341afef61904738a35352dc6cc7a2f928381228c
    research     sha256:fa57632b4b68b4d202787b8a300890cb21805a2dd606924a8d3dd586b180d501
    review       sha256:3e3cec9d209d1062ef47f149555ee44d9c3ec2f77d168cfb7190ee3c89799601
    "#);
}

#[test]
fn every_built_in_profile_can_be_had_today() {
    let fields = |resolved: &Resolved| match unenforced(&resolved.policy) {
        rows if rows.is_empty() => "can be had".to_owned(),
        rows => {
            let row = |row: &crate::Unenforced| format!("{} {}", row.field, row.asked);
            format!("refused for {}", rows.iter().map(row).collect::<Vec<_>>().join(", "))
        }
    };
    insta::assert_snapshot!(each(fields), @r#"
    agent-claude can be had
    agent-codex  can be had
    agent-local  can be had
    browser      can be had
    default      can be had
    deploy       can be had
    research     can be had
    review       can be had
    "#);
}

#[test]
fn every_budget_of_a_built_in_profile_that_can_be_enforced_is_finite() {
    for profile in profile_names(&[Layer::built_in()]) {
        let Resolved { policy, purpose, .. } = resolved(&profile);
        let limits = &policy.limits;
        assert!(limits.wall.is_some() && limits.cpu.is_some(), "{profile}");
        assert!(limits.processes.is_some() && limits.open_files.is_some(), "{profile}");
        assert!(limits.file_size.is_some() && limits.output.is_some(), "{profile}");
        for grant in policy.grants.values() {
            assert!(grant.requests.is_some() && grant.lasts.is_some(), "{profile}");
            assert!(grant.bytes_up.is_some() && grant.bytes_down.is_some(), "{profile}");
        }
        assert!(purpose.is_some(), "{profile}");
    }
}

#[test]
fn the_text_of_default_is_complete_and_legible() {
    insta::assert_snapshot!(resolved("default").policy.to_toml(), @r#"
    version = 1
    tier = "process"
    namespaces = "required"
    landlock = "required"
    debuggers = "refused"
    combine = "refused"
    history = "full"
    record_output = "off"
    seed = []
    expires = "none"

    [net]
    allow = []
    mode = "none"

    [net.budget]
    bytes = "64GiB"
    connections = 1000000
    connections_per_second = 5000

    [env]
    pass = ["LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ"]

    [env.set]

    [limits]
    cpu = "8h"
    disk = "20GiB"
    file_size = "8GiB"
    keep_free = "1GiB"
    memory = "8GiB"
    open_files = 16384
    output = "256MiB"
    processes = 1024
    session = "24h"
    wall = "2h"

    [grant]

    [export]
    binaries = []
    executables = "flag"
    max_file = "5MiB"
    max_files = 10000
    max_total = "256MiB"

    [react]
    budget = "continue"
    canary-read = "continue"
    gap = "continue"
    refused-call = "continue"
    refused-connect = "continue"

    [fs]
    canaries = []
    hide = []
    write = []

    [fs.read]
    "#);
}

#[test]
fn the_default_profile_in_plain_words() {
    let Resolved { policy, provenance, .. } = resolved("default");
    let lines: Vec<String> =
        explain(&policy, &provenance).iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    tier                     namespaces, a private root, Landlock, seccomp and limits  (built-in profile default)
    namespaces               all namespaces, or a refusal  (default)
    landlock                 the whole Landlock rule set, or a refusal  (default)
    debuggers                programs can't trace each other  (default)
    fs.write                 no path of the host is writable  (default)
    history                  every commit that the base is made of  (default)
    net.mode                 no network but the box's own loopback  (default)
    net.budget.bytes         bytes over the network: at most 64GiB  (built-in profile default)
    net.budget.connections   connections: at most 1000000  (built-in profile default)
    net.budget.connections_per_second connections that begin in a second: at most 5000  (built-in profile default)
    env.pass                 LANG, LC_ALL, LC_CTYPE, TERM, TZ passed on from the host  (built-in profile default)
    limits.wall              wall clock of a run: at most 2h  (built-in profile default)
    limits.session           wall clock of a session: at most 24h  (built-in profile default)
    limits.cpu               processor time of a run: at most 8h  (built-in profile default)
    limits.memory            memory of the session, measured every 10 ms to 2 s: at most 8GiB  (built-in profile default)
    limits.processes         processes at once: at most 1024  (built-in profile default)
    limits.open_files        open files of a process: at most 16384  (built-in profile default)
    limits.file_size         size of a file: at most 8GiB  (built-in profile default)
    limits.disk              workspace, home, records and temporary files together, 4KiB at least for each file: at most 20GiB  (built-in profile default)
    limits.keep_free         free space left to the host where the box writes: at least 1GiB  (built-in profile default)
    limits.output            output of a run: at most 256MiB  (built-in profile default)
    export.max_file          a changed file: at most 5MiB  (default)
    export.max_total         all changed files: at most 256MiB  (default)
    export.max_files         changed files: at most 10000  (default)
    export.executables       a file that becomes executable is named in the report  (default)
    react.refused-connect    recorded, then continue  (default)
    react.refused-call       recorded, then continue  (default)
    react.budget             recorded, then continue  (default)
    react.canary-read        recorded, then continue  (default)
    react.gap                recorded, then continue  (default)
    record_output            output of runs is not kept  (default)
    seed                     the box's home starts empty  (default)
    expires                  the box stays until it is removed  (default)
    ");
}

#[test]
fn a_grant_in_plain_words() {
    let Resolved { policy, provenance, .. } = resolved("agent-claude");
    let lines = explain(&policy, &provenance);
    let grant = lines.iter().find(|line| line.field.starts_with("grant")).expect("a grant");
    insta::assert_snapshot!(grant.to_string(), @r#"grant.anthropic          GET, POST /v1/messages, /v1/messages/**, /v1/models, /v1/models/** of api.anthropic.com:443 by reverse, secret login:claude, requests at most 10000, up at most 4GiB, down at most 4GiB, for 8h  (built-in profile agent-claude)"#);
    let mut policy = policy;
    let git = policy.grants.get_mut("anthropic").expect("a grant");
    let pattern = "refs/heads/agent/**".parse().expect("a pattern");
    git.git = crate::GitUse::Push([pattern].into());
    let lines = explain(&policy, &provenance);
    let grant = lines.iter().find(|line| line.field.starts_with("grant")).expect("a grant");
    assert!(grant.text.contains(", for git to fetch and push to refs/heads/agent/**, secret"));
}

#[test]
fn where_a_secret_goes_and_which_programs_are_meant_in_plain_words() {
    let document = "version = 1\n[profile.p.grant.g]\nhost = \"a.example\"\nsecret = \"env:T\"\n\
                    header = [\"x-key: {}\", \"a-version: 2024-01\"]\nquery = \"key\"\n\
                    methods = \"any\"\npaths = \"any\"\nvia = \"intercept\"\n\
                    programs = [\"/usr/bin/curl\", \"git\"]";
    let document = PolicyDocument::parse("policy.toml", document.as_bytes()).expect("a document");
    let layers = [Layer::built_in(), Layer::user(document)];
    let Resolved { policy, provenance, .. } =
        resolve(&layers, &ResolveRequest::new("p"), &HostFacts::new()).expect("resolved");
    let lines = explain(&policy, &provenance);
    let grant = lines.iter().find(|line| line.field == "grant.g").expect("a grant");
    insta::assert_snapshot!(grant.text, @"any any of a.example:443 by intercept, secret env:T, in header x-key, in the query as key=, which services write in their logs: take a header if this one has one, always with header a-version: 2024-01, by programs /usr/bin/curl, git (any file of this name in the box)");
    let text = policy.to_toml();
    let (_, grant) = text.split_once("[grant.g]\n").expect("a grant");
    let lines: Vec<&str> =
        grant.lines().filter(|l| l.starts_with("header") || l.starts_with("query")).collect();
    assert_eq!(lines, ["header = [\"a-version: 2024-01\", \"x-key: {}\"]", "query = \"key\""]);
}

#[test]
fn a_policy_that_was_frozen_before_grants_had_a_query_is_read_as_it_was() {
    let policy = resolved("agent-claude").policy;
    let json = policy.canonical_json();
    assert!(json.contains("\"header\":\"none\"") && !json.contains("query"), "{json}");
    let again = ResolvedPolicy::from_canonical_json(json.as_bytes(), policy.digest());
    assert_eq!(again.expect("as it was"), policy);
}

#[test]
fn an_allowlist_over_the_default_profile_is_refused_with_the_tier_that_has_it() {
    let overrides = Overrides::new().allow("registry.example").expect("rule");
    let request = ResolveRequest::new("default").overrides(overrides);
    let resolved = resolve(&[Layer::built_in()], &request, &HostFacts::new()).expect("resolved");
    let rows = unenforced(&resolved.policy);
    assert_eq!(rows.len(), 1);
    insta::assert_snapshot!(format!("{}; {}", rows[0], rows[0].instead), @r#"net.mode = "allow" needs a network that the host filters, which only tier supervised and stronger have; choose --tier supervised, or net.mode "none" or "host""#);
}
