//! A service on the host's loopback: TLS by an authority of its own, HTTP/1.1, one thread a
//! connection.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use h5i_testkit::GitService;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// What only the host may have.
pub(crate) const CANARY: &str = "sk-canary-7hJ2kQ9xV4mB1nZ8";

/// A request as the service read it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The request line.
    pub(crate) line: String,
    /// `name: value`, the names in lower case.
    pub(crate) headers: Vec<String>,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    /// The value of a header; none twice.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let head = format!("{name}: ");
        let all: Vec<_> = self.headers.iter().filter_map(|h| h.strip_prefix(&head)).collect();
        assert!(all.len() < 2, "{all:?}");
        all.first().copied()
    }
}

/// The service. It lives as long as the test's process.
pub(crate) struct Service {
    pub(crate) port: u16,
    pub(crate) authority: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Has `/stream` send its next event, or, dropped, its end.
    pub(crate) next: Sender<()>,
}

impl Service {
    /// Answers as `localhost`, `api.test` and a service that programs know: `/echo` with the credential that it was shown,
    /// `/stream` with an event whenever the test says so, everything else with its path.
    pub(crate) fn new() -> Self {
        Self::of(None)
    }

    /// The same, with a repository at `/repo.git`.
    pub(crate) fn with_repository(repository: &Arc<GitService>) -> Self {
        Self::of(Some(Arc::clone(repository)))
    }

    fn of(repository: Option<Arc<GitService>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (config, authority) = identity();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (next, events) = channel();
        let events = Arc::new(Mutex::new(events));
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (config, seen) = (Arc::clone(&config), Arc::clone(&seen));
                let events = Arc::clone(&events);
                let repository = repository.clone();
                std::thread::spawn(move || {
                    let tls = ServerConnection::new(config).unwrap();
                    // A client that goes away needs no answer.
                    serve(StreamOwned::new(tls, stream), &seen, &events, repository.as_deref())
                        .ok();
                });
            }
        });
        Self { port, authority, asked, next }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn identity() -> (Arc<ServerConfig>, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names = ["localhost", "api.test", "api.anthropic.com"].map(str::to_owned).to_vec();
    let leaf = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .unwrap();
    (Arc::new(config), issuer.pem())
}

type Stream = StreamOwned<ServerConnection, TcpStream>;

fn serve(
    stream: Stream,
    seen: &Mutex<Vec<Asked>>,
    events: &Mutex<Receiver<()>>,
    repository: Option<&GitService>,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let Some(asked) = read(&mut stream)? else { return Ok(()) };
        let path = asked.line.split(' ').nth(1).unwrap_or_default().to_owned();
        let shown = asked.headers.iter().find(|h| h.starts_with("authorization: ")).cloned();
        let git = repository.filter(|_| path.starts_with("/repo.git/"));
        let git = git.map(|git| by_git(git, &asked));
        seen.lock().unwrap().push(asked);
        let out = stream.get_mut();
        if let Some(answer) = git {
            out.write_all(&answer)?;
            out.flush()?;
            continue;
        }
        if path == "/stream" {
            out.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")?;
            out.write_all(b"transfer-encoding: chunked\r\n\r\n")?;
            out.flush()?;
            while events.lock().unwrap().recv().is_ok() {
                out.write_all(b"a\r\ndata: one\n\r\n")?;
                out.flush()?;
            }
            out.write_all(b"0\r\n\r\n")?;
            out.flush()?;
            continue;
        }
        let body = if path == "/echo" { shown.unwrap_or_default() } else { path };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        out.write_all(head.as_bytes())?;
        out.write_all(body.as_bytes())?;
        out.flush()?;
    }
}

/// What the repository answers, as it is sent.
fn by_git(repository: &GitService, asked: &Asked) -> Vec<u8> {
    let mut words = asked.line.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let pair = |header: &String| {
        let (name, value) = header.split_once(": ").unwrap();
        (name.to_owned(), value.to_owned())
    };
    let headers: Vec<(String, String)> = asked.headers.iter().map(pair).collect();
    let answer = repository.answer((method, target), &headers, asked.body.clone());
    let mut head = format!("HTTP/1.1 {} Answer\r\n", answer.status);
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("content-length: {}\r\n\r\n", answer.body.len());
    [head.into_bytes(), answer.body].concat()
}

fn read(stream: &mut BufReader<Stream>) -> std::io::Result<Option<Asked>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.strip_suffix("\r\n") {
            Some("") => break,
            Some(line) => lines.push(line.to_owned()),
            None => return Err(std::io::ErrorKind::InvalidData.into()),
        }
    }
    let line = lines.remove(0);
    let canonical = |header: String| match header.split_once(": ") {
        Some((name, value)) => format!("{}: {value}", name.to_ascii_lowercase()),
        None => header,
    };
    let headers: Vec<String> = lines.into_iter().map(canonical).collect();
    let length = headers.iter().find_map(|h| h.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body)?;
    if headers.iter().any(|header| header == "transfer-encoding: chunked") {
        body = chunks(stream)?;
    }
    Ok(Some(Asked { line, headers, body }))
}

fn chunks(stream: &mut BufReader<Stream>) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim_end(), 16).unwrap();
        let mut chunk = vec![0; length + 2];
        stream.read_exact(&mut chunk)?;
        if length == 0 {
            return Ok(body);
        }
        body.extend(&chunk[..length]);
    }
}
