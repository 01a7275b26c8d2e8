//! Words that name what is not there, can't be, or may not be.

use crate::refusal::Refusal;
use crate::stand::Stand;

/// Words, exit code, kind, parts of the sentence, and what to do.
type Row<'a> = (&'a [&'a str], i32, &'a str, &'a [&'a str], &'a str);

fn refuse(stand: &Stand, rows: &[Row<'_>]) {
    for (words, code, kind, says, hint) in rows {
        Refusal { words, code: *code, kind, says, hint }.check(stand);
    }
}

#[test]
fn words_that_have_no_meaning_are_usage() {
    let stand = Stand::new();
    let long = "a".repeat(64);
    refuse(
        &stand,
        &[
            (&["box", "create", "Bad"], 2, "usage", &["`Bad`", "lower-case letter"], "--help"),
            (&["box", "create", "../x"], 2, "usage", &["`../x`"], "--help"),
            (&["box", "create", "a..b"], 2, "usage", &["branch name"], "--help"),
            (&["box", "create", &long], 2, "usage", &["at most 63 characters"], "--help"),
            (&["box", "create", ""], 2, "usage", &["''"], "--help"),
            (&["box", "create", "a", "--tier", "strong"], 2, "usage", &["'strong'"], "--help"),
            (&["run", "--timeout", "5", "--", "true"], 2, "usage", &["'5'", "unit"], "--help"),
            (&["run", "--timeout", "0s", "--", "true"], 2, "usage", &["at least 1ms"], "--help"),
            (
                &["run", "--env", "X", "--", "true"],
                2,
                "usage",
                &["`X` is not NAME=VALUE"],
                "--help",
            ),
            (&["run", "--env", "1X=2", "--", "true"], 2, "usage", &["1X"], "--help"),
            (&["run", "--env", "A B=2", "--", "true"], 2, "usage", &["A B"], "--help"),
            (&["run", "--set", "limits.wall", "--", "true"], 2, "usage", &["NAME=VALUE"], "--help"),
            (&["run", "--profile", "a/b", "--", "true"], 2, "usage", &["profile's name"], "--help"),
            (&["run", "--dirty", "--empty", "--", "true"], 2, "usage", &["'--dirty'"], "--help"),
            (&["run"], 2, "usage", &["<COMMAND>"], "--help"),
            (&["bax"], 2, "usage", &["`bax`"], "did you mean h5i box?"),
            (&["box", "apply", "a"], 2, "usage", &["--bundle"], "--help"),
        ],
    );
}

#[test]
fn what_is_not_there_is_named_with_what_there_is() {
    let stand = Stand::new();
    stand.ground.git(&["branch", "release"]);
    stand.ok(&["box", "create", "fix-auth"]);
    refuse(
        &stand,
        &[
            (
                &["box", "status", "fix-auht"],
                3,
                "not-found",
                &["no box `fix-auht`"],
                "did you mean fix-auth?",
            ),
            (&["box", "log", "zz"], 3, "not-found", &["no box `zz`"], "h5i box ls"),
            (&["box", "explain", "zz"], 3, "not-found", &["no box `zz`"], "h5i box ls"),
            (&["box", "rm", "fix-auth", "zz"], 3, "not-found", &["no box `zz`"], "h5i box ls"),
            (&["policy", "diff", "zz"], 3, "not-found", &["no box `zz`"], "h5i box ls"),
            (&["box", "run", "zz", "--", "true"], 125, "not-found", &["no box `zz`"], "h5i box ls"),
            (
                &["box", "create", "a", "--base", "relaese"],
                3,
                "not-found",
                &["`relaese`"],
                "did you mean release?",
            ),
            (
                &["box", "create", "a", "--base", "mian"],
                3,
                "not-found",
                &["`mian`"],
                "did you mean main?",
            ),
            (
                &["box", "create", "a", "--base", "0000000"],
                3,
                "not-found",
                &["`0000000`"],
                "git log",
            ),
            (
                &["run", "--base", "nothing", "--", "true"],
                125,
                "not-found",
                &["`nothing`"],
                "git log",
            ),
            (
                &["box", "create", "a", "--profile", "reviwe"],
                3,
                "not-found",
                &["unknown profile \"reviwe\""],
                "`review`",
            ),
            (
                &["box", "create", "a", "--profile", "zzz"],
                3,
                "not-found",
                &["unknown profile \"zzz\""],
                "default",
            ),
            (&["policy", "check", "none.toml"], 3, "not-found", &["none.toml"], "h5i policy check"),
            (
                &["-C", "nowhere", "box", "create", "a"],
                3,
                "not-found",
                &["nowhere` is no directory"],
                "-C DIR",
            ),
        ],
    );
    assert_eq!(stand.box_directories(), ["fix-auth"]);
}

#[test]
fn a_taken_name_is_refused_and_the_box_stays() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    Refusal {
        words: &["box", "create", "a"],
        code: 4,
        kind: "exists",
        says: &["box `a` exists"],
        hint: "h5i box rm a",
    }
    .check(&stand);
    stand.ok(&["box", "create", "b"]);
}

