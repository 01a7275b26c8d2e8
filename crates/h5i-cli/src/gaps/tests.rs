use h5i_export::Gap;

use super::command::command_of;
use super::{Asked, Difference, Gaps, Hook, REMEMBERED};
use crate::spool::Form;

/// A shell of pid 20 and what it starts, told in the order of its happening.
struct Story {
    gaps: Gaps,
    next: u64,
    found: Vec<(Gap, String, Option<i32>, Option<i32>)>,
}

const SHELL: u32 = 20;

impl Story {
    /// With a shell that is process 1.
    fn new(hook: Hook) -> Self {
        let mut story = Self { gaps: Gaps::new(hook), next: 0, found: Vec::new() };
        assert_eq!(story.asks(0, SHELL, &["/bin/bash"]), 1);
        story
    }

    fn asks(&mut self, parent: u64, pid: u32, words: &[&str]) -> u64 {
        self.next += 1;
        self.asks_again(self.next, parent, pid, words);
        self.next
    }

    fn asks_again(&mut self, proc: u64, parent: u64, pid: u32, words: &[&str]) {
        let argv: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let path = words[0].as_bytes();
        self.gaps.asks(Asked { run: 3, proc, pid, parent, path, argv: &argv });
    }

    /// The shell starts a program, which ends.
    fn runs(&mut self, words: &[&str], end: i32) {
        let pid = u32::try_from(self.next).unwrap() + 100;
        let proc = self.asks(1, pid, words);
        self.ends(proc, Some(end));
    }

    fn ends(&mut self, proc: u64, end: Option<i32>) {
        let found = self.gaps.ends(proc, end, true);
        self.keep(found);
    }

    fn begins(&mut self, number: u64, command: &str, program: Option<&str>) {
        self.gaps.begins(SHELL, number, command.as_bytes(), program.map(str::as_bytes));
    }

    fn through(&mut self, number: u64, status: i32, form: Form) {
        let found = self.gaps.through(SHELL, number, status, form);
        self.keep(found);
    }

    fn keep(&mut self, found: Vec<Difference>) {
        for Difference { run, gap, what, reported, seen, .. } in found {
            assert_eq!(run, Some(3));
            self.found.push((gap, String::from_utf8(what).unwrap(), reported, seen));
        }
    }

    #[track_caller]
    fn told(&self, expected: &[(Gap, &str, Option<i32>, Option<i32>)]) {
        let found: Vec<_> =
            self.found.iter().map(|(gap, what, a, b)| (*gap, what.as_str(), *a, *b)).collect();
        assert_eq!(found, expected);
    }
}

/// One line of the shell: what it reports, and what it starts meanwhile.
fn line(
    (command, program): (&str, Option<&str>),
    started: &[(&str, i32)],
    (status, form): (i32, Form),
) -> Story {
    let mut story = Story::new(Hook::AsTheyLike);
    story.begins(1, command, program);
    for (program, end) in started {
        story.runs(&[program], *end);
    }
    story.through(1, status, form);
    story
}

#[test]
fn what_is_as_it_was_reported_is_no_gap() {
    use Form::{Other, Program};
    for (reported, started, end) in [
        (("npm test", Some("npm")), &[("/usr/bin/npm", 1)][..], (1, Program)),
        (("./x", Some("./x")), &[("./x", 126)], (126, Program)),
        (("/bin/x y", Some("/bin/x")), &[("/bin/x", 137)], (137, Program)),
        // A builtin, a function, an alias, a word that is none.
        (("cd /", None), &[], (0, Program)),
        (("f", None), &[("/bin/a", 1), ("/bin/b", 0)], (7, Program)),
        // Several programs, of which the code is one's.
        (("a | b", Some("a")), &[("/bin/a", 1), ("/bin/b", 0)], (0, Other)),
        (("a && b", Some("a")), &[("/bin/a", 1)], (1, Other)),
        // What a word is made by is no command of its own.
        (("a $(b)", Some("a")), &[("/bin/b", 1), ("/bin/a", 0)], (0, Program)),
        (("a `b`", Some("a")), &[("/bin/b", 1), ("/bin/a", 0)], (0, Program)),
    ] {
        line(reported, started, end).told(&[]);
    }
}

