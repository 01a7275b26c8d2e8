use std::borrow::Cow;

use data_encoding::{BASE64, BASE64URL, HEXLOWER, HEXUPPER};
use proptest::prelude::*;

use super::Redactor;
use crate::query::percent_encoded;
use crate::secret::Secret;

fn redactor(secrets: &[&[u8]]) -> Redactor {
    let secrets: Vec<Secret> = secrets.iter().map(|secret| Secret::new(secret.to_vec())).collect();
    Redactor::new(&secrets).expect("a redactor")
}

fn in_parts(redactor: &Redactor, bytes: &[u8], parts: &[usize]) -> (Vec<u8>, u64) {
    let mut stream = redactor.stream();
    let (mut clean, mut rest) = (Vec::new(), bytes);
    for part in parts.iter().cycle() {
        let (now, later) = rest.split_at((*part).min(rest.len()));
        clean.extend(stream.push(now));
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    clean.extend(stream.finish());
    (clean, stream.found())
}

fn clean(secrets: &[&[u8]], text: &[u8]) -> String {
    String::from_utf8_lossy(&redactor(secrets).redact(text)).into_owned()
}

#[test]
fn a_secret_is_covered_and_nothing_else() {
    assert_eq!(
        clean(&[b"canary-0123"], b"a canary-0123 b canary-012"),
        "a *********** b canary-012"
    );
    assert_eq!(clean(&[b"aXa"], b"aXaXa aXa"), "***** ***");
    assert_eq!(clean(&[b"abc", b"bcdefgh"], b"abcdefg abcdefgh"), "***defg ********");
    let untouched = redactor(&[b"canary-0123", b""]);
    assert!(matches!(untouched.redact(b"no such thing"), Cow::Borrowed(_)));
    assert!(matches!(redactor(&[]).redact(b"canary"), Cow::Borrowed(b"canary")));
}

#[test]
fn each_form_is_covered() {
    let secret = b"sk-\"top\\/\xc3\xa9~+?";
    for form in [
        r#"sk-\"top\\/é~+?"#,
        r#"sk-\u0022top\\\/\u00e9~\u002B?"#,
        r"\u0073k-\u0022top\\\/\u00E9~+\u003f",
        "sk-%22top%5C%2F%C3%A9~%2B%3F",
        "sk-%22top%5c/%c3%a9%7e+?",
        "sk-&quot;top&bsol;&sol;é~&plus;&quest;",
        "sk-&#34;top&#0092;&#47;&#233;&#126;&#00000043;&#63;",
        "sk-&#x22;top&#x5c;&#x2F;&#Xe9;&#x007E;&#x0000002b;&#x3f;",
        "&#115;k&#45;&QUOT;top\\/&#xE9;~+?",
        // Percent-encoding, once more.
        "sk-&#37;22top&percnt;5C&#x25;2F&#37;C3&#37;A9~&#37;2B&#37;3F",
        "sk-&#37;22top&percnt;5c&#x25;2f&#37;c3&#37;a9~&#37;2b&#37;3f",
        "sk-%2522top%255C%252F%25C3%25A9~%252B%253F",
        "sk-\\u002522top%5C%2F%C3%A9~%2B%3F",
        "736b2d22746f705c2fc3a97e2b3f",
        "736B2D22746F705C2FC3A97E2B3F",
    ] {
        let text = format!("[{form}] {{{form}}}");
        let stars = "*".repeat(form.len());
        assert_eq!(clean(&[secret], text.as_bytes()), format!("[{stars}] {{{stars}}}"), "{form}");
    }
}

#[test]
fn basic_credentials_are_covered_but_for_what_the_user_name_decides_too() {
    // The seventh character holds the last bits of `user:`, the last one the secret's with padding.
    let text = BASE64.encode(b"user:canary-0123456789");
    assert_eq!(clean(&[b"canary-0123456789"], text.as_bytes()), "dXNlcjp**********************Q==");
    let text = text.replace('=', "%3D").replace('Y', "%59");
    let clean = clean(&[b"canary-0123456789"], text.as_bytes());
    assert!(clean.starts_with("dXNlcjp***") && clean.ends_with("***Q%3D%3D"), "{clean}");
}

#[test]
fn of_a_short_secret_only_the_secret_itself_is_covered() {
    assert_eq!(
        clean(&[b"seven77"], b"seven77 %73even77 736576656e3737"),
        "******* %73even77 736576656e3737"
    );
    assert_eq!(clean(&[b"eight888"], b"%65ight888"), "**********");
}

#[test]
fn every_mark_of_ascii_that_has_a_name_is_known_by_it() {
    let named = concat!(
        "&excl;&quot;&num;&dollar;&percnt;&amp;&apos;&lpar;&rpar;&ast;&plus;&comma;-&period;&sol;",
        "&colon;&semi;&lt;&equals;&gt;&quest;&commat;&lsqb;&bsol;&rsqb;&Hat;&lowbar;&grave;&lcub;",
        "&verbar;&rcub;~"
    );
    let secret: Vec<u8> = (b'!'..=b'~').filter(u8::is_ascii_punctuation).collect();
    assert_eq!(clean(&[&secret], named.as_bytes()), "*".repeat(named.len()));
    let other = "&DiacriticalGrave;&VerticalLine;&UnderBar;&lbrack;&rbrace;&AMP;&LT;&midast;";
    assert_eq!(clean(&[b"`|_[}&<*"], other.as_bytes()), "*".repeat(other.len()));
}

#[test]
fn what_is_no_reference_is_read_as_it_is() {
    for text in [
        "ab&plus1234567",
        "ab&#43 1234567",
        "ab&#;1234567",
        "ab&#x;1234567",
        "ab&#4a;1234567",
        "ab&#000000043;1234567",
        "ab&#xd800;1234567",
        "ab&Plus;1234567",
        "ab&;1234567",
    ] {
        assert_eq!(clean(&[b"ab+1234567"], text.as_bytes()), text);
        let stars = "*".repeat(text.len());
        assert_eq!(clean(&[text.as_bytes()], text.as_bytes()), stars);
        // And what comes after may be one.
        let after = format!("{}a&#98;&&plus;1234567", &text[..text.len() - 7]);
        assert_eq!(
            clean(&[b"ab&+1234567"], after.as_bytes()),
            format!("{}{}", &text[..text.len() - 7], "*".repeat("a&#98;&&plus;1234567".len()))
        );
    }
}

#[test]
fn what_begins_no_secret_goes_out_at_once() {
    let mut stream = redactor(&[b"canary-0123", b"%2Fxyzxyz"]).stream();
    for event in
        [&b"data: {\"a\\n\": \"caned 100%\"}\n\n"[..], b"data: can\n\n", b"%20 \\u00", b"zz"]
    {
        let out = stream.push(event);
        if event.ends_with(b"\\u00") {
            assert_eq!(out, b"%20 ");
        } else if event == b"zz" {
            assert_eq!(out, b"\\u00zz");
        } else {
            assert_eq!(out, event);
        }
    }
    assert_eq!(stream.push(b"data: can"), b"data: ");
    assert_eq!(stream.push(b"ary-0123\n\n"), b"***********\n\n");
    assert_eq!((stream.found(), stream.finish()), (1, Vec::new()));
}

#[test]
fn bytes_before_an_escape_are_held_until_it_is_known() {
    let mut stream = redactor(&[b"canary-0123"]).stream();
    let mut out = Vec::new();
    for byte in b"can%61ry\\u002d0123 can%6" {
        out.extend(stream.push(&[*byte]));
    }
    assert_eq!(out, b"can%61ry\\u002d0123 ");
    let mut stream = redactor(&[b"canary-0123"]).stream();
    let mut out = Vec::new();
    for byte in b"can%61ry-0%3123 can%6" {
        out.extend(stream.push(&[*byte]));
    }
    assert_eq!(out, b"*************** ");
    out.extend(stream.finish());
    assert_eq!(out, b"*************** can%6");
}

#[test]
fn what_is_held_back_is_bounded_by_the_longest_form() {
    let secret = b"canary-0123456789-canary-0123456789-end";
    // All but the last byte, in the form that takes most room.
    let hex = HEXLOWER.encode(secret);
    let open: String = hex.bytes().take(77).map(|byte| format!("&#x{byte:08x};")).collect();
    let mut stream = redactor(&[secret]).stream();
    let (mut given, mut most) = (0, 0);
    for byte in open.bytes().cycle().take(20_000) {
        given += stream.push(&[byte]).len();
        most = most.max(stream.held.len());
    }
    assert_eq!(given + stream.held.len(), 20_000);
    assert!(open.len() <= most && most <= 18 * hex.len(), "{most}");
    assert_eq!(stream.found(), 0);
}

const NAMED: &[(u8, &str)] =
    &[(b'+', "plus"), (b'/', "sol"), (b'=', "equals"), (b'&', "amp"), (b'%', "percnt")];

/// A secret as one of its forms, by choices.
fn form(secret: &[u8], kind: usize, choices: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let choice = |at: usize| choices[at % choices.len()];
    match kind {
        0 => out.extend(secret),
        1 => out.extend(HEXLOWER.encode(secret).bytes()),
        2 => out.extend(HEXUPPER.encode(secret).bytes()),
        3 => {
            for (at, byte) in secret.iter().enumerate() {
                match choice(at) % 3 {
                    0 if *byte != b'%' => out.push(*byte),
                    1 => out.extend(format!("%{byte:02x}").bytes()),
                    _ => out.extend(format!("%{byte:02X}").bytes()),
                }
            }
        }
        4 | 5 => {
            let percent = percent_encoded(secret);
            let written = if kind == 4 { secret } else { percent.as_bytes() };
            for (at, byte) in written.iter().enumerate() {
                match choice(at) % 6 {
                    0 if *byte != b'&' => out.push(*byte),
                    1 => out.extend(format!("&#{byte};").bytes()),
                    2 => out.extend(format!("&#{byte:08};").bytes()),
                    3 => out.extend(format!("&#x{byte:x};").bytes()),
                    4 => out.extend(format!("&#X{byte:05X};").bytes()),
                    _ => match NAMED.iter().find(|(named, _)| named == byte) {
                        Some((_, name)) => out.extend(format!("&{name};").bytes()),
                        None => out.extend(format!("&#{byte};").bytes()),
                    },
                }
            }
        }
        _ => {
            for (at, byte) in secret.iter().enumerate() {
                match (choice(at) % 3, byte) {
                    (0, b'"' | b'\\' | b'/') => out.extend([b'\\', *byte]),
                    (0, byte) => out.push(*byte),
                    (1, _) => out.extend(format!("\\u{byte:04x}").bytes()),
                    _ => out.extend(format!("\\u{byte:04X}").bytes()),
                }
            }
        }
    }
    out
}

fn visible() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(0x21..0x7f_u8, 8..40)
}

