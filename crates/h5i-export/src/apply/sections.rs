//! A patch file by file, so that only one of them is in memory.

use std::io::{self, BufRead};

/// How the patch of a file begins. No line of a hunk does, and no line of base 85 has a space.
pub(crate) const FILE: &[u8] = b"diff --git ";

/// The patch of one file, and what stands before the next one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) text: Vec<u8>,
    /// The number of its first line, from 1.
    pub(crate) line: u64,
}

/// The sections of a patch in order.
pub(crate) struct Sections<R> {
    source: R,
    /// The line that begins the next section, once it was read.
    ahead: Vec<u8>,
    line: u64,
}

impl<R: BufRead> Sections<R> {
    pub(crate) const fn new(source: R) -> Self {
        Self { source, ahead: Vec::new(), line: 1 }
    }

    fn section(&mut self) -> io::Result<Option<Section>> {
        let mut text = std::mem::take(&mut self.ahead);
        let first = self.line;
        if !text.is_empty() {
            self.line += 1;
        }
        loop {
            let start = text.len();
            if self.source.read_until(b'\n', &mut text)? == 0 {
                return Ok((!text.is_empty()).then_some(Section { text, line: first }));
            }
            if start > 0 && text[start..].starts_with(FILE) {
                self.ahead = text.split_off(start);
                return Ok(Some(Section { text, line: first }));
            }
            self.line += 1;
        }
    }
}

impl<R: BufRead> Iterator for Sections<R> {
    type Item = io::Result<Section>;

    fn next(&mut self) -> Option<Self::Item> {
        self.section().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::Sections;

    #[test]
    fn sections_follow_each_other_and_know_their_lines() {
        let text = b"before\ndiff --git a b\n-x\n+diff --git\ndiff --git c d\nend";
        let found: Vec<(u64, String)> = Sections::new(&text[..])
            .map(|section| section.expect("memory"))
            .map(|section| (section.line, String::from_utf8(section.text).expect("text")))
            .collect();
        let expected = [
            (1, "before\n".to_owned()),
            (2, "diff --git a b\n-x\n+diff --git\n".to_owned()),
            (5, "diff --git c d\nend".to_owned()),
        ];
        assert_eq!(found, expected);
        assert_eq!(Sections::new(&b""[..]).count(), 0);
    }
}
