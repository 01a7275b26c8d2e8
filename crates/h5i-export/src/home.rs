//! What in a box's private home runs at the next start of something in the box.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::escape::Escaped;

/// A file that nothing of h5i's put there and that acts at the next start.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct HomeFinding {
    /// Its path, relative to the home.
    pub path: Vec<u8>,
    /// When it acts.
    pub why: &'static str,
}

/// The home can't be looked at.
#[derive(Debug, thiserror::Error)]
#[error("can't look at `{}` in the box's home `{}`", Escaped::new(path), home.display())]
#[non_exhaustive]
pub struct HomeError {
    /// The home.
    pub home: PathBuf,
    /// What in it.
    pub path: Vec<u8>,
    /// The failure.
    #[source]
    pub source: io::Error,
}

/// The most entries of one directory that are named.
const MAX_NAMED: usize = 20;

const SHELL: &str = "the next shell runs it";
const GIT: &str = "git runs what it names";
const AGENT: &str = "the next start of the agent follows it";
const INSTALL: &str = "package managers and builds follow it";
const PATH: &str = "the next program of that name may be this one";
const EDITOR: &str = "the editor runs it";
const REMOTE: &str = "ssh runs what it names";
const PYTHON: &str = "every python loads it";
const SESSION: &str = "a terminal or directory that is opened runs it";

/// Paths and what they do; one with a slash at its end is a directory whose entries count.
const RULES: &[(&str, &str)] = &[
    (".bashrc", SHELL),
    (".bash_profile", SHELL),
    (".bash_login", SHELL),
    (".bash_logout", SHELL),
    (".bash_aliases", SHELL),
    (".profile", SHELL),
    (".zshrc", SHELL),
    (".zshenv", SHELL),
    (".zprofile", SHELL),
    (".zlogin", SHELL),
    (".zlogout", SHELL),
    (".kshrc", SHELL),
    (".cshrc", SHELL),
    (".tcshrc", SHELL),
    (".inputrc", SHELL),
    (".config/fish/config.fish", SHELL),
    (".config/fish/conf.d/", SHELL),
    (".config/fish/functions/", SHELL),
    (".config/nushell/", SHELL),
    (".config/starship.toml", SHELL),
    (".gitconfig", GIT),
    (".config/git/", GIT),
    (".git-templates/", GIT),
    (".claude.json", AGENT),
    (".claude/settings.json", AGENT),
    (".claude/settings.local.json", AGENT),
    (".claude/CLAUDE.md", AGENT),
    (".claude/hooks/", AGENT),
    (".claude/commands/", AGENT),
    (".claude/agents/", AGENT),
    (".claude/skills/", AGENT),
    (".claude/plugins/", AGENT),
    (".codex/config.toml", AGENT),
    (".codex/AGENTS.md", AGENT),
    (".codex/prompts/", AGENT),
    (".gemini/settings.json", AGENT),
    (".gemini/GEMINI.md", AGENT),
    (".config/opencode/", AGENT),
    (".config/goose/", AGENT),
    (".cursor/", AGENT),
    (".aider.conf.yml", AGENT),
    (".mcp.json", AGENT),
    (".npmrc", INSTALL),
    (".yarnrc", INSTALL),
    (".yarnrc.yml", INSTALL),
    (".bunfig.toml", INSTALL),
    (".config/pnpm/rc", INSTALL),
    (".cargo/config", INSTALL),
    (".cargo/config.toml", INSTALL),
    (".config/pip/pip.conf", INSTALL),
    (".pip/pip.conf", INSTALL),
    (".config/uv/uv.toml", INSTALL),
    (".pydistutils.cfg", INSTALL),
    (".gemrc", INSTALL),
    (".bundle/config", INSTALL),
    (".m2/settings.xml", INSTALL),
    (".gradle/gradle.properties", INSTALL),
    (".gradle/init.gradle", INSTALL),
    (".gradle/init.gradle.kts", INSTALL),
    (".gradle/init.d/", INSTALL),
    (".config/go/env", INSTALL),
    (".local/bin/", PATH),
    (".cargo/bin/", PATH),
    ("bin/", PATH),
    ("go/bin/", PATH),
    (".vimrc", EDITOR),
    (".vim/", EDITOR),
    (".config/nvim/", EDITOR),
    (".emacs", EDITOR),
    (".emacs.d/", EDITOR),
    (".config/emacs/", EDITOR),
    (".nanorc", EDITOR),
    (".ssh/config", REMOTE),
    (".ssh/rc", REMOTE),
    (".ssh/environment", REMOTE),
    (".pythonrc.py", PYTHON),
    (".local/lib/", PYTHON),
    (".tmux.conf", SESSION),
    (".config/tmux/", SESSION),
    (".screenrc", SESSION),
    (".direnvrc", SESSION),
    (".config/direnv/", SESSION),
    (".config/mise/", SESSION),
    (".tool-versions", SESSION),
    (".config/autostart/", SESSION),
    (".config/systemd/user/", SESSION),
    (".config/environment.d/", SESSION),
    (".pam_environment", SESSION),
    (".gdbinit", SESSION),
    (".config/gdb/", SESSION),
];

