//! What a file of the box proposes.

use git2::{FileMode, ObjectType, Oid};

use super::super::ReviewError;
use super::super::refusal::RefusalRule;
use super::{Comparison, Pinned};
use crate::apply::Edit;
use crate::store::StoreError;
use crate::tree::{Content, Regular, read_content};

impl Comparison<'_, '_> {
    pub(super) fn file(&mut self, path: &[u8], pinned: Option<Pinned>) -> Result<(), ReviewError> {
        let opened = match self.walk.open() {
            Err(error) if error.is_closed() => {
                self.closed(path);
                return Ok(());
            }
            opened => opened?,
        };
        let Some(regular) = Regular::new(opened, path)? else {
            self.refuse(path.to_vec(), RefusalRule::Unsteady);
            return Ok(());
        };
        if regular.links > 1 {
            self.linked.entry(regular.inode).or_default().push((path.to_vec(), pinned));
            return Ok(());
        }
        self.regular(path, pinned, regular)
    }

    /// Reads the files with several names, now that it is known whether all of them are here.
    pub(super) fn read_linked(&mut self) -> Result<(), ReviewError> {
        for (inode, names) in std::mem::take(&mut self.linked) {
            let found = names.len() as u64;
            for (path, pinned) in names {
                let again = Regular::new(self.walk.open_again(&path)?, &path)?;
                match again {
                    Some(regular) if regular.inode == inode && regular.links <= found => {
                        self.regular(&path, pinned, regular)?;
                    }
                    Some(regular) if regular.inode == inode => {
                        let links = regular.links;
                        self.refuse(path, RefusalRule::LinkedElsewhere { links, found });
                    }
                    _ => self.refuse(path, RefusalRule::Unsteady),
                }
            }
        }
        Ok(())
    }

    pub(super) fn regular(
        &mut self,
        path: &[u8],
        pinned: Option<Pinned>,
        regular: Regular,
    ) -> Result<(), ReviewError> {
        let bits = regular.mode & 0o7777;
        if bits & 0o7000 != 0 {
            self.refuse(path.to_vec(), RefusalRule::SetId { mode: bits });
            return Ok(());
        }
        let mode = if bits & 0o100 == 0 { FileMode::Blob } else { FileMode::BlobExecutable };
        let limit = self.export.policy.max_file.count();
        let bytes = regular.size;
        let too_large = RefusalRule::TooLarge { bytes, limit };
        let could_be_equal = match pinned {
            Some(pinned) if !pinned.is(FileMode::Link) => self.store.blob_size(pinned.id)? == bytes,
            _ => false,
        };
        if bytes > limit && !could_be_equal {
            self.refuse(path.to_vec(), too_large);
            return Ok(());
        }
        match read_content(regular, path, self.store, &self.walk)? {
            Content::Unsteady => self.refuse(path.to_vec(), RefusalRule::Unsteady),
            Content::Bytes(content) => {
                let id = Oid::hash_object(ObjectType::Blob, &content)
                    .map_err(StoreError::git("hash a file"))?;
                if bytes > limit && pinned.is_none_or(|pinned| pinned.id != id) {
                    self.refuse(path.to_vec(), too_large);
                    return Ok(());
                }
                return self.propose(path, pinned, (id, &content), mode);
            }
            Content::Stored(id) => {
                if bytes > limit && pinned.is_none_or(|pinned| pinned.id != id) {
                    self.refuse(path.to_vec(), too_large);
                    return Ok(());
                }
                return self.set(path, pinned, id, bytes, mode);
            }
        }
        Ok(())
    }

    /// Keeps content that the base does not have at `path` in the quarantine.
    pub(super) fn propose(
        &mut self,
        path: &[u8],
        pinned: Option<Pinned>,
        (id, content): (Oid, &[u8]),
        mode: FileMode,
    ) -> Result<(), ReviewError> {
        if pinned.is_none_or(|pinned| pinned.id != id) {
            self.store.write(ObjectType::Blob, content)?;
        }
        self.set(path, pinned, id, content.len() as u64, mode)
    }

    /// Adds the edit if it is one: content and executable bit as in the base are none.
    pub(super) fn set(
        &mut self,
        path: &[u8],
        pinned: Option<Pinned>,
        id: Oid,
        bytes: u64,
        mode: FileMode,
    ) -> Result<(), ReviewError> {
        // A mode of old repositories: the same as a plain file for everybody but the tree's id.
        let normal = |mode: i32| match mode {
            mode if mode == i32::from(FileMode::BlobGroupWritable) => FileMode::Blob.into(),
            mode => mode,
        };
        let same_mode = pinned.is_some_and(|pinned| normal(pinned.mode) == i32::from(mode));
        let same_content = pinned.is_some_and(|pinned| pinned.id == id);
        if same_mode && same_content {
            return Ok(());
        }
        self.count(if same_content { 0 } else { bytes })?;
        self.out.edits.add(path, Edit::Set(id, mode));
        Ok(())
    }

    pub(super) fn count(&mut self, bytes: u64) -> Result<(), ReviewError> {
        self.out.files += 1;
        self.out.bytes = self.out.bytes.saturating_add(bytes);
        let policy = &self.export.policy;
        if self.out.files > u64::from(policy.max_files) {
            return Err(ReviewError::TooManyFiles {
                found: self.out.files,
                limit: policy.max_files,
            });
        }
        if self.out.bytes > policy.max_total.count() {
            let limit = policy.max_total.count();
            return Err(ReviewError::TooManyBytes { found: self.out.bytes, limit });
        }
        Ok(())
    }
}
