//! What a fuzzer asks of this crate. Not part of its interface.

use bytes::BytesMut;
use h5i_policy::QueryName;

use crate::h1::{Decoder, Fault, Head, Scan, parse};
use crate::query::decoded;
use crate::target::Target;

/// Largest input: a head, and something after it.
const LARGEST: usize = 128 * 1024;

/// Reads bytes as what a program sends on one connection. Whatever they are, each request is read
/// to the same end however the bytes were cut on the way; what is read of a head, written down
/// plainly, is read as the same again; its path says one thing only; and a parameter of the host's
/// stands once in its query.
///
/// # Panics
/// When it is not so.
pub fn requests(data: &[u8]) {
    let data = &data[..data.len().min(LARGEST)];
    let whole = read(data, data.len().max(1));
    assert_eq!(read(data, 1), whole);
    assert_eq!(read(data, 7), whole);
}

/// What was read of a connection.
#[derive(Debug, Default, PartialEq, Eq)]
struct Heard {
    requests: Vec<(String, Vec<u8>, bool)>,
    fault: Option<Fault>,
    rest: Vec<u8>,
}

fn read(data: &[u8], step: usize) -> Heard {
    let mut heard = Heard::default();
    let mut buffer = BytesMut::new();
    let mut scan = Scan::default();
    let mut under_way: Option<(Decoder, String, Vec<u8>)> = None;
    for part in data.chunks(step) {
        buffer.extend_from_slice(part);
        loop {
            let Some((decoder, _, body)) = &mut under_way else {
                match scan
                    .end(&buffer)
                    .and_then(|end| end.map(|end| head(&buffer, end)).transpose())
                {
                    Ok(Some((head, end))) => {
                        bytes::Buf::advance(&mut buffer, end);
                        scan = Scan::default();
                        under_way = Some((Decoder::new(head.framing), written(&head), Vec::new()));
                        continue;
                    }
                    Ok(None) => break,
                    Err(fault) => {
                        heard.fault = Some(fault);
                        return heard;
                    }
                }
            };
            match decoder.next(&mut buffer) {
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Ok(None) if decoder.is_done() => {
                    heard
                        .requests
                        .extend(under_way.take().map(|(_, head, body)| (head, body, true)));
                }
                Ok(None) => break,
                Err(fault) => {
                    heard.fault = Some(fault);
                    break;
                }
            }
            if heard.fault.is_some() {
                break;
            }
        }
        if heard.fault.is_some() {
            break;
        }
    }
    heard.requests.extend(under_way.take().map(|(_, head, body)| (head, body, false)));
    if heard.fault.is_none() {
        heard.rest = buffer.to_vec();
    }
    heard
}

fn head(buffer: &[u8], end: usize) -> Result<(Head, usize), Fault> {
    parse(&buffer[..end]).map(|head| (head, end))
}

/// A head as it could be sent on; checks that it says the same again, and nothing else.
fn written(head: &Head) -> String {
    let target = head.target.origin_form();
    let again = Target::new(&target).map_err(|fault| fault.why());
    assert_eq!(again.as_ref(), Ok(&head.target), "{target:?}");
    assert!(target.starts_with('/') && target.bytes().all(|byte| (b'!'..=b'~').contains(&byte)));
    // As it is, and as a service reads it that takes an encoded slash for a slash.
    for path in [head.target.path().to_owned(), head.target.path().replace("%2F", "/")] {
        let whole = format!("{path}/");
        assert!(
            !whole.contains("/../") && !whole.contains("/./") && !path.contains("//"),
            "{path}"
        );
    }
    carries_once(&head.target);
    let mut text = format!("{} {target} HTTP/1.1\r\nhost: {}\r\n", head.method, head.host);
    for (name, value) in &head.headers {
        assert!(!value.as_bytes().iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        text += &format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes()));
    }
    text += "\r\n";
    let mut scan = Scan::default();
    // Its lines may have grown a little: a value that is no text is longer in this form.
    if let Ok(end) = scan.end(text.as_bytes()) {
        assert_eq!(end, Some(text.len()), "{text:?}");
        let same = parse(text.as_bytes()).map(|again| (again.method, again.target, again.host));
        let wanted = Ok((head.method.clone(), head.target.clone(), head.host.clone()));
        assert_eq!(same, wanted, "{text:?}");
    }
    text
}

/// A target that carries a credential has it under its name once, and nothing else there, for a
/// service that parts a query at `&` and for one that does at `;` as well.
fn carries_once(target: &Target) {
    let Ok(name) = "key".parse::<QueryName>() else { return };
    let Ok(sent) = target.carrying(&name, b"S/1") else { return };
    let (path, query) = sent.split_once('?').unwrap_or((sent.as_str(), ""));
    assert_eq!(path, target.path());
    for separators in [&['&'][..], &['&', ';']] {
        let parameters =
            query.split(separators).map(|one| one.split_once('=').unwrap_or((one, "")));
        let own = parameters.filter(|(key, _)| decoded(key.as_bytes()) == b"key");
        let values: Vec<&str> = own.map(|(_, value)| value).collect();
        assert_eq!(values, ["S%2F1"], "{:?}", sent.as_str());
    }
}
