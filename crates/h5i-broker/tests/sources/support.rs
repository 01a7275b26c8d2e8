//! A person's home, and a stand-in for the services that renew logins.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use h5i_broker::{
    Credential, EndpointError, HostSources, Secret, SourceCredentials, TokenEndpoint,
};
use h5i_policy::Grant;
use tempfile::TempDir;

pub(crate) struct Home {
    pub(crate) directory: TempDir,
    pub(crate) variables: BTreeMap<&'static str, String>,
    pub(crate) endpoint: Arc<StandIn>,
}

impl Home {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        Self { directory, variables: BTreeMap::new(), endpoint: Arc::default() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("its directory");
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its mode");
        path
    }

    /// The same in one step, as the programs do, where somebody may read it at any moment.
    pub(crate) fn replace(&self, name: &str, text: &str) {
        let beside = self.put(&format!("{name}.beside"), text);
        fs::rename(beside, self.path(name)).expect("its name");
    }

    pub(crate) fn sources(&self) -> HostSources {
        let variables = self.variables.clone();
        let endpoint: Arc<dyn TokenEndpoint> = Arc::<StandIn>::clone(&self.endpoint);
        HostSources::new(self.directory.path(), move |name| variables.get(name).map(OsString::from))
            .endpoint(endpoint)
    }

    /// The credentials of a grant for `host`.
    pub(crate) fn grant(
        &self,
        host: &str,
        secret: &str,
        header: Option<&str>,
    ) -> SourceCredentials {
        self.placed(host, secret, header.as_slice(), None)
    }

    /// The same with several headers, and a parameter of the query.
    pub(crate) fn placed(
        &self,
        host: &str,
        secret: &str,
        headers: &[&str],
        query: Option<&str>,
    ) -> SourceCredentials {
        let mut grant = Grant::to(host.parse().expect("a host"));
        grant.secret = Some(secret.parse().expect("a reference"));
        for header in headers {
            grant.header.add(header.parse().expect("a header")).expect("another name");
        }
        grant.query = query.map(|name| name.parse().expect("a name"));
        self.sources().credentials(&grant).expect("a secret")
    }
}

pub(crate) fn file(path: &Path) -> String {
    format!("file:{}", path.display())
}

/// A credential's headers as text.
pub(crate) fn headers(credential: &Credential) -> Vec<String> {
    let text = |secret: &Secret| String::from_utf8(secret.expose().to_vec()).expect("text");
    credential.headers.iter().map(|(name, value)| format!("{name}: {}", text(value))).collect()
}

/// All that an error says.
pub(crate) fn told(error: &dyn std::error::Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

pub(crate) fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs()
}

type Answers = Box<dyn FnMut(&str) -> (u16, String) + Send>;

/// Answers as a test says, and keeps what it was asked.
#[derive(Default)]
pub(crate) struct StandIn {
    pub(crate) asked: Mutex<Vec<(String, String, String)>>,
    answers: Mutex<Option<Answers>>,
}

impl StandIn {
    /// What is given to each request's body.
    pub(crate) fn answer(&self, answers: impl FnMut(&str) -> (u16, String) + Send + 'static) {
        *self.answers.lock().expect("a lock") = Some(Box::new(answers));
    }

    pub(crate) fn count(&self) -> usize {
        self.asked.lock().expect("a lock").len()
    }
}

impl TokenEndpoint for StandIn {
    fn exchange(
        &self,
        url: &str,
        kind: &str,
        body: Secret,
    ) -> Result<(u16, Secret), EndpointError> {
        let body = String::from_utf8(body.expose().to_vec()).expect("text");
        self.asked.lock().expect("a lock").push((url.to_owned(), kind.to_owned(), body.clone()));
        match &mut *self.answers.lock().expect("a lock") {
            Some(answers) => {
                let (status, answer) = answers(&body);
                Ok((status, Secret::new(answer.into_bytes())))
            }
            None => Err(EndpointError("nobody is there".into())),
        }
    }
}
