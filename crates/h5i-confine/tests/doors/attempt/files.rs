//! Attempts on files.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::{Attempt, number};
use crate::call::{A, AT_FDCWD, Outcome, call, of, open};

pub(crate) const ALL: &[(&str, Attempt)] = &[
    ("read", |a| fs::read_to_string(a[0]).map(|t| t.trim().replace('\n', " ")).map_err(|e| of(&e))),
    ("open-write", |a| open(a[0], libc::O_WRONLY).map(|_| String::new())),
    ("list", |a| list(a[0])),
    ("readlink", |a| fs::read_link(a[0]).map(|p| p.display().to_string()).map_err(|e| of(&e))),
    ("read-through-link", |a| {
        let link = format!("{}/link-{}", a[0], std::process::id());
        std::os::unix::fs::symlink(a[1], &link).map_err(|e| of(&e))?;
        fs::read_to_string(&link).map(|_| String::new()).map_err(|e| of(&e))
    }),
    ("create", |a| {
        open(a[0], libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL).map(|_| String::new())
    }),
    ("truncate", |a| done(call(libc::SYS_truncate, &mut [A::S(a[0]), A::N(0)]))),
    ("rename", |a| {
        done(call(
            libc::SYS_renameat2,
            &mut [A::N(AT_FDCWD), A::S(a[0]), A::N(AT_FDCWD), A::S(a[1]), A::N(0)],
        ))
    }),
    ("link", |a| {
        done(call(
            libc::SYS_linkat,
            &mut [A::N(AT_FDCWD), A::S(a[0]), A::N(AT_FDCWD), A::S(a[1]), A::N(0)],
        ))
    }),
    ("chmod", |a| done(call(libc::SYS_fchmodat, &mut [A::N(AT_FDCWD), A::S(a[0]), A::N(0o640)]))),
    ("utimes", |a| {
        done(call(libc::SYS_utimensat, &mut [A::N(AT_FDCWD), A::S(a[0]), A::In(&[0; 32]), A::N(0)]))
    }),
    ("setxattr", |a| {
        let args = &mut [A::S(a[0]), A::S("user.h5i"), A::In(b"x"), A::N(1), A::N(0)];
        done(call(libc::SYS_setxattr, args))
    }),
    ("mkdir", |a| done(call(libc::SYS_mkdirat, &mut [A::N(AT_FDCWD), A::S(a[0]), A::N(0o755)]))),
    ("unlink", |a| done(call(libc::SYS_unlinkat, &mut [A::N(AT_FDCWD), A::S(a[0]), A::N(0)]))),
    ("mknod", |a| {
        let device = libc::makedev(number(a[1]) as u32, number(a[2]) as u32);
        let mode = i64::from(libc::S_IFCHR | 0o600);
        done(call(
            libc::SYS_mknodat,
            &mut [A::N(AT_FDCWD), A::S(a[0]), A::N(mode), A::N(device as i64)],
        ))
    }),
    ("descriptors", |_| descriptors()),
    ("fchmod", |a| done(call(libc::SYS_fchmod, &mut [A::N(number(a[0])), A::N(0o777)]))),
    ("futimens", |a| {
        done(call(
            libc::SYS_utimensat,
            &mut [A::N(number(a[0])), A::N(0), A::In(&[0; 32]), A::N(0)],
        ))
    }),
    ("fsetxattr", |a| {
        let args = &mut [A::N(number(a[0])), A::S("user.h5i"), A::In(b"x"), A::N(1), A::N(0)];
        done(call(libc::SYS_fsetxattr, args))
    }),
    ("reopen-write", |a| {
        open(&format!("/proc/self/fd/{}", a[0]), libc::O_RDWR).map(|_| String::new())
    }),
    ("kind", |a| kind(a[0])),
    ("writable-below", |a| {
        let mut found = Vec::new();
        writable_below(Path::new(a[0]), 0, &mut found);
        Ok(found.join(" "))
    }),
    ("devices", |_| {
        let mut found = Vec::new();
        devices_below(Path::new("/dev"), &mut found);
        found.sort();
        Ok(found.join(" "))
    }),
    ("mount-flags", |a| mount_flags(a[0])),
];

fn done(result: Result<i64, i32>) -> Outcome {
    result.map(|_| String::new())
}

fn list(path: &str) -> Outcome {
    let mut names: Vec<String> = fs::read_dir(path)
        .map_err(|e| of(&e))?
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    names.sort();
    Ok(names.join(" "))
}

/// The open descriptors, without the one that lists them.
fn descriptors() -> Outcome {
    let open: Vec<String> = (0..4096)
        .filter(|fd| call(libc::SYS_fcntl, &mut [A::N(*fd), A::N(1)]).is_ok())
        .map(|fd| fd.to_string())
        .collect();
    Ok(open.join(" "))
}

fn kind(fd: &str) -> Outcome {
    let kind = fs::metadata(format!("/proc/self/fd/{fd}")).map_err(|e| of(&e))?.file_type();
    let name = if kind.is_fifo() {
        "pipe"
    } else if kind.is_char_device() {
        "device"
    } else if kind.is_file() {
        "file"
    } else if kind.is_socket() {
        "socket"
    } else {
        "other"
    };
    Ok(name.to_owned())
}

/// Every file that can be opened for writing; nothing is written.
fn writable_below(path: &Path, depth: u32, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth < 8 {
            writable_below(&path, depth + 1, found);
        } else if !kind.is_symlink()
            && !kind.is_dir()
            && open(&path.display().to_string(), libc::O_WRONLY | libc::O_NONBLOCK).is_ok()
        {
            found.push(path.display().to_string());
        }
    }
}

fn devices_below(path: &Path, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        let Ok(metadata) = fs::symlink_metadata(entry.path()) else { continue };
        let kind = metadata.file_type();
        if kind.is_char_device() || kind.is_block_device() {
            let (major, minor) = (libc::major(metadata.rdev()), libc::minor(metadata.rdev()));
            found.push(format!("{}={major}:{minor}", entry.path().display()));
        } else if kind.is_dir() {
            devices_below(&entry.path(), found);
        }
    }
}

fn mount_flags(path: &str) -> Outcome {
    let found = rustix::fs::statvfs(path).map_err(rustix::io::Errno::raw_os_error)?;
    Ok(format!("{:?}", found.f_flag))
}
