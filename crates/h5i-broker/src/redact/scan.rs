//! Reads bytes as they are and as what their escapes stand for, at once.

use std::collections::VecDeque;
use std::ops::Range;

use aho_corasick::automaton::StateID;

use super::escape::{Escape, Reading};
use super::forms::Forms;

/// Where a find begins and ends in what was read.
pub(super) type Find<'a> = &'a mut dyn FnMut(Range<u64>);

/// The automaton's state over the bytes as they are, and over their readings.
#[derive(Clone)]
pub(super) struct Scanner {
    plain: StateID,
    /// How many bytes were read.
    at: u64,
    readings: [Unescaped; 3],
}

impl Scanner {
    pub(super) fn new(forms: &Forms) -> Self {
        let readings = [Escape::Percent, Escape::Json, Escape::Html].map(Unescaped::new);
        Self { plain: forms.start(), at: 0, readings }
    }

    /// Reads bytes. A find never begins before what [`Scanner::certain`] gave last.
    pub(super) fn read(&mut self, forms: &Forms, bytes: &[u8], find: Find<'_>) {
        let mut rest = bytes;
        loop {
            if self.plain == forms.start() && self.readings.iter().all(Unescaped::rests) {
                // Nothing is under way: what begins nothing need not be looked at.
                let begins = rest.iter().position(|byte| forms.begins(*byte));
                let skipped = begins.unwrap_or(rest.len());
                self.at += skipped as u64;
                rest = &rest[skipped..];
            }
            let Some((byte, after)) = rest.split_first() else { return };
            self.step(forms, *byte, find);
            rest = after;
        }
    }

    fn step(&mut self, forms: &Forms, byte: u8, find: Find<'_>) {
        let before = self.plain;
        self.plain = forms.next(before, byte);
        let start = self.at;
        self.at += 1;
        if let Some(length) = forms.ends_here(self.plain) {
            find(self.at - length as u64..self.at);
        }
        for reading in &mut self.readings {
            if reading.rests() && byte != reading.escape.lead() {
                continue;
            }
            reading.step(forms, byte, start, before, find);
            reading.rest(forms, self.plain);
        }
    }

    /// There is no more: escapes that are not whole are none.
    pub(super) fn finish(&mut self, forms: &Forms, find: Find<'_>) {
        for reading in &mut self.readings {
            reading.give_up(forms, find);
        }
    }

    /// Before this place nothing can become part of a find any more.
    pub(super) fn certain(&self, forms: &Forms) -> u64 {
        let plain = self.at - forms.depth(self.plain) as u64;
        let readings = self.readings.iter().filter_map(|reading| reading.certain(forms));
        readings.fold(plain, u64::min)
    }
}

/// One reading. While no escape matters it is the plain one, and has no state.
#[derive(Clone)]
struct Unescaped {
    escape: Escape,
    /// What may become an escape, where it begins, and the state of the plain reading there.
    open: Vec<u8>,
    open_at: u64,
    open_state: Option<StateID>,
    own: Option<Own>,
}

/// A reading that differs from the plain one.
#[derive(Clone)]
struct Own {
    state: StateID,
    /// Bytes since the last escape.
    since: usize,
    /// Where each of the last bytes begins in what was read.
    starts: VecDeque<u64>,
}

impl Unescaped {
    fn new(escape: Escape) -> Self {
        Self { escape, open: Vec::new(), open_at: 0, open_state: None, own: None }
    }

    /// Whether it is the plain reading, and no escape is under way.
    fn rests(&self) -> bool {
        self.open.is_empty() && self.own.is_none()
    }

    /// Reads the byte at `start`, before which the plain reading's state was `before`.
    fn step(&mut self, forms: &Forms, byte: u8, start: u64, before: StateID, find: Find<'_>) {
        if !self.open.is_empty() {
            self.open.push(byte);
            match self.escape.read(&self.open) {
                Reading::Open => return,
                Reading::Whole(bytes, length) => {
                    let state = self.open_state.unwrap_or(before);
                    let own = self.own.get_or_insert_with(|| Own::new(forms, state, self.open_at));
                    for byte in &bytes[..length] {
                        own.read(forms, *byte, self.open_at..start + 1, find);
                    }
                    own.since = 0;
                    self.open.clear();
                    return;
                }
                Reading::Broken => {
                    self.open.pop();
                    self.give_up(forms, find);
                }
            }
        }
        if byte == self.escape.lead() {
            self.open.push(byte);
            (self.open_at, self.open_state) = (start, Some(before));
        } else if let Some(own) = &mut self.own {
            own.read(forms, byte, start..start + 1, find);
        }
    }

    /// What looked like the beginning of an escape is none.
    fn give_up(&mut self, forms: &Forms, find: Find<'_>) {
        if let Some(own) = &mut self.own {
            for (byte, at) in self.open.iter().zip(self.open_at..) {
                own.read(forms, *byte, at..at + 1, find);
            }
        }
        self.open.clear();
    }

    /// Stops where nothing that the last escape stands for can be part of a find any more, and the
    /// plain reading has come to the same.
    fn rest(&mut self, forms: &Forms, plain: StateID) {
        if let Some(own) = &self.own
            && own.state == plain
            && self.open.is_empty()
            && own.since >= forms.depth(plain)
        {
            self.own = None;
        }
    }

    fn certain(&self, forms: &Forms) -> Option<u64> {
        let open = (!self.open.is_empty()).then_some(self.open_at);
        match (&self.own, self.open_state) {
            (Some(own), _) => own.begin(forms.depth(own.state)).or(open),
            (None, Some(state)) => open.map(|at| at - forms.depth(state) as u64),
            (None, None) => open,
        }
    }
}

impl Own {
    /// Parts from the plain reading, which is in `state`, at `at`.
    fn new(forms: &Forms, state: StateID, at: u64) -> Self {
        let starts = (at - forms.depth(state) as u64..at).collect();
        Self { state, since: 0, starts }
    }

    /// Reads a byte that is written at `from`.
    fn read(&mut self, forms: &Forms, byte: u8, from: Range<u64>, find: Find<'_>) {
        if self.starts.len() == forms.longest_form() {
            self.starts.pop_front();
        }
        self.starts.push_back(from.start);
        self.since += 1;
        self.state = forms.next(self.state, byte);
        if let Some(start) = forms.escaped_ends_here(self.state).and_then(|many| self.begin(many)) {
            find(start..from.end);
        }
    }

    /// Where the last `many` bytes begin.
    fn begin(&self, many: usize) -> Option<u64> {
        self.starts.len().checked_sub(many).and_then(|index| self.starts.get(index)).copied()
    }
}
