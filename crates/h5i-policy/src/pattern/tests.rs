use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{Pattern, PatternError};

fn matches(pattern: &str, path: &str) -> bool {
    let (path, is_dir) = match path.strip_suffix('/') {
        Some(path) => (path, true),
        None => (path, false),
    };
    Pattern::new(pattern).expect(pattern).matches(path.as_bytes(), is_dir)
}

/// (pattern, paths that match, paths that don't); a trailing `/` marks a directory.
const TABLE: &[(&str, &[&str], &[&str])] = &[
    (".env", &[".env", "a/.env", "a/b/.env", ".env/x"], &[".env2", "x.env", "a/.ENV"]),
    ("/.env", &[".env"], &["a/.env"]),
    ("a/b", &["a/b", "a/b/c"], &["x/a/b", "a", "ab"]),
    ("*.pem", &["k.pem", "d/k.pem", ".pem"], &["k.pem2", "pem"]),
    ("secrets/", &["secrets/", "secrets/x", "a/secrets/x"], &["secrets", "a/secrets"]),
    (
        "secrets/**",
        &["secrets/x", "secrets/a/b", "secrets/d/"],
        &["secrets", "secrets/", "a/secrets/x"],
    ),
    ("**/.env", &[".env", "a/.env", "a/b/.env"], &["a.env"]),
    ("a/**/b", &["a/b", "a/x/b", "a/x/y/b", "a/x/b/c"], &["ab", "a/xb", "b"]),
    ("**", &["a", "a/b"], &[]),
    ("**/", &["a/", "a/b"], &["a"]),
    ("a?c", &["abc", "x/a.c"], &["ac", "a/c", "abbc"]),
    ("[a-c]x", &["ax", "cx"], &["dx", "x", "aax"]),
    ("[!a-c]x", &["dx"], &["ax"]),
    ("[]x]", &["]", "x"], &["[", "y"]),
    ("[a-]", &["a", "-"], &["b"]),
    (r"[\]-_]", &["]", "^", "_"], &["\\", "a"]),
    (r"\*", &["*"], &["a", "\\*"]),
    (r"\!x", &["!x"], &["x"]),
    ("*/b", &["a/b"], &["b", "x/a/b"]),
    (
        "/repos/acme/site/**",
        &["repos/acme/site/x", "/repos/acme/site/a/b"],
        &["repos/acme/sitex/x", "repos/acme/site"],
    ),
    ("a**b", &["ab", "axxb"], &["a/b"]),
];

#[test]
fn the_table_of_patterns_holds_on_both_sides() {
    for (pattern, yes, no) in TABLE {
        for path in *yes {
            assert!(matches(pattern, path), "{pattern} must match {path}");
        }
        for path in *no {
            assert!(!matches(pattern, path), "{pattern} must not match {path}");
        }
    }
}

#[test]
fn names_are_bytes_and_need_not_be_text() {
    let any = Pattern::new("d/*").expect("pattern");
    assert!(any.matches(b"d/\xff\xfe", false));
    assert!(!any.matches(b"\xff/x", false));
    assert!(Pattern::new("é").expect("pattern").matches("é".as_bytes(), false));
}

#[test]
fn what_is_not_a_pattern_is_refused_by_its_reason() {
    for (text, error) in [
        ("", PatternError::Empty),
        ("/", PatternError::Empty),
        ("//", PatternError::Empty),
        ("!x", PatternError::Negated),
        ("a//b", PatternError::NotNormal),
        ("./a", PatternError::NotNormal),
        ("a/../b", PatternError::NotNormal),
        ("a\nb", PatternError::Control),
        ("a\0", PatternError::Control),
        ("[a", PatternError::BadClass),
        ("[]", PatternError::BadClass),
        ("[z-a]", PatternError::BadClass),
        ("[[:alpha:]]", PatternError::BadClass),
        ("[é]", PatternError::BadClass),
        ("a\\", PatternError::DanglingEscape),
    ] {
        assert_eq!(Pattern::new(text), Err(error), "{text:?}");
    }
    assert_eq!(Pattern::new(&"a".repeat(4097)), Err(PatternError::TooLong));
    assert_eq!(Pattern::new(&"a".repeat(4096)).map(|p| p.as_str().len()), Ok(4096));
}

#[test]
fn hostile_patterns_cost_no_more_than_the_product_of_the_lengths() {
    let path = vec![b'a'; 4096];
    let begun = Instant::now();
    let stars = Pattern::new(&format!("{}b", "a*".repeat(2000))).expect("pattern");
    assert!(!stars.matches(&path, false));
    let deep = Pattern::new(&format!("{}b", "**/a/".repeat(800))).expect("pattern");
    assert!(!deep.matches("a/".repeat(2000).as_bytes(), false));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// The definition, written for clearness and not for speed.
fn slow_glob(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', p)), None) => slow_glob(p, name),
        (Some((b'*', p)), Some((_, n))) => slow_glob(p, name) || slow_glob(pattern, n),
        (Some((b'?', p)), Some((_, n))) => slow_glob(p, n),
        (Some((x, p)), Some((y, n))) => x == y && slow_glob(p, n),
        _ => false,
    }
}

fn slow_path(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, _) => true,
        (Some((&"**", [])), _) => !path.is_empty(),
        (Some((&"**", rest)), None) => slow_path(rest, path),
        (Some((&"**", rest)), Some((_, below))) => {
            slow_path(rest, path) || slow_path(pattern, below)
        }
        (Some((part, rest)), Some((name, below))) => {
            slow_glob(part.as_bytes(), name.as_bytes()) && slow_path(rest, below)
        }
        (Some(_), None) => false,
    }
}

proptest! {
    #[test]
    fn the_matcher_agrees_with_the_definition(
        pattern in "/[ab?*]{1,3}(/([ab?*]{1,3}|\\*\\*)){0,4}",
        path in "[ab]{1,3}(/[ab]{1,3}){0,5}",
    ) {
        let parts: Vec<&str> = pattern[1..].split('/').collect();
        let names: Vec<&str> = path.split('/').collect();
        prop_assert_eq!(matches(&pattern, &path), slow_path(&parts, &names));
    }

    #[test]
    fn any_text_is_refused_or_kept_as_it_was(text in "[a\\[\\]!*/\\\\.-]{0,12}", path in "[a/.]{0,8}") {
        if let Ok(pattern) = Pattern::new(&text) {
            prop_assert_eq!(pattern.as_str(), text.as_str());
            prop_assert_eq!(pattern.to_string().parse(), Ok(pattern.clone()));
            // What matches as a file matches as a directory.
            let as_file = pattern.matches(path.as_bytes(), false);
            prop_assert!(!as_file || pattern.matches(path.as_bytes(), true));
        }
    }
}
