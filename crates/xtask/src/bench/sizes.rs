//! What a box costs on repositories of 100, 10,000 and 100,000 files, beside what else one could do.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::repository::{commit, disk_of, repository_with, say};
use super::{bubblewrap, build, scratch};
use crate::needs;
use crate::test::{USER, ensure_user};

const SIZES: [usize; 3] = [100, 10_000, 100_000];
/// A step is repeated until this is spent, between the least and the most number of times.
const SPEND: Duration = Duration::from_secs(8);
const LEAST: usize = 3;
const MOST: usize = 31;
/// First boxes of bases that are near another.
const NEARS: usize = 5;
/// Pairs of which the median ratio is printed.
const PAIRS: usize = 15;

/// Says that this process measures for its caller and starts nobody else.
pub(crate) const INNER: &str = "--as-this-user";

/// Measures as the caller and, as root, once more as an ordinary user. `words` may name sizes.
pub(crate) fn run(root: &Path, words: &[String]) -> Result<u8> {
    let inner = words.iter().any(|word| word == INNER);
    let named: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let sizes = if named.is_empty() { SIZES.to_vec() } else { named };
    if !inner && !needs::provide()? {
        return Ok(2);
    }
    let root = root.canonicalize().context("could not find the workspace")?;
    let h5i = if inner { crate::target(&root).join("release/h5i") } else { build(&root)? };
    let scratch = scratch()?;
    let result = sizes.iter().try_for_each(|files| measure(&h5i, &scratch, *files));
    fs::remove_dir_all(&scratch).context("could not remove the scratch directory")?;
    result?;
    if needs::is_root() && !inner {
        ensure_user()?;
        let own = std::env::current_exe()?;
        let status = Command::new("setpriv")
            .args(["--reuid", USER, "--regid", USER, "--init-groups", "--reset-env"])
            .arg(own)
            .args(["bench", "--sizes", INNER])
            .args(sizes.iter().map(ToString::to_string))
            .current_dir("/")
            .status()?;
        return Ok(u8::from(!status.success()));
    }
    Ok(0)
}

/// The commands of one size and layout.
struct Ground<'a> {
    h5i: &'a Path,
    repository: PathBuf,
    state: PathBuf,
    layout: Option<&'static str>,
}

fn measure(h5i: &Path, scratch: &Path, files: usize) -> Result<()> {
    let who = if needs::is_root() { "root" } else { "an ordinary user" };
    say(&format!("\n{files} files, as {who}"));
    let repository = scratch.join(format!("repository-{files}"));
    repository_with(&repository, files)?;
    let work = scratch.join("work");
    fs::create_dir_all(&work)?;
    let yard = Yardstick { sandbox: bubblewrap(&work) };
    yard.row("bare exec of true", &yard.repeat(|| timed(&mut Command::new("true")))?);
    beside(&repository, scratch, &yard)?;
    for layout in layouts(h5i)? {
        say(&format!("  {}", layout.unwrap_or("checkout")));
        let state = scratch.join(format!("state-{files}-{}", layout.unwrap_or("checkout")));
        let ground = Ground { h5i, repository: repository.clone(), state, layout };
        ground.first_boxes()?;
        ground.lives(&yard)?;
        ground.work_in_a_box(&yard)?;
        say(&format!(
            "  {:<44}{:>10.2} MiB",
            "supervisor while a run sleeps (RSS)",
            ground.resident()?
        ));
        ground.h5i(&["box", "rm", "warm", "near", "--force"])?;
    }
    Ok(())
}

/// What else gives a task a tree of its own.
fn beside(repository: &Path, scratch: &Path, yard: &Yardstick) -> Result<()> {
    let tree = scratch.join("tree");
    let tree_text = tree.display().to_string();
    let git = |words: &[&str]| timed(Command::new("git").current_dir(repository).args(words));
    let mut removals = Vec::new();
    let mut added = yard.repeat(|| {
        let time = git(&["worktree", "add", "--quiet", "--detach", &tree_text])?;
        removals.push(git(&["worktree", "remove", "--force", &tree_text])?);
        Ok(time)
    })?;
    yard.row("git worktree add", &added);
    added.times = removals;
    yard.row("git worktree remove", &added);
    let cloned = yard.repeat(|| {
        let words = ["clone", "--quiet", "--no-local", "--single-branch", "."];
        let time = git(&[&words[..], &[tree_text.as_str()]].concat())?;
        fs::remove_dir_all(&tree)?;
        Ok(time)
    })?;
    yard.row("git clone --no-local --single-branch", &cloned);
    yard.row("git status on the repository", &yard.repeat(|| git(&["status", "--porcelain"]))?);
    Ok(())
}

