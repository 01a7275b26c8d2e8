//! A service: TLS with a certificate of its own authority, HTTP/1.1 read without a parser that could
//! forgive, and HTTP/2.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The service's secret.
pub(crate) const CANARY: &str = "sk-canary-7hJ2kQ9xV4mB1nZ8";
/// The one after a renewal.
pub(crate) const RENEWED: &str = "sk-renewed-3fL6pW0sT5yC2dRq";

/// What the service saw of one request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Request line and header lines as they came; of HTTP/2 the same in that form.
    pub(crate) head: String,
    pub(crate) body: u64,
    pub(crate) whole: bool,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Vec<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
    }
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) root: Vec<u8>,
    pub(crate) seen: Arc<Mutex<Vec<Seen>>>,
    /// How many events of a stream may be out.
    pub(crate) events: watch::Sender<usize>,
    /// Streams that are open.
    open: watch::Receiver<usize>,
    /// The event that a stream can't get rid of.
    pub(crate) full: watch::Receiver<Option<usize>>,
    _runtime: tokio::runtime::Runtime,
}

#[derive(Clone)]
struct Shared {
    seen: Arc<Mutex<Vec<Seen>>>,
    events: watch::Receiver<usize>,
    open: Arc<watch::Sender<usize>>,
    full: Arc<watch::Sender<Option<usize>>>,
}

/// What the service speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Http1,
    Http2,
}

impl Server {
    pub(crate) fn new(name: &str, speaks: Speaks) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let leaf = leaf.signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key)
            .unwrap();
        config.alpn_protocols = match speaks {
            Speaks::Http1 => vec![b"http/1.1".to_vec()],
            Speaks::Http2 => vec![b"h2".to_vec()],
        };
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        rustix::net::listen(&listener, 2048).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (events, may) = watch::channel(usize::MAX);
        let (open, is_open) = watch::channel(0);
        let (stuck, full) = watch::channel(None);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (open, stuck) = (Arc::new(open), Arc::new(stuck));
        let shared = Shared { seen: Arc::clone(&seen), events: may, open, full: stuck };
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            let acceptor = TlsAcceptor::from(Arc::new(config));
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, shared) = (acceptor.clone(), shared.clone());
                tokio::spawn(async move {
                    stream.set_nodelay(true).unwrap();
                    if let Ok(stream) = acceptor.accept(stream).await {
                        match speaks {
                            Speaks::Http1 => http1(stream, shared).await,
                            Speaks::Http2 => http2(stream, shared).await,
                        }
                    }
                });
            }
        });
        let root = issuer.der().to_vec();
        Self { address, root, seen, events, open: is_open, full, _runtime: runtime }
    }

    pub(crate) fn ip() -> IpAddr {
        Ipv4Addr::LOCALHOST.into()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn forget(&self) {
        self.seen.lock().unwrap().clear();
    }

    /// Waits until so many streams are open.
    pub(crate) fn wait_open(&self, count: usize, patience: Duration) {
        let mut open = self.open.clone();
        let wait = async {
            tokio::time::timeout(patience, open.wait_for(|open| *open == count)).await.is_ok()
        };
        assert!(
            self._runtime.block_on(wait),
            "{} streams are open, not {count}",
            *self.open.borrow()
        );
    }
}

type Tls = TlsStream<TcpStream>;

struct Opened<'a>(&'a watch::Sender<usize>);

impl<'a> Opened<'a> {
    fn new(open: &'a watch::Sender<usize>) -> Self {
        open.send_modify(|open| *open += 1);
        Self(open)
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

async fn http1(mut stream: Tls, shared: Shared) {
    let mut buffer: Vec<u8> = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            let mut part = [0; 16384];
            match stream.read(&mut part).await {
                Ok(count @ 1..) => buffer.extend_from_slice(&part[..count]),
                _ => return,
            }
        };
        let head = String::from_utf8(buffer.drain(..end).collect()).unwrap();
        let find = |name: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            lines.filter(|(own, _)| *own == name).map(|(_, value)| value.to_owned()).next()
        };
        let (length, chunked) = (find("content-length"), find("transfer-encoding").is_some());
        let place = {
            let mut seen = shared.seen.lock().unwrap();
            seen.push(Seen { head: head.clone(), body: 0, whole: false });
            seen.len() - 1
        };
        let whole = body(&mut stream, &mut buffer, length, chunked, |count| {
            shared.seen.lock().unwrap()[place].body += count;
        });
        if !whole.await {
            return;
        }
        shared.seen.lock().unwrap()[place].whole = true;
        let count = shared.seen.lock().unwrap()[place].body;
        if !answer(&mut stream, &head, count, &shared).await {
            return;
        }
    }
}

/// Reads a body to its end; whether there was one.
async fn body(
    stream: &mut Tls,
    buffer: &mut Vec<u8>,
    length: Option<String>,
    chunked: bool,
    mut counted: impl FnMut(u64),
) -> bool {
    let mut left: u64 = length.map_or(0, |length| length.parse().unwrap());
    let mut last = false;
    loop {
        if chunked && left == 0 {
            // Size line, after the end of the chunk before; well formed, for hyper wrote it.
            let line = buffer.windows(2).position(|two| two == b"\r\n");
            if let Some(at) = line {
                let text = String::from_utf8(buffer.drain(..at + 2).collect()).unwrap();
                match (text.trim(), last) {
                    ("", true) => return true,
                    ("", false) => {}
                    (size, _) => {
                        left = u64::from_str_radix(size, 16).unwrap();
                        last = left == 0;
                    }
                }
                continue;
            }
        } else if left == 0 {
            return true;
        } else if !buffer.is_empty() {
            let count = left.min(buffer.len() as u64);
            buffer.drain(..count as usize);
            left -= count;
            counted(count);
            continue;
        }
        let mut part = vec![0; 65536];
        match stream.read(&mut part).await {
            Ok(count @ 1..) => buffer.extend_from_slice(&part[..count]),
            _ => return false,
        }
    }
}

