//! Checking a bundle that may have been changed since it was written.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use git2::Oid;
use h5i_policy::ResolvedPolicy;
use rustix::fs::{Dir, FileType, Mode, OFlags};

use super::{BUNDLE_VERSION, BundleIndex, INDEX, PAGE, PATCH, RECEIPT, REPORT, payload_of};
use crate::apply::{Keep, PatchError, apply};
use crate::digest::{Digest, DigestReader};
use crate::escape::Escaped;
use crate::log::ChainError;
use crate::patch_text::PatchText;
use crate::receipt::{self, Found, PieceError, RECEIPT_VERSION, Receipt, ReceiptError};
use crate::record::{Event, Record};
use crate::report::{Completeness, Ends};
use crate::store::{Base, Store, StoreError};

/// The largest patch or receipt that is read, in bytes; it goes through memory in pieces. A longer one
/// is not the one that was written.
const MAX_STREAMED: u64 = 1 << 40;
/// The largest other file of a bundle that is read, in bytes.
const MAX_FILE: u64 = 1 << 30;

/// A bundle that is as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// The digest of bundle.json, which names the bundle; compare it with the one in the log.
    pub bundle: Digest,
    /// What bundle.json says.
    pub index: BundleIndex,
    /// The receipt; its records follow one another up to its head.
    pub receipt: Receipt,
    /// The patch.
    pub patch: PatchText,
    /// The report for a person.
    pub report: Vec<u8>,
    /// Whether the patch was applied.
    pub applied: Applied,
}

/// Whether the patch was applied to the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Applied {
    /// It gives the tree that the bundle names.
    Yes,
    /// No base was given.
    NoBase,
}

