//! Binary parts of a patch, read: zlib, and git's deltas (gitformat-pack(5)).

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};

use super::PatchFault;
use super::lines::Lines;
use crate::base85;

/// How much larger than its compressed form content can be: a match of 258 bytes takes two bits at
/// least (RFC 1951).
const MOST_EXPANSION: usize = 1032;
const BUFFER: usize = 32 << 10;

/// The content after the binary part that follows; the reverse part must give `old` back.
pub(super) fn apply(lines: &mut Lines<'_>, old: &[u8]) -> Result<Vec<u8>, PatchFault> {
    lines.after(b"GIT binary patch").ok_or(PatchFault::Binary)?;
    let new = match part(lines)? {
        Part::Literal(size) => content(lines, size)?,
        Part::Delta(size) => undelta(&content(lines, size)?, old).ok_or(PatchFault::Binary)?,
    };
    if lines.peek().is_some_and(|line| line.starts_with(b"literal ") || line.starts_with(b"delta "))
    {
        let same = match part(lines)? {
            Part::Literal(size) => is_literal(lines, size, old)?,
            Part::Delta(size) => {
                undelta(&content(lines, size)?, &new).is_some_and(|back| back == old)
            }
        };
        if !same {
            return Err(PatchFault::Binary);
        }
    }
    Ok(new)
}

/// What the lines of a part stand for, with their size unpacked.
enum Part {
    Literal(usize),
    Delta(usize),
}

fn part(lines: &mut Lines<'_>) -> Result<Part, PatchFault> {
    let size = |text: &[u8]| str::from_utf8(text).ok()?.parse().ok();
    let part = match lines.after(b"literal ") {
        Some(text) => size(text).map(Part::Literal),
        None => lines.after(b"delta ").and_then(size).map(Part::Delta),
    };
    part.ok_or(PatchFault::Binary)
}

/// Unpacks the lines that follow to memory.
fn content(lines: &mut Lines<'_>, size: usize) -> Result<Vec<u8>, PatchFault> {
    // No more memory than the text can stand for, whatever it claims: five digits for four bytes.
    if size > (lines.left() / 5 * 4).saturating_mul(MOST_EXPANSION) {
        return Err(PatchFault::Binary);
    }
    let mut bytes = Vec::with_capacity(size);
    unpack(lines, size, &mut |piece| bytes.extend_from_slice(piece))?;
    Ok(bytes)
}

/// Whether the lines that follow stand for `old`, which is compared as it is unpacked.
fn is_literal(lines: &mut Lines<'_>, size: usize, old: &[u8]) -> Result<bool, PatchFault> {
    let (mut rest, mut same) = (old, true);
    unpack(lines, size, &mut |piece| match rest.strip_prefix(piece) {
        Some(tail) => rest = tail,
        None => same = false,
    })?;
    Ok(same && rest.is_empty())
}

/// Reads lines to an empty one and hands on the `size` bytes that they stand for.
fn unpack(
    lines: &mut Lines<'_>,
    size: usize,
    take: &mut dyn FnMut(&[u8]),
) -> Result<(), PatchFault> {
    let mut unpacker = InflateState::new_boxed(DataFormat::Zlib);
    let mut buffer = vec![0; BUFFER];
    let (mut packed, mut left, mut ended) = (Vec::with_capacity(base85::LINE), size, false);
    loop {
        match lines.next() {
            Some(b"") => break,
            Some(line) => base85::decode_line(line, &mut packed).ok_or(PatchFault::Binary)?,
            None => return Err(PatchFault::Binary),
        }
        let mut input = &packed[..];
        loop {
            // Nothing may follow the end of the stream.
            if ended {
                if input.is_empty() {
                    break;
                }
                return Err(PatchFault::Binary);
            }
            let step = inflate(&mut unpacker, input, &mut buffer, MZFlush::None);
            input = input.get(step.bytes_consumed..).unwrap_or_default();
            left = left.checked_sub(step.bytes_written).ok_or(PatchFault::Binary)?;
            take(&buffer[..step.bytes_written]);
            match step.status {
                Ok(MZStatus::StreamEnd) => ended = true,
                // All was taken, and there was room for all that it gave.
                Ok(_) | Err(MZError::Buf) if input.is_empty() && step.bytes_written < BUFFER => {
                    break;
                }
                Ok(_) if step.bytes_written > 0 || step.bytes_consumed > 0 => {}
                _ => return Err(PatchFault::Binary),
            }
        }
        packed.clear();
    }
    if ended && left == 0 { Ok(()) } else { Err(PatchFault::Binary) }
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
