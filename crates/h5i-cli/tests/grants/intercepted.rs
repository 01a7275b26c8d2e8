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
