//! The patch as a page shows it: bounded, redacted, every byte inert.

use super::html;
use crate::apply::{FILE, Sections};
use crate::escape::Escaped;
use crate::report::phrase::Phrase;
use crate::report::text::size;
use crate::review::{Change, ChangeKind, Reviewed};
use crate::secret::redact;

/// How binary content begins.
const BINARY: &[u8] = b"GIT binary patch";
/// The most lines of one file that are shown.
const MAX_LINES: usize = 1000;
/// The longest line that is shown, in bytes.
const MAX_LINE: usize = 2000;
/// The least and the most bytes of one file that are shown.
const SHARE: (usize, usize) = (512, 128 << 10);
/// The bytes of the patch that the files share, each as much: a large one hides no small one.
const MAX_BYTES: usize = 8 << 20;

pub(super) fn write(page: &mut String, reviewed: &Reviewed) {
    if reviewed.patch.is_empty() {
        return;
    }
    page.push_str("<section>\n<h2>The patch</h2>\n");
    let share = (MAX_BYTES / halves(&reviewed.changes).count().max(1)).clamp(SHARE.0, SHARE.1);
    let mut sections = Sections::new(reviewed.patch.reader());
    for change in halves(&reviewed.changes) {
        // A patch that can't be read any more is shown as far as it could be; its digest stands in
        // the receipt.
        let Some(Ok(section)) = sections.next() else { break };
        let counts = match (change.added, change.removed) {
            (Some(added), Some(removed)) => format!(" +{added} −{removed}"),
            _ => format!(" {}, binary", size(change.bytes)),
        };
        let title = Phrase::new().code(&change.path[..]).words(counts).to_html();
        page.push_str(&format!(
            "<details open>\n<summary>{title}</summary>\n<div class=\"patch\">\n"
        ));
        file(page, &section.text, share);
        page.push_str("</div>\n</details>\n");
    }
    page.push_str("</section>\n");
}

/// The changes as the patch has them: one of type is a deletion and an addition there.
fn halves(changes: &[Change]) -> impl Iterator<Item = &Change> {
    changes.iter().flat_map(|change| {
        let times = if change.kind == ChangeKind::Type { 2 } else { 1 };
        std::iter::repeat_n(change, times)
    })
}

fn file(page: &mut String, text: &[u8], share: usize) {
    let mut key = PrivateKey::Outside;
    let mut place = Place::Header;
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let mut lines = text.split(|&byte| byte == b'\n');
    let mut left = share;
    for line in lines.by_ref().take(MAX_LINES) {
        left = left.saturating_sub(line.len().min(MAX_LINE) + 1);
        if left == 0 {
            page.push_str("<div class=\"meta\">more in patch.diff</div>\n");
            return;
        }
        if line == BINARY {
            page.push_str("<div class=\"meta\">binary, in patch.diff</div>\n");
            return;
        }
        if line.starts_with(b"@@") {
            place = Place::Hunk;
        }
        let class = match (place, line.first()) {
            // The title and the objects' names say nothing to a person.
            (Place::Header, _) if line.starts_with(FILE) || line.starts_with(b"index ") => continue,
            (Place::Hunk, Some(b'+')) => "add",
            (Place::Hunk, Some(b'-')) => "del",
            (Place::Hunk, Some(b'@')) => "hunk",
            (Place::Hunk, Some(b' ')) => "same",
            _ => "meta",
        };
        key = key.after(line);
        let body = match key {
            PrivateKey::Inside => {
                format!("{}[redacted: private key]", inert(&line[..1.min(line.len())]))
            }
            _ => inert(line),
        };
        page.push_str(&format!("<div class=\"{class}\">{body}</div>\n"));
    }
    let more = lines.count();
    if more > 0 {
        page.push_str(&format!("<div class=\"meta\">{more} more lines in patch.diff</div>\n"));
    }
}

/// Where in a file's patch a line is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Header,
    Hunk,
}

/// One line: redacted, bounded, tabs kept, everything else inert.
fn inert(line: &[u8]) -> String {
    let clean = redact(line);
    let part = clean.get(..MAX_LINE).unwrap_or(&clean);
    let pieces: Vec<String> = part
        .split(|&byte| byte == b'\t')
        .map(|piece| html(&Escaped::new(piece).to_string()))
        .collect();
    let mut text = pieces.join("\t");
    if part.len() < clean.len() {
        text.push('…');
    }
    text
}

/// Whether a line is the body of a private key; its first line is redacted like any other secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PrivateKey {
    Outside,
    Begins,
    Inside,
}

impl PrivateKey {
    fn after(self, line: &[u8]) -> Self {
        let has = |mark: &[u8]| line.windows(mark.len()).any(|window| window == mark);
        if has(b"-----BEGIN ") && has(b"PRIVATE KEY") {
            Self::Begins
        } else if self == Self::Outside || has(b"-----END ") || line.starts_with(b"@@") {
            Self::Outside
        } else {
            Self::Inside
        }
    }
}
