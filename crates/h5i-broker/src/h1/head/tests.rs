use super::*;

fn read(text: &[u8]) -> Result<Head, Fault> {
    let mut scan = Scan::default();
    match scan.end(text)? {
        Some(end) => parse(&text[..end]),
        None => panic!("no end in {text:?}"),
    }
}

#[test]
fn a_plain_request_is_read() {
    let head = read(
        b"POST /v1?x=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX-A:  b c \t\r\n\
        Connection: close\r\nExpect: 100-continue\r\n\r\nabc",
    )
    .expect("plain");
    assert_eq!(head.method, "POST");
    assert_eq!(head.target.origin_form(), "/v1?x=1");
    assert_eq!((head.host.as_str(), head.framing), ("a", Framing::Length(3)));
    assert_eq!(head.headers["x-a"], "b c");
    assert!(head.close && head.waits);
    let head =
        read(b"GET http://a:1/b HTTP/1.1\r\nHost: a:1\r\nTransfer-Encoding: Chunked\r\n\r\n")
            .expect("absolute");
    assert_eq!(head.absolute, Some(("http".to_owned(), "a:1".to_owned())));
    assert_eq!(head.framing, Framing::Chunked);
}

#[test]
fn each_ambiguous_head_is_refused_and_its_plain_twin_is_not() {
    let malformed: &[(&str, &str)] = &[
        ("GET /  HTTP/1.1\r\nHost: a", "GET / HTTP/1.1\r\nHost: a"),
        ("GET\t/ HTTP/1.1\r\nHost: a", "GET / HTTP/1.1\r\nHost: a"),
        ("GET / HTTP/1.0\r\nHost: a", "GET / HTTP/1.1\r\nHost: a"),
        ("GET / http/1.1\r\nHost: a", "GET / HTTP/1.1\r\nHost: a"),
        ("GET /\r\nHost: a", "GET / HTTP/1.1\r\nHost: a"),
        ("G(T / HTTP/1.1\r\nHost: a", "GOT / HTTP/1.1\r\nHost: a"),
        ("GET / HTTP/1.1\r\nX: a", "GET / HTTP/1.1\r\nHost: a\r\nX: a"),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a", "GET / HTTP/1.1\r\nHost: a"),
        ("GET / HTTP/1.1\r\nHost : a", "GET / HTTP/1.1\r\nHost: a"),
        ("GET / HTTP/1.1\r\n Host: a", "GET / HTTP/1.1\r\nHost: a"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b", "GET / HTTP/1.1\r\nHost: a\r\nX: a b"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX", "GET / HTTP/1.1\r\nHost: a\r\nX:"),
        ("GET / HTTP/1.1\r\nHost: a\r\n: b", "GET / HTTP/1.1\r\nHost: a\r\nX: b"),
        ("GET / HTTP/1.1\r\nHost: a\nX: b", "GET / HTTP/1.1\r\nHost: a\r\nX: b"),
        ("GET / HTTP/1.1\r\nHost: a\rX: b", "GET / HTTP/1.1\r\nHost: a\r\nX: b"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: \0", "GET / HTTP/1.1\r\nHost: a\r\nX: 0"),
        ("\r\nGET / HTTP/1.1\r\nHost: a", "GET / HTTP/1.1\r\nHost: a"),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 010",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 1",
            "POST / HTTP/1.1\r\nHost: a\r\nContent_Lengths: 1",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked",
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok",
            "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue",
        ),
        ("GET http:// HTTP/1.1\r\nHost: a", "GET http://a/ HTTP/1.1\r\nHost: a"),
    ];
    for (bad, good) in malformed {
        let refused = read(format!("{bad}\r\n\r\n").as_bytes()).expect_err(bad);
        assert!(matches!(refused, Fault::Malformed(_)), "{bad:?}: {refused:?}");
        read(format!("{good}\r\n\r\n").as_bytes()).expect(good);
    }
}

#[test]
fn another_protocol_is_refused_by_name() {
    for text in [
        "CONNECT a:443 HTTP/1.1\r\nHost: a:443",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket",
        "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c",
        "GET / HTTP/1.1\r\nHost: a\r\nHTTP2-Settings: x",
        "PRI * HTTP/2.0",
    ] {
        let refused = read(format!("{text}\r\n\r\n").as_bytes()).expect_err(text);
        assert_eq!(refused, Fault::Upgrade, "{text:?}");
    }
}

#[test]
fn heads_are_bounded() {
    let long =
        |size: usize| format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(size));
    read(long(60_000).as_bytes()).expect("below");
    let mut scan = Scan::default();
    assert_eq!(scan.end(long(LARGEST).as_bytes()), Err(Fault::TooLarge));
    let many = |count| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(count));
    read(many(LINES - 1).as_bytes()).expect("as many as may be");
    assert_eq!(read(many(LINES).as_bytes()).expect_err("one more"), Fault::TooLarge);
}
