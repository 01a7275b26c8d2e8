//! Runs every example as a reader would.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// Each example: its arguments, and a word that its output must have.
const EXAMPLES: [(&str, &[&str], &str); 2] = [
    ("confined-tests", &["/usr/share", "test", "-d", "/work/doc"], "exit 0"),
    ("hostile-file", &["/etc/services", "wc", "-l"], "1 lines, exit 0"),
];

/// Yields 1 when an example does not do what it says.
pub(crate) fn run(root: &Path) -> Result<u8> {
    let mut failed = 0;
    for (name, args, wanted) in EXAMPLES {
        let output = Command::new("cargo")
            .current_dir(root)
            .args(["run", "--quiet", "--package", "h5i-examples", "--bin", name, "--"])
            .args(args)
            .output()
            .context("could not start cargo")?;
        let text = String::from_utf8_lossy(&output.stdout);
        if output.status.success() && text.contains(wanted) {
            println!("example {name}: {}", text.trim());
        } else {
            failed += 1;
            let errors = String::from_utf8_lossy(&output.stderr);
            eprintln!("example {name} failed: {}\n{text}{errors}", output.status);
        }
    }
    println!("{} passed, {failed} failed", EXAMPLES.len() - failed);
    Ok(u8::from(failed > 0))
}