impl Ground<'_> {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.h5i);
        command.arg("-C").arg(&self.repository).args(words).env("XDG_STATE_HOME", &self.state);
        command
    }

    fn h5i(&self, words: &[&str]) -> Result<Duration> {
        timed(&mut self.command(words))
    }

    /// Makes a box of this layout.
    fn creation(&self, name: &str) -> Command {
        let mut words = vec!["box", "create", name, "--tier", "process"];
        if let Some(layout) = self.layout {
            words.extend(["--workspace", layout]);
        }
        self.command(&words)
    }

    fn create(&self, name: &str) -> Result<Duration> {
        timed(&mut self.creation(name))
    }

    /// The first box of a repository beside a clone of it, and the first ones of bases that are near
    /// another.
    ///
    /// No tree is removed in between: for some seconds ext4 hands out no inode of a removed file,
    /// and looks at each of them for every file that is made.
    fn first_boxes(&self) -> Result<()> {
        let (mut clones, mut firsts) = (Vec::new(), Vec::new());
        for round in 0..LEAST {
            let clone = self.state.with_extension(format!("clone-{round}"));
            let words = ["clone", "--quiet", "--no-local", "--single-branch", "."];
            let clone = clone.display().to_string();
            let mut git = Command::new("git");
            clones.push(timed(git.current_dir(&self.repository).args(words).arg(clone))?);
            let state = self.state.with_extension(format!("first-{round}"));
            firsts.push(timed(self.creation("first").env("XDG_STATE_HOME", state))?);
        }
        let ratios = firsts.iter().zip(&clones).map(|(first, clone)| ms(*first) / ms(*clone));
        let ratio = middle(ratios.collect());
        beside_another("first box of a repository", median(firsts), ratio, "git clone beside it");
        self.create("warm")?;
        let mut nears = Vec::new();
        for round in 1..=NEARS {
            let content = format!("{} {round}", self.state.display());
            fs::write(self.repository.join("changed.txt"), content)?;
            commit(&self.repository)?;
            let name = if round == NEARS { "near".to_owned() } else { format!("near-{round}") };
            nears.push(self.create(&name)?);
            if round < NEARS {
                self.h5i(&["box", "rm", &name])?;
            }
        }
        let (near, clone) = (median(nears), median(clones));
        let ratio = ms(near) / ms(clone);
        beside_another("first box of a near base", near, ratio, "the median of those clones");
        let size = disk_of(&self.box_dir("near")?)?;
        say(&format!("  {:<44}{:>10} KiB", "disk of an idle box", size / 1024));
        Ok(())
    }

    fn lives(&self, yard: &Yardstick) -> Result<()> {
        let (mut creates, mut removals) = (Vec::new(), Vec::new());
        let mut whole = yard.repeat(|| {
            let started = Instant::now();
            creates.push(self.create("life")?);
            self.h5i(&["box", "run", "life", "--", "true"])?;
            removals.push(self.h5i(&["box", "rm", "life"])?);
            Ok(started.elapsed())
        })?;
        yard.row("create + run + rm", &whole);
        whole.times = creates;
        yard.row("  of it create, warm base", &whole);
        whole.times = removals;
        yard.row("  of it rm", &whole);
        Ok(())
    }

    fn work_in_a_box(&self, yard: &Yardstick) -> Result<()> {
        let run = |words: &[&str]| self.h5i(&[&["box", "run", "near", "--"], words].concat());
        run(&["git", "status", "--porcelain"])?;
        yard.row("run of true", &yard.repeat(|| run(&["true"]))?);
        yard.row("run of git status", &yard.repeat(|| run(&["git", "status", "--porcelain"]))?);
        self.status_beside_the_hosts(&run)?;
        run(&["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do echo x >> d0/e0/f$i.txt; done"])?;
        yard.row("diff of 10 changes", &yard.repeat(|| self.h5i(&["box", "diff", "near"]))?);
        yard.row("status", &yard.repeat(|| self.h5i(&["box", "status", "near"]))?);
        let bundle = self.state.join("bundle").display().to_string();
        let export = || self.h5i(&["box", "export", "near", "--force", "-o", &bundle]);
        yard.row("export of 10 changes", &yard.repeat(export)?);
        Ok(())
    }

    /// `git status` in the box, less what a run costs, beside the same on the host's checkout.
    fn status_beside_the_hosts(&self, run: &dyn Fn(&[&str]) -> Result<Duration>) -> Result<()> {
        let status = ["git", "status", "--porcelain"];
        let (mut times, mut ratios) = (Vec::new(), Vec::new());
        for _ in 0..PAIRS {
            let mut git = Command::new("git");
            let host = timed(git.current_dir(&self.repository).args(&status[1..]))?;
            let (nothing, inside) = (run(&["true"])?, run(&status)?);
            let own = inside.saturating_sub(nothing);
            ratios.push(ms(own) / ms(host));
            times.push(own);
        }
        let ratio = middle(ratios);
        beside_another("git status in the box, run taken off", median(times), ratio, "the host's");
        Ok(())
    }

    /// Resident memory of h5i, MiB, while what it runs sleeps.
    fn resident(&self) -> Result<f64> {
        let mut command =
            self.command(&["box", "run", "near", "--", "sh", "-c", "echo up; sleep 1000"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("no pipe")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        // What a session needs that lasts, and not what its beginning needed.
        std::thread::sleep(Duration::from_secs(2));
        let status = fs::read_to_string(format!("/proc/{}/status", child.id()))?;
        child.kill()?;
        child.wait()?;
        let kib = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok());
        Ok(kib.context("the kernel does not tell")? / 1024.0)
    }

    fn box_dir(&self, name: &str) -> Result<PathBuf> {
        for scope in fs::read_dir(self.state.join("h5i/repos"))? {
            let path = scope?.path().join("boxes").join(name);
            if path.is_dir() {
                return Ok(path);
            }
        }
        bail!("no box {name}")
    }
}

