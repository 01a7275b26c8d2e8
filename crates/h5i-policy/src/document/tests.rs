mod grants;

use proptest::prelude::*;

use super::error::{DocumentError, DocumentErrorKind as Kind, ValueError};
use super::setting::{FIELDS, Setting};
use super::{PolicyDocument, Profile, keys};
use crate::{Allowed, GitUse, Method, Pattern, ResolvedPolicy};

fn parse(text: &str) -> Result<PolicyDocument, Box<DocumentError>> {
    PolicyDocument::parse("policy.toml", text.as_bytes())
}

/// The error of a document that starts with its version on line 1.
fn refused(rest: &str) -> DocumentError {
    *parse(&format!("version = 1\n{rest}")).expect_err(rest)
}

fn profile(rest: &str) -> Profile {
    let document = parse(&format!("version = 1\n[profile.p]\n{rest}")).expect(rest);
    document.profiles.into_values().next().expect("a profile")
}

/// One value for each fixed field.
const EVERY_FIELD: &str = r#"
extends = "default"
purpose = "try everything"
tier = "supervised"
namespaces = "off"
landlock = "best-effort"
debuggers = "allowed"
combine = "accepted"
history = "depth:5"
record_output = "on"
seed = ["claude", "git"]
expires = "720h"
fs.read = ["/opt/sdk"]
fs.write = ["/srv/data/"]
fs.hide = ["**/.env", "secrets/**"]
fs.canaries = ["~/.aws/credentials", "~/.netrc"]
net.mode = "allow"
net.allow = ["@npm", "api.example.com:443", { rule = "db.example.com", sni = "any" }]
net.budget.bytes = "1GiB"
net.budget.connections = 1000
net.budget.connections_per_second = "none"
env.pass = ["LANG"]
env.set = { CI = "1", EMPTY = "" }
limits.wall = "2h"
limits.session = "8h"
limits.cpu = "none"
limits.memory = "8GiB"
limits.processes = 1024
limits.open_files = "none"
limits.file_size = "1GiB"
limits.disk = "20GiB"
limits.keep_free = "1GiB"
limits.output = "256MiB"
export.max_file = "5MiB"
export.max_total = "50MiB"
export.max_files = 100
export.executables = "flag"
export.binaries = ["*.wasm"]
react.refused-connect = "freeze"
react.refused-call = "freeze-export"
react.budget = "kill"
react.canary-read = "kill"
react.gap = "continue"
[profile.p.grant.github]
host = "api.example.com"
secret = "env:GITHUB_TOKEN"
header = "authorization: Bearer {}"
methods = ["GET"]
paths = ["/repos/acme/site/**"]
via = "intercept"
"#;

#[test]
fn every_field_is_read() {
    let profile = profile(EVERY_FIELD);
    let read: Vec<&str> = profile.settings.iter().map(|placed| placed.key.as_str()).collect();
    for field in FIELDS {
        assert!(read.contains(&field.key), "{}", field.key);
    }
    for key in ["env.set.CI", "env.set.EMPTY", "grant.github"] {
        assert!(read.contains(&key), "{key}");
    }
    assert_eq!(profile.extends.map(|(name, _)| name).as_deref(), Some("default"));
    assert_eq!(profile.purpose.as_deref(), Some("try everything"));
}

#[test]
fn every_field_refuses_another_type() {
    for key in keys() {
        for value in ["true", "1.5", "1979-05-27", "[[1]]", "[{}]", "-1"] {
            let error = refused(&format!("[profile.p]\n{key} = {value}"));
            let named = match &error.kind {
                Kind::WrongType { key, .. } | Kind::BadValue { key, .. } => key,
                other => panic!("{key} = {value}: {other}"),
            };
            assert!(named.starts_with(key), "{key} = {value}: {error}");
            assert_eq!(error.line, 3, "{key} = {value}");
        }
    }
}

