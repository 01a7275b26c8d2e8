use proptest::prelude::*;

use super::{NetRule, NetRuleError, Protocol};
use crate::host_name::HostName;

fn rule(text: &str) -> NetRule {
    NetRule::new(text).expect(text)
}

#[test]
fn rules_have_one_canonical_text() {
    for (written, canonical) in [
        ("API.Example.com.", "api.example.com:443"),
        ("api.example.com:8443", "api.example.com:8443"),
        ("api.example.com:443/tcp", "api.example.com:443"),
        ("dns.example.com:853/udp", "dns.example.com:853/udp"),
        ("*.Example.com", "*.example.com:443"),
        ("*.example.co.uk:80", "*.example.co.uk:80"),
        ("192.0.2.7", "192.0.2.7:443"),
        ("192.0.2.0/24:22", "192.0.2.0/24:22"),
        ("192.0.2.0/24:53/udp", "192.0.2.0/24:53/udp"),
        ("2001:db8::1", "[2001:db8::1]:443"),
        ("2001:DB8:0::/32", "[2001:db8::/32]:443"),
        ("[2001:db8::/32]", "[2001:db8::/32]:443"),
        ("[2001:db8::/32]:22", "[2001:db8::/32]:22"),
        ("host:5432", "host:5432"),
        ("host:53/udp", "host:53/udp"),
        ("intranet:80", "intranet:80"),
        ("host.example.com", "host.example.com:443"),
        ("DB.example.com,sni=any", "db.example.com:443,sni=any"),
        ("*.example.com:5432,sni=any", "*.example.com:5432,sni=any"),
    ] {
        assert_eq!(rule(written).to_string(), canonical, "{written}");
        assert_eq!(rule(canonical), rule(written), "{written}");
    }
}

#[test]
fn what_is_not_a_rule_is_refused_by_its_reason() {
    type E = NetRuleError;
    let refused = |text: &str| NetRule::new(text).expect_err(text);
    assert_eq!(refused(""), E::Empty);
    for text in ["https://example.com/", "http://x:1", "example.com/path", "example.com/path:1"] {
        assert!(matches!(refused(text), E::Url { .. }), "{text}");
    }
    for text in ["*", "*:443"] {
        assert!(matches!(refused(text), E::EveryHost { .. }), "{text}");
    }
    for text in ["a.*.com", "*a.example.com", "*.*.example.com", "**.example.com", "a*"] {
        assert!(matches!(refused(text), E::WildcardInside { .. }), "{text}");
    }
    for text in ["*.com", "*.COM.", "*.co.uk", "*.com.au:80", "*.github.io"] {
        assert!(matches!(refused(text), E::PublicSuffix { .. }), "{text}");
    }
    for text in ["a.example,sni=none", "a.example,", "a.example,sni=any,x", "a.example, sni=any"] {
        assert!(matches!(refused(text), E::Option { .. }), "{text}");
    }
    for text in ["192.0.2.7,sni=any", "host:80,sni=any", "a.example:53/udp,sni=any"] {
        assert!(matches!(refused(text), E::IdleServerName { .. }), "{text}");
    }
    assert!(matches!(
        refused("a.example,sni=any,sni=any"),
        E::Option { .. } | E::IdleServerName { .. }
    ));
    assert!(matches!(refused("host"), E::HostWithoutPort { .. }));
    for text in ["localhost", "LOCALHOST:80", "a.localhost:3000"] {
        assert!(matches!(refused(text), E::Localhost { .. }), "{text}");
    }
    for text in ["a.example:0", "a.example:", "a.example:65536", "a.example:+1", "a.example:080"] {
        assert!(matches!(refused(text), E::BadPort { .. }), "{text}");
    }
    for text in ["a.example:53/quic", "a.example:53/", "a.example:53/UDP"] {
        assert!(matches!(refused(text), E::BadProtocol { .. }), "{text}");
    }
    assert!(matches!(refused("a.example/udp"), E::ProtocolWithoutPort { .. }));
    assert!(matches!(refused("@npm"), E::Group { .. }));
    for text in ["bücher.example", "*.", ":443", "a b", "0x7f.1", "2130706433", "*.10.1"] {
        assert!(matches!(refused(text), E::Name { .. }), "{text}");
    }
    for text in ["10.0.0.1/8", "1.2.3", "256.1.1.1", "::ffff:1.2.3.4", "[::1", "a:b:c", "[x]:1"] {
        assert!(matches!(refused(text), E::Range { .. }), "{text}");
    }
}

