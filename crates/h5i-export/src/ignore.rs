//! What the base's `.gitignore` files say about an untracked path (gitignore(5)).

#[cfg(test)]
mod tests;
mod wildcard;

/// The most bytes of one `.gitignore` that are read; longer ones are cut at the last whole line.
const MAX_FILE: usize = 1 << 20;

/// The rules that hold in a directory: its own `.gitignore` and those of the directories above.
///
/// Only files of the base count, so what the box writes into a `.gitignore` hides nothing. The
/// caller keeps two things of Git's: a path under an ignored directory is ignored, and a tracked
/// path never is.
#[derive(Debug, Default)]
pub(crate) struct IgnoreStack {
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    /// The length of the directory's path with its `/`; 0 for the root.
    prefix: usize,
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    pattern: Vec<u8>,
    effect: Effect,
    matches: Matches,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Ignore,
    Include,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Matches {
    Directories,
    Everything,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The pattern has a slash: it is compared with the path from its directory on.
    FromHere,
    /// It has none: it is compared with the last name, at any depth.
    AnyDepth,
}

/// What a path is, as far as ignoring cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Directory,
    Other,
}

impl IgnoreStack {
    /// Enters a directory; `directory` is its path (empty for the root), `content` its
    /// `.gitignore` in the base.
    pub(crate) fn push(&mut self, directory: &[u8], content: Option<&[u8]>) {
        let prefix = if directory.is_empty() { 0 } else { directory.len() + 1 };
        self.levels.push(Level { prefix, rules: content.map_or_else(Vec::new, parse) });
    }

    /// Leaves the directory entered last.
    pub(crate) fn pop(&mut self) {
        self.levels.pop();
    }

    /// Whether the rules ignore `path`, whose directory is the one entered last.
    ///
    /// The deepest file decides, and in it the last rule that matches.
    pub(crate) fn ignores(&self, path: &[u8], entry: Entry) -> bool {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        for level in self.levels.iter().rev() {
            let below = path.get(level.prefix..).unwrap_or_default();
            let found = level.rules.iter().rev().find(|rule| {
                let subject = if rule.place == Place::FromHere { below } else { name };
                (rule.matches == Matches::Everything || entry == Entry::Directory)
                    && wildcard::matches(&rule.pattern, subject)
            });
            if let Some(rule) = found {
                return rule.effect == Effect::Ignore;
            }
        }
        false
    }
}

fn parse(content: &[u8]) -> Vec<Rule> {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    let content = match content.get(..MAX_FILE) {
        Some(cut) => &cut[..cut.iter().rposition(|&byte| byte == b'\n').unwrap_or(0)],
        None => content,
    };
    content.split(|&byte| byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Rule> {
    let line = trim_end(line.strip_suffix(b"\r").unwrap_or(line));
    let (effect, line) = match line {
        [] | [b'#', ..] => return None,
        [b'!', rest @ ..] => (Effect::Include, rest),
        rest => (Effect::Ignore, rest),
    };
    let (matches, line) = match line.strip_suffix(b"/") {
        Some(rest) => (Matches::Directories, rest),
        None => (Matches::Everything, line),
    };
    let place = if line.contains(&b'/') { Place::FromHere } else { Place::AnyDepth };
    let pattern = line.strip_prefix(b"/").unwrap_or(line).to_vec();
    (!pattern.is_empty()).then_some(Rule { pattern, effect, matches, place })
}

/// Drops trailing spaces that no backslash protects.
fn trim_end(mut line: &[u8]) -> &[u8] {
    while let [rest @ .., b' '] = line {
        let backslashes = rest.iter().rev().take_while(|&&byte| byte == b'\\').count();
        if backslashes % 2 == 1 {
            break;
        }
        line = rest;
    }
    line
}
