//! Where the key goes: into several headers, or into the query.

use crate::kept_out::holding;
use crate::service::{Asked, CANARY};
use crate::shapes::BoxRun;
use crate::with_grants::{With, ask};

const LISTED: &str = "methods = [\"GET\"]\npaths = [\"/v1/*\"]\n";
const BY_QUERY: &str = "query = \"key\"\nmethods = [\"GET\"]\npaths = [\"/v1/*\"]\n";

/// The request lines that the service read.
fn lines(with: &With) -> Vec<String> {
    with.service.asked().into_iter().map(|asked| asked.line).collect()
}

#[test]
fn a_query_carries_the_key_and_nothing_of_the_box_has_it() {
    let with = With::a_box("localhost", "reverse", BY_QUERY);
    let script = "curl -s $API_URL/v1/a?key=$API_TOKEN; echo; \
                  curl -s \"$API_URL/v1/b?x=1&%6bey=$API_TOKEN&key=mine\"";
    let said = with.ok(&["box", "run", "a", "--json", "--", "sh", "-c", script]);
    let run: BoxRun = said.data();
    // The service answers with what it was asked.
    let stars = "*".repeat(CANARY.len());
    assert_eq!(run.stdout.text(), format!("/v1/a?key={stars}\n/v1/b?x=1&key={stars}"));
    let sent = [
        format!("GET /v1/a?key={CANARY} HTTP/1.1"),
        format!("GET /v1/b?x=1&key={CANARY} HTTP/1.1"),
    ];
    assert_eq!(lines(&with), sent);
    let used = with.records(&["grant-use"]);
    let paths: Vec<&serde_json::Value> = used.iter().map(|record| &record["path"]).collect();
    assert_eq!(paths, ["/v1/a", "/v1/b"]);
    assert_eq!(with.records(&["grant-use-end"])[0]["scrubbed"], 1);
    with.sh(&format!("{} > said; env > env", ask("/v1/c")));
    with.stand.ok(&["box", "export", "a", "-o", "out"]);
    let mut found = Vec::new();
    holding(&with.stand.state(), &mut found);
    holding(&with.stand.repo(), &mut found);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn an_unchanged_program_asks_and_its_own_key_is_replaced() {
    let with = With::a_box("api.test", "intercept", BY_QUERY);
    let url = format!("https://api.test:{}/v1/c", with.service.port);
    let said = with.sh(&format!("curl -sS '{url}?key=mine&x=1'; curl -sS {url}"));
    assert!(!said.contains(CANARY) && !said.contains("mine"), "{said}");
    let sent = [
        format!("GET /v1/c?x=1&key={CANARY} HTTP/1.1"),
        format!("GET /v1/c?key={CANARY} HTTP/1.1"),
    ];
    assert_eq!(lines(&with), sent);
}

#[test]
fn a_second_parameter_of_the_name_is_refused_and_said() {
    let with = With::a_box("api.test", "intercept", BY_QUERY);
    let url = format!("https://api.test:{}/v1/c", with.service.port);
    for query in ["x;key=mine", "key%5b%5d=mine", "%256bey=mine"] {
        let said = with.sh(&format!("curl -sS -w ' %{{http_code}}' '{url}?{query}'"));
        assert!(said.contains("the query has what some services take for the parameter"), "{said}");
        assert!(said.ends_with(" 400"), "{said}");
    }
    assert!(with.service.asked().is_empty());
    let refused = with.records(&["grant-refused"]);
    let told = |record: &serde_json::Value| {
        record["reason"] == "a malformed request" && record["request"] == "GET /v1/c"
    };
    assert!(!refused.is_empty() && refused.iter().all(told), "{refused:?}");
    // Their twins: of another name.
    with.sh(&format!("curl -sS '{url}?x;other=mine'; curl -sSg '{url}?other[]=mine'"));
    assert_eq!(with.service.asked().len(), 2);
}

#[test]
fn of_several_headers_each_is_the_hosts_by_either_way() {
    let headers =
        "header = [\"x-key: {}\", \"authorization: Basic {basic:u}\", \"a-version: 2\"]\n";
    let more = format!("{headers}{LISTED}");
    let own = |asked: &Asked| {
        assert_eq!(asked.header("x-key"), Some(CANARY));
        assert!(asked.header("authorization").unwrap().starts_with("Basic dTpz"), "{asked:?}");
        assert_eq!(asked.header("a-version"), Some("2"));
        assert!(!asked.headers.iter().any(|header| header.contains("mine")), "{asked:?}");
    };
    let mine = "-H 'x-key: mine' -H 'x_key: mine' -H 'a-version: mine' -H 'a_version: mine'";
    let with = With::a_box("localhost", "reverse", &more);
    assert_eq!(with.sh(&ask(&format!("/v1/a {mine}"))), "/v1/a 200");
    own(&with.service.asked()[0]);
    let with = With::a_box("api.test", "intercept", &more);
    let url = format!("https://api.test:{}/v1/c", with.service.port);
    assert_eq!(with.sh(&format!("curl -sS -H 'authorization: mine' {mine} {url}")), "/v1/c");
    own(&with.service.asked()[0]);
}

#[test]
fn a_person_is_told_where_the_key_goes_and_what_is_wider_than_it_looks() {
    let more = format!("{BY_QUERY}header = \"a-version: 2\"\nprograms = [\"curl\"]\n");
    let with = With::a_box("localhost", "reverse", &more);
    let shown = with.ok(&["grant", "show", "a", "api"]);
    for line in ["header     a-version: 2\n", "query      key={}\n", "programs   curl\n"] {
        assert!(shown.text().contains(line), "{line:?} in {}", shown.text());
    }
    let logged = "the secret is in the query as key=, and services write queries in their logs";
    let anywhere = "curl is any file of this name in the box: name the program by its path";
    let explained = with.ok(&["box", "explain", "a"]);
    for said in [shown.text(), explained.text()] {
        assert!(said.contains(logged) && said.contains(anywhere), "{said}");
    }
    // And so it is.
    let copy = "cp /usr/bin/curl other; mkdir -p d; cp /usr/bin/curl d/curl; ";
    let status = "-s -o /dev/null -w '%{http_code} ' \"$API_URL/v1/a?key=$API_TOKEN\"";
    let script = format!("{copy} curl {status}; ./other {status}; d/curl {status}");
    assert_eq!(with.sh(&script), "200 403 200");
    // By its path it is that one.
    let more = format!("{LISTED}programs = [\"/usr/bin/curl\"]\n");
    let with = With::a_box("localhost", "reverse", &more);
    let shown = with.ok(&["grant", "show", "a", "api"]);
    let explained = with.ok(&["box", "explain", "a"]);
    for said in [shown.text(), explained.text()] {
        assert!(!said.contains("in their logs") && !said.contains("any file"), "{said}");
    }
    let status = "-s -o /dev/null -w '%{http_code} ' -H \"x-api-key: $API_TOKEN\" $API_URL/v1/a";
    assert_eq!(with.sh(&format!("{copy} curl {status}; d/curl {status}")), "200 403");
}
