//! The socket in a box's host directory, by which others reach the process that holds its session.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, geteuid};

/// The socket's name in the host directory.
const NAME: &str = "control.sock";
/// Bytes of a path that a socket's address has room for (`sun_path`, with its final NUL).
const ROOM: usize = 107;

/// What became of the holder before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// It ended in order, or there was none.
    Ended,
    /// It left its socket.
    Died,
}

/// Where the socket is.
pub(super) fn path(host_dir: &Path) -> PathBuf {
    host_dir.join(NAME)
}

/// Listens; what an earlier holder left is replaced. The caller holds the box's lock.
///
/// # Errors
/// What the kernel says.
pub(super) fn listen(host_dir: &Path) -> io::Result<(UnixListener, Before)> {
    let (path, _directory) = address(host_dir)?;
    let before = match fs::remove_file(&path) {
        Ok(()) => Before::Died,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Before::Ended,
        Err(error) => return Err(error),
    };
    let listener = UnixListener::bind(&path)?;
    listener.set_nonblocking(true)?;
    Ok((listener, before))
}

/// How long an answer is waited for: a machine may do much else, and a holder that is dead is known at
/// once.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The same where the holder is stopped, and nobody lets it go on.
const OF_STOPPED: Duration = Duration::from_secs(2);

/// Reaches the holder; each step waits no longer than `patience`, and less for one that is stopped.
///
/// # Errors
/// `ConnectionRefused` or `NotFound` when nobody listens, `WouldBlock` when nobody answers.
pub(super) fn reach(host_dir: &Path, patience: Duration) -> io::Result<UnixStream> {
    let (path, _directory) = address(host_dir)?;
    let socket: OwnedFd =
        socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(patience))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(patience))?;
    connect(&socket, &SocketAddrUnix::new(&path)?)?;
    let stream = UnixStream::from(socket);
    if peer(&stream).is_some_and(is_stopped) {
        set_socket_timeout(&stream, Timeout::Recv, Some(patience.min(OF_STOPPED)))?;
    }
    Ok(stream)
}

/// Whether a signal has stopped a process; see proc_pid_status(5).
fn is_stopped(pid: Pid) -> bool {
    let status = fs::read(format!("/proc/{}/status", pid.as_raw_nonzero()));
    let mut lines = status.iter().flat_map(|status| status.split(|byte| *byte == b'\n'));
    lines.any(|line| line.starts_with(b"State:\tT"))
}

/// From here on an answer is waited for as long as it takes.
///
/// # Errors
/// What the kernel says.
pub(super) fn be_patient(socket: &UnixStream) -> io::Result<()> {
    set_socket_timeout(socket, Timeout::Send, None)?;
    set_socket_timeout(socket, Timeout::Recv, None)?;
    Ok(())
}

/// Whether the other side is this process's own user.
pub(super) fn is_own_user(socket: &impl AsFd) -> bool {
    socket_peercred(socket).is_ok_and(|peer| peer.uid == geteuid())
}

/// The process on the other side.
pub(super) fn peer(socket: &UnixStream) -> Option<Pid> {
    socket_peercred(socket).ok().map(|peer| peer.pid)
}

/// The socket's path, or a short way to it that holds as long as the directory is open.
fn address(host_dir: &Path) -> io::Result<(PathBuf, Option<OwnedFd>)> {
    let path = host_dir.join(NAME);
    if path.as_os_str().len() <= ROOM {
        return Ok((path, None));
    }
    let directory =
        open(host_dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let short = format!("/proc/self/fd/{}/{NAME}", directory.as_raw_fd());
    Ok((short.into(), Some(directory)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Before, ROOM, is_own_user, listen, peer, reach};

    const PATIENCE: Duration = Duration::from_secs(5);

    #[test]
    fn a_long_way_to_a_box_is_no_hindrance() {
        let dir = tempfile::tempdir().unwrap();
        let long = dir.path().join("x".repeat(100)).join("y".repeat(100));
        std::fs::create_dir_all(&long).unwrap();
        assert!(long.as_os_str().len() > ROOM);
        let (listener, _) = listen(&long).unwrap();
        let reached = reach(&long, PATIENCE).unwrap();
        assert!(is_own_user(&reached) && is_own_user(&listener.accept().unwrap().0));
        assert_eq!(peer(&reached), Some(rustix::process::getpid()));
    }

    #[test]
    fn what_an_earlier_holder_left_is_replaced_and_answers_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let none = reach(dir.path(), PATIENCE).unwrap_err();
        assert_eq!(none.kind(), std::io::ErrorKind::NotFound);
        assert_eq!(listen(dir.path()).unwrap().1, Before::Ended);
        let left = reach(dir.path(), PATIENCE).unwrap_err();
        assert_eq!(left.kind(), std::io::ErrorKind::ConnectionRefused);
        let (_listener, before) = listen(dir.path()).unwrap();
        assert_eq!(before, Before::Died);
        reach(dir.path(), PATIENCE).unwrap();
    }
}
