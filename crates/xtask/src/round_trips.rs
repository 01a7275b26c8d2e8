//! Round trips on a real history: a box at each commit's parent makes the commit's change, and what
//! is exported, verified and applied has the commit's own tree.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

/// The box of every trip, one after the other.
const BOX: &str = "trip";

/// What was asked for.
struct Asked {
    commits: usize,
    repository: Option<PathBuf>,
}

/// Runs the round trips; yields 1 when a tree differs.
pub(crate) fn run(root: &Path, words: &[String]) -> Result<u8> {
    let asked = parse(words)?;
    let root = root.canonicalize().context("could not find the workspace")?;
    let built = Command::new("cargo")
        .current_dir(&root)
        .args(["build", "--quiet", "-p", "h5i-cli"])
        .status()?;
    if !built.success() {
        bail!("h5i does not build");
    }
    let scratch = tempdir()?;
    let source = asked.repository.clone().unwrap_or_else(|| root.clone());
    let result = Ground::new(&crate::target(&root).join("debug/h5i"), &source, &scratch)
        .and_then(|ground| ground.all(asked.commits));
    fs::remove_dir_all(&scratch).context("could not remove the scratch directory")?;
    result
}

fn parse(words: &[String]) -> Result<Asked> {
    let mut asked = Asked { commits: 500, repository: None };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--commits" => {
                let number = words.next().context("--commits needs a number")?;
                asked.commits = number.parse().context("--commits needs a number")?;
            }
            path => asked.repository = Some(PathBuf::from(path)),
        }
    }
    Ok(asked)
}

fn tempdir() -> Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let path = std::env::temp_dir().join(format!("h5i-round-trips-{}", std::process::id()));
    fs::create_dir_all(&path)?;
    // A box of root runs under an id of its own and has to get here.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

struct Ground {
    h5i: PathBuf,
    scratch: PathBuf,
    repository: PathBuf,
}

impl Ground {
    fn new(h5i: &Path, source: &Path, scratch: &Path) -> Result<Self> {
        let source = source.canonicalize().context("could not find the repository")?;
        let ground = Self {
            h5i: scratch.join("h5i"),
            scratch: scratch.to_owned(),
            repository: scratch.join("repository"),
        };
        fs::create_dir(scratch.join("home"))?;
        // A copy, so that a build in between changes nothing.
        fs::copy(h5i, &ground.h5i).context("could not copy h5i")?;
        let from = source.to_str().context("the repository's path is not UTF-8")?;
        ground.done(ground.at(scratch, "git").args([
            "clone",
            "--quiet",
            "--no-hardlinks",
            from,
            "repository",
        ]))?;
        for (key, value) in [("user.name", "ground"), ("user.email", "ground@example.com")] {
            ground.git(&["config", key, value])?;
        }
        Ok(ground)
    }

    fn all(&self, most: usize) -> Result<u8> {
        let list =
            self.git(&["rev-list", "--no-merges", "--min-parents=1", "--reverse", "HEAD"])?;
        let commits: Vec<&str> = list.lines().collect();
        let commits = &commits[commits.len().saturating_sub(most)..];
        if commits.is_empty() {
            bail!("the history has no commit with a parent");
        }
        let mut failed = 0;
        for commit in commits {
            if let Err(error) = self.one(commit) {
                println!("{commit}: {error:#}");
                failed += 1;
                // The next trip starts from nothing.
                self.h5i(&["box", "rm", BOX, "--force", "--purge"]).ok();
            }
        }
        println!("{} round trips, {failed} failed", commits.len());
        Ok(u8::from(failed > 0))
    }

    fn one(&self, commit: &str) -> Result<()> {
        let parent = self.git(&["rev-parse", &format!("{commit}^")])?;
        let tree = self.git(&["rev-parse", &format!("{commit}^{{tree}}")])?;
        self.git(&["checkout", "--quiet", "--detach", &parent])?;
        let change = self
            .at(&self.repository, "git")
            .args(["diff", "--binary", "--full-index", &parent, commit])
            .output()?;
        let name = BOX;
        self.h5i(&["box", "create", name, "--set", "export.executables=\"allow\""])?;
        let mut inside = self.at(&self.repository, &self.h5i.display().to_string());
        inside.args(["box", "run", name, "--", "git", "apply", "--allow-empty", "-"]);
        feed(&mut inside, &change.stdout)?;
        let out = self.scratch.join("out");
        let out = out.to_str().context("the scratch directory's path is not UTF-8")?;
        self.h5i(&["box", "export", name, "--force", "--allow-secrets", "-o", out])?;
        let verified = self.h5i(&["receipt", "verify", out, "--json"])?;
        if !verified.contains(&tree) || !verified.contains("\"applied\":true") {
            bail!("the bundle has another tree than {tree}: {verified}");
        }
        let branch = format!("trip/{commit}");
        self.h5i(&["box", "apply", name, "--yes", "--bundle", out, "--branch", &branch])?;
        let applied = self.git(&["rev-parse", &format!("{branch}^{{tree}}")])?;
        if applied != tree {
            bail!("applied, it has tree {applied}, not {tree}");
        }
        self.h5i(&["box", "rm", name, "--purge"])?;
        Ok(())
    }

    fn at(&self, directory: &Path, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(directory)
            .env("HOME", self.scratch.join("home"))
            .env("XDG_STATE_HOME", self.scratch.join("state"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            // No upkeep that goes on beside what is compared.
            .envs([("GIT_CONFIG_COUNT", "2"), ("GIT_CONFIG_KEY_0", "maintenance.auto")])
            .envs([("GIT_CONFIG_VALUE_0", "false"), ("GIT_CONFIG_KEY_1", "gc.auto")])
            .env("GIT_CONFIG_VALUE_1", "0")
            .stdin(Stdio::null());
        command
    }

    fn git(&self, words: &[&str]) -> Result<String> {
        self.done(self.at(&self.repository, "git").args(words))
    }

    fn h5i(&self, words: &[&str]) -> Result<String> {
        self.done(self.at(&self.repository, &self.h5i.display().to_string()).args(words))
    }

    fn done(&self, command: &mut Command) -> Result<String> {
        let output = command.output().with_context(|| format!("could not start {command:?}"))?;
        text(command, &output)
    }
}

fn feed(command: &mut Command, input: &[u8]) -> Result<()> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    child.stdin.take().context("no way in")?.write_all(input)?;
    let output = child.wait_with_output()?;
    text(command, &output).map(drop)
}

fn text(command: &Command, output: &Output) -> Result<String> {
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
