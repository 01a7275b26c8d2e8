//! What holds for every policy.

use proptest::prelude::*;
use serde_json::Value;

use crate::cidr::Cidr;
use crate::diff::diff;
use crate::document::PolicyDocument;
use crate::explain::explain;
use crate::net_rule::{NetRule, Protocol, ServerName};
use crate::provenance::Provenance;
use crate::resolved::{FsPolicy, NetMode, NetPolicy, ResolvedPolicy};
use crate::strategy::policy;

/// Paths at and between all boundaries of the strategy's file grants.
const PATHS: &[&str] = &[
    "/",
    "/a",
    "/a/b",
    "/a/b/c",
    "/a/b/c/d",
    "/a/m",
    "/a/m/z",
    "/a/x",
    "/a/x/y",
    "/a/x/y/z",
    "/a-b",
    "/a-b/b/q",
    "/b",
    "/b/c",
    "/m",
    "/w",
    "/w/b",
    "/w/x",
    "/w/x/m",
    "/é \"q/b",
    "/zz",
    "/x/y",
];

/// How much of one path a policy gives: 0 nothing, 1 read, 2 write. By the definition in the
/// documentation, and by nothing else.
fn access(fs: &FsPolicy, path: &str) -> u8 {
    let covers = |top: &str| {
        top == path
            || top == "/"
            || path.strip_prefix(top).is_some_and(|rest| rest.starts_with('/'))
    };
    let read = fs.read.keys().map(|top| (top.as_str().trim_end_matches('/').len(), top, 1_u8));
    let write = fs.write.iter().map(|top| (top.as_str().trim_end_matches('/').len(), top, 2_u8));
    let covering = read.chain(write).filter(|(_, top, _)| covers(top.as_str()));
    let Some((length, top, kind)) = covering.max_by_key(|(length, _, kind)| (*length, *kind))
    else {
        return 0;
    };
    if kind == 2 {
        return 2;
    }
    let below = &path[length.min(path.len())..];
    let masked = fs.read[top].mask.iter().any(|mask| {
        let mask = format!("/{mask}");
        below == mask || below.strip_prefix(&mask).is_some_and(|rest| rest.starts_with('/'))
    });
    u8::from(!masked)
}