/// The first thing of a bundle that does not match.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// A file can't be read; links are not followed.
    #[error("can't read `{}`", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// The failure.
        source: io::Error,
    },
    /// It is no regular file, or larger than a gibibyte.
    #[error("`{file}` is not a file of a bundle: {found}")]
    NotFile {
        /// Which.
        file: String,
        /// What it is.
        found: &'static str,
    },
    /// There is something that no bundle has.
    #[error("`{}` does not belong to a bundle", Escaped::new(name))]
    Surplus {
        /// Its name.
        name: Vec<u8>,
    },
    /// A JSON file is malformed or has an unknown field.
    #[error("`{file}` is malformed")]
    Json {
        /// Which.
        file: &'static str,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The receipt is malformed.
    #[error("`{RECEIPT}` is malformed")]
    Receipt(#[source] ReceiptError),
    /// A JSON file has a version that this program does not know.
    #[error("`{file}` has version {found}, which this program does not read")]
    Version {
        /// Which.
        file: &'static str,
        /// The version.
        found: u32,
    },
    /// bundle.json does not list exactly the files of the bundle.
    #[error(
        "bundle.json does not list `{PATCH}`, `{REPORT}`, `{PAGE}`, `{RECEIPT}` and the output that \
         the receipt tells of, each once"
    )]
    Files,
    /// A file is not the one that was written.
    #[error("`{file}` was changed: it has {found}, it was written with {written}")]
    Digest {
        /// Which.
        file: String,
        /// The digest that was written.
        written: Digest,
        /// The digest that it has.
        found: Digest,
    },
    /// A field of the receipt and its twin differ.
    #[error("`{field}` of the receipt is not that of the bundle")]
    Field {
        /// Which.
        field: &'static str,
    },
    /// A field of the receipt is not what the record of the box's making says.
    #[error("`{field}` of the receipt is not that of the box's first record")]
    Origin {
        /// Which.
        field: &'static str,
    },
    /// The policy in the receipt can't be read.
    #[error("can't read the policy in the receipt")]
    PolicyText(#[source] Box<h5i_policy::DocumentError>),
    /// The policy in the receipt has another digest than the receipt says.
    #[error("the policy in the receipt has {found}, the receipt says {written}")]
    PolicyDigest {
        /// The digest that the receipt names.
        written: String,
        /// The digest that the text has.
        found: String,
    },
    /// The receipt's records are not whole.
    #[error("the records of the receipt are not whole")]
    Records(#[source] ChainError),
    /// The base is another one than the bundle's.
    #[error("the bundle was made from tree {bundle}, the base given has tree {given}")]
    OtherBase {
        /// The tree that the bundle names.
        bundle: String,
        /// The tree given.
        given: Oid,
    },
    /// The base's objects can't be used.
    #[error("can't use the objects of the base")]
    Store(#[from] StoreError),
    /// The patch does not apply.
    #[error("the patch does not apply to the base")]
    Patch(#[source] PatchError),
    /// The patch gives another tree.
    #[error("the patch gives tree {found}, the bundle names tree {named}")]
    Tree {
        /// The tree that the bundle names.
        named: String,
        /// The tree that the patch gives.
        found: Oid,
    },
}

/// Checks a bundle: its files and their digests, the receipt against bundle.json, the chain of the
/// records, and, when `base` is given, that the patch gives the named tree.
///
/// `scratch` is a directory of the host for temporary files. The patch is copied there only if it has
/// its digest; what was checked is what [`Verified::patch`] holds, whatever becomes of the bundle.
/// Whether this is the bundle that was reviewed is for the caller: compare [`Verified::bundle`] with
/// the digest in the box's log.
///
/// # Errors
/// [`VerifyError`] with the first thing that does not match.
pub fn verify_bundle(
    directory: &Path,
    scratch: &Path,
    base: Option<&Base>,
) -> Result<Verified, VerifyError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let at = rustix::fs::open(directory, flags, Mode::empty()).map_err(unreadable(directory))?;
    let index_bytes = read(&at, directory, INDEX)?;
    let index: BundleIndex = parse(INDEX, &index_bytes)?;
    if index.v != BUNDLE_VERSION {
        return Err(VerifyError::Version { file: INDEX, found: index.v });
    }
    surplus(&at, directory, &index)?;
    let same = |file: &str, found: Digest| match index.files.get(file) {
        Some(&written) if written != found => {
            Err(VerifyError::Digest { file: file.to_owned(), written, found })
        }
        Some(_) => Ok(()),
        None => Err(VerifyError::Files),
    };
    let checked = |file: &'static str| {
        let content = read(&at, directory, file)?;
        same(file, Digest::of(&content)).map(|()| content)
    };
    let failed = |source| VerifyError::Io { path: directory.join(PATCH), source };
    let mut patch = open(&at, directory, PATCH)?;
    // Read once before it is copied, so that another patch, however long, takes no room in `scratch`;
    // the copy is as long at most, and counts only if it is the same.
    let length = patch.metadata().map_err(failed)?.len().min(MAX_STREAMED);
    same(PATCH, Digest::of_reader((&mut patch).take(length)).map_err(failed)?)?;
    patch.rewind().map_err(failed)?;
    let patch = PatchText::keep(patch.take(length), scratch).map_err(failed)?;
    same(PATCH, patch.digest())?;
    let report = checked(REPORT)?;
    checked(PAGE)?;
    let mut told = Told::of(&index);
    let mut source = DigestReader::new(open(&at, directory, RECEIPT)?.take(MAX_STREAMED));
    let found = receipt::read(&mut source, |record| told.take(record));
    // Whatever it holds, the file that was written comes first.
    let digest = source.finish();
    let digest = digest.map_err(|source| VerifyError::Io { path: directory.join(RECEIPT), source });
    same(RECEIPT, digest?)?;
    let Found { receipt, chain } = found.map_err(|e| no_receipt(&directory.join(RECEIPT), e))?;
    check_version(&receipt)?;
    check_files(&index, &told)?;
    compare(&index, &receipt, told.ends.completeness())?;
    check_alone(&receipt, chain, told.first.as_ref())?;
    for name in told.payloads.keys() {
        same(name, Digest::of(&read(&at, directory, name)?))?;
    }
    let bundle = Digest::of(&index_bytes);
    let mut verified = Verified { bundle, index, receipt, patch, report, applied: Applied::NoBase };
    if let Some(base) = base {
        verified.apply_to(base, scratch)?;
    }
    Ok(verified)
}

impl Verified {
    /// Checks that the patch, applied to `base`, gives the tree that the bundle names; `scratch` is a
    /// directory of the host for temporary files.
    ///
    /// # Errors
    /// [`VerifyError`] with the first thing that does not match.
    pub fn apply_to(&mut self, base: &Base, scratch: &Path) -> Result<(), VerifyError> {
        let index = &self.index;
        if base.tree.to_string() != index.base_tree {
            let bundle = index.base_tree.clone();
            return Err(VerifyError::OtherBase { bundle, given: base.tree });
        }
        let store = Store::open(base, scratch)?;
        let found =
            apply(&store, base.tree, self.patch.reader(), Keep::Ids).map_err(VerifyError::Patch)?;
        if found.to_string() != index.tree {
            return Err(VerifyError::Tree { named: index.tree.clone(), found });
        }
        self.applied = Applied::Yes;
        Ok(())
    }
}

/// What a receipt's records tell that the rest of a bundle is compared with.
struct Told<'a> {
    index: &'a BundleIndex,
    first: Option<Event>,
    begun: bool,
    ends: Ends,
    /// Kept output that the index lists.
    payloads: BTreeMap<String, Digest>,
    /// Whether there is kept output that it does not list.
    unlisted: bool,
}

