//! The framing of chunks, without anything that may be left out of it. RFC 9112, section 7.1.

use bytes::{Buf, Bytes, BytesMut};

use super::head::{Fault, Framing};

/// Digits of a chunk's size: more than 4 GiB at once is no chunk.
const DIGITS: usize = 8;

/// Reads a body out of the bytes of a connection.
#[derive(Clone, Debug)]
pub(crate) enum Decoder {
    /// So many bytes more.
    Plain(u64),
    /// At the size of a chunk.
    Size,
    /// In a chunk: so many bytes more.
    Chunk(u64),
    /// At the end of a chunk.
    AfterChunk,
    /// After the last chunk, where trailers would be.
    Last,
    /// At the end.
    Done,
}

impl Decoder {
    pub(crate) fn new(framing: Framing) -> Self {
        match framing {
            Framing::Length(0) => Self::Done,
            Framing::Length(length) => Self::Plain(length),
            Framing::Chunked => Self::Size,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }

    /// Takes the next bytes of the body out of `buffer`; `None` when more must come first, or at the
    /// end.
    pub(crate) fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, Fault> {
        loop {
            match self {
                Self::Plain(left) | Self::Chunk(left) => {
                    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
                    if count == 0 {
                        return Ok(None);
                    }
                    *left -= u64::try_from(count).unwrap_or(*left);
                    let over = *left == 0;
                    if over {
                        let plain = matches!(self, Self::Plain(_));
                        *self = if plain { Self::Done } else { Self::AfterChunk };
                    }
                    return Ok(Some(buffer.split_to(count).freeze()));
                }
                Self::Size => {
                    let Some(size) = size(buffer)? else { return Ok(None) };
                    *self = if size == 0 { Self::Last } else { Self::Chunk(size) };
                }
                Self::AfterChunk => {
                    if !line_end(buffer, "a chunk is longer than its size")? {
                        return Ok(None);
                    }
                    *self = Self::Size;
                }
                Self::Last => {
                    if !line_end(buffer, "there are trailers after the body")? {
                        return Ok(None);
                    }
                    *self = Self::Done;
                }
                Self::Done => return Ok(None),
            }
        }
    }
}

/// The size of a chunk and the end of its line, once both are there.
fn size(buffer: &mut BytesMut) -> Result<Option<u64>, Fault> {
    let mut size = 0_u64;
    for (at, byte) in buffer.iter().enumerate() {
        match char::from(*byte).to_digit(16) {
            Some(digit) if at < DIGITS => size = size << 4 | u64::from(digit),
            Some(_) => return Err(Fault::Malformed("a chunk's size is longer than 8 digits")),
            None if *byte == b'\r' && at > 0 => {
                return match buffer.get(at + 1) {
                    Some(b'\n') => {
                        buffer.advance(at + 2);
                        Ok(Some(size))
                    }
                    Some(_) => Err(Fault::Malformed("a carriage return stands alone")),
                    None => Ok(None),
                };
            }
            None => return Err(Fault::Malformed("a chunk's size is not just hexadecimal digits")),
        }
    }
    Ok(None)
}

/// Whether a line ends here; not yet, when more must come.
fn line_end(buffer: &mut BytesMut, otherwise: &'static str) -> Result<bool, Fault> {
    match (buffer.first(), buffer.get(1)) {
        (Some(b'\r'), Some(b'\n')) => {
            buffer.advance(2);
            Ok(true)
        }
        (None, _) | (Some(b'\r'), None) => Ok(false),
        _ => Err(Fault::Malformed(otherwise)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body, and what is left after it; read in parts of `step` bytes.
    fn read(framing: Framing, text: &[u8], step: usize) -> Result<(Vec<u8>, Vec<u8>, bool), Fault> {
        let (mut decoder, mut buffer, mut body) =
            (Decoder::new(framing), BytesMut::new(), Vec::new());
        for part in text.chunks(step) {
            buffer.extend_from_slice(part);
            while let Some(bytes) = decoder.next(&mut buffer)? {
                body.extend_from_slice(&bytes);
            }
        }
        Ok((body, buffer.to_vec(), decoder.is_done()))
    }

    #[test]
    fn a_body_is_read_however_it_is_cut() {
        let text = b"4\r\nabcd\r\n0A\r\n0123456789\r\n0\r\n\r\nGET";
        for step in 1..text.len() {
            let read = read(Framing::Chunked, text, step).expect("well formed");
            assert_eq!(read, (b"abcd0123456789".to_vec(), b"GET".to_vec(), true), "{step}");
        }
        assert_eq!(
            read(Framing::Length(3), b"abcd", 1),
            Ok((b"abc".to_vec(), b"d".to_vec(), true))
        );
        assert_eq!(read(Framing::Length(5), b"abcd", 2), Ok((b"abcd".to_vec(), Vec::new(), false)));
        assert_eq!(read(Framing::Length(0), b"a", 1), Ok((Vec::new(), b"a".to_vec(), true)));
    }

    #[test]
    fn what_may_be_left_out_of_the_framing_is_refused() {
        for text in [
            "4;a=b\r\nabcd\r\n0\r\n\r\n",
            "4 \r\nabcd\r\n0\r\n\r\n",
            " 4\r\nabcd\r\n0\r\n\r\n",
            "+4\r\nabcd\r\n0\r\n\r\n",
            "0x4\r\nabcd\r\n0\r\n\r\n",
            "-1\r\n",
            "\r\n",
            "4\nabcd\n0\n\n",
            "4\rXabcd",
            "4\r\nabcde\r\n0\r\n\r\n",
            "4\r\nabcd0\r\n\r\n",
            "000000004\r\nabcd\r\n0\r\n\r\n",
            "ffffffffffffffff\r\n",
            "4\r\nabcd\r\n0\r\nAuthorization: x\r\n\r\n",
            "4\r\nabcd\r\n0\r\n\nx",
            "4\r\nabcd\r\n0;a\r\n\r\n",
        ] {
            for step in [1, 3, 64] {
                let read = read(Framing::Chunked, text.as_bytes(), step);
                assert!(matches!(read, Err(Fault::Malformed(_))), "{text:?} {step}: {read:?}");
            }
        }
    }
}
