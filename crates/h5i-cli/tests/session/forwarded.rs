//! Ports of a box on the host's loopback.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::going::{Going, Started, records, with_box};
use crate::stand::Stand;

/// Answers each connection, after its end of input, with how much it read and the last line.
fn echo_server(address: &str, class: &str) -> String {
    format!(
        r#"use IO::Socket::{class}; $| = 1; $SIG{{CHLD}} = "IGNORE";
        my $s = IO::Socket::{class}->new(Listen => 50, LocalAddr => "{address}", LocalPort => 8080) or die;
        print "here\n";
        while (my $c = $s->accept) {{ next if fork; my $n = 0; my $l = "";
            while (sysread($c, my $b, 65536)) {{ $n += length $b; $l = $b }} 
            print $c "$n ", substr($l, -4); close $c; exit }}"#
    )
}

fn forward(stand: &Stand) -> (Going, String) {
    let mut going = Going::h5i(stand, &["box", "forward", "a", "8080", "--as", "0"]);
    let at = going.line();
    assert!(at.starts_with("127.0.0.1:"), "{at}");
    (going, at)
}

fn ask(at: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(bytes).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Waits until a port can be had again: another test may have been given it meanwhile.
fn is_let_go(at: &str) {
    let patience = Instant::now() + Duration::from_secs(20);
    while let Err(error) = TcpListener::bind(at) {
        assert!(Instant::now() < patience, "{at}: the port outlives the command: {error}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_port_of_the_box_answers_on_the_host_as_long_as_the_command_runs() {
    let stand = Started::new();
    let script = echo_server("127.0.0.1", "INET");
    let mut server = Going::h5i(&stand, &["box", "run", "a", "--", "perl", "-e", &script]);
    assert_eq!(server.line(), "here");
    let (going, at) = forward(&stand);
    // Half a conversation is closed and the other goes on; bytes come whole, also many at once.
    assert_eq!(ask(&at, b"word"), "4 word");
    std::thread::scope(|scope| {
        for number in 0..30usize {
            let at = at.as_str();
            scope.spawn(move || {
                let bytes = format!("{number:04}").repeat(50_000);
                assert_eq!(ask(at, bytes.as_bytes()), format!("200000 {number:04}"));
            });
        }
    });
    going.signal(Signal::INT);
    assert_eq!(going.end().code, 130);
    is_let_go(&at);
    // The holder hears of the end by itself, and would not any more once it is told to end.
    let closed = |r: &serde_json::Value| {
        r["text"].as_str().is_some_and(|text| text.ends_with("to port 8080, 31 connections"))
    };
    let patience = Instant::now() + Duration::from_secs(20);
    while !records(&stand).iter().any(closed) {
        assert!(Instant::now() < patience, "{:?}", records(&stand));
    }
    stand.ok(&["box", "stop", "a"]);
    assert_eq!(server.end().code, 143);
    let log = records(&stand);
    let notes: Vec<&str> = log.iter().filter_map(|r| r["text"].as_str()).collect();
    assert!(notes.iter().any(|n| n.starts_with("forward opened: 127.0.0.1:")), "{notes:?}");
    assert!(notes.iter().any(|n| n.ends_with("to port 8080, 31 connections")), "{notes:?}");
}

#[test]
fn a_server_on_the_other_loopback_is_found_and_none_is_a_reset() {
    let stand = Started::new();
    let (going, at) = forward(&stand);
    let mut stream = TcpStream::connect(&at).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    let script = echo_server("::1", "IP");
    let mut server = Going::h5i(&stand, &["box", "run", "a", "--", "perl", "-e", &script]);
    assert_eq!(server.line(), "here");
    assert_eq!(ask(&at, b"word"), "4 word");
    stand.ok(&["box", "stop", "a"]);
    let going = going.end();
    assert_eq!(going.code, 0, "{}", going.err);
    assert_eq!(going.err.matches("no connection inside the box").count(), 1, "{}", going.err);
    assert!(going.err.contains("the session has ended"), "{}", going.err);
    server.end();
}

#[test]
fn a_forward_needs_a_live_box_and_a_free_port() {
    let stand = with_box();
    let said = stand.h5i(&["box", "forward", "a", "8080", "--as", "0", "--json"]);
    assert_eq!((said.code, said.failure().kind.as_str()), (3, "not-found"));
    assert_eq!(said.failure().hint.as_deref(), Some("h5i box start a"));
    stand.ok(&["box", "start", "a"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = stand.h5i(&["box", "forward", "a", "8080", "--as", &port, "--json"]);
    assert_eq!((said.code, said.failure().kind.as_str()), (5, "busy"));
    stand.ok(&["box", "stop", "a"]);
}
