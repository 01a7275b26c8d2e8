//! "Did you mean": the nearest of what was possible.

/// The candidate that `found` was probably meant to be: the one with the fewest edits, if they are
/// at most a third of its letters (one for short words).
pub(crate) fn nearest<'a>(
    found: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // Distances are quadratic in the lengths, and what was found may be of any length.
    if found.chars().count() > 64 {
        return None;
    }
    candidates
        .into_iter()
        .map(|candidate| (edits(found, candidate), candidate))
        .filter(|(edits, candidate)| *edits <= (candidate.len() / 3).max(1))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// The number of letters to insert, delete, replace, or swap with their neighbour (optimal string
/// alignment), without regard to case.
fn edits(a: &str, b: &str) -> usize {
    let letters = |text: &str| text.to_lowercase().chars().collect::<Vec<char>>();
    let (a, b) = (letters(a), letters(b));
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let above = &rows[i - 1];
            let mut best = (above[j] + 1)
                .min(row[j - 1] + 1)
                .min(above[j - 1] + usize::from(a[i - 1] != b[j - 1]));
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows.last().and_then(|row| row.last()).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn small_slips_are_recognised_and_other_words_are_not() {
        let keys = ["allow", "mode", "read", "write", "hide"];
        for (found, meant) in [
            ("alow", Some("allow")),
            ("allwo", Some("allow")),
            ("Mode", Some("mode")),
            ("reads", Some("read")),
            ("xyzzy", None),
            ("", None),
        ] {
            assert_eq!(nearest(found, keys), meant, "{found}");
        }
        assert_eq!(nearest(&"a".repeat(100_000), keys), None);
    }
}
