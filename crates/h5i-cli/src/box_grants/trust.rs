//! What makes the box's programs, and nobody else, trust the broker in the place of a service.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use h5i_confine::{Access, Layout};

use crate::failure::Failure;
use crate::path_error::{Action, PathError};

/// Where the box finds the files.
const IN_BOX: &str = "/run/h5i/trust";
/// The authority alone, and the system's with it.
const AUTHORITY: &str = "authority.pem";
const BUNDLE: &str = "bundle.pem";

/// Where systems keep their bundle, by their own documentation: Debian, Fedora, SUSE, Alpine.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Variables that name a bundle to be used instead of the system's: OpenSSL, curl, git, requests,
/// pip, cargo, the AWS tools, Deno.
const BUNDLES: [&str; 8] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE",
    "DENO_CERT",
];
/// The variable that names what is trusted beside what the program has built in: Node.
const BESIDE: &str = "NODE_EXTRA_CA_CERTS";

/// The files of one box, in its host directory.
#[derive(Debug)]
pub(crate) struct Trust {
    directory: PathBuf,
    system: Option<PathBuf>,
}

impl Trust {
    /// Makes the files, where they are not there.
    pub(super) fn prepare(host_dir: &Path) -> Result<Self, Failure> {
        let directory = host_dir.join("trust");
        fs::create_dir_all(&directory).map_err(PathError::at(Action::Create, &directory))?;
        let is_file = |path: &&str| fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
        let system = SYSTEM.iter().find(|path| is_file(path)).map(PathBuf::from);
        let trust = Self { directory, system };
        // What is mounted has to be there; what is in it is written before anything of the box runs.
        for name in [AUTHORITY, BUNDLE] {
            let path = trust.directory.join(name);
            let made = File::options().append(true).create(true).open(&path);
            made.map_err(PathError::at(Action::Create, &path))?;
        }
        Ok(trust)
    }

    /// Shows them in a box, in the place of the system's bundle as well.
    pub(super) fn shown_in(&self, layout: Layout) -> Layout {
        let layout = layout.place(&self.directory, IN_BOX, Access::Read);
        match &self.system {
            Some(system) => layout.file(self.directory.join(BUNDLE), system),
            None => layout,
        }
    }

    /// Adds the broker's authority. The box sees the same files, and nothing of it runs yet.
    pub(super) fn write(&self, authority: &str) -> Result<(), Failure> {
        self.put(AUTHORITY, authority.as_bytes())?;
        let mut bundle = self.system_bundle()?;
        if !bundle.is_empty() && !bundle.ends_with(b"\n") {
            bundle.push(b'\n');
        }
        bundle.extend(authority.as_bytes());
        self.put(BUNDLE, &bundle)
    }

    /// The variables of a run whose programs look elsewhere than at the system's bundle.
    pub(super) fn variables(&self) -> impl Iterator<Item = (String, String)> + use<> {
        let named = |name: &str, file| (name.to_owned(), format!("{IN_BOX}/{file}"));
        let bundles = BUNDLES.iter().map(move |name| named(name, BUNDLE));
        bundles.chain([named(BESIDE, AUTHORITY)])
    }

    fn system_bundle(&self) -> Result<Vec<u8>, Failure> {
        match &self.system {
            Some(path) => Ok(fs::read(path).map_err(PathError::at(Action::Read, path))?),
            None => Ok(Vec::new()),
        }
    }

    /// Written in place: what the box sees is this file.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.directory.join(name);
        let written = File::create(&path).and_then(|mut file| file.write_all(bytes));
        Ok(written.map_err(PathError::at(Action::Write, &path))?)
    }
}
