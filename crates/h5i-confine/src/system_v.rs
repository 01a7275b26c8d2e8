//! What a box keeps of System V: memory segments, semaphores and messages; see sysvipc(7). They stay
//! when no process has them any more, so that none shows them.

use std::os::fd::OwnedFd;

use rustix::io::pread;

/// A kind of it, which the kernel lists by ipc namespace. What is opened stays the list of the
/// namespace that it was opened in, wherever it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Segments,
    Semaphores,
    Messages,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Segments, Self::Semaphores, Self::Messages];

    /// The list.
    pub(crate) const fn list(self) -> &'static str {
        match self {
            Self::Segments => "/proc/sysvipc/shm",
            Self::Semaphores => "/proc/sysvipc/sem",
            Self::Messages => "/proc/sysvipc/msg",
        }
    }

    /// Columns of the list, and how many bytes of memory one of each stands for: of a segment what
    /// is in memory and what is swapped out; a semaphore has a cache line; a message has a header,
    /// and pages of which the last is not full.
    const fn columns(self) -> &'static [(usize, u64)] {
        match self {
            Self::Segments => &[(14, 1), (15, 1)],
            Self::Semaphores => &[(3, 64)],
            Self::Messages => &[(3, 1), (4, 128)],
        }
    }

    /// What one of the kind takes besides.
    const fn each(self) -> u64 {
        match self {
            Self::Segments => 0,
            Self::Semaphores | Self::Messages => 512,
        }
    }

    /// Bytes of all that are listed.
    pub(crate) fn used(self, list: &OwnedFd) -> u64 {
        let mut text = Vec::new();
        let mut piece = [0; 16 << 10];
        // The kernel has at most 32,768 of a kind, each a line.
        while let Ok(read @ 1..) = pread(list, &mut piece, text.len() as u64) {
            text.extend_from_slice(&piece[..read]);
        }
        self.sum(&text)
    }

    fn sum(self, text: &[u8]) -> u64 {
        let lines = text.split(|byte| *byte == b'\n').skip(1).filter(|line| !line.is_empty());
        let taken = |line: &[u8]| -> u64 {
            let line = str::from_utf8(line).unwrap_or_default();
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let column = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
            let of = |(at, bytes): &(usize, u64)| Some(column(*at)?.saturating_mul(*bytes));
            self.columns().iter().filter_map(of).fold(self.each(), u64::saturating_add)
        };
        lines.map(taken).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn what_is_listed_counts_with_what_it_takes() {
        let segments = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n";
        let segment = "         0          0   600               8388608  8091  8091      0     0     0     0     0 1796043331 1796043331 1796043331               5242880                  4096\n";
        let semaphores = "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n";
        let set = "         0          3   600      32000     0     0     0     0          0 1796043331\n";
        let messages = "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime      rtime      ctime\n";
        let queue = "         0          0   600       16384          2  8091     0     0     0     0     0 1796043331          0 1796043331\n";
        for (kind, head, line, each) in [
            (Kind::Segments, segments, segment, 5_242_880 + 4096),
            (Kind::Semaphores, semaphores, set, 512 + 32_000 * 64),
            (Kind::Messages, messages, queue, 512 + 16_384 + 2 * 128),
        ] {
            assert_eq!(kind.sum(head.as_bytes()), 0);
            assert_eq!(kind.sum(format!("{head}{line}{line}").as_bytes()), 2 * each);
            assert_eq!(kind.sum(b""), 0);
        }
    }
}
