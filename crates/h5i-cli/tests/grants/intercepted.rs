//! By `intercept`: the program knows nothing of it.

use crate::shapes::BoxRun;
use crate::with_grants::With;

const LISTED: &str = "methods = [\"GET\"]\npaths = [\"/v1/*\"]\n";

#[test]
fn an_unchanged_program_asks_the_service_and_the_host_adds_the_key() {
    let with = With::a_box("api.test", "intercept", LISTED);
    let url = format!("https://api.test:{}", with.service.port);
    let python = format!(
        "python3 -c 'import urllib.request as u; print(u.urlopen(\"{url}/v1/p\").read().decode())'"
    );
    let script = format!("curl -sS -H 'authorization: Bearer mine' {url}/v1/c; echo; {python}");
    let said = with.ok(&["box", "run", "a", "--json", "--", "sh", "-c", &script]);
    let run: BoxRun = said.data();
    assert_eq!(run.stdout.text(), "/v1/c\n/v1/p\n");
    let asked = with.service.asked();
    assert_eq!(asked.len(), 2);
    for one in &asked {
        assert_eq!(one.header("authorization"), Some("Bearer sk-canary-7hJ2kQ9xV4mB1nZ8"));
    }
    assert_eq!(run.grants[0].uses, 2);
    let used = with.records(&["grant-use"]);
    assert!(used.iter().all(|r| r["via"] == "intercept" && r["run"] == 1), "{used:?}");
    assert!(used[0]["program"].as_str().unwrap().ends_with("/curl"), "{used:?}");
}

#[test]
fn what_is_not_listed_or_not_the_service_is_refused() {
    let with = With::a_box("api.test", "intercept", LISTED);
    let port = with.service.port;
    let status = |words: &str| {
        let script = format!("curl -s -o /dev/null -w '%{{http_code}}' {words} || true");
        with.sh(&script)
    };
    assert_eq!(status(&format!("https://api.test:{port}/v2/a")), "403");
    assert_eq!(status(&format!("-X POST https://api.test:{port}/v1/a")), "403");
    // Another Host than the name in TLS, plain HTTP, and another name at the same address.
    assert_eq!(status(&format!("-H 'Host: other.test' https://api.test:{port}/v1/a")), "421");
    assert_eq!(status(&format!("http://api.test:{port}/v1/a")), "000");
    let address = "$(getent hosts api.test | cut -d' ' -f1)";
    let other = format!("--connect-to other.test:{port}:{address}:{port}");
    assert_eq!(status(&format!("-k {other} https://other.test:{port}/v1/a")), "000");
    assert!(with.service.asked().is_empty());
    assert_eq!(status(&format!("https://api.test:{port}/v1/a")), "200");
}

#[test]
fn only_this_box_trusts_the_broker_and_its_key_is_nowhere_in_it() {
    let with = With::a_box("api.test", "intercept", LISTED);
    let seen = with.sh("cat /run/h5i/trust/authority.pem; ls /run/h5i/trust; cat /run/h5i/trust/* | grep -c PRIVATE; echo x > /run/h5i/trust/bundle.pem 2>/dev/null || echo kept");
    assert!(seen.contains("BEGIN CERTIFICATE") && seen.contains("\n0\nkept"), "{seen}");
    let host_dir = with.stand.box_dir("a").join("host/trust");
    for entry in std::fs::read_dir(host_dir).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.contains("PRIVATE"));
    }
    // Another session has another authority.
    let (one, other) = ("sha256sum < /run/h5i/trust/authority.pem", "true");
    assert_ne!(with.sh(one), with.sh(&format!("{other}; {one}")));
}

#[test]
fn the_address_that_stands_for_the_service_is_never_listed_as_it_is() {
    let with = With::a_box("api.test", "intercept", LISTED);
    let port = with.service.port;
    let listing = |rule: &str| {
        let document = format!(
            "version = 1\n[profile.asks]\ntier = \"supervised\"\n\
             net = {{ mode = \"allow\", allow = [\"{rule}\"] }}\n\
             [profile.asks.grant.api]\nhost = \"api.test\"\nport = {port}\nvia = \"intercept\"\n\
             {LISTED}"
        );
        with.stand.user_policy(&document);
        with.h5i(&["box", "create", "b", "--profile", "asks"])
    };
    for rule in ["198.18.0.0/16", "0.0.0.0/0:8080"] {
        let said = listing(rule);
        assert_eq!(said.code, 4, "{}", said.err);
        assert!(said.err.contains("stand for the services of grants by intercept"), "{}", said.err);
        assert!(said.err.contains("list ranges without 198.18.0.0/24"), "{}", said.err);
    }
    let said = listing("198.18.1.0/24");
    assert_eq!(said.code, 0, "{}", said.err);
    // What is refused is where the service is in the box.
    let address = with.sh("getent ahostsv4 api.test | head -n 1");
    assert!(address.starts_with("198.18.0."), "{address}");
    with.ok(&["box", "start", "a"]);
    let said = with.stand.h5i(&["box", "allow", "a", "198.18.0.0/15:80"]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("which stand for services of grants"), "{}", said.err);
    with.stand.ok(&["box", "allow", "a", "198.19.0.0/16:80"]);
    with.ok(&["box", "stop", "a"]);
}

#[test]
fn another_port_of_a_private_service_is_refused_and_of_a_public_one_is_not() {
    let with = With::a_box("api.test", "intercept", LISTED);
    let port = with.service.port;
    let made = |name: &str, host: &str, rule: &str| {
        with.stand.user_policy(&format!(
            "version = 1\n[profile.asks]\ntier = \"supervised\"\n\
             net = {{ mode = \"allow\", allow = [\"{rule}\"] }}\n\
             [profile.asks.grant.api]\nhost = \"{host}\"\nport = {port}\nvia = \"intercept\"\n\
             {LISTED}"
        ));
        with.ok(&["box", "create", name, "--profile", "asks"]);
        with.h5i(&["box", "run", name, "--", "true"])
    };
    let refused = made("b", "api.test", "api.test:9");
    assert_eq!(refused.code, 126, "{}", refused.err);
    let why = "grant `api` is for a private service, and `api.test:9` lists its name";
    assert!(refused.err.contains(why), "{}", refused.err);
    assert!(refused.err.contains("list that port by the service's address"), "{}", refused.err);
    for (name, host, rule) in [
        // Nobody connects there.
        ("c", "public.test", "public.test:9"),
        ("d", "api.test", "other.test:9"),
    ] {
        let said = made(name, host, rule);
        assert_eq!(said.code, 0, "{}", said.err);
    }
    // Nor can it be allowed while the box lives.
    with.ok(&["box", "start", "a"]);
    let refused = with.h5i(&["box", "allow", "a", "api.test:9"]);
    assert!(refused.code == 4 && refused.err.contains(why), "{}", refused.err);
    with.ok(&["box", "allow", "a", "other.test:9"]);
    with.ok(&["box", "stop", "a"]);
}
