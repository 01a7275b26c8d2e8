//! Files that execute when a person opens, builds, tests or reviews.

mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use self::rules::{Place, RULES};
use crate::path::fold_name;

/// When such a file takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum When {
    /// A box is made: it is about the sandbox itself.
    Sandbox,
    /// A directory is opened or entered, in an editor, an agent or a shell.
    Open,
    /// A person or a machine uses git on it.
    Git,
    /// Dependencies are installed or the project is built.
    Build,
    /// Tests are run.
    Test,
    /// A machine elsewhere takes it up: continuous integration, containers.
    Elsewhere,
}

/// Why a file deserves a look first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Attention {
    /// When it takes effect.
    pub when: When,
    /// What happens then.
    pub why: &'static str,
}

/// Why the file at `path` deserves a look first, if it does.
///
/// Names are compared as the most forgiving file system would compare them: without regard to case
/// and to what is not seen. It costs a few look-ups for each component of the path.
#[must_use]
pub fn attention_of(path: &[u8]) -> Option<Attention> {
    let path = fold_name(path);
    let rule = RULES.get(INDEX.first(&path)?)?;
    Some(Attention { when: rule.when, why: rule.why })
}

/// How many components the directory of a rule has at most.
const DEEPEST: usize = 2;

/// The rules by what they ask for; of several the first one counts.
#[derive(Default)]
struct Index {
    /// Names, and ends of paths.
    names: BTreeMap<String, usize>,
    /// Beginnings of names, up to and with a dot.
    heads: BTreeMap<&'static str, usize>,
    /// Ends of names, from a dot on.
    tails: BTreeMap<&'static str, usize>,
    directories: BTreeMap<&'static str, usize>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index::default();
    for (at, rule) in RULES.iter().enumerate() {
        match rule.place {
            Place::Name(stem, endings) => {
                for ending in endings {
                    index.names.entry(format!("{stem}{ending}")).or_insert(at);
                }
            }
            Place::Head(head) => drop(index.heads.entry(head).or_insert(at)),
            Place::Tail(tail) => drop(index.tails.entry(tail).or_insert(at)),
            Place::Under(directory) => drop(index.directories.entry(directory).or_insert(at)),
        }
    }
    index
});

impl Index {
    /// The first rule that holds for a folded path.
    fn first(&self, path: &[u8]) -> Option<usize> {
        let text = String::from_utf8_lossy(path);
        let slashes: Vec<usize> = text.match_indices('/').map(|(at, _)| at).collect();
        let starts = || std::iter::once(0).chain(slashes.iter().map(|at| at + 1));
        let ends = starts().filter_map(|start| self.names.get(&text[start..]));
        let above = starts().enumerate().flat_map(|(nth, start)| {
            let until = slashes.iter().skip(nth).take(DEEPEST);
            until.map(move |&end| (start, end))
        });
        let above = above.filter_map(|(start, end)| self.directories.get(&text[start..end]));
        let name = &text[starts().last().unwrap_or(0)..];
        let dots = || name.match_indices('.').map(|(at, _)| at);
        let heads = dots().filter_map(|dot| self.heads.get(&name[..=dot]));
        let tails = dots().filter_map(|dot| self.tails.get(&name[dot..]));
        ends.chain(above).chain(heads).chain(tails).min().copied()
    }
}
