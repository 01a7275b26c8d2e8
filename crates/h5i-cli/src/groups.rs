//! Network groups from the configuration of the host's own tools, read as data.
//!
//! No tool is run, and nothing of a repository is read: what a working tree says of a registry is not
//! the person's word. A tool that is left to its default names no host here, and then there is no
//! group of it.

mod cargo;
mod gem;
mod go;
mod ini;
mod maven;
mod node;
mod npm;
mod pip;
mod url;
mod uv;
mod yaml;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use h5i_policy::NetRule;

use crate::surroundings::Surroundings;

/// The tools whose configuration is known.
pub(crate) const TOOLS: [&str; 11] =
    ["bun", "cargo", "deno", "gem", "go", "maven", "npm", "pip", "pnpm", "uv", "yarn"];
/// The largest configuration file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// The rules of a group, each with the place where it was found.
pub(crate) type Group = BTreeMap<NetRule, String>;

/// The groups that this host's tools are configured for, by name without `@`.
pub(crate) fn tool_groups(surroundings: &Surroundings) -> BTreeMap<String, Group> {
    groups_of(&Configured { surroundings, system: Path::new("/") })
}

fn groups_of(configured: &Configured<'_>) -> BTreeMap<String, Group> {
    let tools = [
        node::bun,
        cargo::group,
        node::deno,
        gem::group,
        go::group,
        maven::group,
        npm::group,
        pip::group,
        node::pnpm,
        uv::group,
        node::yarn,
    ];
    let found = TOOLS.into_iter().zip(tools).map(|(tool, of)| (tool.to_owned(), of(configured)));
    found.filter(|(_, group)| !group.is_empty()).collect()
}

/// Where the tools of a person are configured.
struct Configured<'a> {
    surroundings: &'a Surroundings,
    /// The root of the file system.
    system: &'a Path,
}

impl Configured<'_> {
    /// A variable that is set and not empty, as text.
    fn variable(&self, name: &str) -> Option<&str> {
        self.surroundings.variable(name)?.to_str().filter(|value| !value.is_empty())
    }

    fn home(&self, path: &str) -> PathBuf {
        self.surroundings.home.join(path)
    }

    /// A file of the system, by its absolute path.
    fn system(&self, path: &str) -> PathBuf {
        self.system.join(path.trim_start_matches('/'))
    }

    /// `$XDG_CONFIG_HOME`, or its default.
    fn config_home(&self) -> PathBuf {
        let own = self.surroundings.absolute("XDG_CONFIG_HOME");
        own.map_or_else(|| self.home(".config"), Path::to_owned)
    }
}

/// The text of a configuration file; none if it is not there, too large, or no text.
fn text_of(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    // What is no plain file may have no end.
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    let read = file.take(LARGEST + 1).read_to_string(&mut text).ok()?;
    (u64::try_from(read).ok()? <= LARGEST).then_some(text)
}

/// `PATH:LINE`.
fn line_of(path: &Path, line: usize) -> String {
    format!("{}:{line}", path.display())
}

#[cfg(test)]
mod tests;
