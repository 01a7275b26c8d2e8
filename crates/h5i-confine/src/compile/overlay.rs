//! Several directories as one.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{AT_FDCWD, Compiler};
use crate::layout::{OVERLAY_WORK, UPPER};
use crate::list::Arg;

impl Compiler {
    /// Mounts the overlay, which keeps mounts of its own of its layers.
    ///
    /// It is volatile: its end does not wait until all that anybody wrote to the host's disk is
    /// there, and `fsync` in the box does not wait either. The kernel writes back as ever.
    pub(super) fn overlay(
        &mut self,
        target: &Path,
        lowers: &[PathBuf],
        area: &Path,
        base: Option<&Path>,
    ) {
        self.directory(target);
        if let Some(base) = base {
            // The kernel takes names that begin nowhere from the working directory.
            let base = self.find_on_host(base);
            self.list.call(libc::SYS_fchdir, &[Arg::Slot(base)]);
            self.list.close(base);
        }
        let named = |path: &Path| match base {
            Some(base) => path.strip_prefix(base).unwrap_or(path).to_owned(),
            None => path.to_owned(),
        };
        // The mark that the last session's overlay was volatile: it would forbid this one.
        let marks = named(area).join(OVERLAY_WORK).join("work/incompat");
        for (mark, flags) in [("volatile/dirty", 0), ("volatile", libc::AT_REMOVEDIR)] {
            let mark = self.path(marks.join(mark));
            let flags = Arg::Value(u64::from(flags.unsigned_abs()));
            self.list.call_or(libc::SYS_unlinkat, &[AT_FDCWD, mark, flags], libc::ENOENT);
        }
        let mut options = b"volatile,userxattr,lowerdir=".to_vec();
        for (number, lower) in lowers.iter().enumerate() {
            if number > 0 {
                options.push(b':');
            }
            options.extend_from_slice(named(lower).as_os_str().as_bytes());
        }
        for (option, name) in [(",upperdir=", UPPER), (",workdir=", OVERLAY_WORK)] {
            options.extend_from_slice(option.as_bytes());
            options.extend_from_slice(named(area).join(name).as_os_str().as_bytes());
        }
        let kind = Arg::Data(self.list.string(b"overlay"));
        let options = Arg::Data(self.list.string(&options));
        let flags = Arg::Value(libc::MS_NOSUID | libc::MS_NODEV);
        self.cover(target);
        self.mounted.insert(target);
        let target = self.path(target);
        self.list.call(libc::SYS_mount, &[kind, target, kind, flags, options]);
        match (base, area.parent()) {
            (Some(_), _) => {
                let root = self.path("/");
                self.list.call(libc::SYS_chdir, &[root]);
            }
            (None, Some(above)) => self.leave(above),
            (None, None) => {}
        }
    }

    /// Unmounts what stands at and below `path`, and removes the directory.
    fn leave(&mut self, path: &Path) {
        for set in [&mut self.made, &mut self.mounted] {
            set.remove_below(path);
            set.remove(path);
        }
        let path = self.path(path);
        let detach = Arg::Value(libc::MNT_DETACH as u64);
        self.list.call(libc::SYS_umount2, &[path, detach]);
        let remove = Arg::Value(libc::AT_REMOVEDIR as u64);
        self.list.call(libc::SYS_unlinkat, &[AT_FDCWD, path, remove]);
    }
}
