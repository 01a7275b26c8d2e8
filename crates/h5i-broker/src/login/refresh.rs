//! Renews a login and writes it back.

use std::fs::File;
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tempfile::NamedTempFile;
use zeroize::Zeroizing;

use super::lock::LoginLock;
use super::{LoginError, LoginSource, Tokens};
use crate::json_spans::{Kind, Node, string};
use crate::secret::Secret;
use crate::source::{HostFile, MAX_FILE, is_header_part};

/// How often a login is renewed at most: a box can make a service refuse it.
const NOT_BEFORE: Duration = Duration::from_secs(60);
/// Links that lead to a login file.
const MAX_LINKS: usize = 8;

/// What was tried.
#[derive(Default)]
pub(super) struct Renewals(Mutex<Tried>);

#[derive(Default)]
struct Tried {
    last: Option<Instant>,
    /// What the service does not take any more.
    dead: Option<Secret>,
}

/// A service's answer: new tokens.
pub(super) struct Answer {
    pub(super) access: Zeroizing<String>,
    pub(super) refresh: Option<Zeroizing<String>>,
    pub(super) identity: Option<Zeroizing<String>>,
    pub(super) lasts: Option<Duration>,
}

impl LoginSource {
    /// Other tokens than `old`: those that the program or another session has fetched meanwhile, or
    /// new ones, which are in the file when this returns.
    pub(super) fn renew(&self, old: &Tokens) -> Result<Tokens, LoginError> {
        let mut tried = self.renewals.0.lock().unwrap_or_else(PoisonError::into_inner);
        let program = self.format().program;
        let ended = || LoginError::Ended { program };
        let written = |error| LoginError::Write { path: self.path(), error };
        let locks = (self.format().locks)(&self.directory);
        let lock = LoginLock::take(&self.directory, &locks).map_err(written)?;
        let _lock = lock.ok_or(LoginError::Busy)?;

        let file = self.file()?.ok_or_else(ended)?;
        let (text, node) = self.parsed(&file)?;
        let stored = (self.format().read)(text, &node).ok_or_else(ended)?;
        let now = SystemTime::now();
        if stored.access != old.access && stored.until.is_none_or(|until| until > now) {
            return Ok(stored);
        }
        let refresh = stored.refresh.clone().ok_or_else(ended)?;
        if tried.dead.as_ref() == Some(&refresh) {
            return Err(ended());
        }
        if tried.last.is_some_and(|last| last.elapsed() < NOT_BEFORE) {
            return Err(LoginError::TriedJustNow);
        }
        tried.last = Some(Instant::now());
        // What can't be written must not be renewed: the old tokens hold no longer then.
        let place = Place::beside(&self.path(), &file).map_err(written)?;
        let answer = match self.ask(&refresh, &stored) {
            Ok(answer) => answer,
            Err(error) => {
                if matches!(error, LoginError::Ended { .. }) {
                    tried.dead = Some(refresh);
                }
                return Err(error);
            }
        };

        let file = self.file()?.ok_or_else(ended)?;
        let (text, node) = self.parsed(&file)?;
        match (self.format().read)(text, &node) {
            // Somebody logged in or out meanwhile; what is in the file now is what they want.
            Some(found) if found.refresh.as_ref() != Some(&refresh) => return Ok(found),
            None => return Err(ended()),
            Some(_) => {}
        }
        let updated = (self.format().updated)(text, &node, &answer, now).ok_or_else(ended)?;
        place.write(updated.as_bytes()).map_err(written)?;
        Node::parse(&updated)
            .and_then(|node| (self.format().read)(&updated, &node))
            .ok_or_else(ended)
    }

