//! Carries connections between a port of the host's loopback and one of a box's.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{set_socket_linger, socket_error};

use crate::session::Forwarded;

/// Connections that are carried at once; more wait.
const MOST: usize = 1000;
/// How long the box's side may take to accept.
const PATIENCE: Duration = Duration::from_secs(30);
const BUFFER: usize = 64 * 1024;

/// Carries every connection to `listener` until the session is over. `refused` is told why the first
/// one that found nobody listening in the box did.
///
/// # Errors
/// When the listener or the session can't be heard.
pub(crate) fn serve(
    listener: &TcpListener,
    box_side: &Arc<Forwarded>,
    refused: fn(&io::Error),
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let told = Arc::new(AtomicBool::new(false));
    let carried = Arc::new(AtomicUsize::new(0));
    loop {
        let full = carried.load(Ordering::Relaxed) >= MOST;
        let interest = if full { PollFlags::empty() } else { PollFlags::IN };
        let mut fds =
            [PollFd::new(box_side.stream(), PollFlags::IN), PollFd::new(listener, interest)];
        // With all places taken, the next look at them comes soon.
        let soon = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        rustix::io::retry_on_intr(|| poll(&mut fds, full.then_some(&soon)))?;
        if !fds[0].revents().is_empty() {
            return Ok(());
        }
        let client = match listener.accept() {
            Ok((client, _)) => client,
            // One that went away again.
            Err(_) => continue,
        };
        // The holder is asked one question at a time; that takes no longer than a system call.
        let in_box = [false, true].into_iter().find_map(|v6| match connect(box_side, v6) {
            Err(error) if !v6 && error.kind() == io::ErrorKind::ConnectionRefused => None,
            other => Some(other),
        });
        match in_box {
            Some(Ok(Some(server))) => {
                let places = Arc::clone(&carried);
                places.fetch_add(1, Ordering::Relaxed);
                let carry = move || {
                    carry_both(client, server);
                    places.fetch_sub(1, Ordering::Relaxed);
                };
                let thread = thread::Builder::new().name("h5i-forward".to_owned());
                // Without a thread the connection is closed.
                if thread.stack_size(128 * 1024).spawn(carry).is_err() {
                    carried.fetch_sub(1, Ordering::Relaxed);
                }
            }
            Some(Ok(None)) => return Ok(()),
            Some(Err(error)) => {
                reset(client);
                if !told.swap(true, Ordering::Relaxed) {
                    refused(&error);
                }
            }
            None => reset(client),
        }
    }
}

/// A connection inside the box; `None` when the session is over.
fn connect(box_side: &Forwarded, v6: bool) -> io::Result<Option<TcpStream>> {
    let Some(socket) = box_side.connect(v6)? else { return Ok(None) };
    Ok(Some(established(socket)?))
}

/// Waits until a connection that was begun is there.
fn established(socket: OwnedFd) -> io::Result<TcpStream> {
    let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
    let mut fds = [PollFd::new(&socket, PollFlags::OUT)];
    if rustix::io::retry_on_intr(|| poll(&mut fds, Some(&patience)))? == 0 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    socket_error(&socket)??;
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Closes a connection so that its other side sees a reset, as from a port that nobody listens on.
fn reset(stream: TcpStream) {
    // One that can't be reset is closed.
    set_socket_linger(&stream, Some(Duration::ZERO)).ok();
    drop(stream);
}

/// Carries both ways until both are done. The end of one way is handed on as such.
fn carry_both(client: TcpStream, server: TcpStream) {
    let (client, server) = (Arc::new(client), Arc::new(server));
    for stream in [&client, &server] {
        // It is only slower without.
        stream.set_nodelay(true).ok();
        stream.set_nonblocking(false).ok();
    }
    let (from, to) = (Arc::clone(&server), Arc::clone(&client));
    let back = thread::Builder::new().name("h5i-forward".to_owned()).stack_size(128 * 1024);
    let back = back.spawn(move || carry(&from, &to));
    // Without a thread both are closed.
    let Ok(back) = back else { return };
    let there = carry(&client, &server);
    let back = back.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
    if there.is_err() || back.is_err() {
        for stream in [&client, &server] {
            // One that is gone needs none.
            set_socket_linger(stream, Some(Duration::ZERO)).ok();
        }
    }
}

/// Carries one way to its end. After a failure neither way goes on.
fn carry(mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    let carried = loop {
        match from.read(&mut buffer) {
            Ok(0) => break Ok(()),
            Ok(got) => {
                if let Err(error) = to.write_all(&buffer[..got]) {
                    break Err(error);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    // A side that is gone is shut already.
    if carried.is_ok() {
        to.shutdown(Shutdown::Write).ok();
    } else {
        from.shutdown(Shutdown::Both).ok();
        to.shutdown(Shutdown::Both).ok();
    }
    carried
}
