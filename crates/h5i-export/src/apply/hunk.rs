//! The hunks of a text file.

use super::PatchFault;
use super::lines::Lines;

/// The content after all hunks that follow in `lines`; without one it is as before.
pub(super) fn apply(lines: &mut Lines<'_>, old: &[u8]) -> Result<Vec<u8>, PatchFault> {
    let mut new = Vec::with_capacity(old.len());
    let mut source = old.split_inclusive(|&byte| byte == b'\n');
    let mut at = 0;
    while let Some(range) = lines.after(b"@@ -") {
        let range = Range::parse(range)?;
        // A hunk that takes no line stands after the line that it names.
        let first =
            if range.old_lines == 0 { range.old_start } else { range.old_start.saturating_sub(1) };
        while at < first {
            new.extend_from_slice(source.next().ok_or(PatchFault::Context)?);
            at += 1;
        }
        if at != first {
            return Err(PatchFault::Hunk);
        }
        let (mut take, mut give) = (range.old_lines, range.new_lines);
        while take > 0 || give > 0 {
            let (sign, content) =
                lines.next().and_then(<[u8]>::split_first).ok_or(PatchFault::Hunk)?;
            let mut line = content.to_vec();
            line.push(b'\n');
            if lines.after(b"\\ ").is_some() {
                line.pop();
            }
            if matches!(sign, b' ' | b'-') {
                take = take.checked_sub(1).ok_or(PatchFault::Hunk)?;
                if source.next() != Some(&line) {
                    return Err(PatchFault::Context);
                }
                at += 1;
            }
            match sign {
                b' ' | b'+' => {
                    give = give.checked_sub(1).ok_or(PatchFault::Hunk)?;
                    new.extend_from_slice(&line);
                }
                b'-' => {}
                _ => return Err(PatchFault::Hunk),
            }
        }
    }
    source.for_each(|line| new.extend_from_slice(line));
    Ok(new)
}

struct Range {
    old_start: u64,
    old_lines: u64,
    new_lines: u64,
}

impl Range {
    /// Reads `A[,B] +C[,D] @@…`.
    fn parse(text: &[u8]) -> Result<Self, PatchFault> {
        let end = text.windows(3).position(|window| window == b" @@").ok_or(PatchFault::Hunk)?;
        let text = str::from_utf8(&text[..end]).ok().ok_or(PatchFault::Hunk)?;
        let (old, new) = text.split_once(" +").ok_or(PatchFault::Hunk)?;
        let pair = |text: &str| {
            let (start, count) = text.split_once(',').unwrap_or((text, "1"));
            Some((start.parse::<u64>().ok()?, count.parse::<u64>().ok()?))
        };
        let ((old_start, old_lines), (_, new_lines)) =
            (pair(old).ok_or(PatchFault::Hunk)?, pair(new).ok_or(PatchFault::Hunk)?);
        Ok(Self { old_start, old_lines, new_lines })
    }
}
