//! Where the last records of a log begin.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Bytes that are looked at in one piece.
const PIECE: u64 = 64 * 1024;

/// The place of the last `count` lines of a file, without reading what is before them. A line that
/// has no end yet counts for none.
///
/// # Errors
/// When the file can't be read.
pub(crate) fn tail_of(file: &File, count: u64) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    // The end of the line before the first one is one more.
    let mut left = count.saturating_add(1);
    let mut piece = Vec::new();
    while end > 0 {
        let begin = end.saturating_sub(PIECE);
        piece.resize(usize::try_from(end - begin).unwrap_or_default(), 0);
        file.read_exact_at(&mut piece, begin)?;
        for (at, _) in piece.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            left -= 1;
            if left == 0 {
                return Ok(begin + at as u64 + 1);
            }
        }
        end = begin;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_last_lines_begin_where_they_do() {
        let of = |text: &str, count| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            tail_of(&file, count).unwrap()
        };
        assert_eq!((of("", 3), of("a\n", 3), of("a\nb\n", 1), of("a\nb\n", 2)), (0, 0, 2, 0));
        assert_eq!((of("a\nb\nhalf", 1), of("a\nb\n", 0)), (2, 4));
        let long = "x".repeat(70_000);
        let text = format!("{long}\n{long}\n{long}\n");
        assert_eq!((of(&text, 1), of(&text, 2), of(&text, 9)), (140_002, 70_001, 0));
        assert_eq!(of("a\n", u64::MAX), 0);
    }
}
