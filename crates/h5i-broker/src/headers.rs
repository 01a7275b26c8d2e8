//! The headers of a request and of an answer: what is taken out, and what is put in.

use data_encoding::BASE64;
use h5i_policy::GrantHeaders;
use http::header::{
    ACCEPT_ENCODING, ALT_SVC, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, SET_COOKIE, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::credential::Credential;
use crate::refusal::REFUSED;
use crate::token::TokenDigest;

/// Headers by which a client could show a credential of its own.
const CREDENTIALS: &[&str] = &[
    "authorization",
    "cookie",
    "cookie2",
    "dd-application-key",
    "ocp-apim-subscription-key",
    "proxy-authorization",
    "x-auth-key",
    "x-functions-key",
    "x-honeycomb-team",
];

/// How the names of others end: `x-goog-api-key`, `private-token`. Not `-key` alone, as in
/// `idempotency-key`.
const CREDENTIAL_ENDS: &[&str] =
    &["api-key", "apikey", "token", "secret", "password", "-authorization"];

/// What all spellings of a name have in common: some servers take `_` for `-`.
pub(crate) fn spelling(name: &str) -> String {
    name.replace('_', "-")
}

/// Whether the [`spelling`] of a header's name is one of those.
fn is_credential(name: &str) -> bool {
    CREDENTIALS.contains(&name) || CREDENTIAL_ENDS.iter().any(|end| name.ends_with(end))
}

/// Where a client may show its token, beside the headers of the grant's templates.
const TOKENS: &[&str] = &["api-key", "authorization", "x-api-key"];

/// Of one connection only. RFC 9110, section 7.6.1.
fn hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
    for name in ["keep-alive", "proxy-connection", "proxy-authenticate", "http2-settings"] {
        headers.remove(name);
    }
}

/// Removes every spelling of these names.
fn remove(headers: &mut HeaderMap, names: &[&str]) {
    let names: Vec<String> = names.iter().map(|name| spelling(name)).collect();
    remove_where(headers, |name| names.iter().any(|own| own == name));
}

/// Removes the headers for which this is so of the [`spelling`] of their name.
fn remove_where(headers: &mut HeaderMap, is_one: impl Fn(&str) -> bool) {
    let present: Vec<HeaderName> =
        headers.keys().filter(|name| is_one(&spelling(name.as_str()))).cloned().collect();
    for name in present {
        headers.remove(name);
    }
}

/// Headers that some services and the servers before them take instead of the method or the path
/// of the request line.
const OVERRIDES: &[&str] = &[
    "x-envoy-original-path",
    "x-forwarded-method",
    "x-forwarded-path",
    "x-forwarded-prefix",
    "x-forwarded-uri",
    "x-forwarded-url",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-method",
    "x-original-path",
    "x-original-uri",
    "x-original-url",
    "x-override-url",
    "x-request-uri",
    "x-rewrite-uri",
    "x-rewrite-url",
];

/// Whether a request says that it means another one.
pub(crate) fn overrides(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| OVERRIDES.contains(&spelling(name.as_str()).as_str()))
}

/// The tokens that a client shows, each with the header it is in.
pub(crate) fn presented(
    headers: &HeaderMap,
    templates: &GrantHeaders,
) -> Vec<(HeaderName, TokenDigest)> {
    let mut found = Vec::new();
    let mut add =
        |name: &HeaderName, text: &[u8]| found.push((name.clone(), TokenDigest::of(text)));
    for (name, value) in headers {
        let bytes = value.as_bytes();
        let spelled = spelling(name.as_str());
        let plain = templates.iter().filter(|one| one.holds_secret() && one.user().is_none());
        for template in plain.filter(|template| spelling(template.name()) == spelled) {
            let (before, after) = template.around();
            let inner = bytes.strip_prefix(before.as_bytes());
            if let Some(inner) = inner.and_then(|rest| rest.strip_suffix(after.as_bytes())) {
                add(name, inner);
            }
        }
        if !TOKENS.contains(&spelled.as_str()) {
            continue;
        }
        if *name != AUTHORIZATION {
            add(name, bytes);
            continue;
        }
        let Some(at) = bytes.iter().position(|byte| *byte == b' ') else { continue };
        let (scheme, rest) = (&bytes[..at], bytes[at..].trim_ascii());
        if scheme.eq_ignore_ascii_case(b"bearer") {
            add(name, rest);
        } else if scheme.eq_ignore_ascii_case(b"basic")
            && let Ok(pair) = BASE64.decode(rest)
            && let Some(colon) = pair.iter().position(|byte| *byte == b':')
        {
            add(name, &pair[colon + 1..]);
        }
    }
    found
}

