//! A connection of a program.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use rustix::net::{AddressFamily, sockopt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A connected stream socket, which several may hold: one reads, one writes, one resets.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    socket: Arc<Socket>,
    /// What was read of it already.
    before: Bytes,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Wire {
    pub(crate) fn tcp(stream: TcpStream) -> Self {
        Self { socket: Arc::new(Socket::Tcp(stream)), before: Bytes::new() }
    }

    /// A socket that was handed over, with what was read of it already.
    pub(crate) fn handed(socket: OwnedFd, before: Vec<u8>) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        let socket = if sockopt::socket_domain(&socket)? == AddressFamily::UNIX {
            Socket::Unix(UnixStream::from_std(socket.into())?)
        } else {
            sockopt::set_tcp_nodelay(&socket, true)?;
            Socket::Tcp(TcpStream::from_std(socket.into())?)
        };
        Ok(Self { socket: Arc::new(socket), before: before.into() })
    }

    /// Both addresses, as its other end has them: its own, and where it is connected to.
    pub(crate) fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        match &*self.socket {
            Socket::Tcp(stream) => stream.peer_addr().ok().zip(stream.local_addr().ok()),
            Socket::Unix(_) => None,
        }
    }

    /// Has the close of the connection be a reset, so that nobody takes what came for all.
    pub(crate) fn break_off(&self) {
        // A client that is gone already needs no reset; a unix socket has none, its bytes are not
        // framed as done either.
        sockopt::set_socket_linger(self, Some(Duration::ZERO)).ok();
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &*self.socket {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.before.has_remaining() {
            let count = self.before.remaining().min(buf.remaining());
            buf.put_slice(&self.before.split_to(count));
            return Poll::Ready(Ok(()));
        }
        loop {
            let read = match &*self.socket {
                Socket::Tcp(stream) => {
                    ready!(stream.poll_read_ready(cx))?;
                    stream.try_read(buf.initialize_unfilled())
                }
                Socket::Unix(stream) => {
                    ready!(stream.poll_read_ready(cx))?;
                    stream.try_read(buf.initialize_unfilled())
                }
            };
            match read {
                Ok(count) => {
                    buf.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl Wire {
    fn poll_write_with(
        &self,
        cx: &mut Context<'_>,
        tcp: impl Fn(&TcpStream) -> io::Result<usize>,
        unix: impl Fn(&UnixStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            let written = match &*self.socket {
                Socket::Tcp(stream) => {
                    ready!(stream.poll_write_ready(cx))?;
                    tcp(stream)
                }
                Socket::Unix(stream) => {
                    ready!(stream.poll_write_ready(cx))?;
                    unix(stream)
                }
            };
            match written {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |s| s.try_write(bytes), |s| s.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |s| s.try_write_vectored(parts), |s| s.try_write_vectored(parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = rustix::net::shutdown(&*self, rustix::net::Shutdown::Write);
        Poll::Ready(done.map_err(io::Error::from))
    }
}