#[test]
fn a_command_that_nobody_ran_is_not_seen() {
    let told = [(Gap::NotSeen, "npm test", None, None)];
    for form in [Form::Program, Form::Shell] {
        line(("npm test", Some("npm")), &[], (0, form)).told(&told);
    }
    // A job may start it later; then it was seen.
    for (later, told) in [("/usr/bin/node", &told[..]), ("/usr/bin/npm", &[])] {
        let mut story = line(("npm test &", Some("npm")), &[], (0, Form::Other));
        story.told(&[]);
        story.runs(&[later], 0);
        story.ends(1, Some(0));
        let told: Vec<_> = told.iter().map(|(gap, ..)| (*gap, "npm test &", None, None)).collect();
        story.told(&told);
    }
    let mut story = line(("npm test &", Some("npm")), &[], (0, Form::Other));
    let found = story.gaps.over(3);
    story.keep(found);
    assert_eq!((story.found.len(), story.gaps.over(3).len()), (1, 0), "told once");
}

#[test]
fn a_program_beside_the_reported_one_is_not_reported() {
    let story = line(("ls", Some("ls")), &[("/bin/ls", 0), ("/bin/curl", 0)], (0, Form::Program));
    story.told(&[(Gap::NotReported, "curl", None, None)]);
    line(("ls", Some("ls")), &[("/bin/ls", 0), ("/bin/curl", 0)], (0, Form::Other)).told(&[]);
}

#[test]
fn an_exit_code_that_differs_is_told_with_both() {
    let story = line(("ls", Some("ls")), &[("/bin/ls", 2)], (0, Form::Program));
    story.told(&[(Gap::OtherEnd, "ls", Some(0), Some(2))]);
}

#[test]
fn a_program_that_has_not_ended_says_nothing_of_its_code() {
    let mut story = Story::new(Hook::AsTheyLike);
    story.begins(1, "vi", Some("vi"));
    story.asks(1, 30, &["/usr/bin/vi"]);
    story.through(1, 148, Form::Program);
    story.told(&[]);
}

#[test]
fn a_program_of_an_earlier_line_is_none_of_this_one() {
    let mut story = Story::new(Hook::AsTheyLike);
    for (number, runs) in [(1, true), (2, false)] {
        story.begins(number, "ls", Some("ls"));
        if runs {
            story.runs(&["/bin/ls"], 0);
        }
        story.through(number, 0, Form::Program);
    }
    story.told(&[(Gap::NotSeen, "ls", None, None)]);
}

#[test]
fn a_shells_own_end_is_compared_when_it_is_known() {
    for (seen, told) in [
        (Some(3), &[][..]),
        (Some(0), &[(Gap::OtherEnd, "ls; exit 3", Some(3), Some(0))]),
        // A signal came after the trap.
        (Some(143), &[]),
        (None, &[]),
    ] {
        let mut story = Story::new(Hook::AsTheyLike);
        story.begins(1, "ls; exit 3", Some("ls"));
        story.runs(&["/bin/ls"], 0);
        story.through(1, 3, Form::Shell);
        story.ends(1, seen);
        story.told(told);
    }
}

