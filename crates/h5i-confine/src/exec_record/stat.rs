//! What `/proc/<pid>/stat` and `status` tell of a process; see proc_pid_stat(5).

use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat_raw};

use crate::event::Seen;

/// The process has not executed a program since it was forked (`PF_FORKNOEXEC`).
const FORKED: u64 = 0x40;

/// The program that a process is, as far as an exec changes it: whether it ever executed one, and
/// where the kernel laid out code, stack, heap and arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Image {
    forked: bool,
    places: [u64; 5],
}

impl Image {
    /// That of a process that was never seen to execute a program.
    pub(super) const FORKED: Self = Self { forked: true, places: [0; 5] };

    /// Whether a process with this image that has that one now has executed a program.
    pub(super) fn became(&self, now: Self) -> Became {
        match (self.forked, now.forked) {
            (true, true) => Became::Nothing,
            (true, false) => Became::Another,
            _ if !now.is_told() => Became::Unknown,
            _ if self.places != now.places => Became::Another,
            _ => Became::Alike,
        }
    }

    /// Whether the kernel tells where the memory is. It does not of a thread that has ended.
    pub(super) fn is_told(&self) -> bool {
        self.places != [0; 5]
    }

    /// Whether the process has not executed a program since it was forked.
    pub(super) fn is_forked(&self) -> bool {
        self.forked
    }
}

/// What the images before and after an attempt say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Became {
    /// It has executed no program.
    Nothing,
    /// It has executed one.
    Another,
    /// Its memory lies as before. Where the kernel does not lay it out at random, that of another
    /// program may.
    Alike,
    /// There is no telling.
    Unknown,
}

/// What is used of a process's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    /// In the reader's pid namespace.
    pub(super) parent: u32,
    /// The session's leader in the reader's pid namespace.
    pub(super) session: u32,
    pub(super) threads: u64,
    /// Start time in ticks since boot: with the pid it names the process for good.
    pub(super) born: u64,
    pub(super) image: Image,
    ticks: u64,
}

impl Stat {
    /// Reads it. `None` when the process is gone, or nothing can be read for want of a descriptor.
    ///
    /// Where the first thread has ended and others go on, the image is theirs.
    pub(super) fn of(pid: u32) -> Option<Self> {
        let mut stat = Self::at(&format!("/proc/{pid}/stat"))?;
        if !stat.image.is_told() && stat.threads > 1 {
            let of = |thread| Self::at(&format!("/proc/{pid}/task/{thread}/stat"));
            let told = threads(pid).filter_map(of).map(|other| other.image);
            if let Some(told) = told.filter(Image::is_told).last() {
                stat.image.places = told.places;
            }
        }
        Some(stat)
    }

    fn at(path: &str) -> Option<Self> {
        let mut buffer = [0u8; 1024];
        Self::parse(read(path, &mut buffer)?)
    }

    fn parse(text: &[u8]) -> Option<Self> {
        // The name stands in parentheses and may hold anything, so fields count from its end.
        let after = text.iter().rposition(|byte| *byte == b')')? + 2;
        let mut fields = [0u64; 49];
        let words = text.get(after..)?.split(|byte| *byte == b' ');
        let mut count = 0;
        for (field, word) in fields.iter_mut().zip(words) {
            // The first is a letter; some later ones may be negative, and none of those is used.
            *field = str::from_utf8(word).ok().and_then(|word| word.parse().ok()).unwrap_or(0);
            count += 1;
        }
        // Numbered from 3, as the manual page does.
        let field = |number: usize| fields.get(number - 3).copied().unwrap_or(0);
        (count >= 48).then(|| Self {
            parent: narrow(field(4)),
            session: narrow(field(6)),
            threads: field(20),
            born: field(22),
            image: Image {
                forked: field(9) & FORKED != 0,
                places: [field(26), field(28), field(47), field(48), field(50)],
            },
            ticks: field(14) + field(15),
        })
    }

    /// Processor time of its own.
    pub(super) fn cpu(&self) -> Duration {
        let each = 1000 / rustix::param::clock_ticks_per_second().max(1);
        Duration::from_millis(self.ticks.saturating_mul(each))
    }
}

/// The wait status of a process that has ended and was not reaped yet, if it is still there.
pub(super) fn zombie(pid: u32) -> Option<i32> {
    let mut buffer = [0u8; 1024];
    let text = String::from_utf8_lossy(read(&format!("/proc/{pid}/stat"), &mut buffer)?);
    let mut words = text.get(text.rfind(')')? + 2..)?.split_ascii_whitespace();
    let state = words.next()?;
    if state == "Z" { words.last()?.parse().ok() } else { None }
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

/// What is used of `/proc/<tid>/status`, which takes the kernel longer to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// The thread's process in the reader's pid namespace.
    pub(super) process: u32,
    /// The same in the box's.
    pub(super) inside: u32,
    /// The largest resident set in bytes.
    pub(super) peak: Option<u64>,
}

