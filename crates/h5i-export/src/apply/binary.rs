//! Binary parts: base 85, zlib, and git's deltas (gitformat-pack(5)).

use miniz_oxide::inflate::decompress_slice_iter_to_slice;

use super::PatchFault;
use super::lines::Lines;

const ALPHABET: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
/// The value of each digit; [`NO_DIGIT`] for every other byte.
const VALUES: [u8; 256] = values();
const NO_DIGIT: u8 = u8::MAX;
/// How much larger than its compressed form content can be: a match of 258 bytes takes two bits at
/// least (RFC 1951).
const MOST_EXPANSION: usize = 1032;

const fn values() -> [u8; 256] {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 85 {
        values[ALPHABET[value as usize] as usize] = value;
        value += 1;
    }
    values
}

/// The content after the binary part that follows; the reverse part is checked for form only.
pub(super) fn apply(lines: &mut Lines<'_>, old: &[u8]) -> Result<Vec<u8>, PatchFault> {
    lines.after(b"GIT binary patch").ok_or(PatchFault::Binary)?;
    let new = part(lines, old)?;
    if lines.peek().is_some_and(|line| line.starts_with(b"literal ") || line.starts_with(b"delta "))
    {
        let reverse = part(lines, &new)?;
        if reverse != old {
            return Err(PatchFault::Binary);
        }
    }
    Ok(new)
}

fn part(lines: &mut Lines<'_>, source: &[u8]) -> Result<Vec<u8>, PatchFault> {
    if let Some(size) = lines.after(b"literal ") {
        return inflate(lines, size);
    }
    let size = lines.after(b"delta ").ok_or(PatchFault::Binary)?;
    let delta = inflate(lines, size)?;
    undelta(&delta, source).ok_or(PatchFault::Binary)
}

/// Reads lines to an empty one and inflates them to exactly `size` bytes.
fn inflate(lines: &mut Lines<'_>, size: &[u8]) -> Result<Vec<u8>, PatchFault> {
    let size: usize =
        str::from_utf8(size).ok().and_then(|text| text.parse().ok()).ok_or(PatchFault::Binary)?;
    // Five digits for four bytes; the lines of the reverse part that follow are few, or as many.
    let mut packed = Vec::with_capacity(lines.left() / 5 * 4);
    loop {
        match lines.next() {
            Some(b"") => break,
            Some(line) => decode(line, &mut packed).ok_or(PatchFault::Binary)?,
            None => return Err(PatchFault::Binary),
        }
    }
    // No more memory than the text can stand for, whatever it claims.
    if size > packed.len().saturating_mul(MOST_EXPANSION) {
        return Err(PatchFault::Binary);
    }
    let mut bytes = vec![0; size];
    let written =
        decompress_slice_iter_to_slice(&mut bytes, std::iter::once(&packed[..]), true, false);
    if written == Ok(size) { Ok(bytes) } else { Err(PatchFault::Binary) }
}

/// One line: a letter for the number of bytes, then five digits for every four bytes.
fn decode(line: &[u8], packed: &mut Vec<u8>) -> Option<()> {
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

/// The target of a delta against `source`.
fn undelta(delta: &[u8], source: &[u8]) -> Option<Vec<u8>> {
    let (from, rest) = size(delta)?;
    let (to, mut rest) = size(rest)?;
    if from != source.len() {
        return None;
    }
    let mut target = Vec::new();
    while let Some((&command, tail)) = rest.split_first() {
        rest = tail;
        if command & 0x80 == 0 {
            let (insert, tail) = rest.split_at_checked(usize::from(command))?;
            // Zero is reserved.
            if insert.is_empty() {
                return None;
            }
            target.extend_from_slice(insert);
            rest = tail;
            continue;
        }
        let mut operand = |bits: std::ops::Range<u32>| {
            let mut value = 0_usize;
            for (shift, bit) in bits.enumerate() {
                if command & 1 << bit != 0 {
                    let (&byte, tail) = rest.split_first()?;
                    value |= usize::from(byte) << (8 * shift);
                    rest = tail;
                }
            }
            Some(value)
        };
        let offset = operand(0..4)?;
        let count = match operand(4..7)? {
            0 => 0x1_0000,
            count => count,
        };
        target.extend_from_slice(source.get(offset..offset.checked_add(count)?)?);
        if target.len() > to {
            return None;
        }
    }
    (target.len() == to).then_some(target)
}

/// A size in groups of seven bits, the low ones first.
fn size(delta: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_usize;
    for (at, byte) in delta.iter().enumerate().take(9) {
        value |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, &delta[at + 1..]));
        }
    }
    None
}
