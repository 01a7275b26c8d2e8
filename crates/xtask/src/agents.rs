//! Real coding agents in a box, against services that stand in for their makers': a task that needs a
//! command in the box, by `reverse` and by `intercept`, with a key and with a login that has to be
//! renewed in the middle.
//!
//! The agents come from their npm packages; all of the rest happens in a network namespace of its
//! own, in which the makers' names are this host's.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::bench::build;
use crate::bench::repository::say;
use crate::needs;

/// What is installed: Claude Code and Codex.
const PACKAGES: [&str; 2] = ["@anthropic-ai/claude-code", "@openai/codex"];
/// The service, and the rehearsal.
const SERVICE: &str = include_str!("agents/service.py");
const REHEARSAL: &str = include_str!("agents/rehearsal.sh");

/// Yields 1 when an agent did not complete its task, or a secret was found in a box.
pub(crate) fn run(root: &Path) -> Result<u8> {
    if !needs::provide()? {
        return Ok(2);
    }
    let root = root.canonicalize().context("could not find the workspace")?;
    let h5i = build(&root)?;
    // What a box is shown lies in no temporary directory: it has its own.
    let home = std::env::var_os("HOME").context("HOME is not set")?;
    let scratch = Path::new(&home).join(format!(".cache/h5i-agents-{}", std::process::id()));
    fs::create_dir_all(&scratch).context("could not make a directory")?;
    let result = rehearse(&h5i, &scratch);
    fs::remove_dir_all(&scratch).context("could not remove the scratch directory")?;
    result
}

fn rehearse(h5i: &Path, scratch: &Path) -> Result<u8> {
    // Beside the toolchains that a box is shown, and nothing of the person's.
    let tools = scratch.join("tools");
    fs::create_dir(&tools).context("could not make a directory")?;
    say("fetching the agents from npm");
    let npm = Command::new("npm")
        .current_dir(&tools)
        .args(["install", "--no-audit", "--no-fund", "--silent"])
        .args(PACKAGES)
        .stdin(Stdio::null())
        .status()
        .context("could not start npm")?;
    if !npm.success() {
        bail!("npm could not install {}", PACKAGES.join(" and "));
    }
    // What npm leaves to a person's approval: it puts the program in its place.
    let placed = Command::new("node")
        .current_dir(tools.join("node_modules/@anthropic-ai/claude-code"))
        .arg("install.cjs")
        .stdout(Stdio::null())
        .status()
        .context("could not start node")?;
    if !placed.success() {
        bail!("Claude Code's package could not be set up");
    }
    fs::write(scratch.join("service.py"), SERVICE).context("could not write the service")?;
    fs::write(scratch.join("rehearsal.sh"), REHEARSAL).context("could not write the rehearsal")?;
    let mut rehearsal = Command::new("unshare");
    if needs::is_root() {
        rehearsal.args(["--net", "--mount"]);
    } else {
        rehearsal.args(["--map-root-user", "--net", "--mount"]);
    }
    let status = rehearsal
        .args(["bash", "rehearsal.sh"])
        .arg(h5i)
        .args([needs::own_id("-u")?, needs::own_id("-g")?])
        .current_dir(scratch)
        .stdin(Stdio::null())
        .status()
        .context("could not start unshare")?;
    Ok(u8::from(!status.success()))
}