impl Status {
    /// Reads it. `None` when the process is gone.
    pub(super) fn of(pid: u32) -> Option<Self> {
        let mut buffer = [0u8; 4096];
        let text = read(&format!("/proc/{pid}/status"), &mut buffer)?;
        let field = |name: &[u8]| {
            let line =
                text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name))?;
            str::from_utf8(line).ok()
        };
        let last = |text: &str| text.split_ascii_whitespace().last()?.parse().ok();
        let kib = |text: &str| text.split_ascii_whitespace().next()?.parse::<u64>().ok();
        Some(Self {
            process: field(b"Tgid:").and_then(last)?,
            inside: field(b"NStgid:").and_then(last).unwrap_or(0),
            peak: field(b"VmHWM:").and_then(kib).map(|kib| kib.saturating_mul(1024)),
        })
    }
}

/// Children of a process that were not reaped, in the reader's pid namespace; those of its other
/// threads among them. Without `CONFIG_PROC_CHILDREN` there is no telling.
pub(super) fn children(pid: u32, threads: u64) -> Vec<u32> {
    let of = |thread: &str| {
        let mut buffer = [0u8; 4096];
        let text = read(&format!("/proc/{pid}/task/{thread}/children"), &mut buffer);
        let words = text.and_then(|text| str::from_utf8(text).ok()).unwrap_or("");
        words.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
    };
    if threads <= 1 {
        return of(&pid.to_string());
    }
    self::threads(pid).flat_map(|thread| of(&thread.to_string())).collect()
}

/// The threads of a process that are there.
fn threads(pid: u32) -> impl Iterator<Item = u32> {
    let all = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    all.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok())
}

/// Where one of a process's links leads, as the box sees it. That of one whose first thread has
/// ended and others go on is theirs.
pub(super) fn link(pid: u32, name: &str) -> Seen<Vec<u8>> {
    of_threads(pid, name, |path| {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        readlinkat_raw(CWD, path, &mut buffer).map(|(path, _)| path.to_vec())
    })
    .map_or_else(|error| Seen::Unread { errno: error.raw_os_error() }, Seen::Read)
}

/// A file, by its file system and number.
pub(super) type File = (u64, u64);

/// The file that a process executes. `None` where it can't be asked for.
pub(super) fn file(pid: u32) -> Option<File> {
    let found = of_threads(pid, "exe", |path| rustix::fs::stat(path)).ok()?;
    Some((found.st_dev, found.st_ino))
}

/// What is read at a name of a process, or, where its first thread has ended, of another one.
fn of_threads<T>(
    pid: u32,
    name: &str,
    read: impl Fn(&str) -> rustix::io::Result<T>,
) -> rustix::io::Result<T> {
    let first = read(&format!("/proc/{pid}/{name}"));
    if !matches!(first, Err(rustix::io::Errno::NOENT)) {
        return first;
    }
    let others = threads(pid).filter(|thread| *thread != pid);
    let of = |thread| read(&format!("/proc/{pid}/task/{thread}/{name}")).ok();
    others.filter_map(of).next().ok_or(rustix::io::Errno::NOENT)
}

/// The beginning of a small file of `/proc`, which one read yields whole.
fn read<'a>(path: &str, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let got = rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut *buffer)).ok()?;
    Some(&buffer[..got])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_read_as_it_is() {
        let pid = std::process::id();
        let stat = Stat::of(pid).unwrap();
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get();
        assert_eq!(stat.parent.cast_signed(), parent);
        assert!(!stat.image.forked && stat.threads >= 1 && stat.born > 0);
        assert!(stat.image.places.iter().all(|place| *place != 0), "{:?}", stat.image);
        let status = Status::of(pid).unwrap();
        assert_eq!(status.process, pid);
        assert!(status.peak.unwrap() > 4096 && status.inside > 0);
        assert_eq!(
            Seen::Read(std::env::current_exe().unwrap().into_os_string().into_encoded_bytes()),
            link(pid, "exe")
        );
        assert_eq!(link(pid, "nothing"), Seen::Unread { errno: libc::ENOENT });
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_shifts_nothing() {
        let rest = (4..=52).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        let plain = Stat::parse(format!("1 (sh) R {rest}\n").as_bytes()).unwrap();
        let odd = Stat::parse(format!("1 (a) 9 (b ) R {rest}\n").as_bytes()).unwrap();
        assert_eq!(plain, odd);
        assert_eq!((plain.parent, plain.session, plain.threads, plain.born), (4, 6, 20, 22));
        assert_eq!(plain.image.places, [26, 28, 47, 48, 50]);
        assert_eq!(Stat::parse(b"1 (sh) R 4 5"), None);
    }
}