/// Answers by the path; whether the connection goes on.
async fn answer(stream: &mut Tls, head: &str, body: u64, shared: &Shared) -> bool {
    let target = head.split(' ').nth(1).unwrap();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let plain = |status: &str, headers: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
    };
    let text = match path {
        "/echo" => plain(
            "200 OK",
            &format!("x-echo: {CANARY}\r\nset-cookie: a=b\r\nalt-svc: h3\r\nkeep-alive: 5\r\n"),
            head,
        ),
        // As an error page would have it.
        "/page" => {
            let marks = |from: &str, to: fn(char) -> String| -> String {
                let one = |c: char| if c.is_alphanumeric() { c.to_string() } else { to(c) };
                from.chars().map(one).collect()
            };
            let page = marks(head, |c| format!("&#{};", u32::from(c)));
            let header = marks(CANARY, |c| format!("&#x{:X};", u32::from(c)));
            plain("404 Not Found", &format!("x-echo: {header}\r\n"), &page)
        }
        "/moved" => {
            let location = format!("location: https://other.example{target}\r\n");
            plain("302 Found", &location, target)
        }
        "/where" => plain("302 Found", "location: https://other.example/ok\r\n", ""),
        "/gzip" => plain("200 OK", "content-encoding: gzip\r\n", "x"),
        "/packed" => {
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
                .to_owned()
        }
        "/part" => plain("206 Partial Content", "content-range: bytes 0-0/2\r\n", "x"),
        "/named-part" => plain("200 OK", "content-range: bytes 0-0/2\r\n", "x"),
        "/switch" => {
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"
                .to_owned()
        }
        "/count" => plain("200 OK", "", &body.to_string()),
        "/login" if head.contains(RENEWED) => plain("200 OK", "", &body.to_string()),
        "/login" => plain("401 Unauthorized", "", "who?"),
        "/cut" => "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart".to_owned(),
        "/cut-chunks" => {
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\npart\r\n".to_owned()
        }
        "/cut-open" => "HTTP/1.1 200 OK\r\n\r\npart".to_owned(),
        "/closed" => {
            let text = b"HTTP/1.1 200 OK\r\n\r\npart";
            let written = stream.write_all(text).await.is_ok();
            return written && stream.shutdown().await.is_err();
        }
        "/halves" => {
            let (a, b) = CANARY.split_at(9);
            format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{a}\r\n", a.len())
                + &format!("{:x}\r\n{b}\r\n0\r\n\r\n", b.len())
        }
        "/hang" => {
            let _open = Opened::new(&shared.open);
            // Until the broker lets go.
            while let Ok(1..) = stream.read(&mut [0; 64]).await {}
            return false;
        }
        "/events" => return events(stream, shared, "").await,
        // As much as anybody takes.
        "/flood" => return events(stream, shared, &"x".repeat(16_000)).await,
        "/down" => return down(stream, query.parse().unwrap()).await,
        _ => plain("200 OK", "", "ok"),
    };
    let cut = path.starts_with("/cut");
    stream.write_all(text.as_bytes()).await.is_ok() && stream.flush().await.is_ok() && !cut
}

/// One event after the other, as the test lets them.
async fn events(stream: &mut Tls, shared: &Shared, more: &str) -> bool {
    let _open = Opened::new(&shared.open);
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    if stream.write_all(head.as_bytes()).await.is_err() || stream.flush().await.is_err() {
        return false;
    }
    let mut may = shared.events.clone();
    for count in 0.. {
        tokio::select! {
            _ = may.wait_for(|may| *may > count) => {}
            _ = stream.read_u8() => return false,
        }
        let event = format!("data: {count}{more}\n\n");
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        let written = async {
            stream.write_all(chunk.as_bytes()).await?;
            stream.flush().await
        };
        tokio::pin!(written);
        let written = tokio::select! {
            biased;
            written = &mut written => written,
            () = std::future::ready(()) => {
                shared.full.send_replace(Some(count));
                let written = written.await;
                shared.full.send_replace(None);
                written
            }
        };
        if written.is_err() {
            return false;
        }
    }
    true
}

async fn down(stream: &mut Tls, mut left: usize) -> bool {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {left}\r\n\r\n");
    if stream.write_all(head.as_bytes()).await.is_err() {
        return false;
    }
    let part = vec![b'x'; 65536];
    while left > 0 {
        let count = left.min(part.len());
        if stream.write_all(&part[..count]).await.is_err() {
            return false;
        }
        left -= count;
    }
    stream.flush().await.is_ok()
}

async fn http2(stream: Tls, shared: Shared) {
    let service = service_fn(move |request: Request<Incoming>| {
        let shared = shared.clone();
        async move {
            let (parts, body) = request.into_parts();
            let mut head = format!("{} {} HTTP/2\n", parts.method, parts.uri);
            for (name, value) in &parts.headers {
                head += &format!("{name}: {}\n", value.to_str().unwrap());
            }
            let body = body.collect().await?.to_bytes();
            let seen = Seen { head: head.clone(), body: body.len() as u64, whole: true };
            shared.seen.lock().unwrap().push(seen);
            let answer = if parts.uri.path() == "/echo" { Bytes::from(head) } else { "ok".into() };
            let mut answer = Response::new(Full::new(answer));
            if parts.uri.path() == "/moved" {
                let location = parts.uri.to_string().parse().unwrap();
                answer.headers_mut().insert("location", location);
            }
            Ok::<_, hyper::Error>(answer)
        }
    });
    let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    connection.serve_connection(TokioIo::new(stream), service).await.ok();
}