impl<'a> Told<'a> {
    fn of(index: &'a BundleIndex) -> Self {
        let (ends, payloads) = (Ends::default(), BTreeMap::new());
        Self { index, first: None, begun: false, ends, payloads, unlisted: false }
    }

    fn take(&mut self, record: &Record) {
        if !self.begun {
            (self.begun, self.first) = (true, Some(record.event.clone()));
        }
        self.ends.take(record);
        if let Some((name, digest)) = payload_of(record) {
            match self.index.files.contains_key(&name) {
                true => drop(self.payloads.insert(name, digest)),
                false => self.unlisted = true,
            }
        }
    }
}

/// The index must list what every bundle has and the kept output that the receipt tells of, with
/// its digests.
fn check_files(index: &BundleIndex, told: &Told<'_>) -> Result<(), VerifyError> {
    let own = [PATCH, RECEIPT, PAGE, REPORT];
    let known = |(name, digest): (&String, &Digest)| {
        own.contains(&name.as_str()) || told.payloads.get(name) == Some(digest)
    };
    let all = own.iter().all(|name| index.files.contains_key(*name));
    if all && !told.unlisted && index.files.iter().all(known) {
        Ok(())
    } else {
        Err(VerifyError::Files)
    }
}

/// What both files say must be the same.
fn compare(
    index: &BundleIndex,
    receipt: &Receipt,
    completeness: Completeness,
) -> Result<(), VerifyError> {
    let same = [
        ("name", receipt.name == index.name),
        ("base", receipt.base == index.base),
        ("base_tree", receipt.base_tree == index.base_tree),
        ("tree", receipt.tree == index.tree),
        ("completeness", completeness == index.completeness),
        ("patch", index.files.get(PATCH) == Some(&receipt.patch)),
        ("report", index.files.get(REPORT) == Some(&receipt.report)),
        ("page", index.files.get(PAGE) == Some(&receipt.page)),
    ];
    match same.iter().find(|(_, same)| !same) {
        Some(&(field, _)) => Err(VerifyError::Field { field }),
        None => Ok(()),
    }
}

/// Checks a receipt without its bundle: version, fields, the chain of records, and that the box's
/// first record and the policy's text say what the receipt says. It is read in bounded memory; `each`
/// is given every record in order, before it is known whether all of them are whole.
///
/// # Errors
/// [`VerifyError`] names the first thing that does not match.
pub fn verify_receipt(
    source: impl Read,
    mut each: impl FnMut(&Record),
) -> Result<Receipt, VerifyError> {
    let mut first = None;
    let found = receipt::read(source, |record| {
        first.get_or_insert_with(|| record.event.clone());
        each(record);
    });
    let Found { receipt, chain } = found.map_err(|e| no_receipt(Path::new(RECEIPT), e))?;
    check_version(&receipt)?;
    check_alone(&receipt, chain, first.as_ref())?;
    Ok(receipt)
}

