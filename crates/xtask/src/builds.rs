//! Real builds in a box beside the same builds outside: offline, paired and interleaved.
//!
//! What they need is fetched first, outside, by the person's own tools and configuration.

mod projects;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::bench::repository::{git, say};
use crate::bench::{build, scratch};
use crate::needs;
use projects::Project;

/// Pairs of builds of each project.
const PAIRS: usize = 5;

/// What makes a project ready to be built: from this workspace, in a directory for all.
type Make = fn(&Path, &Path) -> Result<Project>;

const PROJECTS: [(&str, Make); 3] =
    [("python", projects::python), ("node", projects::node), ("rust", projects::rust)];

/// Prints the median ratio of each project; `words` may name the number of pairs and one project.
pub(crate) fn run(root: &Path, words: &[String]) -> Result<u8> {
    if !needs::provide()? {
        return Ok(2);
    }
    let root = root.canonicalize().context("could not find the workspace")?;
    let pairs = words.iter().find_map(|word| word.parse().ok()).unwrap_or(PAIRS);
    let mut chosen = PROJECTS.to_vec();
    if let Some(name) = words.iter().find(|word| word.parse::<usize>().is_err()) {
        chosen.retain(|(project, _)| project == name);
    }
    let h5i = build(&root)?;
    let scratch = scratch()?;
    let result = all(&root, &h5i, &scratch, pairs, &chosen);
    fs::remove_dir_all(&scratch).context("could not remove the scratch directory")?;
    result.map(|()| 0)
}

fn all(
    root: &Path,
    h5i: &Path,
    scratch: &Path,
    pairs: usize,
    chosen: &[(&str, Make)],
) -> Result<()> {
    say(&format!("{:<34}{:>12}{:>12}{:>16}", "", "outside s", "in a box s", "median ratio"));
    for (_, make) in chosen {
        let project = make(root, scratch)?;
        let ratio = compare(&project, h5i, scratch, pairs)?;
        say(&format!(
            "{:<34}{:>12.2}{:>12.2}{:>16.3}",
            project.name, ratio.outside, ratio.inside, ratio.median
        ));
    }
    Ok(())
}

/// Medians of both sides, seconds, and of the ratios of the pairs.
struct Ratio {
    outside: f64,
    inside: f64,
    median: f64,
}

fn compare(project: &Project, h5i: &Path, scratch: &Path, pairs: usize) -> Result<Ratio> {
    let outside = scratch.join("outside");
    let text = outside.display().to_string();
    git(&project.repository, &["clone", "--quiet", ".", &text])?;
    let state = scratch.join("state");
    let in_repository = |words: &[&str]| {
        let mut command = Command::new(h5i);
        command.arg("-C").arg(&project.repository).args(words).env("XDG_STATE_HOME", &state);
        command
    };
    let granted = format!("fs.read=[\"{}\"]", project.fetched.display());
    let mut words = vec!["box", "create", "build", "--tier", "process"];
    if project.fetched.is_dir() {
        words.extend(["--set", &granted]);
    }
    timed(&mut in_repository(&words))?;
    let mut rows = Vec::new();
    for pair in 0..=pairs {
        let there =
            || timed(Command::new("sh").args(["-ec", &project.script]).current_dir(&outside));
        let here = || {
            timed(&mut in_repository(&["box", "run", "build", "--", "sh", "-ec", &project.script]))
        };
        // Neither side always comes first.
        let (outside, inside) = if pair % 2 == 0 {
            let outside = there()?;
            (outside, here()?)
        } else {
            let inside = here()?;
            (there()?, inside)
        };
        // The first pair only warms both sides up.
        if pair > 0 {
            rows.push((outside, inside));
        }
    }
    timed(&mut in_repository(&["box", "rm", "build", "--force"]))?;
    fs::remove_dir_all(&outside)?;
    Ok(Ratio {
        outside: median(rows.iter().map(|(outside, _)| outside.as_secs_f64()).collect()),
        inside: median(rows.iter().map(|(_, inside)| inside.as_secs_f64()).collect()),
        median: median(rows.iter().map(|(a, b)| b.as_secs_f64() / a.as_secs_f64()).collect()),
    })
}

fn timed(command: &mut Command) -> Result<Duration> {
    let started = Instant::now();
    let output = command.stdin(Stdio::null()).output().context("could not start a build")?;
    let time = started.elapsed();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}\n{said}{}", output.status, String::from_utf8_lossy(&output.stdout));
    }
    Ok(time)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Where something was made for one project.
fn directory(scratch: &Path, name: &str) -> Result<PathBuf> {
    let path = scratch.join(name);
    fs::create_dir_all(&path)?;
    Ok(path)
}
