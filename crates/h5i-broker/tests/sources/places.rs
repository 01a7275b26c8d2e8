//! Where the secret of a source goes.

use h5i_broker::{Credential, Credentials as _};

use super::logins::claude;
use super::support::{Home, headers, seconds, told};

const HOST: &str = "api.example.com";

fn of_variable(value: &str) -> Home {
    let mut home = Home::new();
    home.variables.insert("API_TOKEN", value.to_owned());
    home
}

/// What must not come back, as text.
fn secrets(credential: &Credential) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    credential.secrets.iter().map(|secret| text(secret.expose())).collect()
}

/// The parameter of the query.
fn query(credential: &Credential) -> Option<(&str, &[u8])> {
    credential.query.as_ref().map(|(name, value)| (name.as_str(), value.expose()))
}

#[test]
fn a_secret_goes_into_the_query_and_is_kept_out_of_answers_in_each_spelling() {
    let home = of_variable("a/b c");
    let found = home.placed(HOST, "env:API_TOKEN", &[], Some("key")).current().expect("found");
    assert_eq!(query(&found), Some(("key", &b"a/b c"[..])));
    assert_eq!(headers(&found), Vec::<String>::new());
    assert_eq!(secrets(&found), ["a/b c", "a%2Fb%20c", "a%2Fb+c"]);
    // One that stands for itself has one spelling.
    let plain = of_variable("plain-0123");
    let found = plain.placed(HOST, "env:API_TOKEN", &[], Some("key")).current().expect("found");
    assert_eq!(secrets(&found), ["plain-0123"]);
    assert!(!format!("{found:?}").contains("plain-0123"));
}

#[test]
fn a_secret_goes_into_several_headers_and_fixed_ones_stand_beside() {
    let home = of_variable("hunter2");
    let written = ["x-key: {}", "x-pair: {basic:u}", "a-version: 1"];
    let grant = home.placed(HOST, "env:API_TOKEN", &written, Some("key"));
    let found = grant.current().expect("found");
    assert_eq!(headers(&found), ["a-version: 1", "x-key: hunter2", "x-pair: dTpodW50ZXIy"]);
    assert_eq!(query(&found), Some(("key", &b"hunter2"[..])));
    assert_eq!(secrets(&found), ["hunter2", "dTpodW50ZXIy"]);
    let error = home.placed(HOST, "env:API_TOKEN", &["a-version: 1"], None).current();
    let text = told(&error.expect_err("no place"));
    assert!(text.contains("names no header or query"), "{text}");
}

#[test]
fn a_logins_own_headers_stand_unless_the_grant_says_where_its_token_goes() {
    let home = Home::new();
    home.put(".claude/.credentials.json", &claude(seconds() + 3600));
    let placed = |headers: &[&str], query| {
        home.placed(HOST, "login:claude", headers, query).current().expect("a login")
    };
    let bearer = "authorization: Bearer old-access".to_owned();
    let beside = placed(&["a-version: 1", "authorization: mine"], None);
    assert_eq!(headers(&beside), [bearer, "a-version: 1".to_owned()]);
    assert_eq!((beside.append.len(), query(&beside)), (1, None));
    let by_query = placed(&["a-version: 1"], Some("key"));
    assert_eq!(headers(&by_query), ["a-version: 1"]);
    assert_eq!(query(&by_query), Some(("key", &b"old-access"[..])));
    assert!(by_query.append.is_empty() && by_query.until.is_some());
    let pair = placed(&["x-pair: {basic:u}"], None);
    assert_eq!(secrets(&pair), ["old-access", "old-refresh", "dTpvbGQtYWNjZXNz"]);
}

#[test]
fn what_no_query_takes_is_refused_by_name() {
    for (value, why) in [
        ("a\nb", "must be one line of ASCII"),
        (" a", "must be one line of ASCII"),
        ("\u{e9}", "must be one line of ASCII"),
        (&"/".repeat(6000), "longer than a query takes"),
    ] {
        let home = of_variable(value);
        let error = home.placed(HOST, "env:API_TOKEN", &[], Some("key")).current();
        let text = told(&error.expect_err("no query"));
        assert!(text.contains("env:API_TOKEN") && text.contains(why), "{text}");
        assert!(!text.contains("a\nb"), "{text}");
    }
    let home = of_variable(&"/".repeat(5000));
    home.placed(HOST, "env:API_TOKEN", &[], Some("key")).current().expect("long");
}
