//! The log that a killed h5i left.

use std::fs;
use std::path::PathBuf;

use h5i_export::{Digest, verify_chain};

use crate::stand::Stand;

/// What was whole of the log of box `a`.
pub(crate) struct Left {
    log: Option<(PathBuf, Vec<u8>)>,
}

impl Left {
    pub(crate) fn by(stand: &Stand) -> Self {
        if !stand.box_directories().iter().any(|name| name == "a") {
            return Self { log: None };
        }
        let path = stand.box_dir("a").join("host/receipt.jsonl");
        // One that is being removed may have none any more.
        let Ok(mut log) = fs::read(&path) else { return Self { log: None } };
        log.truncate(log.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
        Self { log: Some((path, log)) }
    }

    /// What was whole is there as it was, what came after it follows, and every run has an end. Also in
    /// the archive, where the box was removed since.
    pub(crate) fn stands(&self, stand: &Stand, said: &str) {
        let Some((path, before)) = &self.log else { return };
        let log = match fs::read(path) {
            Ok(log) => log,
            Err(_) => archived(stand, before).unwrap_or_else(|| panic!("{said}: no log is left")),
        };
        assert!(log.starts_with(before), "{said}: what was written is not there any more");
        let Ok(manifest) = fs::read(path.with_file_name("manifest.json")) else { return };
        let mut open = 0_i64;
        verify_chain(&log[..], Digest::of(&manifest), None, |record| match record.event {
            h5i_export::Event::RunStart { .. } => open += 1,
            h5i_export::Event::RunEnd { .. } => open -= 1,
            h5i_export::Event::CutOff { .. } => open = 0,
            _ => {}
        })
        .unwrap_or_else(|error| panic!("{said}: {error:?}"));
        assert_eq!(open, 0, "{said}: runs without an end");
    }
}

/// The log in the archive that begins like this.
fn archived(stand: &Stand, beginning: &[u8]) -> Option<Vec<u8>> {
    let archive = fs::read_dir(stand.state().join("h5i/archive")).ok()?;
    let logs = archive.filter_map(|entry| fs::read(entry.ok()?.path().join("receipt.jsonl")).ok());
    logs.into_iter().find(|log| log.starts_with(beginning))
}
