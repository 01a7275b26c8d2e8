use proptest::prelude::*;

use super::{ExportPath, MAX_DEPTH, MAX_NAME, MAX_PATH, NameSet, PathRule, fold_name};

fn rule(path: impl AsRef<[u8]>) -> Option<PathRule> {
    ExportPath::new(path.as_ref()).err().map(|error| error.rule)
}

#[test]
fn ordinary_paths_are_accepted() {
    for path in [
        "a",
        "src/main.rs",
        ".gitignore",
        ".github/x.yml",
        "a b/c.d",
        "größe",
        "..a",
        "a...b",
        "console",
        "com",
        "comet.c",
        "lpt10",
        "git",
        "git~",
        "gitk~1",
        "Foo::Bar.3pm",
        "a.git",
    ] {
        assert_eq!(rule(path), None, "{path}");
    }
    assert_eq!(rule(b"latin\xe9.txt"), None);
}

#[test]
fn each_rule_is_named() {
    use PathRule as R;
    let table: &[(&str, R)] = &[
        ("", R::Empty),
        ("a//b", R::Empty),
        ("a/", R::Empty),
        ("/etc/passwd", R::Absolute),
        ("..", R::DotComponent),
        ("a/../b", R::DotComponent),
        ("./a", R::DotComponent),
        ("a\0b", R::Nul),
        ("a\nb", R::Control),
        ("a\u{1b}[31m", R::Control),
        ("a\u{85}", R::Control),
        ("a\u{7f}", R::Control),
        ("a\\b", R::Backslash),
        ("c:", R::Drive),
        ("C:/x", R::Drive),
        ("a/z:x", R::Drive),
        ("\u{131}:x", R::Drive),
        ("a.", R::TrailingDotOrSpace),
        ("a /b", R::TrailingDotOrSpace),
        (".git", R::DotGit),
        ("a/.GiT/hooks", R::DotGit),
        (".git.", R::DotGit),
        (".git . .", R::DotGit),
        ("GIT~1", R::DotGit),
        ("git~23", R::DotGit),
        (".git::$INDEX_ALLOCATION", R::DotGit),
        (".git\\x", R::DotGit),
        (".g\u{200c}it", R::DotGit),
        (".G\u{131}t", R::DotGit),
        ("\u{feff}.git", R::DotGit),
        ("ab::$DATA", R::Stream),
        ("ab:$I30:$INDEX_ALLOCATION", R::Stream),
        ("a\u{202e}txt.exe", R::Bidi),
        ("a\u{2066}b", R::Bidi),
        ("a\u{200d}b", R::Invisible),
        ("a\u{e0041}", R::Invisible),
        ("CON", R::Device),
        ("dir/aux.c", R::Device),
        ("Lpt1.tar.gz", R::Device),
        ("com\u{b9}", R::Device),
        ("nul .txt", R::Device),
        ("conin$", R::Device),
    ];
    for &(path, expected) in table {
        assert_eq!(rule(path), Some(expected), "{path:?}");
    }
}

#[test]
fn lengths_are_exact() {
    assert_eq!(rule("a".repeat(MAX_NAME)), None);
    assert_eq!(rule("a".repeat(MAX_NAME + 1)), Some(PathRule::NameTooLong));
    assert_eq!(rule(vec!["a"; MAX_DEPTH].join("/")), None);
    assert_eq!(rule(vec!["a"; MAX_DEPTH + 1].join("/")), Some(PathRule::TooDeep));
    let long = vec!["a".repeat(255); 16].join("/");
    assert_eq!(rule(&long[..MAX_PATH]), None);
    assert_eq!(rule(&long), None);
    assert_eq!(rule(format!("{long}/a")), Some(PathRule::PathTooLong));
}

#[test]
fn the_error_shows_the_path_inert() {
    let error = ExportPath::new(b"a\x1b[2J\xff").expect_err("a control character");
    assert_eq!(
        error.to_string(),
        "path `a\\u{1b}[2J\\xff` can't be exported: it has a control character"
    );
}

fn path(text: &str) -> ExportPath {
    ExportPath::new(text.as_bytes()).expect("a good path")
}