#[test]
fn a_refusal_says_what_the_rule_would_allow_and_what_to_write() {
    let error = NetRule::new("*.com").expect_err("public suffix");
    assert_eq!(error.to_string(), "rule \"*.com\" would allow every name under a public suffix");
    assert_eq!(error.hint(), "name the host, or *.example.com");
    let error = NetRule::new("https://api.example.com/v1?x").expect_err("URL");
    assert_eq!(error.hint(), "write api.example.com");
}

#[test]
fn a_wildcard_allows_names_below_and_not_the_domain_itself() {
    let below = rule("*.example.com");
    let name = |text| HostName::new(text).expect(text);
    assert!(below.allows_name(&name("a.b.example.com"), 443, Protocol::Tcp));
    assert!(!below.allows_name(&name("example.com"), 443, Protocol::Tcp));
    assert!(!below.allows_name(&name("badexample.com"), 443, Protocol::Tcp));
    assert!(!below.allows_name(&name("a.example.com"), 80, Protocol::Tcp));
    assert!(!below.allows_name(&name("a.example.com"), 443, Protocol::Udp));
}

#[test]
fn a_rule_covers_what_it_allows_and_nothing_else() {
    for (outer, inner, covered) in [
        ("a.example", "a.example", true),
        ("a.example", "a.example:80", false),
        ("a.example:53/udp", "a.example:53", false),
        ("*.example.com", "a.example.com", true),
        ("*.example.com", "example.com", false),
        ("*.example.com", "*.a.example.com", true),
        ("*.a.example.com", "*.example.com", false),
        ("a.example.com", "*.example.com", false),
        ("10.0.0.0/8", "10.1.2.3", true),
        ("10.1.2.3", "10.0.0.0/8", false),
        ("0.0.0.0/0", "a.example", false),
        ("0.0.0.0/0:5432", "host:5432", false),
        ("host:5432", "host:5432", true),
        ("host:5432", "host:5433", false),
    ] {
        assert_eq!(rule(outer).covers(&rule(inner)), covered, "{outer} {inner}");
    }
}

#[test]
fn only_a_listed_address_is_allowed_by_address() {
    let range = rule("192.0.2.0/24:22");
    let at = |text: &str| text.parse().expect(text);
    assert!(range.allows_address(at("192.0.2.9"), 22, Protocol::Tcp));
    assert!(!range.allows_address(at("192.0.3.9"), 22, Protocol::Tcp));
    assert!(!range.allows_address(at("::ffff:192.0.2.9"), 22, Protocol::Tcp));
    assert!(!rule("a.example:22").allows_address(at("192.0.2.9"), 22, Protocol::Tcp));
}

#[test]
fn what_an_open_network_refuses_is_no_public_part() {
    for text in ["host:5432", "10.0.0.1", "dns.example.com:53/udp", "169.254.169.254:80"] {
        assert_eq!(rule(text).public_part(), [], "{text}");
    }
    for text in ["a.example", "*.example.com", "8.8.8.8:53"] {
        assert_eq!(rule(text).public_part(), [rule(text)], "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_refused_or_has_a_canonical_form(text in "[a-z0-9*@:/.\\[\\]-]{0,24}|\\PC{0,12}") {
        match NetRule::new(&text) {
            Ok(rule) => {
                let printed = rule.to_string();
                prop_assert_eq!(NetRule::new(&printed), Ok(rule.clone()), "{}", printed);
                prop_assert!(rule.covers(&rule));
            }
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                prop_assert!(!error.hint().is_empty());
            }
        }
    }
}
