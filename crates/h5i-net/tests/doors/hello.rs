//! What TLS clients say first.

/// A client hello as one handshake message.
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

/// The extension that names the server.
pub(crate) fn named(name: &str) -> (u16, Vec<u8>) {
    let length = u16::try_from(name.len()).unwrap();
    let mut content = (length + 3).to_be_bytes().to_vec();
    content.push(0);
    content.extend(length.to_be_bytes());
    content.extend(name.bytes());
    (0, content)
}

/// The message in records of `length` bytes.
pub(crate) fn records(message: &[u8], length: usize) -> Vec<u8> {
    let record = |part: &[u8]| {
        let mut record = vec![22, 3, 1];
        record.extend(u16::try_from(part.len()).unwrap().to_be_bytes());
        record.extend(part);
        record
    };
    message.chunks(length).flat_map(record).collect()
}

/// A plain client hello to `name`.
pub(crate) fn to(name: &str) -> Vec<u8> {
    records(&message(&[named(name)]), 16384)
}
