//! One row of wrong input: what is asked, and what the person and the program are told.

use crate::stand::{Stand, with_json};

/// What a wrong command line is answered with.
pub(crate) struct Refusal<'a> {
    /// The words after the program's name.
    pub(crate) words: &'a [&'a str],
    /// The exit code.
    pub(crate) code: i32,
    /// The kind in JSON.
    pub(crate) kind: &'a str,
    /// Parts of the sentence, in order.
    pub(crate) says: &'a [&'a str],
    /// A part of what to do now.
    pub(crate) hint: &'a str,
}

impl Refusal<'_> {
    /// Asks twice, as a person and as a program: the same code and the same sentence, and not a
    /// byte of the host has changed.
    pub(crate) fn check(&self, stand: &Stand) {
        let Self { words, .. } = self;
        let before = stand.traces();
        let program = stand.h5i(&with_json(words));
        let person = stand.h5i(words);
        assert_eq!(stand.traces(), before, "{words:?} left something behind");
        self.check_said(&program, &person);
    }

    /// Checks two answers to the same words.
    pub(crate) fn check_said(&self, program: &crate::stand::Said, person: &crate::stand::Said) {
        let Self { words, code, kind, says, hint } = self;
        let told = program.failure();
        assert_eq!((program.code, told.kind.as_str()), (*code, *kind), "{words:?}: {told:?}");
        assert_eq!(program.err, "", "{words:?}");
        let mut rest = told.message.as_str();
        for part in *says {
            let at = rest.find(part);
            let at = at.unwrap_or_else(|| panic!("{words:?}: no {part:?} in {told:?}"));
            rest = &rest[at + part.len()..];
        }
        let told_hint = told.hint.as_deref().unwrap_or_default();
        assert!(!told_hint.is_empty(), "{words:?}: nothing to do: {told:?}");
        assert!(told_hint.contains(hint), "{words:?}: no {hint:?} in {told:?}");
        assert!(
            !told.message.trim_end_matches("...").ends_with('.') && !told.message.contains('\n'),
            "{told:?}"
        );
        assert_eq!((person.code, person.text()), (*code, ""), "{words:?}: {}", person.err);
        // clap words its own mistakes for people over several lines.
        if !told_hint.starts_with("h5i --help") {
            assert!(person.err.contains(&told.message), "{words:?}: {}", person.err);
            assert!(person.err.contains(told_hint), "{words:?}: {}", person.err);
        } else {
            for part in *says {
                assert!(person.err.contains(part), "{words:?}: {}", person.err);
            }
        }
    }
}
