//! A grant as it is served: its service, its credential, and what is under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use h5i_policy::{Allowed, GitUse, Grant, Method};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::answer::Place;
use crate::credential::{Credential, CredentialError, Credentials};
use crate::event::{Denial, Program, Way};
use crate::redact::Redactor;
use crate::refusal::Refusal;
use crate::target::Target;
use crate::upstream::Upstream;

/// Bounds what the programs of a box have open at once, over all its grants.
#[derive(Clone)]
pub(crate) struct Crowd {
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
    most: usize,
}

impl Crowd {
    /// Of so many connections, and so many requests.
    pub(crate) fn of(most: usize) -> Self {
        Self { connections: Arc::default(), requests: Arc::default(), most }
    }
}

pub(crate) struct Served {
    /// Its place in the ledger.
    pub(crate) place: usize,
    pub(crate) name: String,
    pub(crate) grant: Grant,
    pub(crate) credentials: Option<Arc<dyn Credentials>>,
    /// A header of the host's own, by name and value.
    pub(crate) stamp: Option<(String, String)>,
    /// What was added last. Whoever asks for a grant's credential holds it, so that a source that
    /// blocks takes one thread and keeps only its own grant waiting.
    last: Mutex<Option<(Added, Instant)>>,
    pub(crate) upstream: Upstream,
    /// How a request may call the service, in lower case.
    authorities: Vec<String>,
    crowd: Crowd,
    under_way: Arc<AtomicUsize>,
}

/// How long a credential is taken for the one of now. Below what a person or another program could
/// tell apart, and much longer than the way to the source and back.
const FRESH: Duration = Duration::from_millis(100);

/// A credential, with what finds it in an answer.
#[derive(Clone)]
pub(crate) struct Added {
    pub(crate) credential: Arc<Credential>,
    pub(crate) redactor: Redactor,
}

impl Added {
    fn new(credential: Arc<Credential>) -> Option<Self> {
        let redactor = Redactor::new(&credential.secrets).ok()?;
        Some(Self { credential, redactor })
    }
}

/// Methods that may be listed. Others, as TRACE, which answers with the request's headers, never
/// pass.
const METHODS: &[Method] = &[
    Method::Get,
    Method::Head,
    Method::Post,
    Method::Put,
    Method::Patch,
    Method::Delete,
    Method::Options,
];

impl Served {
    /// `port` is where a grant by `reverse` listens.
    pub(crate) fn new(
        place: usize,
        (name, grant): (String, Grant),
        credentials: Option<Arc<dyn Credentials>>,
        (upstream, port): (Upstream, Option<u16>),
        crowd: Crowd,
    ) -> Self {
        let authorities = match port {
            Some(port) => vec![format!("127.0.0.1:{port}"), format!("localhost:{port}")],
            None if grant.port == 443 => {
                vec![grant.host.as_str().to_owned(), format!("{}:443", grant.host)]
            }
            None => vec![format!("{}:{}", grant.host, grant.port)],
        };
        Self {
            place,
            name,
            grant,
            credentials,
            stamp: None,
            last: Mutex::new(None),
            upstream,
            authorities,
            crowd,
            under_way: Arc::default(),
        }
    }

    pub(crate) fn connection(&self) -> Option<Place> {
        Place::take(&self.crowd.connections, self.crowd.most)
    }

    /// A place for a request, among all of them and in this grant.
    pub(crate) fn begin(&self) -> Option<[Place; 2]> {
        let place = Place::take(&self.crowd.requests, self.crowd.most)?;
        Some([place, Place::take(&self.under_way, usize::MAX)?])
    }

    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) == 0
    }

    /// Whether a request that calls its service so is for this one.
    pub(crate) fn is_called(&self, authority: &str) -> bool {
        self.authorities.iter().any(|own| own.eq_ignore_ascii_case(authority))
    }

    /// Whether the grant lists this request.
    pub(crate) fn lists(&self, method: &str, target: &Target) -> Result<(), Denial> {
        let listed = METHODS.iter().find(|known| known.name() == method);
        let listed = listed.is_some_and(|method| match &self.grant.methods {
            Allowed::Any => true,
            Allowed::Only(list) => list.contains(method),
            _ => false,
        });
        if !listed {
            return Err(Denial::Method);
        }
        if target.is_in(&self.grant.paths) { Ok(()) } else { Err(Denial::Path) }
    }

    /// Whether not every request may pass.
    pub(crate) fn is_limited(&self) -> bool {
        let Grant { methods, paths, git, .. } = &self.grant;
        *methods != Allowed::Any || *paths != Allowed::Any || *git != GitUse::Any
    }

    /// Whether the grant lists the program. One that is not known is none.
    pub(crate) fn lists_program(&self, program: Option<&Program>) -> bool {
        use std::os::unix::ffi::OsStrExt;
        match &self.grant.programs {
            Allowed::Any => true,
            Allowed::Only(list) => program.is_some_and(|program| {
                let path = program.path.as_os_str().as_bytes();
                list.iter().any(|pattern| pattern.matches(path, false))
            }),
            _ => false,
        }
    }

    /// Whether a request is ever sent with a credential.
    fn has_secret(&self) -> bool {
        self.grant.secret.is_some() || self.credentials.is_some()
    }

    /// The credential of now; `None` for a grant without a secret.
    pub(crate) async fn credential(&self) -> Result<Option<Added>, Refusal> {
        if !self.has_secret() {
            return Ok(None);
        }
        let none = Refusal::from(Denial::NoCredential);
        let credentials = self.credentials.as_ref().ok_or(none)?;
        if let Some((added, asked)) = &*self.last.lock().await
            && asked.elapsed() < FRESH
        {
            return Ok(Some(added.clone()));
        }
        let ask = |credentials: &dyn Credentials| credentials.current().map(Some);
        self.ask(credentials, ask).await.map(Some).ok_or(none)
    }

    /// Another credential after the service took `used` for none.
    pub(crate) async fn renewed(&self, used: &Added) -> Option<Added> {
        let used = Arc::clone(&used.credential);
        let ask = move |credentials: &dyn Credentials| credentials.renewed(&used);
        self.ask(self.credentials.as_ref()?, ask).await
    }

    async fn ask(
        &self,
        credentials: &Arc<dyn Credentials>,
        ask: impl FnOnce(&dyn Credentials) -> Result<Option<Arc<Credential>>, CredentialError>
        + Send
        + 'static,
    ) -> Option<Added> {
        let mut last = self.last.lock().await;
        let before = last.take().map(|(added, _)| added);
        let credentials = Arc::clone(credentials);
        let asked = tokio::task::spawn_blocking(move || {
            let credential = ask(credentials.as_ref()).ok()??;
            match before {
                Some(before) if before.credential == credential => Some(before),
                _ => Added::new(credential),
            }
        });
        let added = asked.await.ok()??;
        *last = Some((added.clone(), Instant::now()));
        Some(added)
    }

    /// Keeps no connection that nobody uses, and nothing of a credential.
    pub(crate) fn let_go(&self) {
        self.upstream.let_go();
        // Whoever asks for one now keeps it for its request.
        if let Ok(mut last) = self.last.try_lock() {
            *last = None;
        }
    }

    pub(crate) fn way(&self) -> Way {
        self.grant.via
    }
}
