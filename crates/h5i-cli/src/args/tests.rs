use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use clap::{CommandFactory, Parser as _};
use h5i_policy::{Millis, Tier};

use super::{After, BoxVerb, Cli, DiffForm, RunAlone, Verb, asks_for_json, slip, usage_failure};
use crate::failure::Kind;
use crate::workspace::BaseSpec;

fn words(line: &str) -> Vec<OsString> {
    line.split(' ').map(OsString::from).collect()
}

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::of(words(line))
}

#[test]
fn the_grammar_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn the_one_shot_passes_its_command_untouched() {
    let cli =
        parse("h5i -C /w run --tier process --allow a.example:443 --timeout 90s -- ls --json -C x")
            .unwrap();
    assert_eq!(cli.directory.unwrap().to_str(), Some("/w"));
    let Verb::Run(run) = cli.verb else { panic!("not run") };
    assert_eq!(run.command, words("ls --json -C x"));
    assert!(!run.output.json);
    assert_eq!(run.policy.tier, Some(Tier::Process));
    assert_eq!(run.timeout, Some(Millis::seconds(90)));
    assert_eq!((run.base.spec(), run.after()), (BaseSpec::Head, After::Judge));
}

#[test]
fn arguments_that_are_not_utf8_reach_the_command() {
    let mut line = words("h5i box run a --");
    line.push(OsString::from_vec(b"caf\xe9".to_vec()));
    let Verb::Box(BoxVerb::Run(run)) = Cli::of(line).unwrap().verb else { panic!("not run") };
    assert_eq!(run.command[0].clone().into_vec(), b"caf\xe9");
}

#[test]
fn each_base_is_told_apart_and_two_are_refused() {
    let spec = |flags: &str| match parse(&format!("h5i box create a {flags}")).unwrap().verb {
        Verb::Box(BoxVerb::Create(create)) => create.base.spec(),
        other => panic!("{other:?}"),
    };
    assert_eq!(spec("--base v1"), BaseSpec::Revision("v1".into()));
    assert_eq!(spec("--dirty"), BaseSpec::WorkingTree);
    assert_eq!(spec("--clone ../x"), BaseSpec::Clone("../x".into()));
    assert_eq!(spec("--empty"), BaseSpec::Empty);
    parse("h5i box create a --dirty --empty").unwrap_err();
    parse("h5i box create a --base x --clone y").unwrap_err();
}

#[test]
fn wrong_words_are_usage_failures_that_say_which() {
    for (line, part) in [
        ("h5i box create Bad", "must start with a lower-case letter"),
        ("h5i box create a --tier strong", "possible values: workspace, process"),
        ("h5i box run a --timeout 5 -- true", "whole number with a unit"),
        ("h5i box run a --timeout 99999999h -- true", "at most 10000h"),
        ("h5i box run a --env X -- true", "not NAME=VALUE"),
        ("h5i run true", "unexpected argument 'true'"),
        ("h5i run", "required arguments were not provided"),
        ("h5i box rm", "<NAME>..."),
        ("h5i box log a --lane moon", "possible values: host"),
        ("h5i box diff a --stat --name-only", "cannot be used with"),
        ("h5i run --keep --rm -- true", "cannot be used with"),
        ("h5i completions bash --json", "unexpected argument '--json'"),
    ] {
        let failure = usage_failure(&parse(line).unwrap_err());
        assert_eq!(failure.kind, Kind::Usage, "{line}");
        assert!(failure.message.contains(part), "{line}: {}", failure.message);
        assert!(!failure.message.contains('\n'), "{line}: {}", failure.message);
    }
}

#[test]
fn a_slip_is_told_with_the_line_that_was_meant() {
    let told = |line: &str| {
        let words = words(line);
        let error = Cli::of(words.iter().cloned()).unwrap_err();
        slip(&words, &error).map(|failure| (failure.kind, failure.hint.unwrap()))
    };
    for (line, meant) in [
        ("h5i run ls -la", "h5i run -- ls -la"),
        ("h5i run true", "h5i run -- true"),
        ("h5i run --tier process --keep make test", "h5i run --tier process --keep -- make test"),
        ("h5i run echo a;b", "h5i run -- echo 'a;b'"),
        ("h5i box run a ls", "h5i box run a -- ls"),
        ("h5i box run a --timeout 5s ls -l", "h5i box run a --timeout 5s -- ls -l"),
        ("h5i report-command --status 0 ls", "h5i report-command --status 0 -- ls"),
        ("h5i rnu -- true", "did you mean h5i run?"),
        ("h5i box rnu a -- true", "did you mean h5i box run?"),
        ("h5i bax ls", "did you mean h5i box?"),
    ] {
        assert_eq!(told(line), Some((Kind::Usage, meant.to_owned())), "{line}");
    }
    // What `--` would not mend, and what is near to nothing, is left to the grammar.
    for line in [
        "h5i run",
        "h5i box run a",
        "h5i run --nonsense ls",
        "h5i box rm",
        "h5i box status a b",
        "h5i browser",
    ] {
        assert_eq!(told(line), None, "{line}");
    }
}

