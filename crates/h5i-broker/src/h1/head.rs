//! The head of a request in HTTP/1.1, read in the one way that every parser agrees on. What some
//! read otherwise is refused. RFC 9112.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::target::{Target, TargetFault};

#[cfg(test)]
mod tests;

/// Largest head, in bytes.
pub(crate) const LARGEST: usize = 64 * 1024;
/// Most header lines.
pub(crate) const LINES: usize = 100;
/// Longest name of a method.
const METHOD: usize = 32;

/// A request's head.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) target: Target,
    /// The authority of an absolute-form, and its scheme.
    pub(crate) absolute: Option<(String, String)>,
    pub(crate) host: String,
    /// Without what frames the message.
    pub(crate) headers: HeaderMap,
    pub(crate) framing: Framing,
    /// Whether the client closes after this one.
    pub(crate) close: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub(crate) waits: bool,
}

/// Where the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// After so many bytes.
    Length(u64),
    /// After a chunk of no bytes.
    Chunked,
}

/// Why a message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is none, or could be read in two ways.
    Malformed(&'static str),
    /// It asks for another protocol on the connection.
    Upgrade,
    /// Head or lines are more than is taken.
    TooLarge,
    /// It did not come in time.
    TooSlow,
}

impl From<TargetFault> for Fault {
    fn from(fault: TargetFault) -> Self {
        Self::Malformed(fault.why())
    }
}

/// Looks for the end of a head, byte by byte, as they come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scan {
    seen: usize,
}

impl Scan {
    /// Looks at what came since the last look at a longer and longer `buffer`. Yields the length of
    /// the head, with the empty line, once it is there.
    pub(crate) fn end(&mut self, buffer: &[u8]) -> Result<Option<usize>, Fault> {
        while let Some(&byte) = buffer.get(self.seen) {
            let last = self.seen.checked_sub(1).and_then(|at| buffer.get(at)).copied();
            match (last, byte) {
                (Some(b'\r'), b'\n') => {}
                (Some(b'\r'), _) => return Err(Fault::Malformed("a carriage return stands alone")),
                (_, b'\n') => return Err(Fault::Malformed("a line ends without carriage return")),
                (_, b'\r' | b'\t') => {}
                (_, 0..=0x1f | 0x7f) => {
                    return Err(Fault::Malformed("there is a control character in the head"));
                }
                _ => {}
            }
            self.seen += 1;
            if self.seen > LARGEST {
                return Err(Fault::TooLarge);
            }
            let head = &buffer[..self.seen];
            if head == b"\r\n" {
                return Err(Fault::Malformed("there is an empty line before the request"));
            }
            if head.ends_with(b"\r\n\r\n") {
                return Ok(Some(self.seen));
            }
        }
        Ok(None)
    }
}

/// Reads a whole head, with the empty line at its end.
pub(crate) fn parse(head: &[u8]) -> Result<Head, Fault> {
    let head = head.strip_suffix(b"\r\n\r\n").ok_or(Fault::Malformed("the head has no end"))?;
    let mut lines = head.split(|byte| *byte == b'\n').map(|l| l.strip_suffix(b"\r").unwrap_or(l));
    let request = lines.next().unwrap_or_default();
    let (method, target, absolute) = request_line(request)?;
    let mut fields = Fields::default();
    for (count, line) in lines.enumerate() {
        if count == LINES {
            return Err(Fault::TooLarge);
        }
        fields.line(line)?;
    }
    let framing = fields.framing()?;
    let host = fields.host.ok_or(Fault::Malformed("there is no Host header"))?;
    let Fields { headers, close, waits, .. } = fields;
    Ok(Head { method, target, absolute, host, headers, framing, close, waits })
}

fn is_token(text: &[u8]) -> bool {
    let token = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
    !text.is_empty() && text.iter().all(token)
}

type RequestLine = (String, Target, Option<(String, String)>);

fn request_line(line: &[u8]) -> Result<RequestLine, Fault> {
    let malformed = Fault::Malformed("the request line is not METHOD TARGET HTTP/1.1");
    let line = std::str::from_utf8(line).map_err(|_not_text| malformed)?;
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(malformed);
    };
    if !is_token(method.as_bytes()) || method.len() > METHOD {
        return Err(malformed);
    }
    // The preface of HTTP/2 in clear, and a tunnel.
    if method == "CONNECT" || (method == "PRI" && version == "HTTP/2.0") {
        return Err(Fault::Upgrade);
    }
    if version != "HTTP/1.1" {
        return Err(Fault::Malformed("only HTTP/1.1 is spoken here"));
    }
    let scheme = ["http://", "https://"].into_iter().find(|scheme| target.starts_with(scheme));
    let (target, absolute) = match scheme {
        Some(scheme) => {
            let rest = &target[scheme.len()..];
            let at = rest.find(['/', '?']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(at);
            if authority.is_empty() {
                return Err(malformed);
            }
            let scheme = scheme.trim_end_matches("://").to_owned();
            (Target::new(path)?, Some((scheme, authority.to_owned())))
        }
        None => (Target::new(target)?, None),
    };
    Ok((method.to_owned(), target, absolute))
}

