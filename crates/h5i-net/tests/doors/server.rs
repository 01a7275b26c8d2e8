//! Servers of the internet, each on threads of its own until the test's end.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// Calls `serve` for each connection, on a thread of its own.
pub(crate) fn each(listener: TcpListener, serve: impl Fn(TcpStream) + Clone + Send + 'static) {
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
}

/// Says `words` when it has heard all.
pub(crate) fn says(listener: TcpListener, words: &'static [u8]) {
    each(listener, move |mut stream| {
        let mut heard = Vec::new();
        if stream.read_to_end(&mut heard).is_ok() {
            stream.write_all(words).ok();
        }
    });
}

/// Sends back what it hears.
pub(crate) fn echoes(listener: TcpListener) {
    each(listener, |mut stream| {
        let mut buffer = [0; 65536];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            if stream.write_all(&buffer[..count]).is_err() {
                return;
            }
        }
    });
}

/// Hands over all that each connection has said, at its end.
pub(crate) fn hears(listener: TcpListener) -> Receiver<Vec<u8>> {
    hears_until(listener, |_| false)
}

/// The same, and ends a connection that has said enough.
pub(crate) fn hears_until(
    listener: TcpListener,
    enough: impl Fn(&[u8]) -> bool + Send + Clone + 'static,
) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    each(listener, move |mut stream| {
        let mut heard = Vec::new();
        // A connection that was reset has said what came before.
        let mut buffer = [0; 4096];
        while !enough(&heard)
            && let Ok(count @ 1..) = stream.read(&mut buffer)
        {
            heard.extend(&buffer[..count]);
        }
        send.send(heard).ok();
    });
    receive
}