#[test]
fn tips_of_the_grammar_are_a_hint_and_no_part_of_the_sentence() {
    let failure = usage_failure(&parse("h5i box ls --al").unwrap_err());
    assert_eq!(failure.message, "unexpected argument '--al' found");
    assert!(failure.hint.unwrap().contains("'--all'"));
}

#[test]
fn a_place_for_the_bundle_is_not_the_directory_to_act_in() {
    let cli = parse("h5i box export a -o out").unwrap();
    assert_eq!(cli.directory, None);
    let Verb::Box(BoxVerb::Export(export)) = cli.verb else { panic!("not export") };
    assert_eq!(export.bundle.unwrap().to_str(), Some("out"));
}

#[test]
fn json_is_asked_for_before_the_command_only() {
    assert!(asks_for_json(&words("h5i box ls --json --bad")));
    assert!(!asks_for_json(&words("h5i run -- ls --json")));
}

#[test]
fn every_verb_but_completions_takes_json() {
    for line in [
        "h5i run --json -- true",
        "h5i box create a --json",
        "h5i box run a --json -- true",
        "h5i box ls --json",
        "h5i box status a --json",
        "h5i box diff a --json",
        "h5i box log a --json",
        "h5i box explain a --json",
        "h5i box rm a b --json",
        "h5i box gc --json",
        "h5i box probe --json",
        "h5i box export a --json",
        "h5i policy show --json",
        "h5i policy check --json",
        "h5i policy digest --json",
        "h5i policy diff a --json",
        "h5i hook bash --json",
    ] {
        parse(line).unwrap();
    }
}

#[test]
fn forms_of_a_difference() {
    let form = |line: &str| match parse(line).unwrap().verb {
        Verb::Box(BoxVerb::Diff(diff)) => diff.form(),
        other => panic!("{other:?}"),
    };
    assert_eq!(form("h5i box diff a"), DiffForm::Patch);
    assert_eq!(form("h5i box diff a --stat"), DiffForm::Stat);
    assert_eq!(form("h5i box diff a --name-only"), DiffForm::Names);
}

#[test]
fn completions_name_the_verbs() {
    let script = String::from_utf8(Cli::completions(clap_complete::Shell::Bash)).unwrap();
    for verb in ["explain", "export", "probe", "digest"] {
        assert!(script.contains(verb), "{verb}");
    }
}

/// The help of every verb, at a fixed width.
#[test]
fn help_reads_as_it_was_reviewed() {
    fn render(command: &mut clap::Command, path: &str, text: &mut String) {
        let path = format!("{path}{}", command.get_name());
        text.push_str(&format!("$ {path} --help\n"));
        text.push_str(&command.clone().term_width(90).render_long_help().to_string());
        text.push('\n');
        for sub in command.get_subcommands_mut() {
            render(sub, &format!("{path} "), text);
        }
    }
    let mut text = String::new();
    let mut command = Cli::command();
    command.build();
    render(&mut command, "", &mut text);
    insta::assert_snapshot!("help", text);
}

#[test]
fn a_run_parsed_alone_is_what_the_whole_grammar_makes_of_it() {
    let alone = |line: &str| {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let alone = RunAlone::parse(&words).map(|cli| format!("{cli:?}"));
        let whole = Cli::try_parse_from(words).ok().map(|cli| format!("{cli:?}"));
        (alone, whole)
    };
    for line in [
        "h5i box run a -- true",
        "h5i box run a --json --timeout 5s -e A=1 --env B=2 -- cc -c x --help -C y",
        "h5i box run --json a -- -C",
        "h5i box run a -- -- x",
        "h5i -C d box run a -- true",
    ] {
        let (alone, whole) = alone(line);
        assert!(alone.is_some(), "{line}");
        assert_eq!(alone, whole, "{line}");
    }
    // What is another verb, or wrong, or has an option of all verbs, is left to the whole grammar.
    for line in [
        "h5i box run a",
        "h5i box run a true",
        "h5i box run -- true",
        "h5i box run A -- true",
        "h5i box run a --timeout never -- true",
        "h5i box run a --help",
        "h5i box run a -h",
        "h5i box run --version",
        "h5i box run a --nonsense -- true",
        "h5i box run -C d a -- true",
        "h5i box run a -C d -- true",
        "h5i -Cd box run a -- true",
        "h5i -C d -C e box run a -- true",
        "h5i -C box run a -- true",
        "h5i -C d box ls",
        "h5i box ls",
        "h5i run -- true",
        "h5i",
    ] {
        assert_eq!(alone(line).0, None, "{line}");
    }
}