/// The ways to lay a workspace out that this h5i and this host have.
fn layouts(h5i: &Path) -> Result<Vec<Option<&'static str>>> {
    let help = Command::new(h5i).args(["box", "create", "--help"]).output()?;
    if !String::from_utf8_lossy(&help.stdout).contains("--workspace") {
        return Ok(vec![None]);
    }
    Ok(vec![Some("overlay"), Some("checkout")])
}

fn timed(command: &mut Command) -> Result<Duration> {
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).output().context("could not start a program")?;
    let time = start.elapsed();
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(time)
}

/// What every time is compared with, measured beside it so that a slow moment hits both.
struct Yardstick {
    sandbox: Vec<String>,
}

/// Times of one step, and of the yardsticks beside it.
struct Measured {
    times: Vec<Duration>,
    bare: Vec<Duration>,
    sandbox: Vec<Duration>,
}

impl Yardstick {
    /// Repeats a step, each time beside a bare exec and bubblewrap.
    fn repeat(&self, mut step: impl FnMut() -> Result<Duration>) -> Result<Measured> {
        self.measure(LEAST..MOST, &mut step)
    }

    fn measure(
        &self,
        rounds: Range<usize>,
        step: &mut impl FnMut() -> Result<Duration>,
    ) -> Result<Measured> {
        let [bwrap, words @ ..] = &self.sandbox[..] else { bail!("no command") };
        let started = Instant::now();
        let mut measured = Measured { times: Vec::new(), bare: Vec::new(), sandbox: Vec::new() };
        let mut round = 0;
        while round < rounds.start || (round < rounds.end && started.elapsed() < SPEND) {
            measured.times.push(step()?);
            measured.bare.push(timed(&mut Command::new("true"))?);
            measured.sandbox.push(timed(Command::new(bwrap).args(words))?);
            round += 1;
        }
        Ok(measured)
    }

    fn row(&self, name: &str, measured: &Measured) {
        let [time, bare, sandbox] = [&measured.times, &measured.bare, &measured.sandbox]
            .map(|times| ms(median(times.clone())));
        let (over_bare, over_sandbox) = (time / bare, time / sandbox);
        say(&format!(
            "  {name:<44}{time:>10.2} ms {over_bare:>9.1} × bare {over_sandbox:>8.2} × bubblewrap"
        ));
    }
}

/// Prints a time and its ratio to another step's.
fn beside_another(name: &str, time: Duration, ratio: f64, what: &str) {
    say(&format!("  {name:<44}{:>10.2} ms {ratio:>9.2} × {what}", ms(time)));
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
