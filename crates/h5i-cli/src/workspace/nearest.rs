//! The name that was probably meant.

/// The one of `names` that is nearest to `asked`, if it is near enough to be a slip: at most one
/// edit for each three characters, and never more than three.
#[must_use]
pub fn nearest<'a>(asked: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (asked.chars().count() / 3).clamp(1, 3);
    names
        .into_iter()
        .map(|name| (distance(asked, name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Levenshtein's distance in characters, where two neighbours that changed places are one edit.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut row = vec![i + 1; b.len() + 1];
        for (j, cb) in b.iter().enumerate() {
            let substitute = above[j] + usize::from(ca != cb);
            row[j + 1] = substitute.min(row[j] + 1).min(above[j + 1] + 1);
            if i > 0 && j > 0 && *ca == b[j - 1] && a[i - 1] == *cb {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = above;
        above = row;
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_what_was_meant() {
        assert_eq!(nearest("mian", ["maint-1", "main"]), Some("main"));
        assert_eq!(nearest("amin", ["maint-1"]), None);
        assert_eq!(nearest("man", ["main", "release"]), Some("main"));
        assert_eq!(nearest("relaese", ["main", "release"]), Some("release"));
    }

    #[test]
    fn another_word_finds_nothing() {
        assert_eq!(nearest("feature", ["main", "release"]), None);
        assert_eq!(nearest("", ["main"]), None);
    }
}