/// What in `home` acts at the next start of something in the box, sorted by path.
///
/// The home is read as hostile data: beneath it only, through no link, and nothing is opened for
/// reading but directories. Of a directory at most twenty entries are named. A link on the way to a
/// known place counts as that place.
///
/// # Errors
/// [`HomeError`] when the home or something in it can't be looked at; what is not there is no error.
pub fn home_findings(home: &Path) -> Result<Vec<HomeFinding>, HomeError> {
    let failed = |path: &[u8], source: Errno| HomeError {
        home: home.to_owned(),
        path: path.to_vec(),
        source: source.into(),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = match rustix::fs::openat(CWD, home, flags, Mode::empty()) {
        Ok(root) => root,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(error) => return Err(failed(b"", error)),
    };
    let mut found = Vec::new();
    for &(rule, why) in RULES {
        let name = rule.strip_suffix('/').unwrap_or(rule);
        let seen = look(&root, name).map_err(|error| failed(name.as_bytes(), error))?;
        match seen {
            Seen::Nothing => {}
            Seen::Directory if rule.ends_with('/') => {
                let entries =
                    entries(&root, name).map_err(|error| failed(name.as_bytes(), error))?;
                found.extend(entries.into_iter().map(|entry| {
                    let path = [name.as_bytes(), b"/", &entry].concat();
                    HomeFinding { path, why }
                }));
            }
            Seen::Directory | Seen::Other => {
                found.push(HomeFinding { path: name.into(), why });
            }
        }
    }
    found.sort();
    Ok(found)
}

/// What stands at a place.
enum Seen {
    Nothing,
    Directory,
    /// A file, a link, or a place that a link is on the way to.
    Other,
}

fn look(root: &OwnedFd, name: &str) -> Result<Seen, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat2(root, name, flags, Mode::empty(), resolve()) {
        Ok(opened) => {
            let stat = rustix::fs::fstat(&opened)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => Ok(Seen::Directory),
                _ => Ok(Seen::Other),
            }
        }
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(Seen::Nothing),
        // A link on the way, or a directory that the box closed: nobody knows what is behind it.
        Err(Errno::LOOP | Errno::XDEV | Errno::ACCESS) => Ok(Seen::Other),
        Err(error) => Err(error),
    }
}

fn entries(root: &OwnedFd, name: &str) -> Result<Vec<Vec<u8>>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match rustix::fs::openat2(root, name, flags, Mode::empty(), resolve()) {
        Ok(opened) => File::from(opened),
        Err(Errno::ACCESS) => return Ok(vec![b"?".to_vec()]),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in Dir::read_from(opened.as_fd())? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(name.to_vec());
        }
        if names.len() == MAX_NAMED {
            break;
        }
    }
    Ok(names)
}

fn resolve() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS
}
