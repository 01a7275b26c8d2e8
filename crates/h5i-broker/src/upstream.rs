//! The way to a service: its address, TLS that is verified, connections that are kept.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use h5i_policy::HostName;
use http::Uri;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

use crate::resolve::Resolve;
use crate::setup::Roots;
use crate::upload::Outgoing;

/// Connections without a request that are kept, and for how long.
const IDLE: usize = 16;
const IDLE_FOR: Duration = Duration::from_secs(60);
/// What of an answer in HTTP/2 may wait here unread: of one stream, and of a whole connection.
const STREAM_WINDOW: u32 = 128 * 1024;
const CONNECTION_WINDOW: u32 = 8 * 1024 * 1024;
/// What of an answer's head or of a request's body in HTTP/1.1 may wait here.
const BUFFER: usize = 64 * 1024;

/// The one provider of cryptography.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Whom services are verified by. Read when the first one is asked: the host's list takes
/// milliseconds.
pub(crate) struct Trust {
    roots: Roots,
    config: OnceCell<Arc<ClientConfig>>,
}

impl Trust {
    pub(crate) fn new(roots: Roots) -> Result<Self, rustls::Error> {
        if let Roots::These(list) = &roots {
            given(list)?;
        }
        Ok(Self { roots, config: OnceCell::new() })
    }

    async fn config(&self) -> io::Result<Arc<ClientConfig>> {
        let make = || async {
            let roots = self.roots.clone();
            let made = tokio::task::spawn_blocking(move || {
                let store = match &roots {
                    Roots::Host => of_the_host(),
                    Roots::These(list) => given(list).map_err(io::Error::other)?,
                };
                let mut config = ClientConfig::builder_with_provider(provider())
                    .with_safe_default_protocol_versions()
                    .map_err(io::Error::other)?
                    .with_root_certificates(store)
                    .with_no_client_auth();
                config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
                Ok(Arc::new(config))
            });
            made.await.map_err(io::Error::other)?
        };
        self.config.get_or_try_init(make).await.cloned()
    }
}

fn given(list: &[Vec<u8>]) -> Result<RootCertStore, rustls::Error> {
    let mut store = RootCertStore::empty();
    for root in list {
        store.add(CertificateDer::from(root.clone()))?;
    }
    Ok(store)
}

/// What the host trusts, as its other programs find it; else the list that is compiled in.
fn of_the_host() -> RootCertStore {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if store.is_empty() {
        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    store
}

/// The kept connections to one service.
pub(crate) struct Upstream {
    connector: Connector,
    client: Mutex<Client<Connector, Outgoing>>,
}

impl Upstream {
    pub(crate) fn new(connector: Connector) -> Self {
        let client = Mutex::new(client(connector.clone()));
        Self { connector, client }
    }

    pub(crate) fn client(&self) -> Client<Connector, Outgoing> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Closes the connections that nobody uses, and keeps none that somebody does.
    pub(crate) fn let_go(&self) {
        let fresh = client(self.connector.clone());
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
    }
}

fn client(connector: Connector) -> Client<Connector, Outgoing> {
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_FOR)
        .pool_max_idle_per_host(IDLE)
        .http1_max_buf_size(BUFFER)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_max_send_buf_size(BUFFER)
        .http2_max_header_list_size(64 * 1024)
        .build(connector)
}

/// Connects to one service, whatever it is asked for.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) host: HostName,
    pub(crate) port: u16,
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) trust: Arc<Trust>,
    pub(crate) patience: Duration,
}

impl Connector {
    async fn connect(self) -> io::Result<Link> {
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        tokio::time::timeout(self.patience, self.reach()).await.map_err(late)?
    }

    async fn reach(&self) -> io::Result<Link> {
        let config = self.trust.config().await?;
        let (resolver, host) = (Arc::clone(&self.resolver), self.host.clone());
        let lookup = tokio::task::spawn_blocking(move || resolver.resolve(&host));
        let addresses = lookup.await.map_err(io::Error::other)??;
        let stream = self.dial(&addresses).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(self.host.as_str().to_owned()).map_err(io::Error::other)?;
        let stream = TlsConnector::from(config).connect(name, stream).await?;
        Ok(Link(TokioIo::new(stream)))
    }

    /// The first address that answers. One that says nothing leaves time for the others.
    async fn dial(&self, addresses: &[IpAddr]) -> io::Result<TcpStream> {
        let count = u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        let each = self.patience / count;
        let mut error = io::Error::from(io::ErrorKind::NotFound);
        for address in addresses {
            let connecting = TcpStream::connect(SocketAddr::new(*address, self.port));
            match tokio::time::timeout(each, connecting).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(failed)) => error = failed,
                Err(_late) => error = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(error)
    }
}

impl Service<Uri> for Connector {
    type Response = Link;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Link>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().connect())
    }
}

/// A connection to a service whose certificate was verified.
pub(crate) struct Link(TokioIo<TlsStream<TcpStream>>);

impl Connection for Link {
    fn connected(&self) -> Connected {
        let (_, tls) = self.0.inner().get_ref();
        if tls.alpn_protocol() == Some(b"h2") {
            Connected::new().negotiated_h2()
        } else {
            Connected::new()
        }
    }
}

impl hyper::rt::Read for Link {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl hyper::rt::Write for Link {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, parts)
    }
}