/// Why `path` is no receipt, or can't be read.
fn no_receipt(path: &Path, error: ReceiptError) -> VerifyError {
    match error {
        ReceiptError::Text(PieceError::Io(source)) => {
            VerifyError::Io { path: path.to_owned(), source }
        }
        error => VerifyError::Receipt(error),
    }
}

fn check_version(receipt: &Receipt) -> Result<(), VerifyError> {
    match receipt.v {
        RECEIPT_VERSION => Ok(()),
        found => Err(VerifyError::Version { file: RECEIPT, found }),
    }
}

fn check_alone(
    receipt: &Receipt,
    chain: Result<(), ChainError>,
    first: Option<&Event>,
) -> Result<(), VerifyError> {
    chain.map_err(VerifyError::Records)?;
    compare_with_origin(receipt, first)?;
    compare_policy(receipt)
}

/// What the first record says of the box must be what the receipt says.
fn compare_with_origin(receipt: &Receipt, first: Option<&Event>) -> Result<(), VerifyError> {
    let Some(Event::Create { name, base, tree, tier, profile, policy }) = first else {
        return Ok(());
    };
    let same = [
        ("name", *name == receipt.name),
        ("base", receipt.base.as_ref().is_none_or(|named| named == base)),
        ("base_tree", *tree == receipt.base_tree),
        ("tier", *tier == receipt.tier.to_string()),
        ("profile", *profile == receipt.profile),
        ("policy", *policy == receipt.policy),
    ];
    match same.iter().find(|(_, same)| !same) {
        Some(&(field, _)) => Err(VerifyError::Origin { field }),
        None => Ok(()),
    }
}

/// The policy's text must have the policy's digest.
fn compare_policy(receipt: &Receipt) -> Result<(), VerifyError> {
    let policy = ResolvedPolicy::from_toml("policy_text", &receipt.policy_text)
        .map_err(VerifyError::PolicyText)?;
    let found = policy.digest().to_string();
    if found == receipt.policy {
        return Ok(());
    }
    Err(VerifyError::PolicyDigest { written: receipt.policy.clone(), found })
}

/// Fails on the first name that the index does not list.
fn surplus(at: &OwnedFd, directory: &Path, index: &BundleIndex) -> Result<(), VerifyError> {
    let own = [PATCH, REPORT, PAGE, RECEIPT, INDEX];
    let listed = index.files.keys().map(String::as_str);
    let known: BTreeSet<&[u8]> = own.into_iter().chain(listed).map(str::as_bytes).collect();
    for entry in Dir::read_from(at).map_err(unreadable(directory))? {
        let entry = entry.map_err(unreadable(directory))?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") && !known.contains(name) {
            return Err(VerifyError::Surplus { name: name.to_vec() });
        }
    }
    Ok(())
}

/// Opens one file; it never waits and follows no link.
fn open(at: &OwnedFd, directory: &Path, file: &str) -> Result<File, VerifyError> {
    let path = directory.join(OsString::from(file));
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(at, file, flags, Mode::empty()).map_err(unreadable(&path))?;
    let stat = rustix::fs::fstat(&opened).map_err(unreadable(&path))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(VerifyError::NotFile { file: file.to_owned(), found: "no regular file" });
    }
    Ok(File::from(opened))
}

/// Reads one file whole.
fn read(at: &OwnedFd, directory: &Path, file: &str) -> Result<Vec<u8>, VerifyError> {
    let path = directory.join(OsString::from(file));
    let mut content = Vec::new();
    open(at, directory, file)?
        .take(MAX_FILE + 1)
        .read_to_end(&mut content)
        .map_err(|source| VerifyError::Io { path, source })?;
    if content.len() as u64 > MAX_FILE {
        return Err(VerifyError::NotFile {
            file: file.to_owned(),
            found: "larger than a gibibyte",
        });
    }
    Ok(content)
}

fn parse<T: serde::de::DeserializeOwned>(
    file: &'static str,
    content: &[u8],
) -> Result<T, VerifyError> {
    serde_json::from_slice(content).map_err(|source| VerifyError::Json { file, source })
}

fn unreadable(path: &Path) -> impl FnOnce(rustix::io::Errno) -> VerifyError {
    let path = path.to_owned();
    move |error| VerifyError::Io { path, source: error.into() }
}
