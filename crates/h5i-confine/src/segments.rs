//! System V memory segments of a box; see sysvipc(7). They stay when nobody has them attached any more, so
//! that no process shows them.

use std::os::fd::OwnedFd;

use rustix::io::pread;

/// The list of those in the reader's ipc namespace. What is opened stays the list of the namespace that it
/// was opened in, wherever it is read.
pub(crate) const LIST: &str = "/proc/sysvipc/shm";

/// Columns of the list: what of a segment is in memory, and what is swapped out, bytes.
const TAKEN: [usize; 2] = [14, 15];

/// Bytes of all segments on the list.
pub(crate) fn used(list: &OwnedFd) -> u64 {
    let mut text = Vec::new();
    let mut piece = [0; 16 << 10];
    // The kernel has at most 32,768 of them, each a line.
    while let Ok(read @ 1..) = pread(list, &mut piece, text.len() as u64) {
        text.extend_from_slice(&piece[..read]);
    }
    sum(&text)
}

fn sum(text: &[u8]) -> u64 {
    let lines = text.split(|byte| *byte == b'\n').skip(1);
    let taken = |line: &[u8]| -> u64 {
        let line = str::from_utf8(line).unwrap_or_default();
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let column = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        TAKEN.into_iter().filter_map(column).fold(0, u64::saturating_add)
    };
    lines.map(taken).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn what_is_in_memory_and_what_is_swapped_out_count() {
        let head = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n";
        let line = "         0          0   600               8388608  8091  8091      0     0     0     0     0 1796043331 1796043331 1796043331               5242880                  4096\n";
        assert_eq!(sum(head.as_bytes()), 0);
        assert_eq!(sum(format!("{head}{line}{line}").as_bytes()), 2 * (5_242_880 + 4096));
        assert_eq!(sum(b""), 0);
    }
}
