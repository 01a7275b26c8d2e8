//! The head of one request (RFC 9112, sections 2 to 6).

use h5i_policy::HostName;

use super::Upgrade;

/// What of a head says where the request goes and where it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) host: HostName,
    /// The port beside the host, where one is named.
    pub(super) port: Option<u16>,
    pub(super) body: Body,
    pub(super) upgrade: Option<Upgrade>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Length(u64),
    Chunked,
}

/// The fields that matter here, each as often as it came.
#[derive(Default)]
struct Fields<'a> {
    host: Vec<&'a [u8]>,
    length: Vec<&'a [u8]>,
    encoding: Vec<&'a [u8]>,
    upgrade: Vec<&'a [u8]>,
}

impl Head {
    /// Reads a head that ends with an empty line; `None` when anything about it is not plain.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let text = bytes.strip_suffix(b"\r\n\r\n")?;
        let mut lines = lines(text)?.into_iter();
        let (target, newest) = request_line(lines.next()?)?;
        let mut fields = Fields::default();
        for line in lines {
            let (name, value) = field(line)?;
            match name.to_ascii_lowercase().as_slice() {
                b"host" => fields.host.push(value),
                b"content-length" => fields.length.push(value),
                b"transfer-encoding" => fields.encoding.push(value),
                b"upgrade" => fields.upgrade.push(value),
                _ => {}
            }
        }
        let [host] = fields.host.as_slice() else { return None };
        let (host, port) = authority(host)?;
        if let Target::Absolute(written) = target
            && authority(written)?.0 != host
        {
            return None;
        }
        let body = match (fields.length.as_slice(), fields.encoding.as_slice()) {
            ([], []) => Body::Length(0),
            ([length], []) => Body::Length(number(length)?),
            ([], [encoding]) if newest && encoding.eq_ignore_ascii_case(b"chunked") => {
                Body::Chunked
            }
            _ => return None,
        };
        let upgrade = match fields.upgrade.as_slice() {
            [] => None,
            [one] if one.eq_ignore_ascii_case(b"websocket") => Some(Upgrade::WebSocket),
            _ => Some(Upgrade::Other),
        };
        Some(Self { host, port, body, upgrade })
    }
}

enum Target<'a> {
    /// A path, or `*`.
    Origin,
    /// `http://AUTHORITY…`; the authority.
    Absolute(&'a [u8]),
}

/// The lines of a head; none holds a stray end of line or another control character.
fn lines(text: &[u8]) -> Option<Vec<&[u8]>> {
    let mut lines = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n");
        let line = &rest[..end.unwrap_or(rest.len())];
        if line.iter().any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f) {
            return None;
        }
        lines.push(line);
        match end {
            Some(at) => rest = &rest[at + 2..],
            None => return Some(lines),
        }
    }
}

fn is_token(bytes: &[u8]) -> bool {
    let special = b"!#$%&'*+-.^_`|~";
    !bytes.is_empty() && bytes.iter().all(|b| b.is_ascii_alphanumeric() || special.contains(b))
}

/// Method, target, version: whether that is 1.1.
fn request_line(line: &[u8]) -> Option<(Target<'_>, bool)> {
    let mut parts = line.split(|byte| *byte == b' ');
    let (method, target, version) = (parts.next()?, parts.next()?, parts.next()?);
    let newest = match version {
        b"HTTP/1.1" => true,
        b"HTTP/1.0" => false,
        _ => return None,
    };
    // CONNECT leads elsewhere, PRI is HTTP/2.
    let leaves = [&b"CONNECT"[..], b"PRI"].iter().any(|m| m.eq_ignore_ascii_case(method));
    if parts.next().is_some() || !is_token(method) || leaves || target.contains(&b'\t') {
        return None;
    }
    let target = match target {
        [b'/', ..] | b"*" => Target::Origin,
        _ => {
            let (scheme, rest) = target.split_at_checked(7)?;
            let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
            if !scheme.eq_ignore_ascii_case(b"http://") {
                return None;
            }
            Target::Absolute(&rest[..end.unwrap_or(rest.len())])
        }
    };
    Some((target, newest))
}

/// Whether `line` is a field of a head or trailer.
pub(super) fn is_field(line: &[u8]) -> bool {
    lines(line).is_some_and(|lines| lines.len() == 1) && field(line).is_some()
}

/// Name and value; a line that goes on from the one before has no name and is refused.
fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    is_token(name).then_some((name, value))
}

/// A name and the port beside it. A user before the name is refused, and so is an address.
fn authority(bytes: &[u8]) -> Option<(HostName, Option<u16>)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (name, port) = match text.split_once(':') {
        None => (text, None),
        Some((name, digits)) => {
            let plain = digits.bytes().all(|b| b.is_ascii_digit());
            (name, Some(digits.parse().ok().filter(|_| plain)?))
        }
    };
    Some((HostName::new(name).ok()?, port))
}

/// Digits only: no sign, no list.
fn number(digits: &[u8]) -> Option<u64> {
    let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| plain)?.parse().ok()
}
