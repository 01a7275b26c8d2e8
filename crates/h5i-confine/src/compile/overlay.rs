//! Several directories as one.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::{AT_FDCWD, Compiler};
use crate::layout::{OVERLAY_WORK, UPPER};
use crate::list::Arg;

impl Compiler {
    /// Mounts the overlay and unmounts its layers: the overlay keeps mounts of its own.
    ///
    /// It is volatile: its end does not wait until all that anybody wrote to the host's disk is
    /// there, and `fsync` in the box does not wait either. The kernel writes back as ever.
    pub(super) fn overlay(&mut self, target: &Path, lowers: &[PathBuf], area: &Path) {
        self.directory(target);
        // The mark that the last session's overlay was volatile: it would forbid this one.
        let marks = area.join(OVERLAY_WORK).join("work/incompat");
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
            options.extend_from_slice(lower.as_os_str().as_bytes());
        }
        for (option, name) in [(",upperdir=", UPPER), (",workdir=", OVERLAY_WORK)] {
            options.extend_from_slice(option.as_bytes());
            options.extend_from_slice(area.join(name).as_os_str().as_bytes());
        }
        let kind = Arg::Data(self.list.string(b"overlay"));
        let options = Arg::Data(self.list.string(&options));
        let flags = Arg::Value(libc::MS_NOSUID | libc::MS_NODEV);
        self.cover(target);
        self.mounted.insert(target);
        let target = self.path(target);
        self.list.call(libc::SYS_mount, &[kind, target, kind, flags, options]);
        for place in lowers.iter().map(PathBuf::as_path).chain([area]) {
            self.leave(place);
            self.made.remove(place);
            self.mounted.remove(place);
        }
        if let Some(above) = area.parent() {
            self.made.remove(above);
            let above = self.path(above);
            let remove = Arg::Value(libc::AT_REMOVEDIR as u64);
            self.list.call(libc::SYS_unlinkat, &[AT_FDCWD, above, remove]);
        }
    }

    /// Unmounts what stands at `path` and removes the directory.
    fn leave(&mut self, path: &Path) {
        let path = self.path(path);
        let detach = Arg::Value(libc::MNT_DETACH as u64);
        self.list.call(libc::SYS_umount2, &[path, detach]);
        let remove = Arg::Value(libc::AT_REMOVEDIR as u64);
        self.list.call(libc::SYS_unlinkat, &[AT_FDCWD, path, remove]);
    }
}
