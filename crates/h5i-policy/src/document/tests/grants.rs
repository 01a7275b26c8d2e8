//! What a document says of grants.

use super::super::PolicyDocument;
use super::super::error::{DocumentError, DocumentErrorKind as Kind};
use super::*;
use crate::Grant;

#[test]
fn a_grant_says_what_may_pass_and_which_way() {
    const WHOLE: &[(&str, &str)] = &[
        ("host", "\"a.example\""),
        ("secret", "\"env:T\""),
        ("header", "\"x: {}\""),
        ("methods", "[\"GET\"]"),
        ("paths", "\"any\""),
        ("via", "\"reverse\""),
        ("base_url", "\"A_URL\""),
    ];
    type Fields = Vec<(&'static str, &'static str)>;
    let with = |change: &dyn Fn(&mut Fields)| {
        let mut fields = WHOLE.to_vec();
        change(&mut fields);
        let fields: Vec<String> = fields.iter().map(|(k, v)| format!("{k} = {v}")).collect();
        parse(&format!("version = 1\n[profile.p.grant.g]\n{}", fields.join("\n")))
    };
    with(&|_| {}).expect("a whole grant");
    for missing in ["host", "header", "methods", "paths", "via", "base_url"] {
        let error = with(&|fields| fields.retain(|(key, _)| *key != missing)).expect_err(missing);
        assert_eq!(error.kind.to_string(), format!("[profile.p.grant.g] needs `{missing}`"));
    }
    let error = with(&|fields| fields.retain(|(key, _)| *key != "secret")).expect_err("no secret");
    assert!(matches!(error.kind, Kind::IdleKey { key: "header", .. }), "{error}");
    let error = with(&|fields| fields[5].1 = "\"intercept\"").expect_err("intercept");
    assert!(matches!(error.kind, Kind::IdleKey { key: "base_url", .. }), "{error}");
    with(&|fields| {
        fields[1].1 = "\"login:claude\"";
        fields.remove(2);
    })
    .expect("a login knows its header");
}

/// A grant by `reverse` with more lines, or other ones in the place of its own.
fn grant_with(lines: &str) -> Result<PolicyDocument, Box<DocumentError>> {
    let own = [
        ("host", "host = \"a.example\""),
        ("via", "via = \"reverse\""),
        ("methods", "methods = \"any\""),
        ("paths", "paths = \"any\""),
        ("base_url", "base_url = \"A_URL\""),
    ];
    let written = |key: &str| lines.lines().any(|line| line.starts_with(&format!("{key} =")));
    let own = own.into_iter().filter(|(key, _)| !written(key)).map(|(_, line)| line);
    let own: Vec<&str> = own.collect();
    parse(&format!("version = 1\n[profile.p.grant.g]\n{lines}\n{}", own.join("\n")))
}

