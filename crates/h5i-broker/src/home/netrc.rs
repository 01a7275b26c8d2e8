//! `.netrc`, as `ftp(1)` and curl read it.

use std::ops::Range;

use super::outline::{Lines, without};
use super::{Removed, StripError, contents};

const PASSWORD: &str = "a password of a machine";

pub(super) fn strip(text: &str) -> Result<(String, Vec<Removed>), StripError> {
    let (mut cuts, mut removed) = (Vec::new(), Vec::new());
    let (mut words, mut lines) = (Words { text, at: 0 }, Lines::of(text));
    let mut cut = |at: Range<usize>, why| {
        // With the space before it, so that the line reads as if it had never been there.
        let start = text[..at.start].trim_end_matches([' ', '\t']).len();
        cuts.push(start..at.end);
        removed.push(Removed::line(lines.at(at.start), why));
    };
    while let Some(word) = words.next()? {
        let start = word.start;
        match &text[word.clone()] {
            comment if comment.starts_with('#') => {
                let end = text[start..].find('\n').map_or(text.len(), |length| start + length);
                let comment = &text[start..end];
                let told = ["password", "account"].iter().any(|name| {
                    let mut words = comment.split_whitespace();
                    words.any(|word| word.trim_start_matches('#').eq_ignore_ascii_case(name))
                        && words.next().is_some()
                });
                match contents::credential(None, comment) {
                    Some(why) => cut(start..end, why),
                    None if told => cut(start..end, PASSWORD),
                    None => {}
                }
                words.at = end;
            }
            "machine" | "login" => {
                let value = words.next()?.ok_or(StripError::NotUnderstood)?;
                if let Some(why) = contents::shape(&text[value.clone()]) {
                    cut(start..value.end, why);
                }
            }
            "password" | "account" => {
                let value = words.next()?.ok_or(StripError::NotUnderstood)?;
                cut(start..value.end, PASSWORD);
            }
            "default" => {}
            "macdef" => {
                let end = text[start..].find("\n\n").map_or(text.len(), |length| start + length);
                if let Some(why) = contents::credential(None, &text[start..end]) {
                    cut(start..end, why);
                }
                words.at = end;
            }
            _ => return Err(StripError::NotUnderstood),
        }
    }
    Ok((without(text, &cuts).ok_or(StripError::NotClean)?, removed))
}

/// Words between spaces; one in quotes may have spaces, and quotes behind backslashes.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl Words<'_> {
    fn next(&mut self) -> Result<Option<Range<usize>>, StripError> {
        let rest = &self.text[self.at..];
        let start = self.at + (rest.len() - rest.trim_start().len());
        let word = &self.text[start..];
        if word.is_empty() {
            return Ok(None);
        }
        let mut escaped = false;
        let quoted = word.starts_with('"');
        let ends = |(at, c): (usize, char)| {
            if escaped {
                escaped = false;
            } else if c == '\\' {
                escaped = true;
            } else if quoted {
                return (c == '"' && at > 0).then_some(at + 1);
            } else if c.is_whitespace() {
                return Some(at);
            }
            None
        };
        let end = match word.char_indices().find_map(ends) {
            Some(end) => end,
            None if quoted => return Err(StripError::NotUnderstood),
            None => word.len(),
        };
        self.at = start + end;
        Ok(Some(start..self.at))
    }
}