#[test]
fn names_equal_under_folding_clash_and_others_do_not() {
    let pairs = [
        ("README", "readme"),
        ("Docs/a", "docs/b"),
        ("stra\u{df}e", "STRASSE"),
        ("caf\u{e9}", "cafe\u{301}"),
        ("\u{212a}elvin", "kelvin"),
        ("\u{3c3}", "\u{3c2}"),
    ];
    for (first, second) in pairs {
        let mut names = NameSet::new();
        names.add(&path(first)).expect("nothing is there yet");
        let clash = names.add(&path(second)).expect_err("they fold to one");
        assert_ne!(clash.first, clash.second);
    }
    let mut names = NameSet::new();
    for name in ["a", "b/a", "b/b", "b/a.c", "ab"] {
        names.add(&path(name)).expect("all differ");
    }
    names.add(&path("a")).expect("the same spelling is the same name");
}

#[test]
fn what_the_base_has_never_clashes_with_itself() {
    let mut names = NameSet::new();
    names.know(b"xt_MARK.h");
    names.know(b"xt_mark.h");
    names.add(&path("xt_other.h")).expect("a third name");
    let clash = names.add(&path("XT_mark.h")).expect_err("it folds to one of the base");
    assert_eq!(clash.first, b"xt_MARK.h");
}

/// Bytes that are likely to hit a rule.
fn nasty() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b".git".to_vec()),
        Just(b".GIT".to_vec()),
        Just(b"..".to_vec()),
        Just(b"/".to_vec()),
        Just(b".".to_vec()),
        Just(b" ".to_vec()),
        Just(b"~1".to_vec()),
        Just(b"\\".to_vec()),
        Just(b":".to_vec()),
        Just("\u{200c}".as_bytes().to_vec()),
        Just("\u{131}".as_bytes().to_vec()),
        Just("\u{ff0e}".as_bytes().to_vec()),
        "[a-zA-Z]{1,4}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 1..4),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_accepted_path_escapes_whatever_the_host_folds(bytes in nasty()) {
        let Ok(path) = ExportPath::new(&bytes) else { return Ok(()) };
        prop_assert_eq!(path.as_bytes(), &bytes[..]);
        for name in path.components() {
            // The name itself, folded, and as a host that trims and splits would see it.
            let folded = fold_name(name);
            for seen in [name, &folded[..]] {
                for part in seen.split(|byte| matches!(byte, b'/' | b'\\')) {
                    let trimmed = part.trim_ascii_end();
                    let end = trimmed.iter().rposition(|&b| b != b'.' && b != b' ').map_or(0, |n| n + 1);
                    let stem = &trimmed[..end];
                    prop_assert!(!stem.is_empty(), "{:?} is only dots and spaces", path);
                    prop_assert!(!stem.eq_ignore_ascii_case(b".git"), "{:?}", path);
                }
                prop_assert!(!seen.contains(&0) && !seen.contains(&b'\\'));
                prop_assert!(!(seen.len() > 1 && seen[0].is_ascii_alphabetic() && seen[1] == b':'));
            }
        }
        prop_assert!(!path.as_bytes().starts_with(b"/"));
    }

    #[test]
    fn a_path_is_accepted_exactly_when_its_names_are(names in proptest::collection::vec(nasty(), 1..4)) {
        let joined = names.join(&b'/');
        let each = joined.split(|&b| b == b'/').all(|name| ExportPath::new(name).is_ok());
        prop_assert_eq!(ExportPath::new(&joined).is_ok(), each);
    }

    #[test]
    fn folding_is_idempotent(name in "\\PC{0,12}") {
        let once = fold_name(name.as_bytes());
        prop_assert_eq!(fold_name(&once), once.clone());
    }
}

#[test]
fn every_spelling_of_a_sharp_s_is_one_name() {
    for name in ["ẞ", "ß", "ss", "SS", "ſs", "ſS"] {
        assert_eq!(fold_name(name.as_bytes()), b"ss", "{name}");
    }
    // Every character there is folds to what folding leaves alone.
    for c in '\0'..=char::MAX {
        let once = fold_name(c.to_string().as_bytes());
        assert_eq!(fold_name(&once), once, "{c:?}");
    }
}