#[test]
fn what_this_version_does_not_enforce_is_refused_by_name() {
    let stand = Stand::new();
    let create = ["box", "create", "a"];
    let with = |more: &[&'static str]| [&create[..], more].concat();
    for (more, says, hint) in [
        (
            &["--allow", "api.example.com"][..],
            &["net.mode = \"allow\"", "supervised"][..],
            "--tier supervised",
        ),
        (&["--tier", "container"], &["tier = \"container\""], "--tier process"),
        (&["--tier", "microvm"], &["tier = \"microvm\""], "--tier process"),
        (
            &["--set", "react.canary-read=\"kill\""],
            &["react.canary-read = \"kill\""],
            "leave it out",
        ),
        (
            &["--set", "react.refused-connect=\"freeze\""],
            &["react.refused-connect = \"freeze\""],
            "--tier supervised",
        ),
        (&["--set", "namespaces=\"off\""], &["namespaces = \"off\""], ""),
        (
            &["--profile", "agent-claude", "--tier", "process"],
            &["grant = anthropic"],
            "--tier supervised",
        ),
    ] {
        let words = with(more);
        Refusal { words: &words, code: 4, kind: "refused", says, hint }.check(&stand);
    }
    // The twin: without what is refused, the same words make the box.
    stand.ok(&create);
}

#[test]
fn the_tier_without_a_boundary_has_to_be_asked_for_on_the_command_line() {
    let stand = Stand::new();
    stand.user_policy("version = 1\n[profile.open]\ntier = \"workspace\"\n");
    for words in [
        &["box", "create", "a", "--profile", "open"][..],
        &["box", "create", "a", "--set", "tier=\"workspace\""],
    ] {
        Refusal {
            words,
            code: 4,
            kind: "refused",
            says: &["tier workspace", "no boundary"],
            hint: "--tier workspace",
        }
        .check(&stand);
    }
    let said = stand.ok(&["box", "create", "a", "--profile", "open", "--tier", "workspace"]);
    assert!(said.err.contains("NO BOUNDARY"), "{}", said.err);
}

#[test]
fn rules_and_settings_of_the_command_line_are_checked_like_documents() {
    let stand = Stand::new();
    let rows: [(&str, &str, &[&str], &str); 7] = [
        ("--allow", "*.com", &["rule \"*.com\"", "public suffix"], "name the host"),
        ("--allow", "10.0.0.1/8:80", &["10.0.0.1/8"], "write"),
        ("--allow", "", &["rule"], ""),
        ("--set", "nope=1", &["no key `nope`"], "h5i policy show"),
        ("--set", "limits.wall=5", &["`limits.wall`", "not an integer"], "h5i policy show"),
        ("--set", "limits.wall=\"5\"", &["`limits.wall`"], ""),
        ("--set", "env.pass=[\"GIT_DIR\"]", &["must not enter a box"], "env.set"),
    ];
    for (option, word, says, hint) in rows {
        let words = ["box", "create", "a", option, word];
        Refusal { words: &words, code: 2, kind: "usage", says, hint }.check(&stand);
        let said = stand.h5i(&words);
        assert!(said.err.contains(&format!("command line, {option} (1st)")), "{}", said.err);
    }
}
