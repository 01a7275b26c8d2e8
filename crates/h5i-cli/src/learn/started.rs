//! What the processes of a box were started as, for a person's eyes.

use std::collections::BTreeMap;

use h5i_export::ByteText;

use crate::shown::Shown;

/// Processes that are known at once; a box may start and never end as many as it likes.
const KNOWN: usize = 16 << 10;

/// By their ids in the box: what each asked to execute last.
#[derive(Debug, Default)]
pub(super) struct Started(BTreeMap<u32, Asked>);

#[derive(Debug)]
struct Asked {
    path: Vec<u8>,
    name: String,
}

impl Started {
    /// A process asks to execute a program. An interpreter that is started for a file by its first
    /// line, or by the `env` that stands there, is that file: its first argument is the path that was
    /// asked for before.
    pub(super) fn asks(&mut self, pid: u32, path: &ByteText, argv: &[ByteText]) {
        let path = path.as_bytes().to_vec();
        if let Some(before) = self.0.get_mut(&pid)
            && argv.get(1).is_some_and(|first| first.as_bytes() == before.path)
        {
            return;
        }
        if self.0.len() < KNOWN || self.0.contains_key(&pid) {
            let name = last_part(&path);
            self.0.insert(pid, Asked { path, name });
        }
    }

    pub(super) fn ends(&mut self, pid: u32) {
        self.0.remove(&pid);
    }

    /// The name that a process was started by, or else its executable's.
    pub(super) fn name(&self, pid: Option<u32>, program: Option<&ByteText>) -> Option<String> {
        let asked = pid.and_then(|pid| self.0.get(&pid)).map(|asked| asked.name.clone());
        let name = asked.or_else(|| program.map(|program| last_part(program.as_bytes())));
        name.filter(|name| !name.is_empty())
    }
}

/// Inert, whatever it holds: it is printed, and stands in a comment.
fn last_part(path: &[u8]) -> String {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    Shown::bytes(name).to_string()
}