#[test]
fn a_shell_that_was_to_report_and_did_not_is_not_reported() {
    let silent = |hook, words: &[&str], end, complete| {
        let mut story = Story::new(hook);
        let proc = story.asks(1, 30, words);
        let found = story.gaps.ends(proc, end, complete);
        story.keep(found);
        story
    };
    let words = ["bash", "-c", "curl x"];
    silent(Hook::Bash, &words, Some(0), true).told(&[(Gap::NotReported, "curl x", None, None)]);
    silent(Hook::AsTheyLike, &words, Some(0), true).told(&[]);
    silent(Hook::Bash, &words, Some(137), true).told(&[]);
    silent(Hook::Bash, &words, None, true).told(&[]);
    silent(Hook::Bash, &words, Some(0), false).told(&[]);
    silent(Hook::Bash, &["sh", "-c", "curl x"], Some(0), true).told(&[]);
    // A shell that became its only program was one.
    let mut story = Story::new(Hook::Bash);
    let proc = story.asks(1, 30, &words);
    story.asks_again(proc, 1, 30, &["/usr/bin/curl", "x"]);
    story.ends(proc, Some(0));
    story.told(&[(Gap::NotReported, "curl x", None, None)]);
    // One below a shell that reports is that one's affair.
    let mut story = Story::new(Hook::Bash);
    story.begins(1, "make", Some("make"));
    let make = story.asks(1, 30, &["make"]);
    let shell = story.asks(make, 31, &words);
    story.ends(shell, Some(0));
    story.told(&[]);
}

#[test]
fn what_a_program_reports_is_looked_for_everywhere() {
    let mut story = Story::new(Hook::AsTheyLike);
    story.runs(&["/usr/bin/npm"], 1);
    let mut ran = |command: &str, program: &str, status| {
        let found = story.gaps.ran(Some(3), command.as_bytes(), program.as_bytes(), status);
        story.keep(found);
    };
    ran("npm test", "npm", 1);
    ran("cd /", "cd", 1);
    ran("npm test", "npm", 0);
    ran("make", "make", 0);
    story
        .told(&[(Gap::OtherEnd, "npm test", Some(0), Some(1)), (Gap::NotSeen, "make", None, None)]);
}

#[test]
fn claims_of_nobody_and_out_of_order_are_endured() {
    let mut story = Story::new(Hook::Bash);
    story.through(9, 0, Form::Program);
    story.begins(1, "ls", Some("ls"));
    story.through(2, 0, Form::Program);
    story.begins(3, "ls", Some("ls"));
    story.begins(4, "true", None);
    story.through(3, 0, Form::Program);
    story.ends(77, Some(0));
    story.told(&[]);
    // A shell that nobody saw: what it reports is looked for all the same.
    for pid in 1000..4000 {
        story.gaps.begins(pid, 1, b"ls", Some(b"ls"));
    }
    assert_eq!(story.gaps.through(1000, 1, 0, Form::Program), []);
    let [Difference { gap: Gap::NotSeen, run: None, shell: 1000, .. }] = &story.gaps.over(3)[..]
    else {
        panic!("a shell that nobody saw")
    };
}

#[test]
fn what_is_forgotten_is_no_gap() {
    let mut story = Story::new(Hook::AsTheyLike);
    story.begins(1, "many", Some("many"));
    story.runs(&["/bin/many"], 0);
    for _ in 0..REMEMBERED {
        story.runs(&["/bin/true"], 0);
    }
    assert_eq!(story.gaps.processes.len(), REMEMBERED + 1, "and the shell");
    story.through(1, 0, Form::Other);
    let found = story.gaps.ran(Some(3), b"make", b"make", 0);
    story.keep(found);
    story.told(&[]);
    // From here on all is known again.
    story.begins(2, "make", Some("make"));
    story.through(2, 0, Form::Program);
    story.told(&[(Gap::NotSeen, "make", None, None)]);
}

#[test]
fn the_command_of_a_bash_is_found_behind_its_options() {
    let of = |line: &str| {
        let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        command_of(&words).map(|found| String::from_utf8(found.to_vec()).unwrap())
    };
    for line in [
        "bash -c X",
        "/usr/bin/bash -c X a b",
        "-bash -lc X",
        "bash --norc -e -c X",
        "bash -o pipefail -c X",
        "bash -euo pipefail -c X",
        "bash -c -l X",
        "bash -c -- X",
    ] {
        assert_eq!(of(line).as_deref(), Some("X"), "{line}");
    }
    for line in [
        "bash",
        "bash X",
        "bash -x X -c Y",
        "bash -ic X",
        "bash -i -c X",
        "sh -c X",
        "bash -c",
        "bash -- -c X",
    ] {
        assert_eq!(of(line), None, "{line}");
    }
}
