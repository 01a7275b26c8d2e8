//! The one place that runs the host's `git`.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::{fs, thread};

use git2::Oid;

use crate::shown::Shown;

/// The host's `git` program, used for one thing: packing what is reachable from a commit.
///
/// It reuses the host's own deltas, which no library at hand does, and so is many times faster on a
/// large repository. It is run in a bare repository that h5i made: no configuration of the host's
/// repository, of the user or of the system is read, no hook exists, nothing is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostGit {
    program: PathBuf,
}

/// Why no pack was made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// No directory of PATH has an executable `git`.
    #[error("no `git` program on PATH")]
    NoGit,
    /// It can't be started, or its pipes broke.
    #[error("cannot run `{}`", Shown::path(program))]
    Spawn {
        /// The program.
        program: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// It failed.
    #[error("`git pack-objects` failed ({status}): {}", Shown::text(said))]
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// The end of what it wrote to standard error, at most 2 KiB.
        said: String,
    },
}

const SAID: usize = 2048;

impl HostGit {
    /// The first executable `git` in the directories of `path`.
    ///
    /// # Errors
    /// [`PackError::NoGit`] if there is none.
    pub fn find(path: &[PathBuf]) -> Result<Self, PackError> {
        let executable = |program: &PathBuf| {
            fs::metadata(program).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
        };
        // A relative directory of PATH would mean another program in each directory.
        path.iter()
            .filter(|dir| dir.is_absolute())
            .map(|dir| dir.join("git"))
            .find(executable)
            .map(|program| Self { program })
            .ok_or(PackError::NoGit)
    }

    /// Writes one pack with all that is reachable from `tip`, and not from `known`, in the bare
    /// repository `git_dir` and its alternates into `git_dir/objects/pack`. It holds `owner` as long
    /// as it lives.
    pub(super) fn pack(
        &self,
        git_dir: &Path,
        (tip, known): (Oid, Option<Oid>),
        owner: &File,
    ) -> Result<(), PackError> {
        let spawn = |source| PackError::Spawn { program: self.program.clone(), source };
        #[expect(
            clippy::disallowed_methods,
            reason = "the host's git on a repository of h5i's own; see the type's description"
        )]
        let mut child = Command::new(&self.program)
            .args(["pack-objects", "--revs", "--quiet", "--delta-base-offset"])
            .arg(git_dir.join("objects/pack/pack"))
            .current_dir(git_dir)
            .env_clear()
            .env("GIT_DIR", git_dir)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("LC_ALL", "C")
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .stdin(Stdio::piped())
            .stdout(owner.try_clone().map_err(spawn)?)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(spawn)?;
        let stdin = child.stdin.take();
        let stderr = child.stderr.take();
        let said = thread::spawn(move || last_bytes(stderr));
        let fed = match stdin {
            Some(mut stdin) => {
                let known = known.map_or_else(String::new, |known| format!("^{known}\n"));
                write!(stdin, "{tip}\n{known}")
            }
            None => Ok(()),
        };
        let status = child.wait().map_err(spawn)?;
        let said = said.join().unwrap_or_default();
        if status.success() {
            // It can only have succeeded on the line if the line arrived.
            return fed.map_err(spawn);
        }
        Err(PackError::Failed { status, said })
    }
}

/// Drains a pipe and keeps its end.
fn last_bytes(source: Option<impl io::Read>) -> String {
    let mut kept = Vec::new();
    let Some(mut source) = source else { return String::new() };
    let mut chunk = [0; 4096];
    while let Ok(n) = source.read(&mut chunk) {
        if n == 0 {
            break;
        }
        kept.extend_from_slice(&chunk[..n]);
        let surplus = kept.len().saturating_sub(SAID);
        kept.drain(..surplus);
    }
    String::from_utf8_lossy(&kept).trim_end().to_owned()
}
