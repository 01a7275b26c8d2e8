//! The caller's environment, read once.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// What h5i knows of where it was started: the only place that reads the environment.
///
/// Everything else is given what it needs from here, so that a test can be given something else.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Surroundings {
    /// The working directory.
    pub directory: PathBuf,
    /// The home directory.
    pub home: PathBuf,
    /// Where boxes are kept: `$XDG_STATE_HOME/h5i`, else `~/.local/state/h5i`.
    pub state_dir: PathBuf,
    /// Where the user's policy is: `$XDG_CONFIG_HOME/h5i`, else `~/.config/h5i`.
    pub config_dir: PathBuf,
    /// The directories of `PATH`, in order; relative and empty ones are left out.
    pub path: Vec<PathBuf>,
    /// Whether colour was declined by `NO_COLOR`.
    pub colour: Colour,
    /// The login shell of `SHELL`, if absolute.
    pub shell: Option<PathBuf>,
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
    /// All variables, for what a policy passes on.
    variables: BTreeMap<OsString, OsString>,
}

/// Whether a terminal gets colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Colour {
    /// Where the output is a terminal.
    OnTerminals,
    /// Nowhere: `NO_COLOR` is set and not empty.
    Never,
}

/// Why the surroundings can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SurroundingsError {
    /// `HOME` is not set to an absolute path.
    #[error("HOME is not set to an absolute path")]
    NoHome,
    /// The working directory is gone or may not be seen.
    #[error("cannot tell the working directory")]
    NoDirectory(#[source] io::Error),
}

/// Variables that say how programs speak to a person: language, time zone, kind of terminal.
const LOCALE: [&str; 5] = ["LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM"];

impl Surroundings {
    /// Reads the environment of this process.
    ///
    /// # Errors
    /// [`SurroundingsError`] if there is no home or no working directory.
    pub fn read() -> Result<Self, SurroundingsError> {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
        let variables = env::vars_os();
        let directory = env::current_dir().map_err(SurroundingsError::NoDirectory)?;
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        Self::of(variables, directory, (uid, gid))
    }

    /// The surroundings that these variables describe.
    ///
    /// # Errors
    /// [`SurroundingsError::NoHome`] if `HOME` is not an absolute path.
    pub fn of(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        directory: PathBuf,
        (uid, gid): (u32, u32),
    ) -> Result<Self, SurroundingsError> {
        let variables: BTreeMap<OsString, OsString> = variables.into_iter().collect();
        let absolute = |name: &str| {
            variables.get(OsStr::new(name)).map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let home = absolute("HOME").ok_or(SurroundingsError::NoHome)?;
        // The XDG specification: a relative path is to be ignored.
        let xdg = |name: &str, default: &str| {
            absolute(name).unwrap_or_else(|| home.join(default)).join("h5i")
        };
        let path = variables.get(OsStr::new("PATH")).map(|path| directories(path));
        let declined = variables.get(OsStr::new("NO_COLOR")).is_some_and(|v| !v.is_empty());
        Ok(Self {
            state_dir: xdg("XDG_STATE_HOME", ".local/state"),
            config_dir: xdg("XDG_CONFIG_HOME", ".config"),
            path: path.unwrap_or_default(),
            colour: if declined { Colour::Never } else { Colour::OnTerminals },
            shell: absolute("SHELL"),
            directory,
            home,
            uid,
            gid,
            variables,
        })
    }

    /// The value of a variable, for a policy that passes it on.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Every variable.
    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// An absolute path that a variable holds.
    #[must_use]
    pub fn absolute(&self, name: &str) -> Option<&Path> {
        self.variable(name).map(Path::new).filter(|path| path.is_absolute())
    }

    /// Language, time zone and kind of terminal: what every run gets of the caller's environment.
    pub fn locale(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables
            .iter()
            .filter(|(name, _)| {
                name.as_bytes().starts_with(b"LC_") || LOCALE.iter().any(|known| *name == known)
            })
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

fn directories(path: &OsStr) -> Vec<PathBuf> {
    path.as_bytes()
        .split(|&b| b == b':')
        .map(|dir| PathBuf::from(OsStr::from_bytes(dir)))
        .filter(|dir| dir.is_absolute())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Colour, Surroundings, SurroundingsError};

    fn of(variables: &[(&str, &str)]) -> Result<Surroundings, SurroundingsError> {
        let variables = variables.iter().map(|(n, v)| ((*n).into(), (*v).into()));
        Surroundings::of(variables, "/w".into(), (1000, 1000))
    }

    #[test]
    fn directories_follow_xdg_and_fall_back_to_home() {
        let plain = of(&[("HOME", "/home/u")]).unwrap();
        assert_eq!(plain.state_dir.to_str(), Some("/home/u/.local/state/h5i"));
        assert_eq!(plain.config_dir.to_str(), Some("/home/u/.config/h5i"));
        let set = [("HOME", "/home/u"), ("XDG_STATE_HOME", "/s"), ("XDG_CONFIG_HOME", "rel")];
        let set = of(&set).unwrap();
        assert_eq!(set.state_dir.to_str(), Some("/s/h5i"));
        assert_eq!(set.config_dir.to_str(), Some("/home/u/.config/h5i"));
    }

    #[test]
    fn a_missing_or_relative_home_is_refused() {
        for variables in [&[][..], &[("HOME", "")], &[("HOME", "u")]] {
            assert!(matches!(of(variables), Err(SurroundingsError::NoHome)));
        }
    }

    #[test]
    fn relative_directories_of_path_are_left_out() {
        let found = of(&[("HOME", "/h"), ("PATH", "/usr/bin:.::bin:/opt/x/bin")]).unwrap();
        let path: Vec<_> = found.path.iter().filter_map(|p| p.to_str()).collect();
        assert_eq!(path, ["/usr/bin", "/opt/x/bin"]);
    }

    #[test]
    fn locale_has_language_time_zone_and_terminal_and_no_secret() {
        let found = of(&[
            ("HOME", "/h"),
            ("LANG", "C.UTF-8"),
            ("LC_ALL", "C"),
            ("TZ", "UTC"),
            ("TERM", "xterm"),
            ("COLORTERM", "truecolor"),
            ("API_TOKEN", "canary"),
            ("LD_PRELOAD", "canary"),
        ])
        .unwrap();
        let names: Vec<_> = found.locale().filter_map(|(n, _)| n.to_str()).collect();
        assert_eq!(names, ["COLORTERM", "LANG", "LC_ALL", "TERM", "TZ"]);
    }

    #[test]
    fn an_empty_no_color_declines_nothing() {
        assert_eq!(of(&[("HOME", "/h"), ("NO_COLOR", "")]).unwrap().colour, Colour::OnTerminals);
        assert_eq!(of(&[("HOME", "/h"), ("NO_COLOR", "1")]).unwrap().colour, Colour::Never);
    }
}
