//! Scripts and what they print.

use h5i_testkit::{Need, have};

use crate::stand::Stand;

/// Programs that some tests need, by their Debian names.
pub(crate) const PYTHON: &str = "/usr/bin/python3";
pub(crate) const NODE: &str = "/usr/bin/node";

/// A stand with a box `a`.
pub(crate) fn with_box() -> Stand {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    stand
}

/// Runs each script with this program (`-c` for Python and shells, `-e` for Node) in a box of each
/// layout; it must print exactly what stands beside it, and end with 0.
pub(crate) fn prints(test: &str, program: &'static str, rows: &[(&str, &str)]) {
    if !have(test, Need::Program(program)) {
        return;
    }
    let stand = with_box();
    let mut boxes = vec!["a"];
    if have(test, Need::Overlay) {
        stand.ok(&["box", "create", "o", "--workspace", "overlay"]);
        boxes.push("o");
    }
    let flag = if program == NODE { "-e" } else { "-c" };
    for (name, (script, wanted)) in boxes.iter().flat_map(|b| rows.iter().map(move |r| (b, r))) {
        let said = stand.h5i(&["box", "run", name, "--", program, flag, script]);
        assert_eq!((said.code, said.text().trim_end()), (0, *wanted), "{script}\n{}", said.err);
    }
}
