mod grants;
mod network;

use std::collections::{BTreeMap, BTreeSet};

use super::{Conflict, ResolveError, ResolveRequest, Resolved, WorkspaceContent, resolve};
use crate::document::PolicyDocument;
use crate::document::error::DocumentErrorKind as Kind;
use crate::history::History;
use crate::host_facts::HostFacts;
use crate::host_path::HostPath;
use crate::layer::{Layer, Overrides, Trust};
use crate::resolved::{GrantOrigin, NetMode, ReadGrant};
use crate::tier::Tier;
use crate::units::Millis;

fn document(name: &str, text: &str) -> PolicyDocument {
    let text = format!("version = 1\n{text}");
    PolicyDocument::parse(name, text.as_bytes())
        .unwrap_or_else(|error| panic!("{}", error.render()))
}

fn user(text: &str) -> Layer {
    Layer::user(document("policy.toml", text))
}

fn repository(text: &str) -> Layer {
    Layer::repository(document("repository", text), Trust::TightenOnly)
}

fn attempt(layers: Vec<Layer>, request: &ResolveRequest) -> Result<Resolved, ResolveError> {
    let mut all = vec![Layer::built_in()];
    all.extend(layers);
    resolve(&all, request, &HostFacts::new())
}

fn resolved(layers: Vec<Layer>, profile: &str) -> Resolved {
    attempt(layers, &ResolveRequest::new(profile)).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(layers: Vec<Layer>, profile: &str) -> String {
    let error = attempt(layers, &ResolveRequest::new(profile)).expect_err(profile);
    match error {
        ResolveError::Document(error) => error.render(),
        other => format!("{other}\n{}", other.hint().unwrap_or_default()),
    }
}

fn rules(resolved: &Resolved) -> Vec<String> {
    resolved.policy.net.allow.iter().map(ToString::to_string).collect()
}

#[test]
fn a_profile_stands_on_the_one_it_extends_and_on_default_where_it_names_none() {
    let user = || {
        user(
            r#"
            [profile.default.limits]
            wall = "1h"
            [profile.web]
            env.set = { CI = "1", A = "a" }
            [profile.deep]
            extends = "web"
            env.set = { A = "b" }
            limits.cpu = "none"
            "#,
        )
    };
    let deep = resolved(vec![user()], "deep");
    assert_eq!(deep.policy.limits.wall, Some(Millis::seconds(3600)));
    assert_eq!(deep.policy.limits.cpu, None);
    assert_eq!(deep.policy.limits.processes, Some(1024), "the built-in default's");
    let set: Vec<_> = deep.policy.env.set.into_iter().collect();
    assert_eq!(set, [("A".into(), "b".into()), ("CI".into(), "1".into())]);
    let source = |key: &str| deep.provenance.source(key).to_string();
    assert_eq!(source("limits.wall"), "policy.toml:4, profile default");
    assert_eq!(source("env.set.CI"), "policy.toml:6, profile web");
    assert_eq!(source("env.set.A"), "policy.toml:9, profile deep");
    assert_eq!(source("limits.processes"), "built-in profile default");
    assert_eq!(source("debuggers"), "default");
}

#[test]
fn a_written_list_replaces_the_one_it_extends() {
    let layer = user(
        r#"
        [profile.a]
        fs.read = ["/opt/a", "/opt/b"]
        net = { mode = "allow", allow = ["a.example"] }
        [profile.b]
        extends = "a"
        fs.read = ["/opt/c"]
        net.allow = ["b.example"]
        [profile.c]
        extends = "b"
        net.mode = "none"
        "#,
    );
    let b = resolved(vec![layer.clone()], "b");
    assert_eq!(b.policy.fs.read.keys().map(HostPath::as_str).collect::<Vec<_>>(), ["/opt/c"]);
    assert_eq!(rules(&b), ["b.example:443"]);
    let sources: Vec<&str> = b
        .provenance
        .iter()
        .map(|(key, _)| key)
        .filter(|key| key.starts_with("net.allow."))
        .collect();
    assert_eq!(sources, ["net.allow.b.example:443"], "nothing is left of the list before");
    let c = resolved(vec![layer], "c");
    assert!(c.policy.net.allow.is_empty(), "no rules without the mode");
}

#[test]
fn rules_without_the_mode_are_refused_where_they_stand() {
    let shown = refused(vec![user("[profile.web]\nnet.allow = [\"a.example\"]")], "web");
    insta::assert_snapshot!(shown, @r#"
    policy.toml:3:13: `net.allow` lists rules, and `net.mode` is none
      3 | net.allow = ["a.example"]
        |             ^^^^^^^^^^^^^ write mode = "allow" as well, or leave the rules out
    "#);
}

#[test]
fn unknown_profiles_circles_and_depth_are_refused_where_they_stand() {
    insta::assert_snapshot!(refused(vec![], "reviw"), @r#"
    unknown profile "reviw"
    did you mean `review`?
    "#);
    insta::assert_snapshot!(refused(vec![user("[profile.a]\nextends = \"reserch\"")], "a"), @r#"
    policy.toml:3:11: unknown profile `reserch`
      3 | extends = "reserch"
        |           ^^^^^^^^^ did you mean `research`?
    "#);
    let circle = "[profile.a]\nextends = \"b\"\n[profile.b]\nextends = \"a\"";
    insta::assert_snapshot!(refused(vec![user(circle)], "a"), @r#"
    policy.toml:5:11: profiles extend each other in a circle: a → b → a
      5 | extends = "a"
        |           ^^^
    "#);
    let shown = refused(vec![user("[profile.default]\nextends = \"review\"")], "web-free");
    assert!(shown.starts_with("unknown profile"), "{shown}");
    let shown = refused(vec![user("[profile.default]\nextends = \"review\"")], "review");
    assert!(shown.contains("in a circle"), "{shown}");
    let chain = |n: usize| {
        (1..n).map(|i| format!("[profile.p{i}]\nextends = \"p{}\"\n", i + 1)).collect::<String>()
            + &format!("[profile.p{n}]\n")
    };
    resolved(vec![user(&chain(15))], "p1");
    let shown = refused(vec![user(&chain(17))], "p1");
    assert!(shown.contains("more than 16 deep"), "{shown}");
}

#[test]
fn groups_become_hosts_and_the_nearest_definition_wins() {
    let mut facts = HostFacts::new();
    let rule = |text: &str| BTreeMap::from([(text.parse().expect(text), "/etc/tool:3".into())]);
    facts.groups.insert("npm".into(), rule("host.example"));
    facts.groups.insert("pip".into(), rule("pip.example"));
    let layers = [
        Layer::built_in(),
        user(
            r#"
            [group.npm]
            allow = ["npm.example", "cdn.example:8443"]
            [profile.web]
            tier = "supervised"
            net = { mode = "allow", allow = ["@npm", "@pip", "a.example"] }
            "#,
        ),
    ];
    let web = resolve(&layers, &ResolveRequest::new("web"), &facts).expect("web");
    assert_eq!(
        rules(&web),
        ["a.example:443", "cdn.example:8443", "npm.example:443", "pip.example:443"]
    );
    assert_eq!(
        web.provenance.source("net.allow.cdn.example:8443").to_string(),
        "policy.toml:7, profile web, group @npm"
    );
    assert_eq!(
        web.provenance.source("net.allow.pip.example:443").to_string(),
        "policy.toml:7, profile web, group @pip of /etc/tool:3"
    );
    let shown =
        refused(vec![user("[profile.w]\nnet = { mode = \"allow\", allow = [\"@np\"] }")], "w");
    assert!(shown.contains("unknown group `@np`") && shown.contains("define it with"), "{shown}");
}

#[test]
fn a_repository_may_tighten_and_what_it_tightens_holds_in_every_profile() {
    let user = user(
        r#"
        [profile.web]
        tier = "supervised"
        net = { mode = "allow", allow = ["*.example.com"] }
        fs.hide = ["*.pem"]
        fs.canaries = ["~/.netrc"]
        limits.wall = "8h"
        "#,
    );
    let repository = repository(
        r#"
        [profile.default]
        limits.wall = "30m"
        fs.hide = ["**/.env"]
        fs.canaries = ["~/.aws/credentials"]
        [profile.web]
        net.allow = ["api.example.com"]
        env.set = { CI = "1" }
        "#,
    );
    let web = resolved(vec![user, repository], "web");
    assert_eq!(web.policy.limits.wall, Some(Millis::seconds(1800)));
    assert_eq!(rules(&web), ["api.example.com:443"]);
    let hidden: Vec<&str> = web.policy.fs.hide.iter().map(|p| p.as_str()).collect();
    assert_eq!(hidden, ["**/.env", "*.pem"], "it adds to what is hidden");
    let planted: Vec<&str> = web.policy.fs.canaries.iter().map(|p| p.as_str()).collect();
    assert_eq!(planted, ["~/.aws/credentials", "~/.netrc"], "it adds to what is planted");
    assert_eq!(web.policy.history, History::None);
    assert_eq!(web.provenance.source("history").to_string(), "follows from fs.hide");
}

/// What loosens, where, and the sentence.
const LOOSENING: &[(&str, &str)] = &[
    ("tier = \"workspace\"", "`tier`: workspace is looser than process"),
    ("limits.wall = \"4h\"", "`limits.wall`: 4h is looser than 2h"),
    ("limits.wall = \"none\"", "`limits.wall`: none is looser than 2h"),
    ("limits.processes = 4096", "`limits.processes`: 4096 is looser than 1024"),
    ("net.mode = \"host\"", "`net.mode`: host is looser than none"),
    (
        "net = { mode = \"allow\", allow = [\"a.example\"] }",
        "`net.mode`: allow is looser than none",
    ),
    ("fs.read = [\"/home/u\"]", "`fs.read`: /home/u is looser than not granted (/home/u)"),
    ("fs.write = [\"/srv\"]", "`fs.write`: /srv is looser than not granted (/srv)"),
    ("env.pass = [\"LANG\", \"SECRET\"]", "`env.pass`: SECRET is looser than not passed"),
    ("history = \"borrow\"", "`history`: borrow is looser than full"),
    ("namespaces = \"off\"", "`namespaces`: off is looser than required"),
    ("landlock = \"best-effort\"", "`landlock`: best-effort is looser than required"),
    ("debuggers = \"allowed\"", "`debuggers`: allowed is looser than refused"),
    ("combine = \"accepted\"", "`combine`: accepted is looser than refused"),
    ("export.max_file = \"1GiB\"", "`export.max_file`: 1GiB is looser than 5MiB"),
    ("export.executables = \"allow\"", "`export.executables`: allow is looser than flag"),
    ("export.binaries = [\"*.so\"]", "`export.binaries`: *.so is looser than not named"),
    (
        "grant.g = { host = \"a.example\", methods = \"any\", paths = \"any\", via = \"intercept\" }",
        "`grant.g`: a.example is looser than not granted",
    ),
];

#[test]
fn a_repository_that_loosens_is_refused_by_key_and_both_values_unless_it_is_trusted() {
    for (setting, sentence) in LOOSENING {
        let text = format!("[profile.default]\n{setting}");
        let shown = refused(vec![repository(&text)], "default");
        let expected = format!("the repository's policy may only tighten: {sentence}\n");
        assert!(shown.contains(&expected), "{setting}: {shown}");
        assert!(shown.starts_with("repository:3:"), "{shown}");
        let trusted = Layer::repository(document("repository", &text), Trust::Trusted);
        resolved(vec![trusted], "default");
    }
}

#[test]
fn a_variable_that_the_person_set_is_not_set_otherwise_by_the_repository() {
    let user = user("[profile.web]\nenv.set = { MODE = \"safe\" }");
    let shown = refused(
        vec![user.clone(), repository("[profile.web]\nenv.set = { MODE = \"fast\" }")],
        "web",
    );
    assert!(shown.contains("`env.set.MODE`: fast is looser than safe"), "{shown}");
    resolved(vec![user, repository("[profile.web]\nenv.set = { MODE = \"safe\" }")], "web");
}

#[test]
fn a_profile_that_only_the_repository_has_may_not_exceed_default() {
    let open = "[profile.ci]\nextends = \"research\"\n";
    let shown = refused(vec![repository(open)], "ci");
    assert!(shown.contains("`net.mode`: open is looser than none"), "{shown}");
    assert!(shown.starts_with("repository:3:11:"), "{shown}");
    let ci = resolved(vec![repository("[profile.ci]\nlimits.wall = \"5m\"")], "ci");
    assert_eq!(ci.policy.limits.wall, Some(Millis::seconds(300)));
    assert_eq!(resolved(vec![user(open)], "ci").policy.net.mode, NetMode::Open, "the person may");
}

#[test]
fn a_repository_can_neither_move_a_profile_of_the_person_nor_lend_it_groups() {
    let shown = refused(
        vec![user("[profile.web]"), repository("[profile.web]\nextends = \"research\"")],
        "web",
    );
    assert!(shown.contains("`extends` in [profile.web] has no meaning"), "{shown}");
    let asks = "[profile.web]\nnet = { mode = \"allow\", allow = [\"@g\"] }";
    let lends = "[group.g]\nallow = [\"evil.example\"]";
    let shown = refused(vec![user(asks), repository(lends)], "web");
    assert!(shown.contains("unknown group `@g`"), "{shown}");
    let request =
        ResolveRequest::new("default").overrides(Overrides::new().allow("@g").expect("a group"));
    let error = attempt(vec![repository(lends)], &request).expect_err("of the repository");
    assert_eq!(error.to_string(), "unknown group `@g`");
    let resolved_for_user = attempt(vec![user(lends)], &request).expect("of the person");
    assert_eq!(rules(&resolved_for_user), ["evil.example:443"]);
    resolved(vec![user(&format!("{asks}\n{lends}"))], "web");
}

#[test]
fn the_command_line_comes_last() {
    let overrides = Overrides::new()
        .tier(Tier::Supervised)
        .set("limits.wall=5h")
        .and_then(|o| o.set("limits.processes=7"))
        .and_then(|o| o.set("env.set.CI=1"))
        .and_then(|o| o.set("fs.read=['/opt/x']"))
        .and_then(|o| o.set("history=none"))
        .and_then(|o| o.allow("a.example"))
        .and_then(|o| o.allow("host:5432"))
        .expect("overrides");
    let request = ResolveRequest::new("default").overrides(overrides);
    let tight = repository("[profile.default]\nlimits.wall = \"1m\"");
    let resolved = attempt(vec![tight], &request).expect("resolved");
    let policy = &resolved.policy;
    assert_eq!(policy.tier, Tier::Supervised);
    assert_eq!(policy.limits.wall, Some(Millis::seconds(5 * 3600)));
    assert_eq!(policy.limits.processes, Some(7));
    assert_eq!(policy.env.set["CI"], "1");
    assert_eq!(policy.history, History::None);
    assert_eq!(policy.net.mode, NetMode::Allow);
    assert_eq!(rules(&resolved), ["a.example:443", "host:5432"]);
    for (key, source) in [
        ("tier", "command line"),
        ("limits.wall", "command line"),
        ("net.allow.host:5432", "command line"),
        ("net.mode", "follows from --allow"),
        ("limits.cpu", "built-in profile default"),
    ] {
        assert_eq!(resolved.provenance.source(key).to_string(), source, "{key}");
    }
}

#[test]
fn a_wrong_option_is_refused_with_its_place_and_what_to_write() {
    let refusal = |overrides: Result<Overrides, Box<crate::layer::OverrideError>>| {
        let error = overrides.expect_err("refused");
        format!("{error} | {} | {}", error.place(), error.suggestion.clone().unwrap_or_default())
    };
    let second = Overrides::new().allow("a.example").and_then(|o| o.allow("*.com"));
    assert_eq!(
        refusal(second),
        "rule \"*.com\" would allow every name under a public suffix | command line, --allow (2nd) \
         | name the host, or *.example.com"
    );
    assert_eq!(
        refusal(Overrides::new().set("limits.wal=2h")),
        "`--set` has no key `limits.wal` | command line, --set (1st) | did you mean `limits.wall`?"
    );
    assert_eq!(
        refusal(Overrides::new().set("limits.wall=2d")),
        "`limits.wall`: unknown unit; expected one of h, m, s, ms | command line, --set (1st) | "
    );
    for text in ["limits.wall", "=", "extends=review", "grant.g=x", "net=1", "limits.processes=x"] {
        refusal(Overrides::new().set(text));
    }
    let open = Overrides::new().set("net.mode=open").and_then(|o| o.allow("a.example"));
    let request = ResolveRequest::new("default").overrides(open.expect("each by itself"));
    let error = attempt(vec![], &request).expect_err("rules in an open network");
    assert!(matches!(error, ResolveError::Override(_)), "{error}");
}

#[test]
fn what_the_host_has_is_written_into_the_policy_with_its_masks() {
    let path = |text: &str| HostPath::new(text).expect(text);
    let mask = BTreeSet::from(["credentials.toml".to_owned()]);
    let mut facts = HostFacts::new();
    facts.system = BTreeMap::from([(path("/usr"), BTreeSet::new())]);
    facts.toolchains = BTreeMap::from([(path("/home/u/.cargo"), mask.clone())]);
    let layers = [
        Layer::built_in(),
        user("[profile.web]\nfs.read = [\"/home/u\", \"/home/u/.cargo\", \"/opt\", \"/opt/sdk\"]"),
    ];
    let web = resolve(&layers, &ResolveRequest::new("web"), &facts).expect("web");
    let read: Vec<(&str, &ReadGrant)> =
        web.policy.fs.read.iter().map(|(path, grant)| (path.as_str(), grant)).collect();
    let mut cargo = ReadGrant::whole(GrantOrigin::Policy);
    cargo.mask = BTreeSet::from([".cargo/credentials.toml".to_owned()]);
    assert_eq!(
        read,
        [
            ("/home/u", &cargo),
            ("/opt", &ReadGrant::whole(GrantOrigin::Policy)),
            ("/usr", &ReadGrant::whole(GrantOrigin::System)),
        ],
        "canonical: a grant below another one adds nothing, its mask stays"
    );
    assert_eq!(web.provenance.source("fs.read./usr").to_string(), "found on this host");
}

#[test]
fn fields_that_do_not_go_together_are_refused() {
    let conflict = |text: &str, workspace| {
        let request = ResolveRequest::new("p").workspace(workspace);
        let layer = user(&format!("[profile.p]\n{text}"));
        match attempt(vec![layer], &request) {
            Err(ResolveError::Conflict(conflict)) => Some(conflict),
            Err(other) => panic!("{other}"),
            Ok(_) => None,
        }
    };
    let private = |text: &str| conflict(text, WorkspaceContent::Private);
    assert_eq!(
        private("tier = \"supervised\"\nnet.mode = \"host\""),
        Some(Conflict::HostNetwork { tier: Tier::Supervised })
    );
    assert_eq!(private("tier = \"process\"\nnet.mode = \"host\""), None);
    assert_eq!(
        private("fs = { write = [\"/srv\"], hide = [\"*.pem\"] }"),
        Some(Conflict::HideBesideWrite { path: "/srv".into() })
    );
    assert_eq!(private("fs.write = [\"/srv\"]"), None);
    let joined = "tier = \"supervised\"\nnet.mode = \"open\"\n\
                  grant.g = { host = \"a.example\", methods = \"any\", paths = \"any\", via = \"intercept\" }";
    assert_eq!(private(joined), Some(Conflict::Combination { grant: "g".into() }));
    assert_eq!(conflict(joined, WorkspaceContent::Empty), None);
    assert_eq!(private(&format!("combine = \"accepted\"\n{joined}")), None);
}

#[test]
fn the_purpose_is_the_persons_word_before_the_repositorys() {
    let theirs = || repository("[profile.web]\npurpose = \"theirs\"");
    let mine = user("[profile.web]\npurpose = \"mine\"");
    assert_eq!(resolved(vec![mine, theirs()], "web").purpose.as_deref(), Some("mine"));
    assert_eq!(
        resolved(vec![user("[profile.web]"), theirs()], "web").purpose.as_deref(),
        Some("theirs")
    );
    assert_eq!(resolved(vec![user("[profile.web]")], "web").purpose, None);
}

#[test]
fn errors_of_the_repository_are_found_before_anything_is_believed() {
    let error = attempt(
        vec![repository("[profile.default]\nnet = { mode = \"allow\", allow = [\"@x\"] }")],
        &ResolveRequest::new("default"),
    )
    .expect_err("unknown group");
    let ResolveError::Document(error) = error else { panic!("{error}") };
    assert_eq!(error.kind, Kind::UnknownGroup { name: "x".into() });
    assert_eq!((error.line, error.column), (3, 34));
}

#[test]
fn groups_do_not_multiply_rules_without_bound() {
    let group = |name: &str, n: usize| {
        let rules: Vec<String> = (0..n).map(|i| format!("\"{name}{i}.example\"")).collect();
        format!("[group.{name}]\nallow = [{}]\n", rules.join(", "))
    };
    let groups = group("a", 2000) + &group("b", 2000) + &group("c", 97);
    let asks = |list: &str| {
        user(&format!("{groups}[profile.p]\nnet = {{ mode = \"allow\", allow = [{list}] }}"))
    };
    let many = resolved(vec![asks("\"@a\", \"@b\"")], "p");
    assert_eq!(many.policy.net.allow.len(), 4000);
    let shown = refused(vec![asks("\"@a\", \"@b\", \"@c\"")], "p");
    assert!(shown.contains("`net.allow` must not have more than 4096 entries"), "{shown}");
}
