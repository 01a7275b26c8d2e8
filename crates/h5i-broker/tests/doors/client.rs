//! A program of a box: writes what it likes, and reads what comes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// How long anything may take before it is a hang.
pub(crate) const LONG: Duration = Duration::from_secs(20);

trait Both: Read + Write + Send {}
impl<T: Read + Write + Send> Both for T {}

/// A connection of a program.
pub(crate) struct Connection(BufReader<Box<dyn Both>>);

/// An answer, as far as it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether its end was seen.
    pub(crate) whole: bool,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn refused(&self) -> Option<&str> {
        self.header("x-h5i-refused")
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Trusts what the PEM says.
pub(crate) fn trusting(pem: &str) -> ClientConfig {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

impl Connection {
    pub(crate) fn plain(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(Box::new(stream)))
    }

    pub(crate) fn tls(stream: UnixStream, pem: &str, name: &str) -> Self {
        stream.set_read_timeout(Some(LONG)).unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let tls = ClientConnection::new(Arc::new(trusting(pem)), name).unwrap();
        Self(BufReader::new(Box::new(StreamOwned::new(tls, stream))))
    }

    /// TLS over a connection that is there.
    pub(crate) fn over(tls: ClientConnection, stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(LONG)).unwrap();
        Self(BufReader::new(Box::new(StreamOwned::new(tls, stream))))
    }

    /// Writes, as far as the other side takes it.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let stream = self.0.get_mut();
        stream.write_all(bytes.as_ref()).is_ok() && stream.flush().is_ok()
    }

    pub(crate) fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end_matches("\r\n").to_owned()),
        }
    }

    /// Reads a head.
    pub(crate) fn head(&mut self) -> io::Result<Answer> {
        let line = self.line()?;
        let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
        let status = status.and_then(|status| status.parse().ok());
        let mut answer =
            Answer { status: status.unwrap_or_else(|| panic!("{line:?}")), ..Answer::default() };
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else { break };
            answer.headers.push((name.to_owned(), value.to_owned()));
        }
        Ok(answer)
    }

    /// Reads a chunk; an empty one is the last.
    pub(crate) fn chunk(&mut self) -> io::Result<Vec<u8>> {
        let line = self.line()?;
        let size = usize::from_str_radix(&line, 16).map_err(io::Error::other)?;
        let mut chunk = vec![0; size + 2];
        self.0.read_exact(&mut chunk)?;
        chunk.truncate(size);
        Ok(chunk)
    }

    /// Reads an answer, to its end or as far as it comes. `None` when there is none.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let mut answer = self.head().ok()?;
        match answer.header("content-length").map(|length| length.parse::<u64>().unwrap()) {
            Some(length) => {
                let read = self.0.by_ref().take(length).read_to_end(&mut answer.body);
                answer.whole = read.is_ok() && answer.body.len() as u64 == length;
            }
            None if answer.header("transfer-encoding") == Some("chunked") => loop {
                match self.chunk() {
                    Ok(chunk) if chunk.is_empty() => {
                        answer.whole = true;
                        break;
                    }
                    Ok(chunk) => answer.body.extend(chunk),
                    Err(_) => break,
                }
            },
            None => answer.whole = true,
        }
        Some(answer)
    }

    /// Reads and counts a body of known size, without keeping it.
    pub(crate) fn count(&mut self, length: u64) -> u64 {
        io::copy(&mut self.0.by_ref().take(length), &mut io::sink()).unwrap_or(0)
    }

    /// Whether the other side has closed, after what it may have said.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => {
                !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
            }
        }
    }
}

/// Half-closes a socket.
pub(crate) fn no_more(stream: &TcpStream) {
    stream.shutdown(Shutdown::Write).unwrap();
}
