//! Where the program stands in a test: a repository, a home, a state and a configuration directory
//! of its own.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::back_ends::Layout;
use crate::shapes::{Answer, Failed, Told};
use crate::support::{Ground, picture};

/// The program under test.
pub(crate) const H5I: &str = env!("CARGO_BIN_EXE_h5i");
/// The PATH of every run of the program.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A ground with the directories that the program is given by its environment.
pub(crate) struct Stand {
    pub(crate) ground: Ground,
    layout: Layout,
}

/// What the program said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

/// Everything below the directories of a stand: names, bytes, modes, times.
#[derive(PartialEq, Eq)]
pub(crate) struct Traces {
    pub(crate) repo: Picture,
    pub(crate) home: Picture,
    pub(crate) state: Picture,
}

type Picture = Vec<(PathBuf, Vec<u8>, u32, i64, i64)>;

impl std::fmt::Debug for Traces {
    /// A line a file, without its bytes.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (path, bytes, mode, seconds, nanos) in
            self.repo.iter().chain(&self.home).chain(&self.state)
        {
            writeln!(f, "{} {} bytes {mode:o} {seconds}.{nanos:09}", path.display(), bytes.len())?;
        }
        Ok(())
    }
}

impl Stand {
    /// With a repository of two commits on `main`.
    pub(crate) fn new() -> Self {
        Self::laid_out(Layout::Auto)
    }

    /// As [`Stand::new`]; boxes made by words get this layout.
    pub(crate) fn laid_out(layout: Layout) -> Self {
        Self { layout, ..Self::on(Ground::new()) }
    }

    /// With directories only.
    pub(crate) fn without_repository() -> Self {
        Self::on(Ground::bare_ground())
    }

    fn on(ground: Ground) -> Self {
        fs::set_permissions(ground.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(ground.path().join("config")).unwrap();
        Self { ground, layout: Layout::Auto }
    }

    pub(crate) fn path(&self) -> &Path {
        self.ground.path()
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.ground.repo()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// The value of `XDG_STATE_HOME`; h5i makes it.
    pub(crate) fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// The user's policy document.
    pub(crate) fn user_policy(&self, text: &str) {
        let dir = self.path().join("config/h5i");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("policy.toml"), text).unwrap();
    }

    /// The repository's policy document, committed.
    pub(crate) fn repository_policy(&self, text: &str) {
        self.ground.write(".h5i/policy.toml", text.as_bytes());
        self.ground.commit("policy");
    }

    /// Another program with the stand's environment, started in its repository.
    #[expect(clippy::disallowed_methods, reason = "tests start programs")]
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.repo())
            .stdin(Stdio::null())
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", self.home())
            .env("XDG_STATE_HOME", self.state())
            .env("XDG_CONFIG_HOME", self.path().join("config"))
            .env("H5I", H5I);
        command
    }

    /// The program, ready for words.
    pub(crate) fn command(&self) -> Command {
        self.program(H5I)
    }

    /// Runs the program in the repository.
    pub(crate) fn h5i(&self, words: &[&str]) -> Said {
        Said::of(self.with(words).output().unwrap())
    }

    /// The program with words; those that make a box say how it is laid out.
    pub(crate) fn with(&self, words: &[&str]) -> Command {
        let mut command = self.command();
        command.args(self.layout.words(words));
        command
    }

    /// Runs the program; it must end with 0.
    pub(crate) fn ok(&self, words: &[&str]) -> Said {
        let said = self.h5i(words);
        assert_eq!(said.code, 0, "{words:?}: {}", said.err);
        said
    }

    /// Runs a shell script in a box; it must end with 0. What it printed, without the last line's end.
    pub(crate) fn sh(&self, name: &str, script: &str) -> String {
        let said = self.ok(&["box", "run", name, "--", "sh", "-c", script]);
        String::from_utf8(said.out).unwrap().trim_end().to_owned()
    }

    /// Runs the program with something to read.
    pub(crate) fn h5i_reading(&self, words: &[&str], input: &[u8]) -> Said {
        let mut command = self.with(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let said = Said::of(child.wait_with_output().unwrap());
        writer.join().unwrap().unwrap();
        said
    }

    pub(crate) fn traces(&self) -> Traces {
        let state =
            if self.state().try_exists().unwrap() { picture(&self.state()) } else { Vec::new() };
        Traces { repo: picture(&self.repo()), home: picture(&self.home()), state }
    }

    /// The names of the boxes, hidden ones too, of every scope.
    pub(crate) fn box_directories(&self) -> Vec<String> {
        let Ok(scopes) = fs::read_dir(self.state().join("h5i/repos")) else { return Vec::new() };
        let boxes =
            scopes.filter_map(|scope| fs::read_dir(scope.unwrap().path().join("boxes")).ok());
        let mut names: Vec<String> = boxes
            .flatten()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The directory of a box of the stand's repository.
    pub(crate) fn box_dir(&self, name: &str) -> PathBuf {
        let scopes = fs::read_dir(self.state().join("h5i/repos")).unwrap();
        let mut places = scopes.map(|scope| scope.unwrap().path().join("boxes").join(name));
        places.find(|place| place.is_dir()).unwrap_or_else(|| panic!("no box {name}"))
    }
}

impl Said {
    pub(crate) fn of(output: Output) -> Self {
        let code = output.status.code().unwrap_or_else(|| panic!("{:?}", output.status));
        let err = String::from_utf8(output.stderr).unwrap();
        Self { code, out: output.stdout, err }
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }

    /// The one object on standard output; more or less than one line is a failure.
    pub(crate) fn json(&self) -> Value {
        let text = self.text();
        assert_eq!(text.matches('\n').count(), 1, "{text:?} {}", self.err);
        serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text:?}"))
    }

    /// The data of an answer with `ok: true`.
    pub(crate) fn data<T: DeserializeOwned>(&self) -> T {
        let answer: Answer<T> =
            serde_json::from_value(self.json()).unwrap_or_else(|e| panic!("{e}: {}", self.text()));
        assert_eq!((answer.h5i, answer.ok), (1, true));
        answer.data
    }

    /// The error of an answer with `ok: false`.
    pub(crate) fn failure(&self) -> Told {
        let failed: Failed =
            serde_json::from_value(self.json()).unwrap_or_else(|e| panic!("{e}: {}", self.text()));
        assert_eq!((failed.h5i, failed.ok), (1, false));
        failed.error
    }
}

/// The words with `--json` before the command of a run, if there is one.
pub(crate) fn with_json<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let at = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let mut all = words.to_vec();
    all.insert(at, "--json");
    all
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
