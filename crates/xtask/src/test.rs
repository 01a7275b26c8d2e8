//! Builds the tests once and runs the same binaries for every kind of user.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{needs, told};

/// The ordinary user under whom root runs the tests a second time.
pub(crate) const USER: &str = "h5i-test";

/// One test binary and the directory it expects to run in.
pub(crate) struct TestBinary {
    name: String,
    path: PathBuf,
    directory: PathBuf,
}

/// Who runs a test binary.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Who runs this.
    Own,
    /// An ordinary user; only root can be one.
    OrdinaryUser,
}

/// Variables that a run of tests is told.
type Variables = [(&'static str, String)];

/// The same cases each time, so that a failure tells of the change and not of chance; `cargo xtask
/// soak` draws new ones.
const SAME_CASES: [(&str, &str); 2] = [("PROPTEST_RNG_SEED", "1"), ("H5I_SOAK_SEED", "1")];

/// Runs everything; yields the exit code: 0, 1 for a failed test, 2 for a missing program.
pub(crate) fn run(root: &Path, quick: bool) -> Result<u8> {
    if !needs::provide()? {
        return Ok(2);
    }
    let root = root.canonicalize().context("could not find the workspace")?;
    if needs::is_root() && !reachable(&root) {
        return elsewhere(&root, quick);
    }
    let binaries = build(&root, &["--workspace"])?;
    let same = SAME_CASES.map(|(name, value)| (name, value.to_owned()));
    let mut failed = Vec::new();
    for binary in &binaries {
        if let Some(why) = run_binary(&root, binary, Caller::Own, &same)? {
            failed.push((format!("{} as the caller", binary.name), why));
        }
    }
    if !quick {
        let docs = Command::new("cargo")
            .current_dir(&root)
            .args(["test", "--workspace", "--doc", "--quiet"])
            .status()?;
        if !docs.success() {
            failed.push(("documentation tests".to_owned(), Vec::new()));
        }
    }
    if needs::is_root() {
        ensure_user()?;
        for binary in &binaries {
            if let Some(why) = run_binary(&root, binary, Caller::OrdinaryUser, &same)? {
                failed.push((format!("{} as {USER}", binary.name), why));
            }
        }
    }
    if failed.is_empty() {
        println!("every test passed: {} binaries", binaries.len());
        return Ok(0);
    }
    // Once more at the end: what is read of a long output is often only that.
    for (what, why) in &failed {
        eprintln!("failed: {what}");
        why.iter().for_each(|line| eprintln!("    {line}"));
    }
    Ok(1)
}

/// Builds the test binaries that these words of cargo name.
pub(crate) fn build(root: &Path, which: &[&str]) -> Result<Vec<TestBinary>> {
    let output = Command::new("cargo")
        .current_dir(root)
        .args(["test", "--no-run", "--message-format=json-render-diagnostics"])
        .args(which)
        .stderr(Stdio::inherit())
        .output()
        .context("could not start cargo")?;
    if !output.status.success() {
        bail!("the tests do not build");
    }
    let mut binaries = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        let is_test = message["profile"]["test"].as_bool() == Some(true);
        if let (true, Some(path)) = (is_test, message["executable"].as_str()) {
            let manifest = message["manifest_path"].as_str().unwrap_or_default();
            let directory = Path::new(manifest).parent().unwrap_or(root).to_owned();
            let package = directory.file_name().unwrap_or_default().to_string_lossy();
            let target = message["target"]["name"].as_str().unwrap_or("?");
            let name = format!("{package}/{target}");
            binaries.push(TestBinary { name, path: path.into(), directory });
        }
    }
    if binaries.is_empty() {
        bail!("cargo built no test at all");
    }
    Ok(binaries)
}

/// Runs a test binary; yields the lines that tell why a test failed, or `None` when all passed.
pub(crate) fn run_binary(
    root: &Path,
    binary: &TestBinary,
    caller: Caller,
    variables: &Variables,
) -> Result<Option<Vec<String>>> {
    match caller {
        Caller::Own => run_as_caller(root, binary, variables),
        Caller::OrdinaryUser => run_as_user(root, binary, variables),
    }
}

fn run_as_caller(
    root: &Path,
    binary: &TestBinary,
    variables: &Variables,
) -> Result<Option<Vec<String>>> {
    println!("== {}", binary.name);
    let mut command = Command::new(&binary.path);
    command
        .current_dir(&binary.directory)
        .env("CARGO_MANIFEST_DIR", &binary.directory)
        .envs(snapshots(root))
        .envs(variables.iter().cloned());
    told::run(command).with_context(|| binary.path.display().to_string())
}

fn run_as_user(
    root: &Path,
    binary: &TestBinary,
    variables: &Variables,
) -> Result<Option<Vec<String>>> {
    println!("== {} as {USER}", binary.name);
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", USER, "--regid", USER, "--init-groups", "--reset-env", "env"])
        .arg(format!("CARGO_MANIFEST_DIR={}", binary.directory.display()))
        .arg(format!("PATH={}", std::env::var("PATH").unwrap_or_default()));
    command.args(variables.iter().map(|(name, value)| format!("{name}={value}")));
    command.args(snapshots(root).map(|(name, value)| format!("{name}={value}")));
    for name in ["H5I_REQUIRE", "CI", "RUST_BACKTRACE"] {
        if let Ok(value) = std::env::var(name) {
            command.arg(format!("{name}={value}"));
        }
    }
    command.arg(&binary.path);
    command.current_dir(&binary.directory).stdin(Stdio::null());
    told::run(command).with_context(|| binary.path.display().to_string())
}

/// Where the reviewed snapshots are, so that insta asks no cargo, and that none is written.
fn snapshots(root: &Path) -> [(&'static str, String); 2] {
    [("INSTA_WORKSPACE_ROOT", root.display().to_string()), ("INSTA_UPDATE", "no".to_owned())]
}

pub(crate) fn ensure_user() -> Result<()> {
    let there =
        Command::new("id").arg(USER).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if there.success() {
        return Ok(());
    }
    let made = Command::new("useradd").args(["--create-home", "--user-group", USER]).status()?;
    if !made.success() {
        bail!("could not make the user {USER}");
    }
    Ok(())
}

/// Whether an ordinary user can walk to `path`.
fn reachable(path: &Path) -> bool {
    path.ancestors()
        .all(|part| fs::metadata(part).is_ok_and(|m| m.permissions().mode() & 0o005 == 0o005))
}

/// The workspace lies where an ordinary user can't walk: tests a copy of it that can be reached.
fn elsewhere(root: &Path, quick: bool) -> Result<u8> {
    let copy = PathBuf::from("/var/tmp/h5i-test-copy");
    println!("{} is closed to ordinary users; testing a copy", root.display());
    let listed = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .context("could not start git")?;
    for name in listed.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let name = std::str::from_utf8(name).context("a file's name is not UTF-8")?;
        let (from, to) = (root.join(name), copy.join(name));
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::copy(&from, &to).with_context(|| format!("could not copy {}", from.display()))?;
    }
    let mut again = Command::new("cargo");
    again.current_dir(&copy).args(["xtask", "test"]).env_remove("CARGO_TARGET_DIR");
    if quick {
        again.arg("--quick");
    }
    let status = again.status()?;
    Ok(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1))
}
