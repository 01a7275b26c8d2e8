//! A service with a repository, a broker in front of it with two grants for it, and git.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h5i_broker::{
    Broker, Credential, CredentialError, Credentials, Diverted, Event, EventSink, Issue, Roots,
    Secret, Service, Setup, SinkClosed,
};
use h5i_policy::{Allowed, GitUse, Grant, HostName, Method};
use h5i_testkit::{GitService, git};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::net::{AddressFamily, SocketType};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

pub(crate) const HOST: &str = "git.example.com";
const CANARY: &str = "sk-canary-7hJ2kQ9xV4mB1nZ8";
const RUN: u64 = 1;

/// The grants, each by both ways.
pub(crate) const FETCH: &str = "fetch";
pub(crate) const PUSH: &str = "push";
/// Where by `push` may be pushed.
pub(crate) const LISTED: &str = "refs/heads/agent";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Reverse,
    Intercept,
}

pub(crate) const WAYS: [Way; 2] = [Way::Reverse, Way::Intercept];

#[derive(Default)]
struct Log(Mutex<Vec<Event>>);

impl EventSink for Log {
    fn event(&self, event: Event) -> Result<(), SinkClosed> {
        self.0.lock().unwrap().push(event);
        Ok(())
    }
}

struct Key;

impl Credentials for Key {
    fn current(&self) -> Result<Arc<Credential>, CredentialError> {
        let secret = |text: String| Secret::new(text.into_bytes());
        Ok(Arc::new(Credential {
            headers: vec![("authorization".to_owned(), secret(format!("Bearer {CANARY}")))],
            query: None,
            append: Vec::new(),
            secrets: vec![secret(CANARY.to_owned())],
            until: None,
        }))
    }

    fn renewed(&self, _: &Credential) -> Result<Option<Arc<Credential>>, CredentialError> {
        Ok(None)
    }
}

/// What the service was asked: method and target, and the size of the body.
type Asked = Arc<Mutex<Vec<(String, usize)>>>;

pub(crate) struct World {
    pub(crate) service: Arc<GitService>,
    /// Where git works.
    pub(crate) directory: TempDir,
    asked: Asked,
    log: Arc<Log>,
    variables: Vec<(String, String)>,
    port: u16,
    _broker: Arc<Broker>,
    _runtime: tokio::runtime::Runtime,
}

impl World {
    pub(crate) fn new() -> Self {
        let service = Arc::new(GitService::new());
        let asked = Asked::default();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let (listener, stand_ins) = listeners();
        let (address, root) = serve(&runtime, listener, &service, &asked);
        let grant = |name: &str, git: GitUse| {
            let mut grant = Grant::to(HostName::new(HOST).unwrap());
            grant.port = address.port();
            grant.methods = Allowed::Only([Method::Get, Method::Post].into());
            grant.paths = Allowed::Only(["/repo.git".parse().unwrap()].into());
            grant.git = git;
            grant.variables.base_url = [format!("{name}-url")].into();
            grant.variables.token = [format!("{name}-token")].into();
            grant
        };
        let socket = || -> OwnedFd {
            rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap()
        };
        let mut grants = Vec::new();
        for (name, git) in
            [(FETCH, GitUse::Fetch), (PUSH, GitUse::Push([LISTED.parse().unwrap()].into()))]
        {
            let (reverse, intercept) = (grant(name, git.clone()), grant(name, git));
            grants.push(Service::reverse(name, reverse, socket()).with(Arc::new(Key)));
            let diverted = format!("{name}-intercept");
            grants.push(Service::intercept(diverted, intercept).with(Arc::new(Key)));
        }
        let mut setup = Setup::new(grants);
        setup.roots = Roots::These(vec![root]);
        setup.resolver = Arc::new(|_: &HostName| -> std::io::Result<Vec<IpAddr>> {
            Ok(vec![Ipv4Addr::LOCALHOST.into()])
        });
        let log = Arc::new(Log::default());
        let broker = Broker::start(setup, Arc::clone(&log) as Arc<dyn EventSink>).unwrap();
        let broker = Arc::new(broker);
        let variables = broker.issue(&Issue::to(RUN)).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("authority"), broker.authority().unwrap()).unwrap();
        for (name, listener) in [FETCH, PUSH].into_iter().zip(stand_ins) {
            divert(&broker, name, listener);
        }
        let port = address.port();
        let world = Self {
            service,
            directory,
            asked,
            log,
            variables,
            port,
            _broker: broker,
            _runtime: runtime,
        };
        // A working tree of its own, whose commits are the service's.
        world.ok(FETCH, Way::Reverse, &["clone", "-q", "URL", "work"]);
        world.forget();
        world
    }

    fn variable(&self, name: &str) -> &str {
        &self.variables.iter().find(|(own, _)| own == name).unwrap().1
    }

    /// Where a grant's repository is on this way.
    pub(crate) fn url(&self, grant: &str, way: Way) -> String {
        match way {
            Way::Reverse => format!("{}/repo.git", self.variable(&format!("{grant}-url"))),
            Way::Intercept => format!("https://{HOST}:{}/repo.git", self.port),
        }
    }

    pub(crate) fn token(&self, grant: &str) -> &str {
        self.variable(&format!("{grant}-token"))
    }

    /// Runs git by a grant; `URL` is where the repository is.
    pub(crate) fn git(&self, grant: &str, way: Way, args: &[&str]) -> Output {
        self.with(git(self.directory.path()), grant, way, args)
    }

    pub(crate) fn with(
        &self,
        mut command: Command,
        grant: &str,
        way: Way,
        args: &[&str],
    ) -> Output {
        let settings = match way {
            Way::Reverse => {
                vec![format!("http.extraHeader=authorization: Bearer {}", self.token(grant))]
            }
            Way::Intercept => {
                let authority = self.directory.path().join("authority");
                vec![
                    format!("http.sslCAInfo={}", authority.display()),
                    format!("http.curloptResolve={HOST}:{}:{}", self.port, stand_in(grant)),
                ]
            }
        };
        for setting in settings {
            command.args(["-c", &setting]);
        }
        let url = self.url(grant, way);
        command.args(args.iter().map(|arg| if *arg == "URL" { &url } else { *arg }));
        command.output().unwrap()
    }

    pub(crate) fn ok(&self, grant: &str, way: Way, args: &[&str]) -> String {
        let said = self.git(grant, way, args);
        let err = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.status.success(), "{grant} by {way:?}, {args:?}: {err}");
        err
    }

    /// What git says when it fails.
    pub(crate) fn fails(&self, grant: &str, way: Way, args: &[&str]) -> String {
        let said = self.git(grant, way, args);
        assert!(!said.status.success(), "{grant} by {way:?}, {args:?}");
        String::from_utf8(said.stderr).unwrap()
    }

    /// Makes a commit in the working tree, with a file of this content; its name.
    pub(crate) fn commit(&self, content: &[u8]) -> String {
        let work = self.directory.path().join("work");
        std::fs::write(work.join("b"), content).unwrap();
        let local = |args: &[&str]| {
            let said = git(&work).args(args).output().unwrap();
            assert!(said.status.success(), "{args:?}: {}", String::from_utf8_lossy(&said.stderr));
            String::from_utf8(said.stdout).unwrap().trim().to_owned()
        };
        local(&["add", "b"]);
        local(&["commit", "-q", "--allow-empty", "-m", "More"]);
        local(&["rev-parse", "HEAD"])
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Vec<u8> {
        std::fs::read(self.directory.path().join(path)).unwrap()
    }

    /// Requests that came to the service since they were forgotten.
    pub(crate) fn asked(&self) -> Vec<(String, usize)> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn forget(&self) {
        self.asked.lock().unwrap().clear();
    }

    /// What passed and what was refused, in words.
    pub(crate) fn told(&self) -> Vec<String> {
        let word = |event: &Event| match event {
            Event::Used(used) => Some(format!("passed {} {}", used.method, used.path)),
            Event::Refused { request, denial, .. } => {
                Some(format!("{} {}", denial.word(), request.as_deref().unwrap_or_default()))
            }
            _ => None,
        };
        self.log.0.lock().unwrap().iter().filter_map(word).collect()
    }
}

