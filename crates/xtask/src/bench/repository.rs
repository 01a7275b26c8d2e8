//! Repositories of a given size.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Makes a repository with `files` small files in one commit, a hundred a directory.
pub(crate) fn repository_with(path: &Path, files: usize) -> Result<()> {
    fs::create_dir_all(path)?;
    for i in 0..files {
        let directory = path.join(format!("d{}", i / 10_000)).join(format!("e{}", i / 100 % 100));
        if i % 100 == 0 {
            fs::create_dir_all(&directory)?;
        }
        fs::write(directory.join(format!("f{i}.txt")), format!("file {i}\nof {files}\n"))?;
    }
    git(path, &["init", "--quiet", "--initial-branch=main"])?;
    commit(path)
}

/// Commits everything.
pub(crate) fn commit(path: &Path) -> Result<()> {
    git(path, &["add", "--all"])?;
    let author = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"];
    git(path, &[&author[..], &["commit", "-qm", "base"]].concat())
}

/// Runs git; it must succeed.
pub(crate) fn git(path: &Path, words: &[&str]) -> Result<()> {
    let status = Command::new("git")
        .current_dir(path)
        .args(words)
        .stdout(Stdio::null())
        .status()
        .context("could not start git")?;
    if !status.success() {
        bail!("git {} failed", words.join(" "));
    }
    Ok(())
}

/// Bytes that everything below a directory takes on the disk.
pub(crate) fn disk_of(path: &Path) -> Result<u64> {
    let output = Command::new("du").args(["-s", "-B1"]).arg(path).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let bytes = text.split_whitespace().next().and_then(|word| word.parse().ok());
    bytes.with_context(|| format!("du says nothing of {}", path.display()))
}

/// Prints at once, so that a person sees where a long measurement is.
pub(crate) fn say(line: &str) {
    println!("{line}");
    std::io::stdout().flush().ok();
}
