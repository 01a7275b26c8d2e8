//! Writing a bundle.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};

use super::{BUNDLE_VERSION, BundleIndex, INDEX, PAGE, PATCH, RECEIPT, REPORT, WholeLog};
use crate::digest::{Digest, DigestWriter};
use crate::receipt::{Digests, Receipt};
use crate::report::ReportInput;

/// All that a bundle is made from.
#[derive(Clone, Copy, Debug)]
pub struct BundleInput<'a> {
    /// What the report is made from, with the log's history.
    pub report: ReportInput<'a>,
    /// The log whose records are the receipt's.
    pub log: &'a WholeLog,
    /// The policy document that the box was made with.
    pub policy_text: &'a str,
    /// The directory of the kept output that records tell of; not looked at when they tell of none.
    pub payloads: &'a Path,
}

/// What happens when the bundle's directory is there already and is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Existing {
    /// The bundle is refused.
    Refuse,
    /// It is replaced as a whole, if it holds no directory: a bundle never does, and so nobody's
    /// home is removed by a slip.
    Replace,
}

/// Why a bundle was not written; nothing is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// A file operation failed.
    #[error("can't {operation} `{}`", path.display())]
    Io {
        /// What was attempted.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The failure.
        source: io::Error,
    },
    /// The path has no last component to give the directory.
    #[error("`{}` names no directory to make", path.display())]
    NoName {
        /// The path.
        path: PathBuf,
    },
    /// Something that is not a directory stands there: a file, or a link, which is not followed.
    #[error("`{}` is there and is not a directory", path.display())]
    NotDirectory {
        /// The path.
        path: PathBuf,
    },
    /// The directory has something in it.
    #[error("the directory `{}` is not empty", path.display())]
    NotEmpty {
        /// The path.
        path: PathBuf,
    },
    /// The directory has a directory in it, so it is no bundle and is not replaced.
    #[error("the directory `{}` holds directories, which no bundle does; it is not replaced", path.display())]
    NotBundle {
        /// The path.
        path: PathBuf,
    },
    /// The log has other records than when it was read.
    #[error("the log of the box was changed while it was read")]
    LogChanged,
    /// Kept output of a run is not what its record says.
    #[error("the kept output `{name}` is not what its record says")]
    Payload {
        /// Its name.
        name: String,
    },
    /// An object has no JSON form.
    #[error("can't write `{file}` as JSON")]
    Json {
        /// Which file.
        file: &'static str,
        /// The failure.
        source: serde_json::Error,
    },
}

/// Writes the bundle as `directory` and returns the digest of its bundle.json.
///
/// The files are written and synced in a directory beside it, which is then renamed: the bundle is
/// there as a whole or not at all. The caller records the digest in the log afterwards.
///
/// # Errors
/// [`BundleError`]; `NotEmpty` only with [`Existing::Refuse`].
pub fn write_bundle(
    directory: &Path,
    input: &BundleInput<'_>,
    existing: Existing,
) -> Result<Digest, BundleError> {
    check(directory, existing)?;
    let parent = match directory.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Err(BundleError::NoName { path: directory.to_owned() }),
    };
    if directory.file_name().is_none() {
        return Err(BundleError::NoName { path: directory.to_owned() });
    }
    let patch = &input.report.reviewed.patch;
    let report = input.report.to_markdown();
    let page = input.report.to_html();
    let digests = Digests {
        patch: patch.digest(),
        report: Digest::of(report.as_bytes()),
        page: Digest::of(page.as_bytes()),
    };
    let (log, kept) = (input.log, input.log.history().payloads());
    for (name, written) in kept {
        let path = input.payloads.join(name);
        let found = File::open(&path).and_then(Digest::of_reader).map_err(failed("read", &path))?;
        if found != *written {
            return Err(BundleError::Payload { name: name.clone() });
        }
    }
    let beside = tempfile::Builder::new()
        .prefix(".h5i-bundle-")
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir_in(parent)
        .map_err(failed("make a directory in", parent))?;
    let receipt =
        Receipt::new(&input.report, input.policy_text, log.manifest(), log.head(), digests);
    let files = [
        (PATCH, digests.patch),
        (REPORT, digests.report),
        (PAGE, digests.page),
        (RECEIPT, write_receipt(&beside.path().join(RECEIPT), &receipt, log)?),
    ];
    let files = files.into_iter().map(|(name, digest)| (name.to_owned(), digest));
    let reviewed = input.report.reviewed;
    let index = BundleIndex {
        v: BUNDLE_VERSION,
        name: input.report.name.to_owned(),
        base: reviewed.base.commit.map(|commit| commit.to_string()),
        base_tree: reviewed.base.tree.to_string(),
        tree: reviewed.tree.to_string(),
        completeness: log.history().completeness(),
        files: files.chain(kept.clone()).collect(),
    };
    let index = json(INDEX, &index)?;
    write_file(&beside.path().join(PATCH), patch.reader())?;
    for (name, content) in [(REPORT, report.as_bytes()), (PAGE, page.as_bytes()), (INDEX, &index)] {
        write_file(&beside.path().join(name), content)?;
    }
    for name in kept.keys() {
        let path = input.payloads.join(name);
        let content = File::open(&path).map_err(failed("read", &path))?;
        write_file(&beside.path().join(name), content)?;
    }
    sync_directory(beside.path())?;
    place(beside, directory, existing)?;
    sync_directory(parent)?;
    Ok(Digest::of(&index))
}