/// A flow: where to, and what names its TLS needs to be free to carry.
type Flow = (&'static str, u16, Protocol, ServerName);

/// Flows that tell the strategy's network rules apart.
fn flows() -> Vec<Flow> {
    let named = |(to, port, protocol)| (to, port, protocol, ServerName::Listed);
    let unnamed = |(to, port, protocol)| (to, port, protocol, ServerName::Any);
    let all = destinations();
    all.iter().copied().map(named).chain(all.iter().copied().map(unnamed)).collect()
}

fn destinations() -> Vec<(&'static str, u16, Protocol)> {
    let tcp = |to| (to, 443, Protocol::Tcp);
    vec![
        tcp("a.example.com"),
        tcp("c.b.example.com"),
        tcp("d.b.example.com"),
        tcp("other.example.com"),
        tcp("example.com"),
        ("b.example.com", 80, Protocol::Tcp),
        tcp("8.8.8.8"),
        tcp("9.9.9.9"),
        tcp("1.1.1.1"),
        tcp("10.1.2.3"),
        tcp("10.9.9.9"),
        tcp("127.0.0.1"),
        tcp("2001:db8::1"),
        tcp("2606:4700::1"),
        ("8.8.8.8", 53, Protocol::Udp),
        ("8.8.8.8", 53, Protocol::Tcp),
    ]
}

/// Whether a flow is allowed, by the definition of the modes and by nothing else.
fn allows(net: &NetPolicy, (to, port, protocol, names): Flow) -> bool {
    let address = to.parse::<std::net::IpAddr>().ok();
    match net.mode {
        NetMode::None => false,
        NetMode::Host => true,
        NetMode::Open => {
            protocol == Protocol::Tcp
                && address.is_none_or(|address| !Cidr::from(address).public_part().is_empty())
        }
        NetMode::Allow => net.allow.iter().any(|rule| match address {
            Some(address) => rule.allows_address(address, port, protocol),
            None => {
                let named = rule.allows_name(&to.parse().expect(to), port, protocol);
                named && (names == ServerName::Listed || rule.to_string().ends_with(",sni=any"))
            }
        }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_policy_is_within_itself_and_its_own_tightening(a in policy()) {
        prop_assert_eq!(a.is_within(&a), Ok(()));
        prop_assert_eq!(a.tighten(&a), Ok(a.clone()));
        prop_assert_eq!(a.canonical(), a);
    }

    #[test]
    fn tightening_is_commutative_and_within_both(a in policy(), b in policy()) {
        prop_assert_eq!(a.tighten(&b), b.tighten(&a));
        if let Ok(both) = a.tighten(&b) {
            prop_assert_eq!(both.is_within(&a), Ok(()));
            prop_assert_eq!(both.is_within(&b), Ok(()));
        }
    }

    #[test]
    fn tightening_is_associative(a in policy(), b in policy(), c in policy()) {
        let left = a.tighten(&b).and_then(|ab| ab.tighten(&c));
        let right = b.tighten(&c).and_then(|bc| a.tighten(&bc));
        prop_assert_eq!(left.ok(), right.ok());
    }

    #[test]
    fn tightening_by_what_is_looser_changes_nothing(a in policy(), b in policy()) {
        if let Ok(tight) = a.tighten(&b) {
            prop_assert_eq!(tight.tighten(&a), Ok(tight.clone()));
        }
        if a.is_within(&b).is_ok() {
            prop_assert_eq!(a.tighten(&b), Ok(a));
        }
    }

    #[test]
    fn the_order_is_transitive(a in policy(), b in policy(), c in policy()) {
        // Any three policies are seldom in order, so two of them are made to be.
        let Ok(b) = b.tighten(&c) else { return Ok(()) };
        let Ok(a) = a.tighten(&b) else { return Ok(()) };
        prop_assert_eq!(a.is_within(&b), Ok(()));
        prop_assert_eq!(a.is_within(&c), Ok(()));
    }

    #[test]
    fn what_is_within_gives_no_path_and_no_flow_more(a in policy(), b in policy()) {
        let mut looser = b.clone();
        looser.tier = a.tier;
        let within = a.is_within(&looser);
        let complains = |field: &str| {
            within.as_ref().is_err_and(|found| found.iter().any(|l| l.field.starts_with(field)))
        };
        let more_files = PATHS.iter().any(|path| access(&a.fs, path) > access(&b.fs, path));
        let more_net = flows().into_iter().any(|flow| allows(&a.net, flow) && !allows(&b.net, flow));
        prop_assert!(!more_files || complains("fs."), "{:?}", within);
        prop_assert!(!more_net || complains("net."), "{:?}", within);
    }

    #[test]
    fn a_tightening_gives_each_path_and_flow_exactly_what_both_give(a in policy(), b in policy()) {
        if let Ok(both) = a.tighten(&b) {
            for path in PATHS {
                let least = access(&a.fs, path).min(access(&b.fs, path));
                prop_assert_eq!(access(&both.fs, path), least, "{}", path);
            }
            for flow in flows() {
                let allowed = allows(&a.net, flow) && allows(&b.net, flow);
                prop_assert_eq!(allows(&both.net, flow), allowed, "{:?}", flow);
            }
        }
    }

    #[test]
    fn the_text_of_a_policy_reads_back_as_the_same_policy(a in policy()) {
        let text = a.to_toml();
        let back = ResolvedPolicy::from_toml("policy.toml", &text);
        prop_assert_eq!(back.as_ref().map_err(|error| error.render()), Ok(&a), "{}", text);
        prop_assert!(!text.chars().any(|c| c != '\n' && crate::escape::is_deceptive(c)));
    }

    #[test]
    fn json_reads_back_as_the_same_policy_and_digest(a in policy()) {
        let back: ResolvedPolicy = serde_json::from_str(&a.canonical_json()).expect("JSON");
        prop_assert_eq!(back.digest(), a.digest());
        prop_assert_eq!(back, a);
    }

    #[test]
    fn digests_and_differences_tell_policies_apart(a in policy(), b in policy()) {
        prop_assert_eq!(a == b, a.digest() == b.digest());
        prop_assert_eq!(a == b, diff(&a, &b).is_empty());
    }

    #[test]
    fn an_explanation_is_safe_to_show(a in policy()) {
        for line in explain(&a, &Provenance::default()) {
            let shown = line.to_string();
            prop_assert!(!shown.chars().any(crate::escape::is_deceptive), "{:?}", shown);
        }
    }

    #[test]
    fn public_rules_are_within_an_open_network(a in policy()) {
        for rule in &a.net.allow {
            let open = NetPolicy { mode: NetMode::Open, ..NetPolicy::default() };
            for part in rule.public_part() {
                prop_assert!(open.allows(&part) && rule.covers(&part), "{} {}", rule, part);
            }
        }
    }
}

proptest! {
    // Hundreds of changes are made to each policy.
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn each_single_change_changes_the_digest_and_the_order_and_is_told(a in policy()) {
        let json: Value = serde_json::from_str(&a.canonical_json()).expect("JSON");
        let mut leaves = Vec::new();
        pointers(&json, String::new(), &mut leaves);
        for pointer in leaves {
            for value in ["none", "1ms", "2B", "off", "any", "x.example:1", "kill", "microvm", "GET"] {
                let mut changed = json.clone();
                *changed.pointer_mut(&pointer).expect("a leaf") = Value::from(value);
                let Ok(changed) = serde_json::from_value::<ResolvedPolicy>(changed) else { continue };
                prop_assert_eq!(changed == a, changed.digest() == a.digest(), "{}", pointer);
                prop_assert_eq!(changed == a, diff(&a, &changed).is_empty(), "{}", pointer);
                // Different policies are not both within each other; why a path may be read is
                // no part of the order.
                let changed = changed.canonical();
                let both = a.is_within(&changed).is_ok() && changed.is_within(&a).is_ok();
                let origin = pointer.ends_with("/origin");
                prop_assert!(!both || changed == a || origin, "{} {}", pointer, value);
            }
        }
    }
}

/// The place of every string and number in a JSON value.
fn pointers(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                pointers(value, format!("{at}/{key}"), found);
            }
        }
        Value::Array(entries) => {
            for (index, value) in entries.iter().enumerate() {
                pointers(value, format!("{at}/{index}"), found);
            }
        }
        _ => found.push(at),
    }
}

