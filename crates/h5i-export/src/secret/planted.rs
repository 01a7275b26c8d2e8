//! Values that were planted, so that they are known wherever they turn up.

use aho_corasick::AhoCorasick;

use super::SecretFound;

/// Values that were planted in a box, to be found byte for byte. One of fewer than 16 bytes is not
/// looked for: it could be there by chance.
#[derive(Clone, Debug)]
pub struct PlantedValues(AhoCorasick);

/// They can't be searched for: there are too many.
#[derive(Debug, thiserror::Error)]
#[error("cannot search for what was planted")]
pub struct PlantedError(#[source] aho_corasick::BuildError);

/// The fewest bytes of a value.
const LEAST: usize = 16;

impl PlantedValues {
    /// Those that are looked for.
    ///
    /// # Errors
    /// [`PlantedError`] for more than the automaton holds (some millions of bytes).
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<Self, PlantedError> {
        let values = values.into_iter().filter(|value| value.len() >= LEAST);
        AhoCorasick::new(values).map(Self).map_err(PlantedError)
    }

    /// Each of them in `content`, in order.
    pub(crate) fn find<'a>(&'a self, content: &'a [u8]) -> impl Iterator<Item = SecretFound> + 'a {
        let (mut line, mut counted) = (1, 0);
        self.0.find_iter(content).map(move |found| {
            let (start, end) = (found.start(), found.end());
            line += content[counted..start].iter().filter(|byte| **byte == b'\n').count();
            counted = start;
            SecretFound { shape: "planted credential", line, start, end }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::PlantedValues;

    #[test]
    fn each_value_is_found_with_its_line_and_nothing_else_is() {
        let values =
            PlantedValues::new(["AbCdEfGhIjKlMnOpQr", "0123456789abcdef", "short"]).unwrap();
        let lines = |text: &[u8]| values.find(text).map(|found| found.line).collect::<Vec<_>>();
        assert_eq!(lines(b"x AbCdEfGhIjKlMnOpQr\n\nkey=0123456789abcdef0\n"), [1, 3]);
        assert_eq!(lines(b"\xff0123456789abcdef AbCdEfGhIjKlMnOpQr"), [1, 1]);
        assert_eq!(lines(b"short AbCdEfGhIjKlMnOpQ 0123456789abcde"), [0; 0]);
        assert_eq!(PlantedValues::new([]).unwrap().find(b"anything").count(), 0);
    }
}