/// What stands at `directory` before anything is written.
fn check(directory: &Path, existing: Existing) -> Result<(), BundleError> {
    match fs::symlink_metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("look at", directory)(error)),
        Ok(found) if !found.is_dir() => {
            return Err(BundleError::NotDirectory { path: directory.to_owned() });
        }
        Ok(_) => {}
    }
    for entry in fs::read_dir(directory).map_err(failed("list", directory))? {
        let entry = entry.map_err(failed("list", directory))?;
        if existing == Existing::Refuse {
            return Err(BundleError::NotEmpty { path: directory.to_owned() });
        }
        if entry.file_type().map_err(failed("look at", &entry.path()))?.is_dir() {
            return Err(BundleError::NotBundle { path: directory.to_owned() });
        }
    }
    Ok(())
}

/// Renames the finished directory to its place, exchanging it with what is there.
fn place(
    beside: tempfile::TempDir,
    directory: &Path,
    existing: Existing,
) -> Result<(), BundleError> {
    let rename = |flags| rustix::fs::renameat_with(CWD, beside.path(), CWD, directory, flags);
    match rename(RenameFlags::NOREPLACE) {
        Ok(()) => {
            // There is nothing left to remove.
            drop(beside.keep());
            return Ok(());
        }
        Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(failed("rename the bundle to", directory)(error.into())),
    }
    rename(RenameFlags::EXCHANGE)
        .map_err(|error| failed("exchange the bundle with", directory)(error.into()))?;
    // The old one, now under the temporary name, is looked at again: it may have been filled since.
    if let Err(error) = check(beside.path(), existing) {
        rename(RenameFlags::EXCHANGE)
            .map_err(|error| failed("put back", directory)(error.into()))?;
        return Err(match error {
            BundleError::NotEmpty { .. } => BundleError::NotEmpty { path: directory.to_owned() },
            BundleError::NotBundle { .. } => BundleError::NotBundle { path: directory.to_owned() },
            other => other,
        });
    }
    beside.close().map_err(failed("remove what was at", directory))
}

/// Writes the receipt with the records of the log, and yields its digest.
fn write_receipt(path: &Path, receipt: &Receipt, log: &WholeLog) -> Result<Digest, BundleError> {
    let mut file = DigestWriter::new(make(path)?);
    let same = log.again(|lines| {
        let mut out = BufWriter::with_capacity(1 << 16, &mut file);
        receipt.write(lines, &mut out)?;
        out.flush()
    });
    if !same.map_err(failed("write", path))? {
        return Err(BundleError::LogChanged);
    }
    let (file, digest) = file.finish();
    file.sync_all().map_err(failed("sync", path))?;
    Ok(digest)
}

fn make(path: &Path) -> Result<File, BundleError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o644).open(path).map_err(failed("make", path))
}

fn write_file(path: &Path, mut content: impl io::Read) -> Result<(), BundleError> {
    let mut file = make(path)?;
    io::copy(&mut content, &mut file).map_err(failed("write", path))?;
    file.sync_all().map_err(failed("sync", path))
}

fn sync_directory(path: &Path) -> Result<(), BundleError> {
    File::open(path).and_then(|opened| opened.sync_all()).map_err(failed("sync", path))
}

fn json<T: serde::Serialize>(file: &'static str, value: &T) -> Result<Vec<u8>, BundleError> {
    let mut text =
        serde_json::to_vec_pretty(value).map_err(|source| BundleError::Json { file, source })?;
    text.push(b'\n');
    Ok(text)
}

fn failed(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BundleError {
    let path = path.to_owned();
    move |source| BundleError::Io { operation, path, source }
}