/// The address at which the host stands for the service, for a grant by `intercept`.
fn stand_in(grant: &str) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, if grant == FETCH { 2 } else { 3 })
}

/// Where the service listens, and where the host stands for it: at the same port, which nobody else
/// may have there.
fn listeners() -> (TcpListener, [TcpListener; 2]) {
    let free = |_| {
        let service = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = service.local_addr().unwrap().port();
        match [FETCH, PUSH].map(|name| TcpListener::bind((stand_in(name), port))) {
            [Ok(fetch), Ok(push)] => Some((service, [fetch, push])),
            _ => None,
        }
    };
    (0..100).find_map(free).unwrap()
}

/// Hands over what connects there.
fn divert(broker: &Arc<Broker>, grant: &str, listener: TcpListener) {
    let (broker, name) = (Arc::downgrade(broker), format!("{grant}-intercept"));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let Some(broker) = broker.upgrade() else { return };
            let mut diverted = Diverted::new(stream.into(), name.as_str());
            diverted.run = Some(RUN);
            broker.intercept(diverted).unwrap();
        }
    });
}

/// The service, with TLS of an authority of its own: where it is, and the authority.
fn serve(
    runtime: &tokio::runtime::Runtime,
    listener: TcpListener,
    service: &Arc<GitService>,
    asked: &Asked,
) -> (SocketAddr, Vec<u8>) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![HOST.to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (service, asked) = (Arc::clone(service), Arc::clone(asked));
    runtime.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, service, asked) =
                (acceptor.clone(), Arc::clone(&service), Arc::clone(&asked));
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let answer = service_fn(move |request| {
                    answer(request, Arc::clone(&service), Arc::clone(&asked))
                });
                let connection = hyper::server::conn::http1::Builder::new();
                connection.serve_connection(TokioIo::new(stream), answer).await.ok();
            });
        }
    });
    (address, issuer.der().to_vec())
}

async fn answer(
    request: Request<Incoming>,
    service: Arc<GitService>,
    asked: Asked,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.as_str().to_owned(), value.to_str().unwrap().to_owned())
    };
    let headers: Vec<(String, String)> = parts.headers.iter().map(header).collect();
    // A body that was cut is no request.
    let Ok(body) = body.collect().await else { return Ok(Response::default()) };
    let body = body.to_bytes().to_vec();
    let (method, target) = (parts.method.to_string(), parts.uri.to_string());
    asked.lock().unwrap().push((format!("{method} {target}"), body.len()));
    let shown: Vec<_> = headers.iter().filter(|(name, _)| name == "authorization").collect();
    if !matches!(shown[..], [(_, value)] if *value == format!("Bearer {CANARY}")) {
        return Ok(Response::builder().status(401).body(Full::default()).unwrap());
    }
    let answer = move || service.answer((&method, &target), &headers, body);
    let answer = tokio::task::spawn_blocking(answer).await.unwrap();
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    Ok(response.body(Full::new(answer.body.into())).unwrap())
}
