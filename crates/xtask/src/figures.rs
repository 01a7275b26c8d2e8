//! What an export costs, beside git's own diff of the same change: time and peak memory; and what many
//! records and many programs cost.

mod burst;
mod records;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Files of the base.
const BASE_FILES: usize = 100_000;
/// How often the peak of a process's memory is read.
const SAMPLE: Duration = Duration::from_millis(2);

/// One change, made by a shell script in the box and in git's checkout alike.
struct Case {
    name: &'static str,
    script: &'static str,
}

const CASES: [Case; 4] = [
    Case { name: "nothing changed", script: "true" },
    Case {
        name: "10 files changed",
        script: "i=0; while [ $i -lt 10 ]; do echo x >> d$i/f0; i=$((i+1)); done",
    },
    Case {
        name: "10,000 files changed",
        script: "for d in d?? d?; do for f in $d/*; do echo x >> $f; done; done",
    },
    Case {
        name: "1 GiB added, 64 files",
        script: "i=0; while [ $i -lt 64 ]; do head -c 16777216 /dev/urandom > big$i; i=$((i+1)); done",
    },
];

/// Else git starts to pack the repository while it is being read.
const NO_UPKEEP: [&str; 4] = ["-c", "gc.auto=0", "-c", "maintenance.auto=false"];

/// What a command took.
struct Cost {
    time: Duration,
    peak_kib: u64,
}

/// Prints the table.
pub(crate) fn run(root: &Path) -> Result<u8> {
    let root = root.canonicalize().context("could not find the workspace")?;
    let built = Command::new("cargo")
        .current_dir(&root)
        .args(["build", "--release", "--quiet", "-p", "h5i-cli"])
        .status()?;
    if !built.success() {
        bail!("h5i does not build");
    }
    let scratch = std::env::temp_dir().join(format!("h5i-figures-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    let result = measure(&crate::target(&root).join("release/h5i"), &scratch);
    fs::remove_dir_all(&scratch).context("could not remove the scratch directory")?;
    result.map(|()| 0)
}

fn measure(h5i: &Path, scratch: &Path) -> Result<()> {
    let repository = scratch.join("repository");
    base(&repository)?;
    println!("base of {BASE_FILES} files; seconds, and MiB at most");
    println!(
        "{:<24} {:>8} {:>6} {:>8} {:>6} {:>8} {:>6}",
        "", "export", "", "verify", "", "git diff", ""
    );
    for (number, case) in CASES.iter().enumerate() {
        let name = format!("box{number}");
        let state = scratch.join("state");
        let h5i = |words: &[&str]| {
            let mut command = Command::new(h5i);
            command.current_dir(&repository).env("XDG_STATE_HOME", &state).args(words);
            command
        };
        cost(h5i(&[
            "box",
            "create",
            &name,
            "--set",
            "export.max_files=20000",
            "--set",
            "export.max_file=\"64MiB\"",
            "--set",
            "export.max_total=\"2GiB\"",
        ]))?;
        cost(h5i(&["box", "run", &name, "--", "sh", "-c", case.script]))?;
        let out = scratch.join(format!("{name}.out")).display().to_string();
        let export = cost(h5i(&["box", "export", &name, "-o", &out]))?;
        let verify = cost(h5i(&["receipt", "verify", &out]))?;
        let diff = git_diff(scratch, case)?;
        cost(h5i(&["box", "rm", &name, "--force"]))?;
        fs::remove_dir_all(&out)?;
        print!("{:<24}", case.name);
        for cost in [export, verify, diff] {
            print!(" {:>8.3} {:>6}", cost.time.as_secs_f64(), cost.peak_kib >> 10);
        }
        println!();
    }
    records::measure(h5i, scratch)?;
    burst::measure(h5i, scratch)
}

/// The same change in a clone, as git shows it.
fn git_diff(scratch: &Path, case: &Case) -> Result<Cost> {
    let clone = scratch.join("clone");
    git(scratch, &["clone", "--quiet", "repository", "clone"])?;
    let mut change = Command::new("sh");
    change.current_dir(&clone).args(["-c", case.script]);
    cost(change)?;
    git(&clone, &["add", "--all"])?;
    let mut diff = Command::new("git");
    diff.current_dir(&clone).args(["diff", "--cached", "--binary", "--full-index"]);
    let spent = cost(diff)?;
    fs::remove_dir_all(&clone)?;
    Ok(spent)
}

fn cost(mut command: Command) -> Result<Cost> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let start = Instant::now();
    let mut child = command.spawn().with_context(|| format!("could not start {command:?}"))?;
    let peak_kib = peak(&mut child)?;
    let time = start.elapsed();
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(Cost { time, peak_kib })
}

/// The largest resident set that the kernel has noted, until the process ends.
fn peak(child: &mut Child) -> Result<u64> {
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut peak = 0;
    while child.try_wait()?.is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        peak = peak.max(kib.unwrap_or(0));
        std::thread::sleep(SAMPLE);
    }
    Ok(peak)
}

fn base(path: &Path) -> Result<()> {
    for i in 0..BASE_FILES {
        let directory = path.join(format!("d{}", i / 100));
        if i % 100 == 0 {
            fs::create_dir_all(&directory)?;
        }
        fs::write(directory.join(format!("f{}", i % 100)), format!("file {i}\n").repeat(20))?;
    }
    git(path, &["init", "--quiet", "--initial-branch=main"])?;
    git(path, &["add", "--all"])?;
    git(path, &["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "base"])
}

fn git(at: &Path, words: &[&str]) -> Result<()> {
    let status = Command::new("git").current_dir(at).args(NO_UPKEEP).args(words).status()?;
    if !status.success() {
        bail!("git {} failed", words.join(" "));
    }
    Ok(())
}
