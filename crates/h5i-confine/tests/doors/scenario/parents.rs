//! Harnesses in odd conditions, each a process of its own.

use std::process::{Command, Stdio};

use h5i_testkit::BoxDirs;

use super::{must, scenario};
use crate::door::Scenario;
use crate::world::World;

pub(crate) const ALL: &[Scenario] = &[
    scenario("P1", "a caller that ignores SIGCHLD", |w| parent(w, "ignores-children")),
    scenario("P2", "a caller that reaps whatever it finds", |w| parent(w, "reaps-all")),
    scenario("P3", "a caller without input, output and errors", |w| parent(w, "closed-stdio")),
    scenario("P4", "a caller with its low descriptors closed", |w| parent(w, "closed-low")),
    scenario("P5", "a caller with a thousand open files", |w| parent(w, "many-files")),
    scenario("P6", "a caller that may open 64 files", |w| parent(w, "few-files")),
    scenario("P7", "a caller that blocks every signal", |w| parent(w, "blocked-signals")),
    scenario("P8", "a caller with 2 GB of heap and threads", |w| parent(w, "large-heap")),
    scenario("P9", "a caller with a narrow file mode mask", |w| parent(w, "masked")),
];

fn parent(world: &World, name: &str) -> Result<String, String> {
    let dirs = BoxDirs::new().unwrap();
    let output = Command::new("/proc/self/exe")
        .args(["parent", name, &dirs.path().display().to_string()])
        .env("DOORS_TOOLS", world.host("tools"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = std::fs::read_to_string(dirs.path().join("said")).unwrap_or_default();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    must(output.status.success(), "parent", (output.status, &said, errors))?;
    Ok(said)
}