/// What goes to the service: the client's headers without those of its connection and, where the
/// host adds a credential, without any that could be one.
pub(crate) fn outgoing(
    mut headers: HeaderMap,
    credential: Option<&Credential>,
) -> Option<HeaderMap> {
    hop_by_hop(&mut headers);
    headers.remove(HOST);
    remove(&mut headers, &["content-length", "expect", "host", "transfer-encoding"]);
    let Some(credential) = credential else { return Some(headers) };
    remove_where(&mut headers, is_credential);
    for (name, _) in &credential.headers {
        remove(&mut headers, &[name]);
    }
    for (name, value) in &credential.headers {
        let mut value = HeaderValue::from_bytes(value.expose()).ok()?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_bytes(name.as_bytes()).ok()?, value);
    }
    for (name, member) in &credential.append {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        append(&mut headers, &name, member)?;
    }
    // Last, so that no header of the grant's takes their place in another spelling.
    // An answer that is packed could not be looked through for the secret.
    remove(&mut headers, &["accept-encoding"]);
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    // Nor one of which only a part comes. Some services take it by a name of their own.
    remove_where(&mut headers, |name| name == "range" || name.ends_with("-range"));
    Some(headers)
}

/// The same with a header of the host's own in the place of the client's, where there is one.
pub(crate) fn stamped(
    mut headers: HeaderMap,
    stamp: Option<&(String, String)>,
) -> Option<HeaderMap> {
    let Some((name, value)) = stamp else { return Some(headers) };
    remove(&mut headers, &[name]);
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    headers.insert(name, HeaderValue::from_str(value).ok()?);
    Some(headers)
}

/// Adds a member to a list that may be spread over several headers and spellings, unless it is in
/// it.
fn append(headers: &mut HeaderMap, name: &HeaderName, member: &str) -> Option<()> {
    let alike = |other: &HeaderName| spelling(other.as_str()) == spelling(name.as_str());
    let lists = headers.iter().filter(|(other, _)| alike(other));
    let lists: Vec<(&HeaderName, &[u8])> =
        lists.map(|(other, list)| (other, list.as_bytes())).collect();
    let has = |list: &[u8]| {
        list.split(|byte| *byte == b',').any(|one| one.trim_ascii() == member.as_bytes())
    };
    let present = lists.iter().any(|(_, list)| has(list));
    if present && lists.iter().all(|(other, _)| *other == name) {
        return Some(());
    }
    // One header: some services read only the first.
    let lists = lists.into_iter().map(|(_, list)| list);
    let list: Vec<&[u8]> = lists.chain((!present).then_some(member.as_bytes())).collect();
    let list = HeaderValue::from_bytes(&list.join(&b", "[..])).ok()?;
    remove(headers, &[name.as_str()]);
    headers.insert(name.clone(), list);
    Some(())
}

/// The size that an answer says, if it says one.
pub(crate) fn size(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut sizes = headers.get_all(CONTENT_LENGTH).iter();
    let size = sizes.next().filter(|size| size.as_bytes().iter().all(u8::is_ascii_digit));
    if sizes.next().is_none() { size.cloned() } else { None }
}

