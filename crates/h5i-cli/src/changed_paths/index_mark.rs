//! An index that says of its entries that none differs from what it knows.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use sha1::{Digest as _, Sha1};

/// Bytes of the checksum that ends an index.
pub(super) const CHECKSUM: usize = 20;
/// What git gives back to the monitor; h5i has no use for it, but it may not be empty.
pub(crate) const TOKEN: &str = "h5i";

/// Adds the extension `FSMN` to an index that libgit2 wrote, which drops it from those that it reads
/// (gitformat-index(5), "File System Monitor cache", version 2): no entry is marked as changed.
pub(crate) fn mark_unchanged(path: &Path) -> io::Result<()> {
    let mut file = File::options().read(true).write(true).open(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let end = bytes.len().checked_sub(CHECKSUM).filter(|_| bytes.starts_with(b"DIRC"));
    let end = end.ok_or_else(|| io::Error::other("it is no index of git's"))?;
    let content = extension();
    let mut tail = b"FSMN".to_vec();
    tail.extend_from_slice(&u32::try_from(content.len()).unwrap_or(u32::MAX).to_be_bytes());
    tail.extend_from_slice(&content);
    let checksum = Sha1::new().chain_update(&bytes[..end]).chain_update(&tail).finalize();
    tail.extend_from_slice(&checksum);
    // Longer than the checksum that was there.
    file.write_all_at(&tail, end as u64)
}

fn extension() -> Vec<u8> {
    const VERSION: u32 = 2;
    // A compressed bitmap without a bit: how many it has, how many words, one word that says that
    // nothing follows, and where that word is.
    let words = [0_u32, 1, 0, 0, 0];
    let bitmap: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    let mut content = VERSION.to_be_bytes().to_vec();
    content.extend_from_slice(TOKEN.as_bytes());
    content.push(0);
    content.extend_from_slice(&u32::try_from(bitmap.len()).unwrap_or(u32::MAX).to_be_bytes());
    content.extend_from_slice(&bitmap);
    content
}
