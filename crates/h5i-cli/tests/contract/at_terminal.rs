//! A person's terminal.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A terminal: the side of the person, and the side of the program. What another test starts
/// meanwhile has neither of them open.
pub(crate) fn terminal() -> (File, OwnedFd) {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let program = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty()).unwrap();
    (File::from(person), program)
}

/// What a terminal shows until the program's side is closed.
pub(crate) fn read_all(person: &mut File) -> String {
    let mut shown = Vec::new();
    // The end of a terminal whose other side is closed is an error, not the end of a file.
    let mut piece = [0; 4096];
    while let Ok(length @ 1..) = person.read(&mut piece) {
        shown.extend_from_slice(&piece[..length]);
    }
    String::from_utf8(shown).unwrap()
}
