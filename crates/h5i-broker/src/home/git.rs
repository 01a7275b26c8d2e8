//! Git's configuration.

use super::ini::of_entry;
use super::table::{Keep, NEEDLESS};
use super::{Removed, StripError, contents, names};

/// What is being written.
struct Writer {
    clean: String,
    removed: Vec<Removed>,
    keep: Keep,
    section: String,
    /// A section's line, until something of the section is kept.
    header: Option<String>,
    /// Why the whole section goes.
    gone: Option<&'static str>,
    needless: bool,
}

pub(super) fn strip(text: &str, keep: Keep) -> Result<(String, Vec<Removed>), StripError> {
    let mut writer = Writer {
        clean: String::with_capacity(text.len()),
        removed: Vec::new(),
        keep,
        section: String::new(),
        header: None,
        gone: None,
        needless: false,
    };
    let mut lines = text.split_inclusive('\n').enumerate();
    while let Some((index, line)) = lines.next() {
        let mut entry = line.to_owned();
        let comment = line.trim_start().starts_with(['#', ';']);
        while !comment && goes_on(&entry) {
            let Some((_, more)) = lines.next() else { break };
            entry.push_str(more);
        }
        writer.entry(&entry, index + 1)?;
    }
    if writer.needless {
        writer.removed.push(Removed::at("other names", NEEDLESS));
    }
    Ok((writer.clean, writer.removed))
}

/// Whether a line ends with a backslash that is not escaped itself.
fn goes_on(line: &str) -> bool {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let line = line.strip_suffix('\r').unwrap_or(line);
    let slashes = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
    slashes % 2 == 1
}

impl Writer {
    fn entry(&mut self, entry: &str, line: usize) -> Result<(), StripError> {
        let text = entry.trim();
        if text.is_empty() || text.starts_with(['#', ';']) {
            return self.aside(entry, line);
        }
        let Some(rest) = text.strip_prefix('[') else { return self.assignment(text, entry, line) };
        let end = header_end(rest).ok_or(StripError::NotUnderstood)?;
        let (header, rest) = (&rest[..end], rest[end + 1..].trim());
        self.section = header.split([' ', '\t', '.', '"']).next().unwrap_or_default().to_owned();
        self.gone = contents::shape(header).or_else(|| names::credential(&self.section, false));
        if let Some(why) = self.gone {
            self.removed.push(Removed::line(line, why));
            return Ok(());
        }
        if rest.is_empty() {
            self.header = Some(entry.to_owned());
            if self.keep == Keep::All {
                self.give_header();
            }
            return Ok(());
        }
        // Git lets an entry stand behind its section's name.
        self.header = None;
        if rest.starts_with(['#', ';']) {
            self.header = (self.keep != Keep::All).then(|| entry.to_owned());
            return if self.keep == Keep::All { self.aside(entry, line) } else { Ok(()) };
        }
        self.assignment(rest, entry, line)
    }

    fn assignment(&mut self, text: &str, entry: &str, line: usize) -> Result<(), StripError> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let name = name.split(['#', ';']).next().unwrap_or_default().trim();
        let letters = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(letters) {
            return Err(StripError::NotUnderstood);
        }
        if self.gone.is_some() {
            return Ok(());
        }
        if let Some(why) = of_entry(name, value).or_else(|| contents::credential(None, entry)) {
            self.removed.push(Removed::line(line, why));
        } else if self.keep.keeps_name(&self.section, name) {
            self.give_header();
            self.clean.push_str(entry);
        } else {
            self.needless = true;
        }
        Ok(())
    }

    /// Empty lines and comments.
    fn aside(&mut self, entry: &str, line: usize) -> Result<(), StripError> {
        match contents::credential(None, entry) {
            Some(why) => self.removed.push(Removed::line(line, why)),
            None if self.keep == Keep::All && self.gone.is_none() => self.clean.push_str(entry),
            None => {}
        }
        Ok(())
    }

    fn give_header(&mut self) {
        if let Some(header) = self.header.take() {
            self.clean.push_str(&header);
        }
    }
}

/// Where the bracket is that ends a section's name, which may be quoted.
fn header_end(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => return Some(at),
            '\n' => return None,
            _ => {}
        }
    }
    None
}
