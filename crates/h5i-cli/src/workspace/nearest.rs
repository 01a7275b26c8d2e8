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

/// Levenshtein's distance in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_what_was_meant() {
        assert_eq!(nearest("mian", ["main", "maint-1"]), None);
        assert_eq!(nearest("man", ["main", "release"]), Some("main"));
        assert_eq!(nearest("relaese", ["main", "release"]), Some("release"));
    }

    #[test]
    fn another_word_finds_nothing() {
        assert_eq!(nearest("feature", ["main", "release"]), None);
        assert_eq!(nearest("", ["main"]), None);
    }
}
