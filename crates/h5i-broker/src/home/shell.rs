//! A shell's start-up file.
//!
//! It is a program, of which only this is understood: which lines belong together, because a quote,
//! a backslash or a here-document goes on. Lines with a credential become `:`, the command that does
//! nothing, so that what stands around them is still whole.

use super::{Removed, StripError, contents, names};

const ASSIGNED: &str = "a variable with a credential's name";
const OPTION: &str = "an option with a credential's name";

pub(super) fn strip(text: &str) -> Result<(String, Vec<Removed>), StripError> {
    let (mut clean, mut removed) = (String::with_capacity(text.len()), Vec::new());
    let mut lines = text.split_inclusive('\n').enumerate();
    while let Some((index, line)) = lines.next() {
        let mut statement = line.to_owned();
        let mut state = State::default();
        state.read(line);
        while state.goes_on() {
            let Some((_, more)) = lines.next() else {
                // A backslash may stand at the very end; a quote may not be left open there.
                if state.quote.is_some() || !state.documents.is_empty() {
                    return Err(StripError::NotUnderstood);
                }
                break;
            };
            statement.push_str(more);
            state.read(more);
        }
        match credential(&statement) {
            None => clean.push_str(&statement),
            Some(why) => {
                removed.push(Removed::line(index + 1, why));
                let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
                clean.push_str(&line[..indent]);
                clean.push_str(if statement.ends_with('\n') { ":\n" } else { ":" });
            }
        }
    }
    Ok((clean, removed))
}

/// Why a statement holds a credential.
fn credential(statement: &str) -> Option<&'static str> {
    contents::credential(None, statement)
        .or_else(|| assigns(statement).then_some(ASSIGNED))
        .or_else(|| says(statement).then_some(OPTION))
}

/// `NAME=…` of anything but nothing or another variable, also an array.
fn assigns(statement: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || c == '_';
    statement.match_indices('=').any(|(at, _)| {
        let before = statement[..at].trim_end_matches('+');
        let name = &before[before.trim_end_matches(in_name).len()..];
        let value = &statement[at + 1..];
        let plain = value.trim_start_matches(['"', '\'']);
        let word = plain.split(|c: char| c.is_whitespace() || ";\"'".contains(c)).next();
        let word = word.unwrap_or_default();
        let nothing =
            value.is_empty() || value.starts_with(char::is_whitespace) || plain.trim().is_empty();
        let reference = contents::is_reference(word);
        !nothing
            && !reference
            && word != "true"
            && word != "false"
            && names::credential(name, word.parse::<f64>().is_ok()).is_some()
    })
}

/// `--password x`, `set -gx TOKEN x`, `setenv TOKEN x`.
fn says(statement: &str) -> bool {
    let words: Vec<&str> = statement.split_whitespace().collect();
    let sets = words.iter().any(|word| matches!(*word, "set" | "setenv" | "export-env" | "setx"));
    words.windows(2).any(|pair| {
        let name = pair[0].trim_start_matches(['"', '\'']);
        let option = name.starts_with("--") && !name.contains('=');
        let number = pair[1].parse::<f64>().is_ok();
        (option || sets)
            && contents::is_value(pair[1].trim_matches(['"', '\'']))
            && names::credential(name, number).is_some()
    })
}

/// What of the text so far has not ended.
#[derive(Default)]
struct State {
    quote: Option<char>,
    /// Words that end here-documents, and whether tabs may stand before them.
    documents: Vec<(String, bool)>,
    /// Whether the documents have begun: they do on the next line.
    slash: bool,
}

impl State {
    fn goes_on(&self) -> bool {
        self.quote.is_some() || self.slash || !self.documents.is_empty()
    }

    fn read(&mut self, line: &str) {
        let bare = line.strip_suffix('\n').unwrap_or(line);
        if self.quote.is_none() && !self.slash && !self.documents.is_empty() {
            let (word, tabs) = &self.documents[0];
            let found = if *tabs { bare.trim_start_matches('\t') } else { bare };
            if found == word {
                self.documents.remove(0);
            }
            return;
        }
        self.slash = false;
        let mut rest = bare;
        let mut before = ' ';
        while let Some(c) = rest.chars().next() {
            let after = &rest[c.len_utf8()..];
            rest = after;
            match (self.quote, c) {
                (None, '#') if before.is_whitespace() || before == ';' => return,
                (None | Some('"'), '\\') => match after.chars().next() {
                    None => self.slash = true,
                    Some(escaped) => rest = &after[escaped.len_utf8()..],
                },
                (None, '\'' | '"') => self.quote = Some(c),
                (Some(open), _) if open == c => self.quote = None,
                (None, '<') => rest = self.document(after),
                _ => {}
            }
            before = c;
        }
    }

    /// Reads what follows a `<`: the word of a here-document perhaps.
    fn document<'a>(&mut self, after: &'a str) -> &'a str {
        let Some(word) = after.strip_prefix('<') else { return after };
        if let Some(string) = word.strip_prefix('<') {
            return string;
        }
        let (word, tabs) = word.strip_prefix('-').map_or((word, false), |word| (word, true));
        let word = word.trim_start();
        let quoted = word.trim_start_matches(['"', '\'', '\\']);
        let length =
            quoted.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(quoted.len());
        // Arithmetic shifts by numbers.
        if length == 0 || quoted.starts_with(|c: char| c.is_ascii_digit()) {
            return word;
        }
        self.documents.push((quoted[..length].to_owned(), tabs));
        quoted[length..].trim_start_matches(['"', '\''])
    }
}
