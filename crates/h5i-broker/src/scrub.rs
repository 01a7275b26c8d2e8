//! What of an answer would hand the credential back is taken out of it.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::redact::{Redactor, StreamRedactor};

/// Looks through one answer. What is taken out leaves as many bytes behind, so a size that was
/// announced stays true.
pub(crate) struct Scrubber {
    redactor: Redactor,
    stream: StreamRedactor,
    in_headers: u64,
}

impl Scrubber {
    pub(crate) fn new(redactor: Redactor) -> Self {
        Self { stream: redactor.stream(), redactor, in_headers: 0 }
    }

    /// Takes a piece of the body; gives back what may go out by now.
    pub(crate) fn push(&mut self, bytes: &Bytes) -> Bytes {
        self.stream.push(bytes).into()
    }

    /// There is no more of the body; gives back the rest.
    pub(crate) fn finish(&mut self) -> Bytes {
        self.stream.finish().into()
    }

    /// How often a secret was found.
    pub(crate) fn found(&self) -> u64 {
        self.stream.found() + self.in_headers
    }

    /// Looks through names and values.
    pub(crate) fn headers(&mut self, headers: &mut HeaderMap) {
        let in_name = |name: &HeaderName| {
            self.redactor.redact(name.as_str().as_bytes()) != name.as_str().as_bytes()
        };
        let named: Vec<HeaderName> = headers.keys().filter(|name| in_name(name)).cloned().collect();
        for name in named {
            headers.remove(name);
            self.in_headers += 1;
        }
        for value in headers.values_mut() {
            let clean = self.redactor.redact(value.as_bytes());
            if *clean != *value.as_bytes() {
                self.in_headers += 1;
                // `*` in the place of bytes is as good a value as before.
                *value = HeaderValue::from_bytes(&clean).unwrap_or(HeaderValue::from_static("***"));
            }
        }
    }
}
