//! The lines that binary content takes in a patch: git's base 85.
//!
//! A line is a letter for the number of bytes (`A` to `Z` for 1 to 26, `a` to `z` for 27 to 52), then
//! five digits for every four bytes, the most significant first; the last group is filled with zeros.

use std::io::{self, Write};

const ALPHABET: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
/// The value of each digit; [`NO_DIGIT`] for every other byte.
const VALUES: [u8; 256] = values();
/// The letter of each length, from 1.
const LENGTHS: &[u8; LINE] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const NO_DIGIT: u8 = u8::MAX;
/// The most bytes that a line stands for.
pub(crate) const LINE: usize = 52;

const fn values() -> [u8; 256] {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 85 {
        values[ALPHABET[value as usize] as usize] = value;
        value += 1;
    }
    values
}

/// Writes 1 to [`LINE`] bytes as one line, with its line feed; of more, the first [`LINE`].
pub(crate) fn encode_line(bytes: &[u8], text: &mut impl Write) -> io::Result<()> {
    let bytes = &bytes[..bytes.len().min(LINE)];
    let mut line = [0; 1 + LINE / 4 * 5 + 1];
    line[0] = LENGTHS[bytes.len().saturating_sub(1)];
    let mut end = 1;
    for group in bytes.chunks(4) {
        let mut word = [0; 4];
        word[..group.len()].copy_from_slice(group);
        let mut bits = u32::from_be_bytes(word);
        for digit in line[end..end + 5].iter_mut().rev() {
            *digit = ALPHABET[(bits % 85) as usize];
            bits /= 85;
        }
        end += 5;
    }
    line[end] = b'\n';
    text.write_all(&line[..=end])
}

/// Adds what one line, without its line feed, stands for; `None` when it is no such line.
pub(crate) fn decode_line(line: &[u8], packed: &mut Vec<u8>) -> Option<()> {
    let (length, digits) = line.split_first()?;
    let length = match length {
        b'A'..=b'Z' => length - b'A' + 1,
        b'a'..=b'z' => length - b'a' + 27,
        _ => return None,
    };
    let length = usize::from(length);
    if digits.len() != length.div_ceil(4) * 5 {
        return None;
    }
    let end = packed.len() + length;
    for group in digits.chunks_exact(5) {
        let mut bits = 0_u32;
        for digit in group {
            let value = VALUES[usize::from(*digit)];
            if value == NO_DIGIT {
                return None;
            }
            bits = bits.checked_mul(85)?.checked_add(u32::from(value))?;
        }
        packed.extend_from_slice(&bits.to_be_bytes());
    }
    packed.truncate(end);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_read_as_they_were_written() {
        let content: Vec<u8> = (0..=u8::MAX).map(|byte| byte.wrapping_mul(151) ^ 0xa5).collect();
        for length in 1..=LINE {
            let (mut line, mut read) = (Vec::new(), Vec::new());
            encode_line(&content[..length], &mut line).expect("memory takes it");
            assert_eq!(line.pop(), Some(b'\n'));
            assert_eq!(decode_line(&line, &mut read), Some(()), "{length}");
            assert_eq!(read, content[..length]);
        }
    }

    #[test]
    fn a_line_is_what_git_writes() {
        // `deflate("")`, as every patch of a deleted binary has it.
        let mut line = Vec::new();
        let nothing = [0x78, 0x9c, 0x03, 0x00, 0x00, 0x00, 0x00, 0x01];
        encode_line(&nothing, &mut line).expect("memory takes it");
        assert_eq!(line, b"Hc$@<O00001\n");
        assert_eq!(decode_line(b"Hc$@<O0000\"", &mut Vec::new()), None);
    }
}
