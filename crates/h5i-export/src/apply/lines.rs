//! The lines of a patch.

/// A cursor over lines, which keeps their number.
pub(super) struct Lines<'a> {
    rest: &'a [u8],
    number: u64,
}

impl<'a> Lines<'a> {
    /// Over the lines of a part of a patch that begins at this line.
    pub(super) const fn new(part: &'a [u8], number: u64) -> Self {
        Self { rest: part, number }
    }

    /// How many bytes are left.
    pub(super) const fn left(&self) -> usize {
        self.rest.len()
    }

    pub(super) const fn at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The number of the next line, from 1.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// The next line without its newline.
    pub(super) fn peek(&self) -> Option<&'a [u8]> {
        (!self.rest.is_empty())
            .then(|| self.rest.split(|&byte| byte == b'\n').next().unwrap_or_default())
    }

    pub(super) fn next(&mut self) -> Option<&'a [u8]> {
        let line = self.peek()?;
        self.rest = self.rest.get(line.len() + 1..).unwrap_or_default();
        self.number += 1;
        Some(line)
    }

    /// The rest of the next line, when it begins with `prefix`; the line is taken only then.
    pub(super) fn after(&mut self, prefix: &[u8]) -> Option<&'a [u8]> {
        let rest = self.peek()?.strip_prefix(prefix)?;
        self.next();
        Some(rest)
    }
}
