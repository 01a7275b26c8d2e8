//! Takes known secrets out of bytes.

mod escape;
mod forms;
mod scan;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use forms::Forms;
use scan::Scanner;

use crate::secret::Secret;

/// Finds secrets whose values are known, and writes `*` over them.
///
/// A secret is found as it is, and, from 8 bytes on, also in these forms:
/// - base64, standard and URL-safe, with padding or without, also in the middle of something that
///   was encoded as a whole (`user:secret`). What is taken out then are the characters that the
///   secret alone decides; one more at each end may hold a few of its bits, and stays;
/// - hexadecimal, in lower case or in upper case;
/// - percent-encoded, whichever of its bytes are encoded, in either case;
/// - with JSON's escapes (`\/`, `\u002f`, …), whichever of its characters are escaped;
/// - with HTML's references (`&#43;`, `&#x2b;`, `&plus;`, …), whichever of its characters are
///   referred to: by number with at most eight digits, or by a name of a character of ASCII, each
///   with its semicolon;
/// - base64, hexadecimal or percent-encoding (of all but letters, digits and `-._~`, in one case)
///   that was then percent-encoded, escaped or written with references.
///
/// Other transformations are not undone: compression, ciphers, other escapes of escapes,
/// base64 in lines, a secret that is cut in pieces with something between them.
///
/// The automaton that finds them is made of the secrets, and can't be overwritten when it is let
/// go: keep a `Redactor` no longer than the secrets.
#[derive(Clone)]
pub struct Redactor(Option<Arc<Forms>>);

/// Why there is no [`Redactor`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedactorError {
    /// The secrets are too many or too long for one automaton: some 100 MB of them.
    #[error("the secrets are too many or too long to be searched for")]
    TooLarge(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Redactor {
    /// Finds these secrets. Empty ones are left out.
    ///
    /// # Errors
    /// [`RedactorError::TooLarge`].
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Result<Self, RedactorError> {
        Ok(Self(Forms::of(secrets)?.map(Arc::new)))
    }

    /// `bytes` with `*` in place of every secret; as long as before, and the same bytes where there
    /// is none.
    #[must_use]
    pub fn redact<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(forms) = &self.0 else { return Cow::Borrowed(bytes) };
        let mut scanner = Scanner::new(forms);
        let mut clean = Cow::Borrowed(bytes);
        let mut hide = |found: Range<u64>| cover(clean.to_mut(), 0, &found);
        scanner.read(forms, bytes, &mut hide);
        scanner.finish(forms, &mut hide);
        clean
    }

    /// Redacts bytes that come in parts.
    #[must_use]
    pub fn stream(&self) -> StreamRedactor {
        StreamRedactor {
            search: self.0.as_ref().map(|forms| (Arc::clone(forms), Scanner::new(forms))),
            held: Vec::new(),
            held_from: 0,
            found: 0,
            found_to: 0,
        }
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor(…)")
    }
}

/// Redacts bytes that come in parts, as [`Redactor::redact`] does all of them at once, wherever
/// they are parted.
///
/// What can't be the beginning of a secret goes out at once. Held back are at most 18 times as
/// many bytes as the longest form of a secret has.
pub struct StreamRedactor {
    search: Option<(Arc<Forms>, Scanner)>,
    /// What may begin a secret, with `*` where one was found already.
    held: Vec<u8>,
    /// Where in the stream that begins.
    held_from: u64,
    found: u64,
    /// The end of the last find.
    found_to: u64,
}

impl StreamRedactor {
    /// Takes a part; gives back what may go out by now.
    #[must_use]
    pub fn push(&mut self, part: &[u8]) -> Vec<u8> {
        let Some((forms, scanner)) = &mut self.search else { return part.to_vec() };
        self.held.extend_from_slice(part);
        let (held, count, to) = (&mut self.held, &mut self.found, &mut self.found_to);
        let from = self.held_from;
        let mut hide = |found: Range<u64>| {
            tell(count, to, &found);
            cover(held, from, &found);
        };
        scanner.read(forms, part, &mut hide);
        let certain = scanner.certain(forms);
        self.give(certain)
    }

    /// There is no more; gives back the rest.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        if let Some((forms, scanner)) = &mut self.search {
            let (held, count, to) = (&mut self.held, &mut self.found, &mut self.found_to);
            let from = self.held_from;
            scanner.finish(forms, &mut |found| {
                tell(count, to, &found);
                cover(held, from, &found);
            });
        }
        std::mem::take(&mut self.held)
    }

    /// How many secrets were found so far. Forms that overlap count once.
    #[must_use]
    pub fn found(&self) -> u64 {
        self.found
    }

    /// Gives out everything before `certain`.
    fn give(&mut self, certain: u64) -> Vec<u8> {
        let length = usize::try_from(certain - self.held_from).unwrap_or(self.held.len());
        self.held_from = certain;
        if length == self.held.len() {
            return std::mem::take(&mut self.held);
        }
        let rest = self.held.split_off(length);
        std::mem::replace(&mut self.held, rest)
    }
}

impl fmt::Debug for StreamRedactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamRedactor").field("found", &self.found).finish_non_exhaustive()
    }
}

/// Counts a find that does not overlap one before it.
fn tell(count: &mut u64, to: &mut u64, found: &Range<u64>) {
    if found.start >= *to {
        *count += 1;
    }
    *to = found.end.max(*to);
}

/// Writes `*` over what was found in bytes that begin at `from`.
fn cover(bytes: &mut [u8], from: u64, found: &Range<u64>) {
    let at = |place: u64| usize::try_from(place.saturating_sub(from)).unwrap_or(usize::MAX);
    if let Some(secret) = bytes.get_mut(at(found.start)..at(found.end)) {
        secret.fill(b'*');
    }
}