fn surrounding() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..12),
        "[%\\\\u0-9a-f &#x;]{0,12}".prop_map(String::into_bytes),
    ]
}

/// Of a small alphabet, so that forms overlap and begin in each other.
fn tangled() -> impl Strategy<Value = Vec<u8>> {
    "[a%416\\\\u0&#;]{1,12}".prop_map(String::into_bytes)
}

proptest! {
    #[test]
    fn no_form_of_a_secret_remains_and_the_rest_does(
        secret in visible(),
        kind in 0..7_usize,
        choices in proptest::collection::vec(any::<u8>(), 1..8),
        around in (surrounding(), surrounding()),
        parts in proptest::collection::vec(1..30_usize, 1..5),
    ) {
        let (form, (mut before, after)) = (form(&secret, kind, &choices), around);
        // An escape that begins before would take the form's first bytes for its own.
        if before.iter().rev().take(18).any(|byte| b"%\\&".contains(byte)) {
            before.extend(b"------------------");
        }
        let text = [&before[..], &form, &after].concat();
        let redactor = redactor(&[&secret]);
        let whole = redactor.redact(&text);
        prop_assert_eq!(whole.len(), text.len());
        let at = before.len();
        prop_assert!(whole[at..at + form.len()].iter().all(|byte| *byte == b'*'));
        let (streamed, found) = in_parts(&redactor, &text, &parts);
        prop_assert_eq!(&streamed[..], &whole[..]);
        prop_assert!(found >= 1);
    }

    #[test]
    fn base64_at_each_place_is_covered(
        secret in visible(),
        around in (surrounding(), surrounding()),
        url in any::<bool>(),
        parts in proptest::collection::vec(1..30_usize, 1..5),
    ) {
        let base64 = if url { BASE64URL } else { BASE64 };
        let text = base64.encode(&[&around.0[..], &secret, &around.1].concat()).into_bytes();
        let (first, last) = ((8 * around.0.len()).div_ceil(6), 8 * (around.0.len() + secret.len()) / 6);
        let redactor = redactor(&[&secret]);
        let whole = redactor.redact(&text);
        prop_assert!(whole[first..last].iter().all(|byte| *byte == b'*'));
        prop_assert_eq!(in_parts(&redactor, &text, &parts).0, whole.into_owned());
    }

    #[test]
    fn parts_are_redacted_as_the_whole(
        secrets in proptest::collection::vec(tangled(), 1..5),
        text in proptest::collection::vec(tangled(), 0..30),
        parts in proptest::collection::vec(1..9_usize, 1..5),
    ) {
        let secrets: Vec<&[u8]> = secrets.iter().map(Vec::as_slice).collect();
        let (redactor, text) = (redactor(&secrets), text.concat());
        let whole = redactor.redact(&text);
        prop_assert_eq!(whole.len(), text.len());
        for secret in secrets {
            prop_assert!(!whole.windows(secret.len()).any(|window| window == secret));
        }
        let (streamed, found) = in_parts(&redactor, &text, &parts);
        prop_assert_eq!(&streamed[..], &whole[..]);
        prop_assert_eq!(found, in_parts(&redactor, &text, &[usize::MAX]).1);
        prop_assert_eq!(found == 0, matches!(whole, Cow::Borrowed(_)));
    }

    #[test]
    fn text_without_a_secret_is_the_same(text in proptest::collection::vec(0..0x7f_u8, 0..300)) {
        let secrets = redactor(&[b"\xffnever in ASCII", b"short\xff"]);
        prop_assert!(matches!(secrets.redact(&text), Cow::Borrowed(_)));
        prop_assert_eq!(in_parts(&secrets, &text, &[7]), (text, 0));
    }
}
