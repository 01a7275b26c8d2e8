use proptest::prelude::*;

use super::*;

/// Feeds `input` in parts of `step` bytes; yields what may be sent, or why the connection ends.
fn feed(input: &[u8], step: usize) -> Result<Vec<u8>, Refusal> {
    let mut requests = Requests::new(80);
    let mut out = Vec::new();
    for part in input.chunks(step) {
        let read = requests.read(part, &mut out, |name| name.as_str() == "a.example")?;
        assert_eq!(read, part.len());
    }
    Ok(out)
}

const HOST: &str = "Host: a.example\r\n";

#[test]
fn plain_requests_pass_as_they_are_however_they_are_cut() {
    let requests = [
        format!("GET / HTTP/1.1\r\n{HOST}\r\n"),
        "GET http://A.example:80/x HTTP/1.1\r\nHost: A.EXAMPLE:80\r\n\r\n".to_owned(),
        format!("POST /x HTTP/1.1\r\n{HOST}Content-Length: 5\r\n\r\nhello"),
        format!(
            "POST /x HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n5\r\nhel\r\n\r\n0\r\nX: y\r\n\r\n"
        ),
        format!("HEAD / HTTP/1.0\r\n{HOST}\r\n"),
    ];
    let all = requests.concat();
    for step in 1..all.len() {
        assert_eq!(feed(all.as_bytes(), step), Ok(all.clone().into_bytes()), "{step}");
    }
}

#[test]
fn a_second_request_to_another_host_ends_the_connection_wherever_it_hides() {
    let other = "GET /secret HTTP/1.1\r\nHost: b.example\r\n\r\n";
    for first in [
        format!("GET / HTTP/1.1\r\n{HOST}\r\n"),
        format!("POST / HTTP/1.1\r\n{HOST}Content-Length: 3\r\n\r\nabc"),
        format!("POST / HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"),
    ] {
        let all = format!("{first}{other}");
        for step in [1, 7, all.len()] {
            assert_eq!(feed(all.as_bytes(), step), Err(Refusal::OtherName), "{first}");
        }
        let twin = format!("{first}{first}");
        assert_eq!(feed(twin.as_bytes(), 5), Ok(twin.into_bytes()));
    }
}

#[test]
fn what_two_parsers_could_read_in_two_ways_is_refused() {
    for head in [
        "GET / HTTP/1.1\r\n\r\n".to_owned(),
        format!("GET / HTTP/1.1\r\n{HOST}{HOST}\r\n"),
        format!("GET / HTTP/1.1\r\n{HOST}Host : b.example\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{HOST} Host: b.example\r\n\r\n"),
        format!("GET / HTTP/1.1\nHost: b.example\n{HOST}\r\n"),
        format!("GET / HTTP/1.1\r\n{HOST}X: a\nHost: b.example\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{HOST}X: a\rHost: b.example\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{HOST}X: \0\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{HOST}Content-Length: 1\r\nContent-Length: 1\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{HOST}Content-Length: 1, 1\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{HOST}Content-Length: +1\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{HOST}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{HOST}Transfer-Encoding: gzip, chunked\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{HOST}Transfer-Encoding: xchunked\r\n\r\n"),
        format!("GET / HTTP/1.0\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n"),
        format!("GET / HTTP/2.0\r\n{HOST}\r\n"),
        format!("GET / HTTP/1.1 \r\n{HOST}\r\n"),
        format!("GET  / HTTP/1.1\r\n{HOST}\r\n"),
        format!("GET /\r\n{HOST}\r\n"),
        format!("\r\nGET / HTTP/1.1\r\n{HOST}\r\n"),
        format!("CONNECT b.example:443 HTTP/1.1\r\n{HOST}\r\n"),
        format!("GET http://b.example/ HTTP/1.1\r\n{HOST}\r\n"),
        format!("GET http://a.example@b.example/ HTTP/1.1\r\n{HOST}\r\n"),
        format!("GET https://a.example/ HTTP/1.1\r\n{HOST}\r\n"),
        "GET / HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        format!("POST / HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n5;x=y\r\n"),
        format!("POST / HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n0x5\r\n"),
        format!("POST / HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n1\r\naXX"),
        format!("POST / HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n1\r\na\n"),
        format!(
            "POST / HTTP/1.1\r\n{HOST}Content-Length: 0\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\n"
        ),
        format!("GET / HTTP/1.1\r\n{HOST}X: {}\r\n\r\n", "y".repeat(LONGEST_HEAD)),
    ] {
        for step in [1, 3, head.len()] {
            assert_eq!(feed(head.as_bytes(), step), Err(Refusal::MalformedRequest), "{head:?}");
        }
    }
    let port = "GET / HTTP/1.1\r\nHost: a.example:8080\r\n\r\n";
    assert_eq!(feed(port.as_bytes(), 999), Err(Refusal::OtherName));
}

#[test]
fn after_an_upgrade_nothing_is_read_until_the_server_has_answered() {
    let ask =
        |to: &str| format!("GET / HTTP/1.1\r\n{HOST}Connection: upgrade\r\nUpgrade: {to}\r\n\r\n");
    for (to, upgrade) in [("websocket", Upgrade::WebSocket), ("h2c", Upgrade::Other)] {
        let mut requests = Requests::new(80);
        let mut out = Vec::new();
        let first = ask(to);
        let all = format!("{first}frames");
        let read = requests.read(all.as_bytes(), &mut out, |_| true).unwrap();
        assert_eq!((read, out), (first.len(), first.into_bytes()));
        assert_eq!(requests.waits_for(), Some(upgrade));
        requests.stays();
        assert!(requests.is_between());
    }
    let second = format!("GET / HTTP/1.1\r\n{HOST}\r\n{}", ask("websocket"));
    assert_eq!(feed(second.as_bytes(), 9999), Err(Refusal::MalformedRequest));
}

#[test]
fn the_answer_to_an_upgrade_is_seen_past_interim_ones() {
    let early = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
    for (status, switch) in [("101 Switching", Switch::Yes), ("200 OK", Switch::No)] {
        let mut all = early.to_vec();
        all.extend(format!("HTTP/1.1 {status}\r\n").bytes());
        let mut answer = Answer::default();
        let mut found = all.iter().map(|byte| answer.read(&[*byte]).unwrap());
        assert_eq!(found.find(|found| *found != Switch::Open), Some(switch));
    }
    assert_eq!(Answer::default().read(b"SSH-2.0-x y z"), Err(Refusal::MalformedRequest));
}

proptest! {
    #[test]
    fn no_bytes_are_too_much_and_nothing_is_made_up(
        bytes in proptest::collection::vec(any::<u8>(), 0..200), step in 1_usize..40,
    ) {
        let mut input = format!("GET / HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
        input.extend(bytes);
        if let Ok(out) = feed(&input, step) {
            prop_assert!(input.starts_with(&out));
        }
    }
}