    fn ask(&self, refresh: &Secret, tokens: &Tokens) -> Result<Answer, LoginError> {
        let ended = || LoginError::Ended { program: self.format().program };
        let token = std::str::from_utf8(refresh.expose()).ok().ok_or_else(ended)?;
        let mut request = (self.format().request)(token, tokens);
        let body = Secret::new(request.to_string().into_bytes());
        if let Some(serde_json::Value::String(copy)) = request.get_mut("refresh_token") {
            zeroize::Zeroize::zeroize(copy);
        }
        let exchange = self.endpoint.exchange(self.format().url, "application/json", body);
        let (status, answer) = exchange.map_err(LoginError::Unreachable)?;
        match status {
            200 => {}
            400 | 401 | 403 => return Err(ended()),
            _ => return Err(LoginError::Refused { status }),
        }
        Answer::read(answer.expose()).ok_or(LoginError::Refused { status })
    }
}

impl Answer {
    /// RFC 6749, section 5.1.
    fn read(body: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(body).ok().filter(|text| text.len() <= MAX_FILE)?;
        let node = Node::parse(text)?;
        let token = |pointer: &str| {
            let token = node.pointed(text, pointer)?.string(text)?;
            is_header_part(token.as_bytes()).then_some(token)
        };
        let lasts = node.pointed(text, "/expires_in");
        let lasts = lasts.and_then(|node| text[node.at.clone()].parse().ok());
        Some(Self {
            access: token("/access_token")?,
            refresh: token("/refresh_token"),
            identity: token("/id_token"),
            lasts: lasts.map(Duration::from_secs),
        })
    }
}

/// A JSON string.
pub(super) fn literal(text: &str) -> Zeroizing<String> {
    Zeroizing::new(serde_json::Value::from(text).to_string())
}

/// `text` with other values for members of `object`; everything else stays byte for byte.
pub(super) fn edited(
    text: &str,
    object: &Node,
    changes: &[(&str, Zeroizing<String>)],
) -> Option<Zeroizing<String>> {
    let Kind::Object(members) = &object.kind else { return None };
    let mut edits: Vec<(Range<usize>, Zeroizing<String>)> = Vec::new();
    for (name, value) in changes {
        let named = |key: &Range<usize>| string(text, key).is_some_and(|key| *key == *name);
        let mut found = false;
        for member in members.iter().filter(|member| named(&member.key)) {
            edits.push((member.value.at.clone(), value.clone()));
            found = true;
        }
        if !found {
            let first = object.at.start + 1;
            let comma = if members.is_empty() { "" } else { "," };
            let member = format!("\"{name}\":{}{comma}", value.as_str());
            edits.push((first..first, Zeroizing::new(member)));
        }
    }
    edits.sort_by_key(|(at, _)| at.start);
    let room = text.len() + edits.iter().map(|(_, value)| value.len()).sum::<usize>();
    let (mut out, mut from) = (Zeroizing::new(String::with_capacity(room)), 0);
    for (at, value) in edits {
        out.push_str(text.get(from..at.start)?);
        out.push_str(&value);
        from = at.end;
    }
    out.push_str(text.get(from..)?);
    Some(out)
}

/// Where a file is replaced: a new one beside it, which can be written.
struct Place {
    file: NamedTempFile,
    path: PathBuf,
}

impl Place {
    fn beside(path: &Path, old: &HostFile) -> io::Result<Self> {
        let path = behind_links(path)?;
        let directory = path.parent().unwrap_or(Path::new("/"));
        let file = NamedTempFile::new_in(directory)?;
        let made = file.as_file().metadata()?;
        if (made.uid(), made.gid()) != (old.stat.st_uid, old.stat.st_gid) {
            std::os::unix::fs::fchown(&file, Some(old.stat.st_uid), Some(old.stat.st_gid))?;
        }
        let mode = std::fs::Permissions::from_mode(old.stat.st_mode & 0o777);
        file.as_file().set_permissions(mode)?;
        Ok(Self { file, path })
    }

    /// Replaces the file by one that is on the disk.
    fn write(mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.file.as_file().sync_all()?;
        self.file.persist(&self.path)?;
        File::open(self.path.parent().unwrap_or(Path::new("/")))?.sync_all()
    }
}

/// The file that a path leads to: a link to it stays one.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match std::fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(path),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from(rustix::io::Errno::LOOP))
}
