//! The TLS client hello: which server the client names (RFC 8446, section 4.1.2; RFC 6066).

use h5i_policy::HostName;

/// What the first bytes of a TLS client are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hello {
    /// They go on.
    Incomplete,
    Complete(ClientHello),
    Malformed,
}

/// A client hello, as far as it says where it wants to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientHello {
    /// The server name; one only is allowed.
    pub(crate) name: Option<HostName>,
    /// It has an encrypted client hello, whose true name can't be seen. What browsers send to keep
    /// the extension in use (GREASE) can't be told from a real one, which is its purpose.
    pub(crate) encrypted: bool,
}

/// The longest hello that is read, records and all, in bytes.
pub(crate) const LONGEST: usize = 64 << 10;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
/// The extension of RFC 9849 and of the draft before it.
const ENCRYPTED: [u16; 2] = [0xfe0d, 0xffce];

/// Reads a hello from the records at the start of a connection, however they are cut.
pub(crate) fn read(bytes: &[u8]) -> Hello {
    match hello(bytes) {
        Ok(Some(hello)) => Hello::Complete(hello),
        Ok(None) if bytes.len() < LONGEST => Hello::Incomplete,
        _ => Hello::Malformed,
    }
}

struct Malformed;

fn hello(bytes: &[u8]) -> Result<Option<ClientHello>, Malformed> {
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        if let Some(length) = handshake_length(&message)? {
            if message.len() == length {
                return body(&message[4..]).map(Some);
            }
            // Nothing may follow the hello before the server has answered.
            if message.len() > length {
                return Err(Malformed);
            }
        }
        let Some((header, after)) = rest.split_first_chunk::<5>() else {
            return if prefix_of_record(rest) { Ok(None) } else { Err(Malformed) };
        };
        let [kind, major, _, high, low] = *header;
        let length = usize::from(u16::from_be_bytes([high, low]));
        if kind != HANDSHAKE || major != 3 || length == 0 || length > 1 << 14 {
            return Err(Malformed);
        }
        let available = after.len().min(length);
        message.extend(&after[..available]);
        if available < length {
            handshake_length(&message)?;
            return Ok(None);
        }
        rest = &after[length..];
    }
}

fn prefix_of_record(bytes: &[u8]) -> bool {
    bytes.first().is_none_or(|kind| *kind == HANDSHAKE)
        && bytes.get(1).is_none_or(|major| *major == 3)
}

/// The length of the handshake message with its head, once that is there.
fn handshake_length(message: &[u8]) -> Result<Option<usize>, Malformed> {
    if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return Err(Malformed);
    }
    let Some([_, a, b, c]) = message.first_chunk() else { return Ok(None) };
    let length = 4 + u32::from_be_bytes([0, *a, *b, *c]) as usize;
    if length > LONGEST { Err(Malformed) } else { Ok(Some(length)) }
}

/// Cuts `bytes` step by step.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn short(&mut self) -> Result<u16, Malformed> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn counted_by_byte(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.byte()?.into();
        self.take(length)
    }

    fn counted_by_short(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.short()?.into();
        self.take(length)
    }
}

fn body(bytes: &[u8]) -> Result<ClientHello, Malformed> {
    let mut reader = Reader(bytes);
    // Version and random, session id, cipher suites, compression.
    reader.take(34)?;
    reader.counted_by_byte()?;
    reader.counted_by_short()?;
    reader.counted_by_byte()?;
    let mut hello = ClientHello { name: None, encrypted: false };
    if reader.0.is_empty() {
        return Ok(hello);
    }
    let mut extensions = Reader(reader.counted_by_short()?);
    if !reader.0.is_empty() {
        return Err(Malformed);
    }
    while !extensions.0.is_empty() {
        let kind = extensions.short()?;
        let content = extensions.counted_by_short()?;
        if kind == SERVER_NAME {
            // The second of two extensions is what some servers take.
            if hello.name.is_some() {
                return Err(Malformed);
            }
            hello.name = Some(server_name(content)?);
        }
        hello.encrypted |= ENCRYPTED.contains(&kind);
    }
    Ok(hello)
}

