//! A patch for a terminal.

use crate::shown::Shown;
use crate::surroundings::Colour;

const BOLD: &str = "1";
const CYAN: &str = "36";
const GREEN: &str = "32";
const RED: &str = "31";

/// The patch as lines that can't move the cursor or reorder text, coloured as git does where colour
/// was not declined.
pub(crate) fn for_terminal(patch: &[u8], colour: Colour) -> Vec<u8> {
    let mut text = Vec::with_capacity(patch.len());
    let mut in_hunk = false;
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        let (line, end) = match line.strip_suffix(b"\n") {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        // No line of a hunk begins so, and in a header nothing else does.
        if line.starts_with(b"diff --git ") {
            in_hunk = false;
        } else if line.starts_with(b"@@") {
            in_hunk = true;
        }
        let style = match (in_hunk, line.first()) {
            (true, Some(b'+')) => Some(GREEN),
            (true, Some(b'-')) => Some(RED),
            (true, Some(b'@')) => Some(CYAN),
            (true, _) => None,
            (false, _) => Some(BOLD),
        };
        let shown = inert(line);
        match style.filter(|_| colour == Colour::OnTerminals) {
            Some(style) => {
                text.extend_from_slice(format!("\x1b[{style}m{shown}\x1b[m{end}").as_bytes())
            }
            None => text.extend_from_slice(format!("{shown}{end}").as_bytes()),
        }
    }
    text
}

/// One line, tabs kept.
fn inert(line: &[u8]) -> String {
    let parts: Vec<String> =
        line.split(|byte| *byte == b'\t').map(|part| Shown::bytes(part).to_string()).collect();
    parts.join("\t")
}

#[cfg(test)]
mod tests {
    use super::for_terminal;
    use crate::surroundings::Colour;

    const PATCH: &[u8] =
        b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n \tsame\n--- gone\n++\x1b[2J\n";

    #[test]
    fn colours_are_h5is_own_and_nothing_of_the_patch_is_a_control() {
        let shown = String::from_utf8(for_terminal(PATCH, Colour::OnTerminals)).unwrap();
        let expected = "\x1b[1mdiff --git a/x b/x\x1b[m\n\x1b[1m--- a/x\x1b[m\n\x1b[1m+++ b/x\x1b[m\n\
                        \x1b[36m@@ -1,2 +1,2 @@\x1b[m\n \tsame\n\x1b[31m--- gone\x1b[m\n\
                        \x1b[32m++\\u{1b}[2J\x1b[m\n";
        assert_eq!(shown, expected);
    }

    #[test]
    fn without_colour_there_is_no_escape_at_all() {
        let shown = String::from_utf8(for_terminal(PATCH, Colour::Never)).unwrap();
        assert!(!shown.contains('\x1b') && shown.contains("++\\u{1b}[2J\n"), "{shown}");
    }
}