#[derive(Default)]
struct Fields {
    headers: HeaderMap,
    host: Option<String>,
    length: Option<u64>,
    chunked: bool,
    close: bool,
    waits: bool,
}

impl Fields {
    fn line(&mut self, line: &[u8]) -> Result<(), Fault> {
        if line.first().is_some_and(|first| b" \t".contains(first)) {
            return Err(Fault::Malformed("a header line is folded"));
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let colon = colon.ok_or(Fault::Malformed("a header line has no colon"))?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if !is_token(name) {
            return Err(Fault::Malformed("a header's name has a character that names can't have"));
        }
        let name = HeaderName::from_bytes(name)
            .map_err(|_bad| Fault::Malformed("a header's name is too long"))?;
        let value = HeaderValue::from_bytes(value).map_err(|_bad| {
            Fault::Malformed("a header's value has a character that values can't have")
        })?;
        // Some servers take `_` in a name for `-`.
        if name.as_str().contains('_')
            && FRAMING.contains(&name.as_str().replace('_', "-").as_str())
        {
            return Err(Fault::Malformed(
                "a header of the connection is spelled with an underscore",
            ));
        }
        match name.as_str() {
            "host" => self.host(&value),
            "content-length" => self.length(value.as_bytes()),
            "transfer-encoding" => self.coding(value.as_bytes()),
            "connection" => self.connection(name, value),
            "expect" => self.expect(value.as_bytes()),
            "upgrade" | "http2-settings" => Err(Fault::Upgrade),
            _ => {
                self.headers.append(name, value);
                Ok(())
            }
        }
    }

    fn host(&mut self, value: &HeaderValue) -> Result<(), Fault> {
        let text = value.to_str().map_err(|_bad| Fault::Malformed("the Host header is none"))?;
        if self.host.replace(text.to_owned()).is_some() {
            return Err(Fault::Malformed("there are two Host headers"));
        }
        Ok(())
    }

    fn length(&mut self, value: &[u8]) -> Result<(), Fault> {
        let bad = Fault::Malformed("Content-Length is not one plain number");
        let padded = value.len() > 1 && value.first() == Some(&b'0');
        if value.is_empty() || value.len() > 18 || padded || !value.iter().all(u8::is_ascii_digit) {
            return Err(bad);
        }
        let length = value.iter().fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        if self.length.replace(length).is_some() {
            return Err(Fault::Malformed("there are two Content-Length headers"));
        }
        Ok(())
    }

    fn coding(&mut self, value: &[u8]) -> Result<(), Fault> {
        if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
            return Err(Fault::Malformed("Transfer-Encoding is not `chunked`, once"));
        }
        self.chunked = true;
        Ok(())
    }

    fn connection(&mut self, name: HeaderName, value: HeaderValue) -> Result<(), Fault> {
        for option in value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            if option.eq_ignore_ascii_case(b"upgrade")
                || option.eq_ignore_ascii_case(b"http2-settings")
            {
                return Err(Fault::Upgrade);
            }
            self.close |= option.eq_ignore_ascii_case(b"close");
        }
        self.headers.append(name, value);
        Ok(())
    }

    fn expect(&mut self, value: &[u8]) -> Result<(), Fault> {
        if self.waits || !value.eq_ignore_ascii_case(b"100-continue") {
            return Err(Fault::Malformed("Expect is not `100-continue`"));
        }
        self.waits = true;
        Ok(())
    }

    fn framing(&self) -> Result<Framing, Fault> {
        match (self.length, self.chunked) {
            (Some(_), true) => {
                Err(Fault::Malformed("there are both Content-Length and Transfer-Encoding"))
            }
            (Some(length), false) => Ok(Framing::Length(length)),
            (None, true) => Ok(Framing::Chunked),
            (None, false) => Ok(Framing::Length(0)),
        }
    }
}

/// What frames a message, says where it goes, or changes the connection.
const FRAMING: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "transfer-encoding",
    "upgrade",
];
