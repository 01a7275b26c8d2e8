//! What a client speaks, by its first bytes: TLS, HTTP/1, or something else.

use super::hello::{self, ClientHello, Hello};
use crate::event::Refusal;

/// The longest first line that is waited for, in bytes.
const LONGEST_LINE: usize = 16 << 10;

/// What the first bytes say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// They go on.
    Incomplete,
    Tls(ClientHello),
    Http,
    /// A protocol that names no host in a way that is known here.
    Other,
    Refused(Refusal),
}

/// Tells the protocols apart. What a server could take for TLS or HTTP is never `Other`: on port 80
/// all that is not TLS is HTTP, elsewhere a first line of text is waited for.
pub(crate) fn tell(bytes: &[u8], port: u16) -> First {
    let Some(first) = bytes.first() else { return First::Incomplete };
    if *first == 22 {
        return match hello::read(bytes) {
            Hello::Incomplete => First::Incomplete,
            Hello::Complete(hello) => First::Tls(hello),
            Hello::Malformed => First::Refused(Refusal::MalformedHello),
        };
    }
    match old_hello(bytes) {
        Some(true) => return First::Refused(Refusal::NoServerName),
        None => return First::Incomplete,
        Some(false) => {}
    }
    if port == 80 {
        return First::Http;
    }
    text(bytes)
}

/// Whether it is a client hello of SSL 2, which servers took for TLS and which names no server;
/// `None` while it can't be told.
fn old_hello(bytes: &[u8]) -> Option<bool> {
    let expected = [|b: u8| b & 0x80 != 0, |_: u8| true, |b: u8| b == 1, |b: u8| b == 3 || b == 0];
    for (at, fits) in expected.iter().enumerate() {
        if !fits(*bytes.get(at)?) {
            return Some(false);
        }
    }
    Some(true)
}

fn text(bytes: &[u8]) -> First {
    if bytes.starts_with(b"SSH-") {
        return First::Other;
    }
    // Servers pass over empty lines before a request.
    let lead = bytes.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
    let line = &bytes[lead..];
    let end = line.iter().position(|byte| *byte == b'\n');
    let seen = &line[..end.unwrap_or(line.len())];
    let is_text = |byte: &u8| *byte >= b' ' || matches!(byte, b'\t' | b'\r');
    let starts = b"!#$%&'*+-.^_`|~";
    let begins = seen.first().is_none_or(|b| b.is_ascii_alphanumeric() || starts.contains(b));
    if !seen.iter().all(is_text) || !begins {
        return First::Other;
    }
    match end {
        None if bytes.len() < LONGEST_LINE => First::Incomplete,
        None => First::Refused(Refusal::MalformedRequest),
        Some(_) => {
            let versioned = seen.windows(5).any(|part| part.eq_ignore_ascii_case(b"HTTP/"));
            let oldest = [&b"GET "[..], b"GET\t"].iter().any(|start| seen.starts_with(start));
            if versioned || oldest { First::Http } else { First::Other }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::hello::tests::{message, named, records};

    #[test]
    fn protocols_are_told_apart() {
        let hello = records(&message(&[named("a.example")]), 99);
        assert!(matches!(tell(&hello, 443), First::Tls(_)));
        assert!(matches!(tell(&hello, 80), First::Tls(_)));
        for (bytes, port, expected) in [
            (&b""[..], 443, First::Incomplete),
            (b"GET / HTTP/1.1\r\n", 8080, First::Http),
            (b"get / http/1.1\n", 8080, First::Http),
            (b"\r\n\r\nGET / HTTP/1.1\r\n", 8080, First::Http),
            (b"GET /\n", 8080, First::Http),
            (b"GET / HTT", 8080, First::Incomplete),
            (b"x", 80, First::Http),
            (b"SSH-2.0-OpenSSH_9 x\r\n", 22, First::Other),
            (b"EHLO box\r\n", 25, First::Other),
            (b"*1\r\n$4\r\nPING\r\n", 6379, First::Other),
            (b"\0\0\0\x08\x04\xd2\x16\x2f", 5432, First::Other),
            (b"\x80", 443, First::Incomplete),
            (b"\x80\x2e\x01\x03\x01", 443, First::Refused(Refusal::NoServerName)),
            (b"\x80\x2e\x02\x03\x01", 443, First::Other),
            (b"\x16\x03\x01\x00\x00", 443, First::Refused(Refusal::MalformedHello)),
        ] {
            assert_eq!(tell(bytes, port), expected, "{bytes:?}");
        }
        assert_eq!(tell(&[b'a'; LONGEST_LINE], 8080), First::Refused(Refusal::MalformedRequest));
    }
}
