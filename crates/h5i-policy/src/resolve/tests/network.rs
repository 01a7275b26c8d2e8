//! What documents say of the network.

use super::{resolved, rules, user};
use crate::document::PolicyDocument;
use crate::host_facts::HostFacts;
use crate::layer::Layer;
use crate::resolve::{ResolveRequest, resolve};
use crate::units::Bytes;

#[test]
fn a_rule_says_by_text_or_by_table_that_tls_may_carry_any_name() {
    let rules_of = |list: &str| {
        let text = format!(
            "[profile.w]\ntier = \"supervised\"\nnet = {{ mode = \"allow\", allow = [{list}] }}"
        );
        resolved(vec![user(&text)], "w")
    };
    let by_text = rules_of("\"db.example:5432,sni=any\"");
    let by_table = rules_of("{ rule = \"db.example:5432\", sni = \"any\" }");
    assert_eq!(rules(&by_text), ["db.example:5432,sni=any"]);
    assert_eq!(by_text.policy.digest(), by_table.policy.digest());
    let strict = rules_of("{ rule = \"db.example:5432\", sni = \"listed\" }");
    assert_eq!(strict.policy.digest(), rules_of("\"db.example:5432\"").policy.digest());
    assert_ne!(strict.policy.digest(), by_text.policy.digest());
    // The looser rule is not within the stricter one; the other way round it is.
    assert!(by_text.policy.is_within(&strict.policy).is_err());
    strict.policy.is_within(&by_text.policy).expect("stricter");
    let wide = rules_of("\"*.example.com\", \"a.example.com,sni=any\"");
    assert_eq!(rules(&wide).len(), 2);
    let both = wide.policy.tighten(&rules_of("\"*.example.com,sni=any\"").policy).expect("meet");
    assert_eq!(both.net.allow, wide.policy.net.allow);
}

#[test]
fn a_table_that_is_no_rule_is_refused_at_its_place() {
    for (entry, says) in [
        ("{ sni = \"any\" }", "a table with `rule`"),
        ("{ rule = \"a.example\", snj = \"any\" }", "unknown key `snj`"),
        ("{ rule = \"a.example\", sni = \"none\" }", "one of listed, any"),
        ("{ rule = \"192.0.2.1\", sni = \"any\" }", "no meaning"),
        ("{ rule = 3 }", "must be a string"),
    ] {
        let text = format!("version = 1\n[profile.w.net]\nallow = [{entry}]\n");
        let error = PolicyDocument::parse("p", text.as_bytes()).expect_err(entry);
        assert!(error.to_string().contains(says) && error.line == 3, "{entry}: {error}");
    }
}

#[test]
fn budgets_of_the_network_hold_unless_nothing_counts() {
    let budget = "[profile.w.net.budget]\nbytes = \"1MiB\"\nconnections = 7\n";
    let of =
        |head: &str| resolved(vec![user(&format!("[profile.w]\n{head}\n{budget}"))], "w").policy;
    let supervised = of("tier = \"supervised\"");
    assert_eq!(supervised.net.budget.bytes, Some(Bytes::mebibytes(1)));
    assert_eq!(supervised.net.budget.connections, Some(7));
    // What the profile extends has a budget, and the host's own network takes it away.
    let own = Layer::built_in();
    let inherited = resolved(vec![user("[profile.w]\nnet.mode = \"host\"")], "w").policy;
    assert_eq!(inherited.net.budget, crate::NetBudget::default());
    assert!(
        resolve(&[own], &ResolveRequest::new("default"), &HostFacts::new())
            .expect("default")
            .policy
            .net
            .budget
            .bytes
            .is_some()
    );
    // One that stands there by its own word is refused, wherever it stands.
    let asked = resolved(vec![user(&format!("{budget}[profile.w.net]\nmode = \"host\""))], "w");
    assert!(crate::unenforced(&asked.policy).iter().any(|row| row.field == "net.budget"));
}