#[test]
fn each_word_is_the_same_in_json_and_in_documents() {
    use crate::word::Word;
    fn check<T: Word + serde::Serialize + std::fmt::Display>() {
        for (word, value) in T::WORDS {
            assert_eq!(serde_json::to_value(value).expect("JSON"), Value::from(*word));
            assert_eq!(value.to_string(), *word);
        }
    }
    fn check_words<T: Word + std::fmt::Display>() {
        for (word, value) in T::WORDS {
            assert_eq!(value.to_string(), *word);
        }
    }
    check::<crate::Tier>();
    check::<crate::Namespaces>();
    check::<crate::LandlockMode>();
    check::<crate::Debuggers>();
    check::<crate::Combine>();
    check::<crate::RecordOutput>();
    check::<crate::Seed>();
    check::<crate::GrantOrigin>();
    check::<crate::NetMode>();
    check_words::<crate::ServerName>();
    check::<crate::Executables>();
    check::<crate::Reaction>();
    check::<crate::Via>();
    check::<crate::Method>();
}

#[test]
fn a_frozen_policy_refuses_unknown_missing_and_doubled_keys() {
    let text = ResolvedPolicy::default().to_toml();
    let read = |text: &str| ResolvedPolicy::from_toml("policy.toml", text);
    read(&text).expect("as it was written");
    let error = |text: String| read(&text).expect_err(&text);
    let limits = 1 + text.lines().position(|line| line == "[limits]").expect("limits");
    assert_eq!(error(text.replace("disk = \"none\"\n", "")).line, limits, "missing");
    for (from, to) in [
        ("wall = \"none\"", "wall = \"none\"\nwalls = \"none\""),
        ("wall = \"none\"", "wall = \"none\"\nwall = \"none\""),
        ("wall = \"none\"", "wall = \"later\""),
        ("tier = \"process\"", "tier = \"proces\""),
        ("version = 1", "version = 2"),
        ("version = 1\n", ""),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "{from}");
        let error = error(changed);
        assert!(error.line >= 1 && !error.render().is_empty(), "{from}: {error}");
    }
}

#[test]
fn document_words_and_rules_are_what_the_text_of_a_policy_has() {
    // The sections of both texts have the same names, so that a person can copy between them.
    let text = ResolvedPolicy::default().to_toml();
    let sections: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
    for section in ["[env]", "[export]", "[fs]", "[limits]", "[net]", "[react]"] {
        assert!(sections.contains(&section), "{section}");
    }
    let rule: NetRule = "a.example".parse().expect("rule");
    let document = format!("version = 1\n[profile.p.net]\nallow = [\"{rule}\"]");
    PolicyDocument::parse("p", document.as_bytes()).expect("a canonical rule is a rule");
}
