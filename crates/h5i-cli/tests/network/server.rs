//! A server on the host's loopback.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};

use rustix::net::Shutdown as Half;

/// Answers each connection with what it was sent. It ends with the value.
pub(crate) struct Server {
    listener: TcpListener,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let accepting = listener.try_clone().unwrap();
        let thread = std::thread::spawn(move || {
            while let Ok((stream, _)) = accepting.accept() {
                std::thread::spawn(move || echo(stream));
            }
        });
        Self { listener, thread: Some(thread) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    /// The rule that lists it.
    pub(crate) fn rule(&self) -> String {
        format!("host:{}", self.port())
    }
}

fn echo(mut stream: TcpStream) {
    let mut all = Vec::new();
    // A client that resets the connection has its answer already.
    if stream.read_to_end(&mut all).is_ok() {
        stream.write_all(&all).ok();
        stream.shutdown(Shutdown::Both).ok();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ends the accept that is waiting.
        rustix::net::shutdown(&self.listener, Half::Both).ok();
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}
