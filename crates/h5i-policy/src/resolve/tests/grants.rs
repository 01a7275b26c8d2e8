//! What a policy as a whole says beside its grants.

use super::*;

/// A grant by `reverse` with these variables.
fn reverse(name: &str, url: &str, token: &str) -> String {
    format!(
        "grant.{name} = {{ host = \"{name}.example\", methods = \"any\", paths = \"any\", \
         via = \"reverse\", base_url = \"{url}\", token = \"{token}\" }}\n"
    )
}

#[test]
fn a_variable_of_a_grant_is_set_by_nothing_else() {
    let profile = |lines: &str| vec![user(&format!("[profile.p]\n{lines}"))];
    let two = reverse("a", "A_URL", "A_TOKEN") + &reverse("b", "B_URL", "B_TOKEN");
    let apart = format!("env = {{ pass = [\"X\"], set = {{ Y = \"1\" }} }}\n{two}");
    assert_eq!(resolved(profile(&apart), "p").policy.grants.len(), 2);
    let same = reverse("a", "A_URL", "TOKEN") + &reverse("b", "B_URL", "TOKEN");
    let shown = refused(profile(&same), "p");
    let first = "policy.toml:4:11: TOKEN is set by `grant.a` and by `grant.b`\n";
    assert!(shown.starts_with(first), "{shown}");
    assert!(shown.ends_with("leave it out of one of them, or give the grant another"), "{shown}");
    let one = reverse("a", "A_URL", "A_TOKEN");
    let shown = refused(profile(&format!("{one}env.pass = [\"A_TOKEN\"]")), "p");
    assert!(shown.contains("A_TOKEN is set by `env.pass` and by `grant.a`"), "{shown}");
    let shown = refused(profile(&format!("{one}env.set.A_URL = \"x\"")), "p");
    assert!(shown.contains("A_URL is set by `env.set.A_URL` and by `grant.a`"), "{shown}");
    // Over profiles it is told where the second one is written.
    let layers = vec![user(&format!(
        "[profile.p]\n{one}[profile.q]\nextends = \"p\"\nenv.pass = [\"A_URL\"]"
    ))];
    resolved(layers.clone(), "p");
    let shown = refused(layers, "q");
    assert!(shown.starts_with("policy.toml:6:12: A_URL is set by `env.pass`"), "{shown}");
    // The command line has no place to point at.
    let overrides = Overrides::new().set("env.set.A_URL=x").expect("a setting");
    let error = attempt(profile(&one), &ResolveRequest::new("p").overrides(overrides));
    let conflict = error.expect_err("set twice");
    assert_eq!(conflict.to_string(), "A_URL is set by `env.set.A_URL` and by `grant.a`");
}

#[test]
fn addresses_that_stand_for_services_are_not_listed_beside_their_grants() {
    let with = |via: &str, rule: &str| {
        let names = if via == "reverse" { ", base_url = \"A_URL\"" } else { "" };
        vec![user(&format!(
            "[profile.p]\ntier = \"supervised\"\nnet = {{ mode = \"allow\", allow = [\"{rule}\"] }}\n\
             grant.g = {{ host = \"a.example\", methods = \"any\", paths = \"any\", via = \"{via}\"{names} }}"
        ))]
    };
    for rule in ["198.18.0.0/16", "198.18.0.1", "0.0.0.0/0:8080", "198.18.0.0/24:443/udp"] {
        let shown = refused(with("intercept", rule), "p");
        assert!(shown.contains("stand for the services of grants by intercept"), "{shown}");
        assert!(shown.contains("\"g\""), "{shown}");
        assert!(shown.ends_with("or reach the service by a grant by reverse"), "{shown}");
        resolved(with("reverse", rule), "p");
    }
    for rule in ["198.19.0.0/16", "198.18.1.0/24", "10.0.0.0/8", "b.example", "a.example:8443"] {
        resolved(with("intercept", rule), "p");
    }
}