#[test]
fn a_grant_sets_no_variable_that_programs_are_steered_by() {
    grant_with("base_url = [\"A_URL\", \"B_URL\"]\ntoken = \"A_TOKEN\"").expect("ordinary names");
    for name in ["PATH", "LD_PRELOAD", "HOME", "IFS", "BASH_ENV", "ENV", "NODE_OPTIONS", "GIT_DIR"]
    {
        for key in ["base_url", "token"] {
            for value in [format!("\"{name}\""), format!("[\"FINE\", \"{name}\"]")] {
                let error = grant_with(&format!("{key} = {value}")).expect_err(name);
                let sentence =
                    format!("`grant.g.{key}`: {name} steers programs, and a grant must not set it");
                assert_eq!(error.kind.to_string(), sentence);
            }
        }
    }
    let error = grant_with("token = [\"A_TOKEN\", \"LD_PRELOAD\"]").expect_err("a loader's");
    insta::assert_snapshot!(error.render(), @r#"
    policy.toml:3:21: `grant.g.token`: LD_PRELOAD steers programs, and a grant must not set it
      3 | token = ["A_TOKEN", "LD_PRELOAD"]
        |                     ^^^^^^^^^^^^ name the variable in which the program looks, as API_URL or API_TOKEN
    "#);
}

#[test]
fn a_grant_of_an_address_is_told_what_to_do() {
    grant_with("host = \"localhost\"").expect("a name");
    for host in ["127.0.0.1", "[::1]", "::1", "0.0.0.0"] {
        let error = grant_with(&format!("host = \"{host}\"")).expect_err(host);
        assert_eq!(
            error.kind,
            Kind::BadValue { key: "grant.g.host".into(), cause: ValueError::GrantAddress }
        );
        let instead = error.suggestion.as_deref().expect("what to do");
        assert!(instead.contains("\"localhost\"") && instead.contains("host:PORT"), "{instead}");
    }
    let error = grant_with("host = \"10.0.0.7\"").expect_err("an address");
    assert!(error.suggestion.as_deref().is_some_and(|s| s.contains("/etc/hosts")), "{error}");
}

#[test]
fn the_boxs_own_localhost_is_not_intercepted() {
    let grant = |host: &str, way: &str| {
        let rest = "methods = [\"GET\"]\npaths = \"any\"";
        parse(&format!("version = 1\n[profile.p.grant.g]\nhost = \"{host}\"\n{rest}\n{way}"))
    };
    for host in ["localhost", "LOCALHOST", "a.localhost"] {
        let error = grant(host, "via = \"intercept\"").expect_err(host);
        assert_eq!(
            error.kind,
            Kind::BadValue { key: "grant.g.host".into(), cause: ValueError::GrantLocalhost }
        );
        assert!(error.suggestion.as_deref().is_some_and(|s| s.contains("reverse")), "{error}");
        grant(host, "via = \"reverse\"\nbase_url = \"A_URL\"").expect("the host's own service");
    }
    grant("localhost.example", "via = \"intercept\"").expect("another name");
}

#[test]
fn the_table_of_a_grants_keys_has_all_of_them_and_says_which_must_be_there() {
    let readme = include_str!("../../../../../README.md");
    let head = "| key of a grant | what it says | left out |\n|---|---|---|\n";
    let (_, table) = readme.split_once(head).expect("the table");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    let keys: Vec<String> = rows.iter().map(|row| row[0].trim_matches('`').to_owned()).collect();
    assert_eq!(keys, super::super::grant::KEYS);
    let whole: &[(&str, &str)] = &[
        ("host", "\"a.example\""),
        ("port", "8443"),
        ("secret", "\"env:T\""),
        ("header", "\"x: {}\""),
        ("methods", "[\"GET\"]"),
        ("paths", "\"any\""),
        ("git", "\"any\""),
        ("programs", "\"any\""),
        ("via", "\"reverse\""),
        ("base_url", "\"A_URL\""),
        ("base_path", "\"/v1\""),
        ("token", "\"A_TOKEN\""),
        ("requests", "1"),
        ("bytes_up", "\"1KiB\""),
        ("bytes_down", "\"1KiB\""),
        ("lasts", "\"1h\""),
    ];
    for (row, key) in rows.iter().zip(super::super::grant::KEYS) {
        // A header has no meaning without what it carries.
        let goes = |name: &str| name == *key || (*key == "secret" && name == "header");
        let lines = whole.iter().filter(|(name, _)| !goes(name));
        let lines: Vec<String> = lines.map(|(key, value)| format!("{key} = {value}")).collect();
        let text = format!("version = 1\n[profile.p.grant.g]\n{}", lines.join("\n"));
        let refused = parse(&text).is_err();
        assert_eq!(row[2].starts_with("refused"), refused, "{key}: {row:?}");
    }
}

#[test]
fn a_grant_names_each_variable_once() {
    for (lines, column) in [
        ("token = \"A_URL\"", 9),
        ("token = [\"X\", \"A_URL\"]", 9),
        ("base_url = [\"X\", \"A_URL\", \"X\"]", 27),
    ] {
        let error = grant_with(lines).expect_err(lines);
        assert!(error.kind.to_string().ends_with("is named twice"), "{error}");
        assert_eq!((error.line, error.column), (3, column), "{lines}");
        assert_eq!(error.suggestion.as_deref(), Some("give each its own variable"));
    }
    grant_with("base_url = [\"X\", \"A_URL\"]\ntoken = [\"Y\"]").expect("three names");
}

#[test]
fn a_grant_lists_no_path_that_no_request_has() {
    for paths in ["[\"/v1/**\"]", "[\"/v1/a%20b\", \"/x/*/[0-9]*\"]", "\"any\"", "[]"] {
        grant_with(&format!("paths = {paths}")).expect(paths);
    }
    for (path, sentence) in [
        ("v1/**", "the path of a request starts with `/`"),
        ("/v1//x", "no request passes whose path has an empty, `.` or `..` segment"),
        ("/v1/../x", "no request passes whose path has an empty, `.` or `..` segment"),
        ("/v1/%2e%2e/x", "no path has this encoding once it is normalised"),
        ("/v1?x=1", "the query of a request is no part of its path, and is not compared"),
        ("/v1#x", "a request carries no fragment"),
        ("/a b", "no request passes whose path has ' '"),
    ] {
        let error = grant_with(&format!("paths = [\"/ok\", \"{path}\"]")).expect_err(path);
        assert_eq!(error.kind.to_string(), format!("`grant.g.paths`: {sentence}"));
        assert_eq!((error.line, error.column), (3, 17));
        assert!(error.suggestion.is_some(), "{path}");
    }
    grant_with("base_path = \"/v1\"").expect("a base path");
    for path in ["v1", "/v1//x", "/v1/..", "/%2e", "/v1?x", "/v1#x", "/a b", "/v1/"] {
        let error = grant_with(&format!("base_path = \"{path}\"")).expect_err(path);
        assert_eq!(error.suggestion.as_deref(), Some("write \"/v1\", or leave it out"));
    }
}

/// What comes of a grant's lines.
fn grant_of(lines: &str) -> Result<Grant, Box<DocumentError>> {
    let document = grant_with(lines)?;
    let mut policy = ResolvedPolicy::default();
    for placed in &document.profiles["p"].settings {
        placed.setting.apply(&mut policy);
    }
    Ok(policy.grants.remove("g").expect("the grant"))
}

#[test]
fn a_secret_goes_into_several_headers_or_the_query_or_both() {
    let with = |lines: &str| grant_of(&format!("secret = \"env:T\"\n{lines}")).expect(lines);
    let headers = |grant: &Grant| grant.header.iter().map(ToString::to_string).collect::<Vec<_>>();
    let one = with("header = \"X-Key: {}\"");
    assert_eq!(headers(&one), ["x-key: {}"]);
    assert_eq!(one, with("header = [\"x-key: {}\"]"));
    let several = "header = [\"x-key: {}\", \"a-version: 2024-01\", \"x-pair: {basic:u}\"]";
    let sorted = ["a-version: 2024-01", "x-key: {}", "x-pair: {basic:u}"];
    assert_eq!(headers(&with(several)), sorted);
    let query = with("query = \"key\"");
    assert_eq!((headers(&query).len(), query.query.expect("a name").as_str()), (0, "key"));
    let both = with("query = \"key\"\nheader = \"a-version: 1\"");
    assert_eq!((headers(&both), both.query.is_some()), (vec!["a-version: 1".to_owned()], true));
    // A login has a header of its own.
    let login = grant_of("secret = \"login:claude\"\nheader = \"a-version: 1\"");
    assert_eq!(headers(&login.expect("a login")), ["a-version: 1"]);
}

#[test]
fn a_secret_without_a_place_is_told_where_one_goes() {
    let refused = |lines: &str| grant_with(lines).expect_err(lines).render();
    insta::assert_snapshot!(refused("secret = \"env:T\""), @r#"
    policy.toml:2:1: [profile.p.grant.g] needs `header`
      2 | [profile.p.grant.g]
        | ^^^^^^^^^^^^^^^^^^^ or name the parameter of the query that carries the secret with `query`
    "#);
    insta::assert_snapshot!(refused("secret = \"env:T\"\nheader = [\"a: 1\", \"b: 2\"]"), @r#"
    policy.toml:4:10: `grant.g.header`: no header has {} or {basic:USER}, the place of the secret
      4 | header = ["a: 1", "b: 2"]
        |          ^^^^^^^^^^^^^^^^ write {} where the secret goes, as in "authorization: Bearer {}"
    "#);
    insta::assert_snapshot!(refused("secret = \"env:T\"\nheader = [\"x-key: {}\", \"X_Key: 1\"]"), @r#"
    policy.toml:4:24: `grant.g.header`: x_key is written twice; `_` in a name counts as `-`
      4 | header = ["x-key: {}", "X_Key: 1"]
        |                        ^^^^^^^^^^ leave one of them out
    "#);
    insta::assert_snapshot!(refused("secret = \"env:T\"\nquery = \"key={}\""), @r#"
    policy.toml:4:9: `grant.g.query`: the name of a query's parameter is of letters, digits and `-._~`, and has at most 64
      4 | query = "key={}"
        |         ^^^^^^^^ write the name alone, as in query = "key"; the secret follows it
    "#);
    for (lines, sentence) in [
        ("query = \"key\"", "`query` in [profile.p.grant.g] has no meaning without `secret`"),
        ("header = []", "`header` in [profile.p.grant.g] has no meaning without `secret`"),
        ("secret = \"env:T\"\nquery = \"none\"", "`grant.g.query`: `none` names no parameter"),
        ("secret = \"env:T\"\nquery = [\"key\"]", "`grant.g.query` must be a string, not a list"),
        (
            "secret = \"env:T\"\nheader = 1",
            "`grant.g.header` must be a header or a list of headers, not an integer",
        ),
        (
            "secret = \"env:T\"\nheader = [\"x: {}\", 1]",
            "`grant.g.header` must be a string, not an integer",
        ),
        (
            "secret = \"env:T\"\nheader = [\"x: {}\", \"y: {secret}\"]",
            "`grant.g.header`: the header's value needs exactly one {} or {basic:USER}, the place \
             of the secret",
        ),
        (
            "secret = \"env:T\"\nheader = [\"x: {}\", \"range: bytes=0-3\"]",
            "`grant.g.header`: the broker decides this header, so that it can look for the secret \
             in the answer",
        ),
    ] {
        assert_eq!(grant_with(lines).expect_err(lines).kind.to_string(), sentence, "{lines}");
    }
    // What is wrongly written there may be the secret.
    for lines in ["header = \"x: canary-0123\"", "header = \"canary-0123\"", "query = \"canary=\""]
    {
        let error = grant_with(&format!("secret = \"env:T\"\n{lines}")).expect_err(lines);
        assert!(!error.kind.to_string().contains("canary"), "{error}");
    }
}

#[test]
fn a_grant_for_git_says_whether_it_may_push_and_where() {
    let with = |more: &str| {
        let text = "version = 1\n[profile.p.grant.g]\nhost = \"a.example\"\nvia = \"intercept\"\n\
                    paths = [\"/o/r.git\"]\n";
        parse(&format!("{text}{more}"))
    };
    let read = |more: &str| {
        let document = with(more).expect(more);
        let mut policy = ResolvedPolicy::default();
        for placed in &document.profiles["p"].settings {
            placed.setting.apply(&mut policy);
        }
        policy.grants.remove("g").expect("the grant")
    };
    let both = Allowed::Only([Method::Get, Method::Post].into());
    let fetch = read("git = \"fetch\"");
    assert_eq!((&fetch.git, &fetch.methods), (&GitUse::Fetch, &both));
    let pattern = |text: &str| Pattern::new(text).expect("pattern");
    let to = |texts: &[&str]| GitUse::Push(texts.iter().map(|text| pattern(text)).collect());
    let push = read("git = { push = [\"refs/heads/agent/**\", \"refs/heads/x\"] }");
    assert_eq!((&push.git, &push.methods), (&to(&["refs/heads/x", "refs/heads/agent/**"]), &both));
    assert_eq!(push.git.to_string(), "fetch and push to refs/heads/agent/**, refs/heads/x");
    assert_eq!(read("git.push = []\nmethods = \"any\"").methods, Allowed::Any);
    assert_eq!(read("git = \"any\"\nmethods = [\"GET\"]").git, GitUse::Any);
    for (more, sentence) in [
        ("", "[profile.p.grant.g] needs `methods`"),
        ("git = \"any\"", "[profile.p.grant.g] needs `methods`"),
        ("git = \"push\"", "`grant.g.git` must be one of any, fetch, not \"push\""),
        ("git = [\"fetch\"]", "`grant.g.git` must be \"fetch\" or a table with `push`, not a list"),
        ("git = {}", "`grant.g.git` must be \"fetch\" or a table with `push`, not a table"),
        ("git = { pull = [] }", "unknown key `pull` in `grant.g.git`"),
        ("git.push = \"refs/x\"", "`grant.g.git.push` must be a list, not a string"),
    ] {
        let error = with(more).expect_err(more);
        assert_eq!(error.kind.to_string(), sentence, "{more}");
    }
    for reference in ["main", "heads/main", "/refs/heads/main", "refs/", "**", "*/heads/main"] {
        let error = with(&format!("git.push = [\"{reference}\"]")).expect_err(reference);
        let sentence = "`grant.g.git.push`: a reference is written in full, as in refs/heads/main";
        assert_eq!(error.kind.to_string(), sentence, "{reference}");
    }
}