/// What comes back to the client.
pub(crate) fn incoming(headers: &mut HeaderMap, with_secret: bool) {
    hop_by_hop(headers);
    headers.remove(CONTENT_LENGTH);
    headers.remove(ALT_SVC);
    headers.remove(REFUSED);
    if with_secret {
        // A session of the host's account is a credential.
        headers.remove(SET_COOKIE);
        headers.remove("set-cookie2");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn map(headers: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("name");
            (name, HeaderValue::from_str(value).expect("value"))
        };
        let mut map = HeaderMap::new();
        for (name, value) in headers.iter().map(pair) {
            map.append(name, value);
        }
        map
    }

    #[test]
    fn a_token_is_found_wherever_clients_put_it() {
        let mut templates = GrantHeaders::default();
        for template in ["x-auth: key={};v=1", "x-more: {}", "x-pair: {basic:u}", "x-fixed: T"] {
            templates.add(template.parse().expect("template")).expect("another name");
        }
        let wanted = TokenDigest::of(b"T");
        for (name, value) in [
            ("authorization", "Bearer T"),
            ("authorization", "bearer  T"),
            ("authorization", "Basic eDpU"),
            ("x-api-key", "T"),
            ("api-key", "T"),
            ("x-auth", "key=T;v=1"),
            ("x-more", "T"),
            ("x_more", "T"),
            ("x_api_key", "T"),
        ] {
            let found = presented(&map(&[(name, value)]), &templates);
            assert!(found.iter().any(|(_, token)| token.is(&wanted)), "{name}: {value}");
        }
        for (name, value) in [
            ("authorization", "T"),
            ("authorization", "Basic VA=="),
            ("cookie", "T"),
            ("x-auth", "T"),
            ("x-other", "T"),
            ("x-pair", "T"),
            ("x-fixed", "T"),
            ("x-fixed", ""),
        ] {
            let found = presented(&map(&[(name, value)]), &templates);
            assert!(!found.iter().any(|(_, token)| token.is(&wanted)), "{name}: {value}");
        }
    }

    #[test]
    fn a_request_that_means_another_one_is_known_in_any_spelling() {
        for name in ["x-http-method-override", "x_original_uri", "x-forwarded-uri"] {
            assert!(overrides(&map(&[("accept", "a/b"), (name, "x")])), "{name}");
        }
        for name in ["x-forwarded-for", "x-original", "referer"] {
            assert!(!overrides(&map(&[(name, "x")])), "{name}");
        }
    }

    #[test]
    fn a_header_of_the_hosts_own_stands_alone_in_any_spelling() {
        let headers = map(&[("x-mark", "mine"), ("x_mark", "mine"), ("accept", "a/b")]);
        let stamp = ("x-mark".to_owned(), "the host's".to_owned());
        let sent = stamped(headers.clone(), Some(&stamp)).expect("headers");
        assert_eq!(sent, map(&[("accept", "a/b"), ("x-mark", "the host's")]));
        assert_eq!(stamped(headers.clone(), None), Some(headers.clone()));
        assert_eq!(stamped(headers, Some(&("x-mark".to_owned(), "a\nb".to_owned()))), None);
    }

    #[test]
    fn the_hosts_headers_stand_alone_however_each_side_spells_them() {
        for (own, clients) in
            [("x_api_ver", ["x-api-ver", "x_api-ver"]), ("x-api-ver", ["x_api_ver", "x_api-ver"])]
        {
            let credential = Credential {
                headers: vec![(own.to_owned(), Secret::new(b"2024".to_vec()))],
                query: None,
                append: vec![("be-ta".to_owned(), "login".to_owned())],
                secrets: Vec::new(),
                until: None,
            };
            let mut headers = map(&[("be_ta", "a"), ("x-api-version", "3"), ("accept", "a/b")]);
            for name in clients.into_iter().chain([own, "accept_encoding", "if_range", "x_range"]) {
                headers.append(name, HeaderValue::from_static("mine"));
            }
            let sent = outgoing(headers, Some(&credential)).expect("headers");
            let wanted = map(&[
                ("x-api-version", "3"),
                ("accept", "a/b"),
                (own, "2024"),
                ("be-ta", "a, login"),
                ("accept-encoding", "identity"),
            ]);
            assert_eq!(sent, wanted);
        }
    }

    #[test]
    fn the_clients_own_credentials_do_not_pass_in_any_spelling() {
        let credential = Credential {
            headers: vec![
                ("x-auth".to_owned(), Secret::new(b"key=S".to_vec())),
                ("a-version".to_owned(), Secret::new(b"2".to_vec())),
            ],
            query: None,
            append: vec![
                ("beta".to_owned(), "login".to_owned()),
                ("beta".to_owned(), "other".to_owned()),
                ("alpha".to_owned(), "new".to_owned()),
            ],
            secrets: vec![Secret::new(b"S".to_vec())],
            until: None,
        };
        let headers = map(&[
            ("authorization", "Bearer mine"),
            ("x-api-key", "mine"),
            ("x_api_key", "mine"),
            ("cookie", "mine"),
            ("proxy-authorization", "mine"),
            ("x-goog-api-key", "mine"),
            ("private-token", "mine"),
            ("x_auth_token", "mine"),
            ("idempotency-key", "4"),
            ("x-auth", "mine"),
            ("x_auth", "mine"),
            ("a-version", "1"),
            ("a_version", "1"),
            ("connection", "x-hop, close"),
            ("x-hop", "1"),
            ("keep-alive", "1"),
            ("te", "trailers"),
            ("accept-encoding", "br"),
            ("accept", "a/b"),
            ("beta", "other, more"),
        ]);
        let sent = outgoing(headers.clone(), Some(&credential)).expect("headers");
        let wanted = map(&[
            ("idempotency-key", "4"),
            ("accept-encoding", "identity"),
            ("accept", "a/b"),
            ("x-auth", "key=S"),
            ("a-version", "2"),
            ("beta", "other, more, login"),
            ("alpha", "new"),
        ]);
        assert_eq!(sent, wanted);
        // Without a secret they are the client's own business.
        let sent = outgoing(headers, None).expect("headers");
        assert_eq!(sent["authorization"], "Bearer mine");
        assert_eq!(sent["accept-encoding"], "br");
        assert!(!sent.contains_key("x-hop") && !sent.contains_key("te"));
    }
}