#[test]
fn unknown_keys_are_refused_at_every_level_with_their_place() {
    for (rest, line, column, sentence) in [
        ("profiles = {}", 2, 1, "unknown key `profiles` in the document"),
        ("[profile.p]\nteir = \"process\"", 3, 1, "unknown key `teir` in [profile.p]"),
        ("[profile.p.nett]", 2, 12, "unknown key `nett` in [profile.p]"),
        ("[profile.p.net]\nalow = []", 3, 1, "unknown key `alow` in [profile.p.net]"),
        ("[profile.p]\nnet = { mod = 1 }", 3, 9, "unknown key `mod` in [profile.p.net]"),
        ("[profile.p.env]\nsets = {}", 3, 1, "unknown key `sets` in [profile.p.env]"),
        ("[profile.p.react]\ngaps = \"kill\"", 3, 1, "unknown key `gaps` in [profile.p.react]"),
        ("[profile.p.grant.g]\nhosts = \"x\"", 3, 1, "unknown key `hosts` in [profile.p.grant.g]"),
        ("[group.g]\nhosts = []", 3, 1, "unknown key `hosts` in [group.g]"),
    ] {
        let error = refused(rest);
        assert!(matches!(error.kind, Kind::UnknownKey { .. }), "{error}");
        assert_eq!((error.line, error.column), (line, column), "{error}");
        assert_eq!(error.kind.to_string(), sentence);
    }
}

#[test]
fn wrong_types_are_refused_at_every_level_with_their_place() {
    for (rest, line, column) in [
        ("profile = 1", 2, 11),
        ("profile.p = []", 2, 13),
        ("group = \"x\"", 2, 9),
        ("[profile.p]\n  net = \"none\"", 3, 9),
        ("[profile.p.net]\nallow = [\"a.example\", 7]", 3, 23),
        ("[profile.p.env]\nset = { CI = 1 }", 3, 14),
        ("[profile.p]\ngrant.g = 1", 3, 11),
        (
            "[profile.p.grant.g]\nhost = 1\nvia = \"reverse\"\nmethods = \"any\"\npaths = \"any\"",
            3,
            8,
        ),
        ("[group.g]\nallow = {}", 3, 9),
    ] {
        let error = refused(rest);
        assert!(matches!(error.kind, Kind::WrongType { .. }), "{rest}: {error}");
        assert_eq!((error.line, error.column), (line, column), "{error}");
    }
}

