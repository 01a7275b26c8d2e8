//! The forms of secrets that are searched for, and the automaton that finds them.

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, MatchKind};
use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};
use zeroize::Zeroizing;

use super::RedactorError;
use crate::query::percent_encoded;
use crate::secret::Secret;

/// From how many bytes on a secret is searched for in encoded forms: those of a shorter one are
/// found where there is none.
const LEAST_ENCODED: usize = 8;

/// An automaton over all forms of all secrets.
pub(super) struct Forms {
    nfa: NFA,
    start: StateID,
    /// How many bytes each state has seen of the longest form that may be under way, by state; one
    /// that is not here has seen none.
    depths: Vec<(StateID, usize)>,
    /// Forms that are found only as they are, by their pattern's number.
    plain_only: Vec<bool>,
    /// Which bytes begin a form or an escape.
    begins: [bool; 256],
}

impl Forms {
    /// The forms of `secrets`; `None` where there is nothing to search for.
    pub(super) fn of<'a>(
        secrets: impl IntoIterator<Item = &'a Secret>,
    ) -> Result<Option<Self>, RedactorError> {
        let mut forms = Vec::new();
        for secret in secrets {
            add_forms(&mut forms, secret.expose());
        }
        forms.sort_unstable_by(|a, b| a.as_slice().cmp(b.as_slice()));
        forms.dedup();
        if forms.is_empty() {
            return Ok(None);
        }
        let nfa = NFA::builder()
            .match_kind(MatchKind::Standard)
            .prefilter(false)
            .build(forms.iter().map(|form| form.as_slice()))
            .map_err(|error| RedactorError::TooLarge(Box::new(error)))?;
        let start = nfa.start_state(Anchored::No);
        let start = start.map_err(|error| RedactorError::TooLarge(Box::new(error)))?;
        let mut depths = Vec::new();
        for form in &forms {
            let mut state = start;
            for (before, byte) in form.iter().enumerate() {
                state = nfa.next_state(Anchored::No, state, *byte);
                depths.push((state, before + 1));
            }
        }
        depths.sort_unstable();
        depths.dedup();
        let plain_only = forms.iter().map(|form| form.len() < LEAST_ENCODED).collect();
        let mut begins = [false; 256];
        for byte in forms.iter().map(|form| form[0]).chain(*b"%\\&") {
            begins[usize::from(byte)] = true;
        }
        Ok(Some(Self { nfa, start, depths, plain_only, begins }))
    }

    pub(super) fn start(&self) -> StateID {
        self.start
    }

    /// Whether a byte can begin a form or an escape.
    pub(super) fn begins(&self, byte: u8) -> bool {
        self.begins[usize::from(byte)]
    }

    pub(super) fn next(&self, state: StateID, byte: u8) -> StateID {
        self.nfa.next_state(Anchored::No, state, byte)
    }

    /// How many of the last bytes may be the beginning of a form.
    pub(super) fn depth(&self, state: StateID) -> usize {
        if state == self.start {
            return 0;
        }
        let place = self.depths.binary_search_by_key(&state, |(state, _)| *state);
        place.map_or(0, |place| self.depths[place].1)
    }

    /// The length of the longest form that ends here.
    pub(super) fn ends_here(&self, state: StateID) -> Option<usize> {
        self.longest(state, |_| true)
    }

    /// The length of the longest form that ends here and may have been escaped.
    pub(super) fn escaped_ends_here(&self, state: StateID) -> Option<usize> {
        self.longest(state, |form| !self.plain_only[form])
    }

    fn longest(&self, state: StateID, counts: impl Fn(usize) -> bool) -> Option<usize> {
        if !self.nfa.is_special(state) || !self.nfa.is_match(state) {
            return None;
        }
        (0..self.nfa.match_len(state))
            .map(|index| self.nfa.match_pattern(state, index))
            .filter(|form| counts(form.as_usize()))
            .map(|form| self.nfa.pattern_len(form))
            .max()
    }

    /// The length of the longest form.
    pub(super) fn longest_form(&self) -> usize {
        self.nfa.max_pattern_len()
    }
}

/// Adds the secret itself and the forms that are other bytes.
fn add_forms(forms: &mut Vec<Zeroizing<Vec<u8>>>, secret: &[u8]) {
    if secret.is_empty() {
        return;
    }
    forms.push(Zeroizing::new(secret.to_vec()));
    if secret.len() < LEAST_ENCODED {
        return;
    }
    for hex in [HEXLOWER, HEXUPPER] {
        forms.push(Zeroizing::new(hex.encode(secret).into_bytes()));
    }
    // Found without these where it is not escaped once more.
    let percent = percent_encoded(secret);
    if percent.len() != secret.len() {
        forms.push(Zeroizing::new(lower_escapes(percent.as_bytes())));
        forms.push(Zeroizing::new(percent.as_bytes().to_vec()));
    }
    for before in 0..3 {
        let shifted = Zeroizing::new([&b"\0\0"[..before], secret].concat());
        // Characters whose six bits are the secret's alone.
        let (first, end) = ((8 * before).div_ceil(6), 8 * shifted.len() / 6);
        for base64 in [BASE64_NOPAD, BASE64URL_NOPAD] {
            let text = Zeroizing::new(base64.encode(&shifted).into_bytes());
            forms.push(Zeroizing::new(text[first..end].to_vec()));
        }
    }
}

/// Percent-encoded text with its digits in lower case.
fn lower_escapes(percent: &[u8]) -> Vec<u8> {
    let mut text = percent.to_vec();
    let mut digits = 0;
    for byte in &mut text {
        match (*byte, digits) {
            (b'%', _) => digits = 2,
            (_, 0) => {}
            _ => {
                byte.make_ascii_lowercase();
                digits -= 1;
            }
        }
    }
    text
}
