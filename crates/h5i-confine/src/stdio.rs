//! Connects a run's input, output and errors, so that the box holds nothing but bytes.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FileType, FsWord, fstat, fstatfs};
use rustix::io::{FdFlags, fcntl_getfd};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::command::Stdio;
use crate::pump::{Budget, Pumps};
use crate::tap::{OutputTap, TappedStream};

/// Input and output on their way: what goes into the box, what stays outside.
#[derive(Default)]
pub(crate) struct StdioPlan {
    pub(crate) inside: Vec<(usize, OwnedFd)>,
    pub(crate) null: Vec<usize>,
    pub(crate) on_terminal: Vec<usize>,
    pub(crate) outside: [Option<File>; 3],
    pub(crate) pumps: Pumps,
    owner: Option<u32>,
    /// Which file the output goes to, as device and inode, where that is carried.
    output: Option<(u64, u64)>,
}

impl StdioPlan {
    /// Nothing connected yet. What is made for a root caller's run belongs to this host id, because
    /// a program that opens `/dev/stdin` or `/dev/stderr` opens the pipe anew.
    pub(crate) fn owned_by(owner: Option<u32>, tap: Option<Arc<dyn OutputTap>>) -> Self {
        let mut plan = Self { owner, ..Self::default() };
        plan.pumps.tapped(tap);
        plan
    }

    fn pipe(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        if let Some(id) = self.owner {
            let (uid, gid) = (rustix::fs::Uid::from_raw(id), rustix::fs::Gid::from_raw(id));
            rustix::fs::fchown(&read, Some(uid), Some(gid))?;
        }
        Ok((read, write))
    }

    /// Sends errors the way of the output where both go to one file, so that they keep their order.
    fn shares_output(&mut self, errors: Option<&OwnedFd>) -> io::Result<bool> {
        let Some(errors) = errors else { return Ok(false) };
        let output = self.inside.iter().find(|(index, _)| *index == 1);
        if let (Some((_, output)), true) = (output, self.output == Some(identity(errors)?)) {
            let output = output.try_clone()?;
            self.inside.push((2, output));
            return Ok(true);
        }
        Ok(false)
    }

    /// Connects one of input, output and errors.
    pub(crate) fn add(
        &mut self,
        index: usize,
        chosen: Stdio,
        terminal: bool,
        budget: Option<&Arc<Budget>>,
    ) -> io::Result<()> {
        let given = match chosen {
            Stdio::Inherit if terminal => {
                self.on_terminal.push(index);
                return Ok(());
            }
            Stdio::Null => {
                self.null.push(index);
                return Ok(());
            }
            Stdio::Handed(fd) => {
                if !may_hand_in(&fd)? {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
                self.inside.push((index, fd));
                return Ok(());
            }
            Stdio::Inherit => Some(inherited(index)?),
            Stdio::Descriptor(fd) => Some(fd),
            Stdio::Piped => None,
        };
        let carried = index > 0 && self.pumps.is_tapped();
        if !carried && given.as_ref().map(is_null_device).transpose()? == Some(true) {
            self.null.push(index);
            return Ok(());
        }
        if index == 2 && self.shares_output(given.as_ref())? {
            return Ok(());
        }
        match (index, given) {
            (0, None) => {
                let (read, write) = self.pipe()?;
                self.inside.push((0, read));
                self.outside[0] = Some(File::from(write));
            }
            (0, Some(fd)) if may_hand_in(&fd)? => self.inside.push((0, fd)),
            (0, Some(fd)) => {
                let (read, write) = self.pipe()?;
                self.inside.push((0, read));
                self.pumps.start_shared(fd, write)?;
            }
            (_, given) => {
                let (read, write) = self.pipe()?;
                self.inside.push((index, write));
                self.output = given.as_ref().map(identity).transpose()?;
                let stream = if index == 1 { TappedStream::Stdout } else { TappedStream::Stderr };
                match (given, budget) {
                    (None, None) if !carried => self.outside[index] = Some(File::from(read)),
                    (None, budget) => {
                        let (last, middle) = pipe_with(PipeFlags::CLOEXEC)?;
                        self.pumps.start(stream, read, middle, budget.cloned())?;
                        self.outside[index] = Some(File::from(last));
                    }
                    (Some(fd), budget) => self.pumps.start(stream, read, fd, budget.cloned())?,
                }
            }
        }
        Ok(())
    }
}

/// Device and inode.
fn identity(fd: &OwnedFd) -> io::Result<(u64, u64)> {
    let found = fstat(fd)?;
    Ok((found.st_dev, found.st_ino))
}

/// The caller's own descriptor. One that an exec would close is no input or output: where a caller
/// has closed its own, descriptors of this crate may stand in their place.
fn inherited(index: usize) -> io::Result<OwnedFd> {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let fd = match index {
        0 => stdin.as_fd(),
        1 => stdout.as_fd(),
        _ => stderr.as_fd(),
    };
    if fcntl_getfd(fd)?.contains(FdFlags::CLOEXEC) {
        return Err(rustix::io::Errno::BADF.into());
    }
    fd.try_clone_to_owned()
}

/// The null device is the same inside, so nothing has to be carried.
fn is_null_device(fd: &OwnedFd) -> io::Result<bool> {
    let found = fstat(fd)?;
    let null = rustix::fs::makedev(1, 3);
    Ok(FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice && found.st_rdev == null)
}

/// A pipe without a name gives the box nothing but its bytes. Everything else is carried: a
/// terminal, a device or a socket would be a way out, and by the descriptor of a file, even one for
/// reading, its owner changes its mode, times and attributes and learns its name.
fn may_hand_in(fd: &OwnedFd) -> io::Result<bool> {
    const PIPEFS_MAGIC: FsWord = 0x5049_5045;
    Ok(fstatfs(fd)?.f_type == PIPEFS_MAGIC)
}
