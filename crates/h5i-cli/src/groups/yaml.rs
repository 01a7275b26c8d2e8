//! Texts of a YAML document, each with the keys that lead to it.

use granit_parser::{Event, Parser};

/// How deep collections may lie in each other.
const DEEPEST: usize = 32;

/// A text of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    /// The keys that lead to it, outermost first; an entry of a list has none of its own.
    pub(super) keys: Vec<String>,
    /// What it says.
    pub(super) value: String,
    /// Its line, counted from 1.
    pub(super) line: usize,
}

impl Text {
    /// Whether exactly these keys lead to it; `*` stands for any one.
    pub(super) fn is_at(&self, keys: &[&str]) -> bool {
        let same = |(own, asked): (&String, &&str)| *asked == "*" || own == asked;
        self.keys.len() == keys.len() && self.keys.iter().zip(keys).all(same)
    }
}

/// A collection that has not ended: the key whose value comes next, if it is a mapping.
enum Open {
    List,
    Mapping(Option<String>),
}

/// Every text of the first document. One that is not understood has none: its tool would complain
/// as well. What stands for something else (`*alias`) is passed over.
pub(super) fn texts(text: &str) -> Vec<Text> {
    read(text).unwrap_or_default()
}

fn read(text: &str) -> Option<Vec<Text>> {
    let mut open: Vec<Open> = Vec::new();
    let mut found = Vec::new();
    for next in Parser::new_from_str(text) {
        let (event, span) = next.ok()?;
        match event {
            Event::Scalar(value, ..) => match open.last_mut() {
                Some(Open::Mapping(key @ None)) => *key = Some(value.into_owned()),
                _ => {
                    let keys = open.iter().filter_map(|one| match one {
                        Open::Mapping(key) => key.clone(),
                        Open::List => None,
                    });
                    let (keys, value) = (keys.collect(), value.into_owned());
                    found.push(Text { keys, value, line: span.start.line() });
                    ended(&mut open);
                }
            },
            Event::Alias(_) => ended(&mut open),
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                // A collection as a key.
                let no_key = matches!(open.last(), Some(Open::Mapping(None)));
                if no_key || open.len() >= DEEPEST {
                    return None;
                }
                let mapping = matches!(event, Event::MappingStart(..));
                open.push(if mapping { Open::Mapping(None) } else { Open::List });
            }
            Event::MappingEnd | Event::SequenceEnd => {
                open.pop()?;
                ended(&mut open);
            }
            Event::DocumentEnd => break,
            _ => {}
        }
    }
    Some(found)
}

/// A value has ended: in a mapping a key comes next.
fn ended(open: &mut [Open]) {
    if let Some(Open::Mapping(key)) = open.last_mut() {
        *key = None;
    }
}

#[cfg(test)]
mod tests {
    use super::texts;

    #[test]
    fn a_text_has_the_keys_that_lead_to_it() {
        let document =
            "a: one # not this\n? b\n: {c: [two, {d: \"three: x\"}], e: *f}\n:g:\n- four\n";
        let found = texts(document);
        let told: Vec<_> =
            found.iter().map(|t| (t.keys.join("/"), t.value.as_str(), t.line)).collect();
        let told: Vec<_> =
            told.iter().map(|(keys, value, line)| (&keys[..], *value, *line)).collect();
        // An alias that nothing anchors is a fault of the document.
        assert_eq!(told, []);
        let found = texts(&document.replace(", e: *f", ""));
        let told: Vec<_> =
            found.iter().map(|t| (t.keys.join("/"), t.value.as_str(), t.line)).collect();
        let wanted =
            [("a", "one", 1), ("b/c", "two", 3), ("b/c/d", "three: x", 3), (":g", "four", 5)];
        assert_eq!(told, wanted.map(|(keys, value, line)| (keys.to_owned(), value, line)));
        assert!(found[2].is_at(&["b", "*", "d"]) && !found[2].is_at(&["b", "d"]));
    }

    #[test]
    fn what_is_not_understood_says_nothing() {
        for document in
            [format!("a: {}", "[".repeat(100_000)), "a: [".into(), "? {a: b}\n: c".into()]
        {
            assert_eq!(texts(&document), [], "{}", &document[..4]);
        }
    }
}
