//! One line of a report, before it is Markdown or HTML.

use super::text::shown;

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Span {
    /// Words of this program.
    Words(String),
    /// Words from elsewhere that are shown as prose.
    Foreign(String),
    /// Bytes of the box: a path, an argument.
    Code(Vec<u8>),
    /// The bytes that the line is about.
    Strong(Vec<u8>),
}

/// A line of a report. What came from elsewhere stays apart from this program's own words until it
/// is written, so that each form escapes it in its own way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Phrase(Vec<Span>);

impl Phrase {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds words of this program.
    pub(super) fn words(mut self, words: impl Into<String>) -> Self {
        self.0.push(Span::Words(words.into()));
        self
    }

    /// Adds words from elsewhere.
    pub(super) fn foreign(mut self, words: impl Into<String>) -> Self {
        self.0.push(Span::Foreign(words.into()));
        self
    }

    /// Adds bytes of the box.
    pub(super) fn code(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.0.push(Span::Code(bytes.into()));
        self
    }

    /// Adds the bytes that the line is about.
    pub(super) fn strong(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.0.push(Span::Strong(bytes.into()));
        self
    }

    /// Adds another line's pieces.
    pub(super) fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The line as Markdown.
    pub(super) fn to_markdown(&self) -> String {
        self.0
            .iter()
            .map(|span| match span {
                Span::Words(words) => words.clone(),
                Span::Foreign(words) => markdown_prose(words),
                Span::Code(bytes) => markdown_code(bytes),
                Span::Strong(bytes) => format!("**{}**", markdown_code(bytes)),
            })
            .collect()
    }

    /// The line as HTML.
    pub(super) fn to_html(&self) -> String {
        self.0
            .iter()
            .map(|span| match span {
                Span::Words(words) => html(words),
                Span::Foreign(words) => html(&shown(words.as_bytes())),
                Span::Code(bytes) => format!("<code>{}</code>", html(&shown(bytes))),
                Span::Strong(bytes) => {
                    format!("<strong><code>{}</code></strong>", html(&shown(bytes)))
                }
            })
            .collect()
    }
}

/// Bytes as a code span: redacted, inert, on one line, bounded.
fn markdown_code(bytes: &[u8]) -> String {
    let text = shown(bytes);
    // The fence is longer than any run of backticks inside.
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    if longest == 0 && !text.is_empty() {
        return format!("`{text}`");
    }
    let fence = "`".repeat(longest + 1);
    format!("{fence} {text} {fence}")
}

/// Words that may come from a file: inert, without Markdown.
fn markdown_prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in shown(text.as_bytes()).chars() {
        if matches!(c, '*' | '_' | '`' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '&') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Text in which nothing is markup, in content and in quoted attributes.
pub(super) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::Phrase;

    #[test]
    fn foreign_bytes_are_inert_in_both_forms() {
        let phrase = Phrase::new().words("a ").code(*b"`<b>`\x1b[2J").foreign(" *x* <i>&\u{202e}");
        assert_eq!(phrase.to_markdown(), "a `` `<b>`\\u{1b}[2J `` \\*x\\* \\<i\\>\\&\\u{202e}");
        assert_eq!(
            phrase.to_html(),
            "a <code>`&lt;b&gt;`\\u{1b}[2J</code> *x* &lt;i&gt;&amp;\\u{202e}"
        );
    }

    #[test]
    fn code_spans_hold_whatever_they_hold_and_are_bounded() {
        let code = |bytes: &[u8]| Phrase::new().code(bytes).to_markdown();
        assert_eq!(code(b"a"), "`a`");
        assert_eq!(code(b"a``b"), "``` a``b ```");
        assert_eq!(code(b""), "`  `");
        assert!(code(&[b'a'; 1000]).len() < 500);
        assert_eq!(Phrase::new().strong(*b"a").to_html(), "<strong><code>a</code></strong>");
    }
}
