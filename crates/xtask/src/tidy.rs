//! What clippy can't check.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Lines of a source file; a longer one holds two ideas.
const LONGEST: usize = 500;
/// Module names that say nothing.
const EMPTY_NAMES: [&str; 7] = ["util", "utils", "common", "helpers", "manager", "misc", "env"];
/// The only places with unsafe code. Tests of enforcement make raw system calls as well.
const UNSAFE: [&str; 6] = [
    "crates/h5i-confine/src/sys/",
    "crates/h5i-confine/stage/",
    "crates/h5i-confine/tests/",
    "crates/h5i-net/src/sys/",
    "crates/h5i-net/tests/",
    "crates/h5i-testkit/",
];
/// How unsafe code begins, split for the same reason as the words below.
const UNSAFE_CODE: [[&str; 2]; 2] = [["unsafe", " {"], ["unsafe", " fn"]];
/// A table of attempts and the tests that make them.
const DOORS: &str = "crates/h5i-cli/tests/gate-doors.md";
/// Words of unfinished work, split so that this file does not hold them.
const UNFINISHED: [[&str; 2]; 5] =
    [["TO", "DO"], ["FIX", "ME"], ["todo", "!("], ["unimplemented", "!("], ["#[ign", "ore]"]];

/// Checks the whole tree; yields 1 when something was found.
pub(crate) fn run(root: &Path) -> Result<u8> {
    let findings = findings(root)?;
    for finding in &findings {
        eprintln!("{finding}");
    }
    Ok(u8::from(!findings.is_empty()))
}

/// What is untidy, one line each.
pub(crate) fn findings(root: &Path) -> Result<Vec<String>> {
    let root = root.canonicalize().context("could not find the workspace")?;
    let mut files = Vec::new();
    for top in ["crates", "examples", "fuzz"] {
        collect(&root.join(top), &mut files)?;
    }
    let mut findings = Vec::new();
    let mut sources = String::new();
    for file in files {
        let name = file.strip_prefix(&root).unwrap_or(&file).to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).with_context(|| format!("could not read {name}"))?;
        check(&name, &text, &mut findings);
        sources.push_str(&text);
    }
    let table =
        fs::read_to_string(root.join(DOORS)).with_context(|| format!("could not read {DOORS}"))?;
    check_doors(&table, &sources, &mut findings);
    Ok(findings)
}

/// Every test that a table names is there.
fn check_doors(table: &str, sources: &str, findings: &mut Vec<String>) {
    for line in table.lines().filter(|line| line.starts_with("| ")) {
        let tests = line.rsplit('|').nth(1).unwrap_or_default();
        for name in tests.split('`').skip(1).step_by(2) {
            if !sources.contains(&format!("fn {name}(")) {
                findings.push(format!("{DOORS}: no test is called {name}"));
            }
        }
    }
}

fn check(name: &str, text: &str, findings: &mut Vec<String>) {
    let lines = text.lines().count();
    if lines > LONGEST {
        findings.push(format!("{name}: {lines} lines; find the seam"));
    }
    let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
    if EMPTY_NAMES.contains(&stem.as_ref()) {
        findings.push(format!("{name}: a name that says nothing"));
    }
    let may_be_unsafe = UNSAFE.iter().any(|place| name.starts_with(place));
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let code = line.split("//").next().unwrap_or_default();
        if !may_be_unsafe && UNSAFE_CODE.iter().any(|[a, b]| code.contains(&format!("{a}{b}"))) {
            findings.push(format!("{name}:{number}: unsafe code outside of its places"));
        }
        if UNFINISHED.iter().any(|[a, b]| line.contains(&format!("{a}{b}"))) {
            findings.push(format!("{name}:{number}: unfinished by its own words"));
        }
    }
    if name.ends_with("src/lib.rs") && !text.starts_with("//!") && !text.starts_with("#!") {
        findings.push(format!("{name}: a crate without documentation"));
    }
    if name == "crates/h5i-cli/src/main.rs" && lines > 30 {
        findings.push(format!("{name}: {lines} lines; the binary is thin"));
    }
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let Ok(entries) = fs::read_dir(directory) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "target" {
                collect(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        let found = findings(&crate::root()).unwrap();
        assert!(found.is_empty(), "{}", found.join("\n"));
    }

    #[test]
    fn each_rule_finds_its_fault() {
        let found = |name: &str, text: &str| {
            let mut findings = Vec::new();
            check(name, text, &mut findings);
            findings.len()
        };
        assert_eq!(found("crates/a/src/b.rs", "fn f() {}\n"), 0);
        assert_eq!(found("crates/a/src/b.rs", &"\n".repeat(501)), 1);
        assert_eq!(found("crates/a/src/util.rs", ""), 1);
        assert_eq!(found("crates/a/src/b.rs", concat!("unsafe", " { f() }\n")), 1);
        assert_eq!(found("crates/h5i-confine/src/sys/b.rs", concat!("unsafe", " { f() }\n")), 0);
        assert_eq!(found("crates/a/src/b.rs", concat!("// TO", "DO\n")), 1);
        assert_eq!(found("crates/a/src/lib.rs", "mod a;\n"), 1);
        let doors = |sources: &str| {
            let mut findings = Vec::new();
            check_doors(
                "| | attempt | tests |\n|---|---|---|\n| A | x `y` | `a_test` |\n",
                sources,
                &mut findings,
            );
            findings.len()
        };
        assert_eq!((doors("fn a_test() {}"), doors("fn another() {}")), (0, 1));
    }
}