fn server_name(content: &[u8]) -> Result<HostName, Malformed> {
    let mut outer = Reader(content);
    let mut list = Reader(outer.counted_by_short()?);
    let kind = list.byte()?;
    let name = list.counted_by_short()?;
    if kind != 0 || !list.0.is_empty() || !outer.0.is_empty() {
        return Err(Malformed);
    }
    let name = std::str::from_utf8(name).map_err(|_e| Malformed)?;
    HostName::new(name).map_err(|_e| Malformed)
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A hello with these extensions, as one handshake message.
    pub(crate) fn message(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut listed = Vec::new();
        for (kind, content) in extensions {
            listed.extend(kind.to_be_bytes());
            listed.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
            listed.extend(content);
        }
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0x13, 0x01, 1, 0]);
        body.extend(u16::try_from(listed.len()).unwrap().to_be_bytes());
        body.extend(listed);
        let mut message = vec![1];
        message.extend(&u32::try_from(body.len()).unwrap().to_be_bytes()[1..]);
        message.extend(body);
        message
    }

    pub(crate) fn named(name: &str) -> (u16, Vec<u8>) {
        let length = u16::try_from(name.len()).unwrap();
        let mut content = (length + 3).to_be_bytes().to_vec();
        content.push(0);
        content.extend(length.to_be_bytes());
        content.extend(name.bytes());
        (0, content)
    }

    /// The message in records of these lengths, the last one for the rest.
    pub(crate) fn records(message: &[u8], length: usize) -> Vec<u8> {
        let record = |part: &[u8]| {
            let mut record = vec![22, 3, 1];
            record.extend(u16::try_from(part.len()).unwrap().to_be_bytes());
            record.extend(part);
            record
        };
        message.chunks(length).flat_map(record).collect()
    }

    fn complete(name: Option<&str>, encrypted: bool) -> Hello {
        let name = name.map(|name| HostName::new(name).unwrap());
        Hello::Complete(ClientHello { name, encrypted })
    }

    #[test]
    fn the_server_name_is_read_however_the_records_are_cut() {
        let message = message(&[(10, vec![0, 2, 0, 29]), named("API.Example.com")]);
        for length in [1, 2, 3, 4, 5, 50, message.len()] {
            let bytes = records(&message, length);
            assert_eq!(read(&bytes), complete(Some("api.example.com"), false));
            for cut in 0..bytes.len() {
                assert_eq!(read(&bytes[..cut]), Hello::Incomplete, "{length} {cut}");
            }
        }
    }

    #[test]
    fn a_hello_without_a_name_or_with_an_encrypted_one_says_so() {
        assert_eq!(read(&records(&message(&[]), 999)), complete(None, false));
        let hidden = message(&[named("front.example"), (0xfe0d, vec![0; 40])]);
        assert_eq!(read(&records(&hidden, 999)), complete(Some("front.example"), true));
    }

    #[test]
    fn what_two_parsers_could_read_in_two_ways_is_malformed() {
        let two = message(&[named("a.example"), named("b.example")]);
        let address = message(&[named("192.0.2.1")]);
        let mut trailing = message(&[named("a.example")]);
        trailing.push(0);
        let mut list = named("a.example");
        list.1.extend([0, 0, 1, b'b']);
        for bytes in [two, address, trailing, message(&[list])] {
            assert_eq!(read(&records(&bytes, 9999)), Hello::Malformed);
        }
        assert_eq!(read(b"\x16\x02"), Hello::Malformed);
        assert_eq!(read(&[22, 3, 1, 0, 0]), Hello::Malformed);
        assert_eq!(read(&[22, 3, 1, 0, 1, 2]), Hello::Malformed);
        assert_eq!(read(&[22, 3, 1, 0, 4, 1, 255, 255, 255]), Hello::Malformed);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_much(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
            let mut message = vec![1, 0];
            message.extend(u16::try_from(bytes.len()).unwrap().to_be_bytes());
            message.extend(&bytes);
            prop_assert_ne!(read(&records(&message, 17)), Hello::Incomplete);
        }
    }
}
