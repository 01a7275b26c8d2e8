//! Lines of `key = value` with sections, as npm and pip write them.

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// The section's name; empty before the first.
    pub(super) section: String,
    /// The key in lower case, with `-` for `_`.
    pub(super) key: String,
    /// The value and the lines that go on with it, one a line.
    pub(super) value: String,
    /// The line of the key, counted from 1.
    pub(super) line: usize,
}

/// Every setting of a text; what is none is passed over, as the tools do or would complain of
/// themselves.
pub(super) fn settings(text: &str) -> Vec<Setting> {
    let mut found: Vec<Setting> = Vec::new();
    let mut section = String::new();
    // Whether an indented line goes on with the setting before it.
    let mut goes_on = false;
    for (line, text) in (1..).zip(text.lines()) {
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if goes_on
            && text.starts_with([' ', '\t'])
            && let Some(last) = found.last_mut()
        {
            last.value.push('\n');
            last.value.push_str(trimmed);
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            name.0.trim().clone_into(&mut section);
            goes_on = false;
            continue;
        }
        // A scope's key has a colon: `@scope:registry=…`.
        let at = trimmed.find('=').or_else(|| trimmed.find(": "));
        let Some((key, value)) = at.map(|at| (&trimmed[..at], &trimmed[at + 1..])) else {
            goes_on = false;
            continue;
        };
        goes_on = true;
        let value = value.trim().trim_matches(['"', '\'']).to_owned();
        let key = key.trim().trim_matches(['"', '\'']).to_ascii_lowercase().replace('_', "-");
        found.push(Setting { section: section.clone(), key, value, line });
    }
    found
}