#[test]
fn values_are_refused_by_their_own_rules() {
    for (rest, sentence) in [
        (r#"limits.wall = "2d""#, "`limits.wall`: unknown unit; expected one of h, m, s, ms"),
        (
            r#"limits.wall = 7200"#,
            "`limits.wall` must be a quantity with its unit in quotes, such as \"2h\" or \"8GiB\", not an integer",
        ),
        (r#"limits.processes = 0"#, "`limits.processes`: the number must be from 1 to 4294967295"),
        (
            r#"limits.processes = 4294967296"#,
            "`limits.processes`: the number must be from 1 to 4294967295",
        ),
        (r#"fs.read = ["sdk"]"#, "`fs.read`: a granted path must be absolute"),
        (r#"fs.hide = ["!x"]"#, "`fs.hide`: a pattern can't be negated"),
        (r#"fs.canaries = ["/etc/x"]"#, "`fs.canaries`: a path of the box's home starts with `~/`"),
        (
            r#"fs.canaries = ["~/a/../b"]"#,
            "`fs.canaries`: a path of the box's home must name a file, without `.`, `..` or empty components",
        ),
        (
            r#"fs.canaries = ["~/.aws", "~/.aws/credentials"]"#,
            "`fs.canaries`: `~/.aws` can't be a file and hold `~/.aws/credentials`",
        ),
        (r#"fs.canaries = ["~/a", "~/a"]"#, "`fs.canaries`: `~/a` is listed twice"),
        (
            r#"fs.canaries = ["~/a", "~/b", "~/c", "~/d", "~/e", "~/f", "~/g", "~/h", "~/i", "~/j", "~/k", "~/l", "~/m", "~/n", "~/o", "~/p", "~/q"]"#,
            "`fs.canaries`: at most 16 credentials are planted, not 17",
        ),
        (
            r#"net.allow = ["*.com"]"#,
            "`net.allow`: rule \"*.com\" would allow every name under a public suffix",
        ),
        (
            r#"net.allow = ["@A b"]"#,
            "`net.allow`: a name is of a-z, 0-9, `.`, `_` and `-`, starts with a letter or digit, and has at most 63",
        ),
        (
            r#"env.pass = ["LD_PRELOAD"]"#,
            "`env.pass`: the host's value of this variable must not enter a box",
        ),
        (
            r#"env.pass = ["A B"]"#,
            "`env.pass`: a variable's name is of letters, digits and `_`, and starts with no digit",
        ),
        (
            r#"env.set = { "A=B" = "1" }"#,
            "`env.set.A=B`: a variable's name is of letters, digits and `_`, and starts with no digit",
        ),
        (r#"env.set = { A = "\u0000" }"#, "`env.set.A`: a value must not have a NUL byte"),
        (
            r#"history = "depth:0""#,
            "`history`: history is full, depth:N with N of at least 1, none or borrow",
        ),
        (
            r#"tier = "super""#,
            "`tier` must be one of workspace, process, supervised, container, microvm, not \"super\"",
        ),
        (
            r#"extends = "A""#,
            "`A`: a name is of a-z, 0-9, `.`, `_` and `-`, starts with a letter or digit, and has at most 63",
        ),
    ] {
        assert_eq!(refused(&format!("[profile.p]\n{rest}")).kind.to_string(), sentence);
    }
}

#[test]
fn versions_other_than_one_are_refused() {
    let kind = |text: &str| parse(text).expect_err(text).kind;
    assert_eq!(kind(""), Kind::MissingVersion);
    assert_eq!(kind("[profile.p]"), Kind::MissingVersion);
    for text in ["version = 2", "version = 0x1", "version = -1"] {
        assert!(matches!(kind(text), Kind::UnsupportedVersion { .. }), "{text}");
    }
    assert!(matches!(kind("version = \"1\""), Kind::WrongType { .. }));
    parse("version = 1").expect("an empty document");
}

#[test]
fn what_is_too_large_or_not_text_is_refused_before_it_is_parsed() {
    let mut text = b"version = 1\n#".to_vec();
    text.resize(PolicyDocument::LARGEST, b'x');
    PolicyDocument::parse("p", &text).expect("the largest document");
    text.push(b'x');
    let error = PolicyDocument::parse("p", &text).expect_err("too large");
    assert_eq!(error.kind, Kind::TooLarge { limit: 1 << 20 });
    let error = PolicyDocument::parse("p", b"version = 1\n# \xff").expect_err("bytes");
    assert_eq!((error.kind, error.line, error.column), (Kind::NotUtf8, 2, 3));
}

#[test]
fn lists_are_bounded() {
    let list = |n: usize| {
        let entries: Vec<String> = (0..n).map(|i| format!("\"/{i}\"")).collect();
        format!("version = 1\n[profile.p]\nfs.read = [{}]", entries.join(","))
    };
    parse(&list(4096)).expect("the longest list");
    let error = parse(&list(4097)).expect_err("too long");
    assert_eq!(error.kind, Kind::TooMany { key: "fs.read".into(), limit: 4096 });
}

#[test]
fn an_error_shows_the_line_with_a_mark_and_what_was_meant() {
    let error = refused("[profile.web.net]\n  alow = [\"api.example.com:443\"]\n# end");
    insta::assert_snapshot!(error.render(), @r#"
    policy.toml:3:3: unknown key `alow` in [profile.web.net]
      3 |   alow = ["api.example.com:443"]
        |   ^^^^ did you mean `allow`?
    "#);
    let error = refused("[profile.web]\nnet.allow = [\"a.example\", \"*.com\"]");
    insta::assert_snapshot!(error.render(), @r#"
    policy.toml:3:27: `net.allow`: rule "*.com" would allow every name under a public suffix
      3 | net.allow = ["a.example", "*.com"]
        |                           ^^^^^^^ name the host, or *.example.com
    "#);
    let error = refused("[profile.web\ntier = 1");
    insta::assert_snapshot!(error.render(), @r"
    policy.toml:2:13: unclosed table, expected `]`
      2 | [profile.web
        |             ^
    ");
    let error = refused("[profile.p]\nteir = 1\nteir = 2");
    assert!(matches!(error.kind, Kind::Syntax { .. }), "{error}");
    assert_eq!(error.line, 4);
}

#[test]
fn long_lines_are_cut_around_the_mark_and_nothing_hostile_is_printed() {
    let padding = "x".repeat(5000);
    let error = refused(&format!(
        "[profile.p]\nnet.allow = [\"{padding}.example\", \"a\u{1b}[2J\u{202e}b\"] # {padding}"
    ));
    let shown = error.render();
    assert!(shown.lines().all(|line| line.chars().count() < 400), "{shown}");
    let error = refused("[profile.p]\nnet.allow = [\"a\u{202e}b\"]");
    let shown = error.render();
    assert!(!shown.contains('\u{202e}') && shown.contains("\\u{202e}"), "{shown}");
    let marks = shown.lines().last().expect("marks");
    assert_eq!(marks.matches('^').count(), "\"a\\u{202e}b\"".len());
}

#[test]
fn the_first_error_of_the_document_is_the_one_that_is_told() {
    let error = refused("[profile.z]\nteir = 1\n[profile.a]\nteir = 1");
    assert_eq!(error.line, 3);
}

#[test]
fn groups_hold_rules_and_no_groups() {
    let document = parse("version = 1\n[group.internal]\nallow = [\"a.example\"]").expect("group");
    assert_eq!(document.groups["internal"].len(), 1);
    let error = refused("[group.internal]\nallow = [\"@other\"]");
    assert!(error.to_string().contains("groups stand only in policy documents"), "{error}");
}

#[test]
fn a_budget_can_be_lifted_by_its_word() {
    let profile = profile("limits.wall = \"none\"\nlimits.processes = \"none\"");
    assert!(matches!(profile.settings[0].setting, Setting::Time(_, None)));
    assert!(matches!(profile.settings[1].setting, Setting::Count(_, None)));
}

/// A character that turns the direction of what follows.
const OVERRIDE: char = '\u{202e}';

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(error) = PolicyDocument::parse("p", &bytes) {
            prop_assert!(error.render().lines().count() == 3, "{}", error.render());
        }
    }

    #[test]
    fn a_damaged_document_is_refused_or_read_without_panic(
        at in 0_usize..1700,
        patch in "[\"\\[\\]{}=.,a\\\\\n\u{202e}é-]{0,3}",
        cut in 0_usize..4,
    ) {
        let mut text = format!("version = 1\n[profile.p]{EVERY_FIELD}");
        let boundary = |mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) { at -= 1 }
            at
        };
        let (from, to) = (boundary(at), boundary(at + cut));
        text.replace_range(from..to, &patch);
        if let Err(error) = parse(&text) {
            prop_assert!(error.line >= 1 && error.column >= 1);
            let shown = error.render();
            prop_assert!(!shown.chars().any(|c| c == OVERRIDE), "shown as it is");
        }
    }
}

#[test]
fn what_is_planted_is_refused_at_the_entry_that_can_not_be() {
    for (list, column, hint) in [
        (r#"["~/ok", "/abs"]"#, 24, r#"write it as in "~/.aws/credentials""#),
        (r#"["~/.aws", "~/.aws/credentials"]"#, 26, "leave one of them out"),
        (r#"["~/.aws/credentials", "~/.aws"]"#, 38, "leave one of them out"),
        (r#"["~/a", "~/a"]"#, 23, "leave one of them out"),
    ] {
        let error = refused(&format!("[profile.p]\nfs.canaries = {list}"));
        assert_eq!((error.line, error.column), (3, column), "{error}");
        assert_eq!(error.suggestion.as_deref(), Some(hint), "{error}");
    }
}
