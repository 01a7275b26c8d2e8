//! A repository as a service has it: git's own `http-backend`, one process a request.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test support: a failure is a panic")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A bare repository at `/repo.git` with one commit on `main`, which has the file `a`. Who asks may
/// fetch and push, whatever it shows.
#[derive(Debug)]
pub struct GitService {
    directory: TempDir,
}

/// What the service answers.
#[derive(Clone, Debug)]
pub struct GitAnswer {
    /// The status.
    pub status: u16,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl GitService {
    /// Makes the repository.
    ///
    /// # Panics
    /// When git can't.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it makes files")]
    pub fn new() -> Self {
        let service = Self { directory: tempfile::tempdir().unwrap() };
        let work = service.directory.path().join("work");
        service.run(&["init", "-q", "-b", "main", "work"]);
        fs::write(work.join("a"), "one\n").unwrap();
        service.run(&["-C", "work", "add", "a"]);
        service.run(&["-C", "work", "commit", "-q", "-m", "One"]);
        service.run(&["clone", "-q", "--bare", "work", "repo.git"]);
        service.run(&["-C", "repo.git", "config", "receive.advertisePushOptions", "true"]);
        service
    }

    /// What a reference of the repository names; `None` where there is none.
    ///
    /// # Panics
    /// When git can't be started.
    #[must_use]
    pub fn tip(&self, reference: &str) -> Option<String> {
        let args = ["-C", "repo.git", "rev-parse", "-q", "--verify", reference];
        let said = git(self.directory.path()).args(args).output().unwrap();
        said.status.success().then(|| String::from_utf8(said.stdout).unwrap().trim().to_owned())
    }

    /// Answers a request: its method, its target, its headers with their names in lower case, its
    /// whole body.
    ///
    /// # Panics
    /// When git can't be started, or answers with what is none.
    #[must_use]
    pub fn answer(
        &self,
        (method, target): (&str, &str),
        headers: &[(String, String)],
        body: Vec<u8>,
    ) -> GitAnswer {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut command = git(self.directory.path());
        command.arg("http-backend").stdin(Stdio::piped()).stdout(Stdio::piped());
        command.env("GIT_PROJECT_ROOT", self.directory.path());
        command.envs([
            ("GIT_HTTP_EXPORT_ALL", "1"),
            ("REMOTE_USER", "box"),
            ("REMOTE_ADDR", "127.0.0.1"),
            ("REQUEST_METHOD", method),
            ("PATH_INFO", path),
            ("QUERY_STRING", query),
        ]);
        command.env("CONTENT_LENGTH", body.len().to_string());
        for (name, variable) in [
            ("content-type", "CONTENT_TYPE"),
            ("content-encoding", "HTTP_CONTENT_ENCODING"),
            ("git-protocol", "GIT_PROTOCOL"),
        ] {
            if let Some((_, value)) = headers.iter().find(|(own, _)| own == name) {
                command.env(variable, value);
            }
        }
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // It may answer before it has read everything, or anything.
        let writer = std::thread::spawn(move || input.write_all(&body).ok());
        let said = child.wait_with_output().unwrap();
        writer.join().unwrap();
        read(&said)
    }

    fn run(&self, args: &[&str]) {
        let said = git(self.directory.path()).args(args).output().unwrap();
        assert!(said.status.success(), "{args:?}: {}", String::from_utf8_lossy(&said.stderr));
    }
}

/// Git of the host, in a directory, without anybody's configuration.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "tests drive the real git")]
pub fn git(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command.env_clear().current_dir(directory).env("HOME", directory).envs([
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("LC_ALL", "C"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        // No upkeep that goes on when the command has ended.
        ("GIT_CONFIG_COUNT", "2"),
        ("GIT_CONFIG_KEY_0", "maintenance.auto"),
        ("GIT_CONFIG_VALUE_0", "false"),
        ("GIT_CONFIG_KEY_1", "gc.auto"),
        ("GIT_CONFIG_VALUE_1", "0"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_AUTHOR_NAME", "A"),
        ("GIT_AUTHOR_EMAIL", "a@example.com"),
        ("GIT_COMMITTER_NAME", "A"),
        ("GIT_COMMITTER_EMAIL", "a@example.com"),
    ]);
    command
}

/// Reads what a CGI program answers. RFC 3875, section 6.
fn read(said: &Output) -> GitAnswer {
    let end = said.stdout.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&said.stderr)));
    let head = String::from_utf8(said.stdout[..end].to_vec()).unwrap();
    let mut answer =
        GitAnswer { status: 200, headers: Vec::new(), body: said.stdout[end + 4..].to_vec() };
    for line in head.split("\r\n") {
        let (name, value) = line.split_once(": ").unwrap();
        if name.eq_ignore_ascii_case("status") {
            answer.status = value[..3].parse().unwrap();
        } else {
            answer.headers.push((name.to_owned(), value.to_owned()));
        }
    }
    answer
}
