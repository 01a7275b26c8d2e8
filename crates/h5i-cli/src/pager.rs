//! The person's pager.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::{Failure, Kind};
use crate::surroundings::Surroundings;

/// What became of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paged {
    /// The person saw it in a pager.
    Shown,
    /// There is no pager; it is still to be printed.
    NoPager,
}

/// Shows text in the pager that `PAGER` names, else in `less`. With an empty `PAGER`, `cat`, or
/// neither program on `PATH` there is none.
///
/// # Errors
/// An I/O failure when the pager can't be started or does not take the text.
pub(crate) fn show(surroundings: &Surroundings, text: &[u8]) -> Result<Paged, Failure> {
    let asked = surroundings.variable("PAGER").map(|pager| pager.to_string_lossy().into_owned());
    let Some((program, words)) = choose(asked.as_deref(), &surroundings.path) else {
        return Ok(Paged::NoPager);
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "the person's own pager, at the person's terminal"
    )]
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped());
    if surroundings.variable("LESS").is_none() {
        // Ends by itself when it fits, keeps colours, leaves the screen as it is.
        command.env("LESS", "FRX");
    }
    let failed = |e: io::Error| Failure::new(Kind::Io, &e).hint("PAGER=cat");
    let mut pager = command.spawn().map_err(failed)?;
    let written = pager.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text));
    pager.wait().map_err(failed)?;
    match written {
        // The person has seen enough.
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(failed(e)),
        _ => Ok(Paged::Shown),
    }
}

/// The pager's program and its arguments.
fn choose(asked: Option<&str>, path: &[PathBuf]) -> Option<(PathBuf, Vec<String>)> {
    let mut words = asked.unwrap_or("less").split_whitespace().map(str::to_owned);
    let name = words.next().filter(|name| name != "cat")?;
    let program = if name.contains('/') {
        PathBuf::from(&name)
    } else {
        path.iter().map(|dir| dir.join(&name)).find(|program| is_file(program))?
    };
    Some((program, words.collect()))
}

fn is_file(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::choose;

    #[test]
    fn the_pager_is_the_one_named_and_none_where_none_is_wanted() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["less", "most"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let path = [PathBuf::from("/nowhere"), dir.path().to_owned()];
        assert_eq!(choose(None, &path), Some((dir.path().join("less"), vec![])));
        let named = choose(Some("most -x  y"), &path);
        assert_eq!(named, Some((dir.path().join("most"), vec!["-x".into(), "y".into()])));
        assert_eq!(choose(Some("/bin/more"), &[]), Some(("/bin/more".into(), vec![])));
        for none in ["", " ", "cat", "absent"] {
            assert_eq!(choose(Some(none), &path), None, "{none:?}");
        }
        assert_eq!(choose(None, &[]), None);
    }
}
