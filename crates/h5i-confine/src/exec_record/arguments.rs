//! Reads what a waiting call points to: strings and arrays of strings in another process.

use std::io;

use crate::event::{Arguments, Seen};
use crate::sys::{self, Notification};

use super::stat;

/// The most bytes of one string that are kept.
const STRING: usize = 4096;
/// The most bytes of all arguments together that are kept, each counted with its end.
const ALL: usize = 65_536;
/// The most arguments that are looked at.
const LOOKED_AT: usize = 16_384;
/// The most that are counted: more than any exec can pass, whose strings and pointers have 6 MiB
/// together (execve(2)).
const COUNTED: u32 = 1 << 20;
/// Read of each argument at once; most are shorter.
const FIRST: usize = 128;
/// Arguments that are read together.
const TOGETHER: usize = 32;
const PAGE: u64 = 4096;

/// Of a path that is read together with the array of arguments; most are shorter.
const PATH: usize = 256;
/// Pointers of the array that are read first.
const POINTERS: usize = 32 * 8;

/// The path and the arguments of a call.
pub(super) fn asked(call: &Notification) -> (Seen<Vec<u8>>, Seen<Arguments>) {
    let array = call.args[argv_place(call)];
    if argv_place(call) == 1
        && let Some((path, pointers)) = path_and_pointers(call.thread, call.args[0], array)
    {
        let arguments = collect(call.thread, &pointers, 0);
        let arguments = arguments.map_or_else(|e| unread(&e), Seen::Read);
        return (Seen::Read(path), arguments);
    }
    (path(call), strings(call.thread, array))
}

/// A path and the pointers of an array, read in one call. `None` where that does not have both
/// whole.
fn path_and_pointers(thread: u32, path: u64, array: u64) -> Option<(Vec<u8>, Vec<u64>)> {
    let parts = [(path, to_page_end(path, PATH)), (array, to_page_end(array, POINTERS))];
    let mut buffer = [0; PATH + POINTERS];
    let buffer = &mut buffer[..parts[0].1 + parts[1].1];
    let got = sys::read_memory(thread, &parts, buffer).ok()?;
    let (path, array) = buffer[..got].split_at_checked(parts[0].1)?;
    let mut pointers = Vec::new();
    for word in array.chunks_exact(8) {
        match u64::from_ne_bytes(word.try_into().ok()?) {
            0 => return Some((ended(path)?.to_vec(), pointers)),
            pointer => pointers.push(pointer),
        }
    }
    None
}

/// Which argument of a call is the array of the program's.
fn argv_place(call: &Notification) -> usize {
    if libc::c_long::from(call.nr) == libc::SYS_execveat { 2 } else { 1 }
}

/// The path of a call. That of a descriptor is what the kernel calls it.
fn path(call: &Notification) -> Seen<Vec<u8>> {
    if libc::c_long::from(call.nr) != libc::SYS_execveat {
        return string(call.thread, call.args[0]);
    }
    // A descriptor is 32 bits; the upper half is the caller's litter.
    let descriptor = u32::try_from(call.args[0] & 0xffff_ffff).unwrap_or(0).cast_signed();
    match string(call.thread, call.args[1]) {
        Seen::Read(path) if descriptor != libc::AT_FDCWD && path.first() != Some(&b'/') => {
            match stat::link(call.thread, &format!("fd/{descriptor}")) {
                Seen::Read(base) if path.is_empty() => Seen::Read(base),
                Seen::Read(base) => Seen::Read([&base[..], b"/", &path[..]].concat()),
                unread => unread,
            }
        }
        path => path,
    }
}

/// Arguments that are known here, with the same bounds.
pub(super) fn bounded<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Arguments {
    let mut kept = Arguments::default();
    let mut left = ALL;
    for text in texts {
        let bound = STRING.min(left.saturating_sub(1));
        if bound == 0 {
            kept.cut = kept.cut.saturating_add(1);
            continue;
        }
        let whole = text.len() <= bound;
        let text = if whole { text } else { &text[..bound] };
        left -= text.len() + 1;
        kept.cut = kept.cut.saturating_add(u32::from(!whole));
        kept.argv.push(text.to_vec());
    }
    kept
}

/// A string of a thread's memory, to at most 4096 bytes.
fn string(thread: u32, address: u64) -> Seen<Vec<u8>> {
    match read_string(thread, address, STRING) {
        Ok((text, _)) => Seen::Read(text),
        Err(error) => unread(&error),
    }
}

/// An array of strings of a thread's memory, bounded.
fn strings(thread: u32, address: u64) -> Seen<Arguments> {
    // Linux takes no array for an empty one.
    if address == 0 {
        return Seen::Read(Arguments::default());
    }
    let found = pointers(thread, address);
    match found.and_then(|(pointers, beyond)| collect(thread, &pointers, beyond)) {
        Ok(arguments) => Seen::Read(arguments),
        Err(error) => unread(&error),
    }
}

fn unread<T>(error: &io::Error) -> Seen<T> {
    Seen::Unread { errno: error.raw_os_error().unwrap_or(libc::EIO) }
}

/// The pointers of an array up to its null, and how many there are beyond those.
fn pointers(thread: u32, address: u64) -> io::Result<(Vec<u64>, u32)> {
    let mut found = Vec::new();
    let (mut beyond, mut at, mut bytes) = (0, address, POINTERS);
    while beyond < COUNTED {
        let part = match read(thread, at, bytes) {
            // What follows is not the kernel's to pass on either.
            Err(_) if beyond > 0 => break,
            part => part?,
        };
        for word in part.chunks_exact(8) {
            let Ok(word) = <[u8; 8]>::try_from(word) else { break };
            match u64::from_ne_bytes(word) {
                0 => return Ok((found, beyond)),
                pointer if found.len() < LOOKED_AT => found.push(pointer),
                _ => beyond += 1,
            }
        }
        if part.len() < 8 {
            return Err(rustix::io::Errno::FAULT.into());
        }
        at = at.wrapping_add((part.len() / 8 * 8) as u64);
        bytes = if beyond > 0 { 65_536 } else { 4096 };
    }
    Ok((found, beyond))
}

fn collect(thread: u32, pointers: &[u64], beyond: u32) -> io::Result<Arguments> {
    let mut kept = Arguments { cut: beyond, ..Arguments::default() };
    let mut left = ALL;
    for some in pointers.chunks(TOGETHER) {
        let beginnings = beginnings(thread, some);
        for (at, pointer) in some.iter().enumerate() {
            let bound = STRING.min(left.saturating_sub(1));
            if bound == 0 {
                kept.cut = kept.cut.saturating_add(1);
                continue;
            }
            let whole = beginnings.get(at).and_then(|bytes| ended(bytes));
            let (text, cut) = match whole {
                Some(text) if text.len() <= bound => (text.to_vec(), false),
                _ => read_string(thread, *pointer, bound)?,
            };
            left -= text.len() + 1;
            kept.cut = kept.cut.saturating_add(u32::from(cut));
            kept.argv.push(text);
        }
    }
    Ok(kept)
}

/// The first bytes of each of these strings, in one call; fewer where a page can't be read.
fn beginnings(thread: u32, pointers: &[u64]) -> Vec<Vec<u8>> {
    let parts: Vec<(u64, usize)> =
        pointers.iter().map(|pointer| (*pointer, to_page_end(*pointer, FIRST))).collect();
    let mut buffer = vec![0; parts.iter().map(|(_, length)| length).sum()];
    let got = sys::read_memory(thread, &parts, &mut buffer).unwrap_or(0);
    let mut rest = &buffer[..got];
    parts
        .iter()
        .map_while(|(_, length)| {
            let (beginning, after) = rest.split_at_checked(*length)?;
            rest = after;
            Some(beginning.to_vec())
        })
        .collect()
}

/// The string in these bytes, if it ends in them.
fn ended(bytes: &[u8]) -> Option<&[u8]> {
    bytes.iter().position(|byte| *byte == 0).map(|end| &bytes[..end])
}

/// A string, to at most `bound` bytes, and whether it is longer.
fn read_string(thread: u32, address: u64, bound: usize) -> io::Result<(Vec<u8>, bool)> {
    let mut text = Vec::new();
    loop {
        let part = read(thread, address + text.len() as u64, (bound + 1 - text.len()).min(1024))?;
        if let Some(rest) = ended(&part) {
            text.extend_from_slice(rest);
            return Ok((text, false));
        }
        text.extend_from_slice(&part);
        if text.len() > bound {
            text.truncate(bound);
            return Ok((text, true));
        }
    }
}

/// Up to `length` bytes, at least one, to the end of what can be read.
fn read(thread: u32, address: u64, length: usize) -> io::Result<Vec<u8>> {
    let first = to_page_end(address, length);
    let mut parts = vec![(address, first)];
    let mut at = first;
    while at < length {
        let next = address.wrapping_add(at as u64);
        let part = to_page_end(next, length - at);
        parts.push((next, part));
        at += part;
    }
    let mut buffer = vec![0; length];
    let got = sys::read_memory(thread, &parts, &mut buffer)?;
    buffer.truncate(got);
    Ok(buffer)
}

/// `length`, or less where a page ends before: the next one may not be there.
fn to_page_end(address: u64, length: usize) -> usize {
    let left = PAGE - address % PAGE;
    usize::try_from(left).unwrap_or(length).min(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(texts: &[&[u8]]) -> Seen<Arguments> {
        let stored: Vec<Vec<u8>> = texts.iter().map(|text| [text, &[0][..]].concat()).collect();
        let array: Vec<u64> =
            stored.iter().map(|text| text.as_ptr().expose_provenance() as u64).chain([0]).collect();
        strings(std::process::id(), array.as_ptr().expose_provenance() as u64)
    }

    #[test]
    fn arguments_come_as_they_are_up_to_the_bounds() {
        let long = vec![b'x'; 4096];
        let longer = vec![b'y'; 4097];
        let Seen::Read(seen) =
            own(&[b"sh", b"", b"\xff", &[b'a'; 127], &[b'b'; 128], &long, &longer])
        else {
            panic!("not read");
        };
        let lengths: Vec<usize> = seen.argv.iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 0, 1, 127, 128, 4096, 4096]);
        assert_eq!((seen.cut, seen.argv[2].as_slice()), (1, &b"\xff"[..]));
        let Seen::Read(many) = own(&vec![&b"0123456789abcde"[..]; 5000]) else {
            panic!("not read")
        };
        assert_eq!((many.argv.len(), many.cut), (4096, 904));
        for (words, kept, cut) in [
            (16_000, 16_000, 0),
            (16_384, 16_384, 0),
            (16_385, 16_384, 1),
            (20_000, 16_384, 3616),
            (300_000, 16_384, 283_616),
        ] {
            let Seen::Read(empty) = own(&vec![&b""[..]; words]) else { panic!("not read") };
            assert_eq!((empty.argv.len(), empty.cut), (kept, cut), "{words}");
        }
    }

    #[test]
    fn what_is_asked_for_is_the_same_in_one_call_and_in_many() {
        let call = |path: &[u8], array: &[u64]| Notification {
            id: 0,
            thread: std::process::id(),
            nr: i32::try_from(libc::SYS_execve).unwrap(),
            args: [
                path.as_ptr().expose_provenance() as u64,
                array.as_ptr().expose_provenance() as u64,
                0,
                0,
                0,
                0,
            ],
        };
        let word = c"word".as_ptr().expose_provenance() as u64;
        for path in [2, PATH - 1, PATH, 4000] {
            for words in [0, 1, 31, 32, 700] {
                let text = [vec![b'/'; path], vec![0]].concat();
                let array = [vec![word; words], vec![0]].concat();
                let (seen, arguments) = asked(&call(&text, &array));
                assert_eq!(seen, Seen::Read(text[..path].to_vec()));
                let Seen::Read(arguments) = arguments else { panic!("not read") };
                assert_eq!((arguments.argv, arguments.cut), (vec![b"word".to_vec(); words], 0));
            }
        }
        let mut none = call(b"/bin/true\0", &[word, 0]);
        none.args[1] = 8;
        let errno = libc::EFAULT;
        assert_eq!(asked(&none), (Seen::Read(b"/bin/true".to_vec()), Seen::Unread { errno }));
        none.args[0] = 8;
        assert_eq!(asked(&none).0, Seen::Unread { errno });
        // Linux takes no array for an empty one.
        let mut empty = call(b"/bin/true\0", &[0]);
        empty.args[1] = 0;
        assert_eq!(asked(&empty).1, Seen::Read(Arguments::default()));
    }

    #[test]
    fn what_is_not_there_is_said_and_not_taken_for_empty() {
        let fault = Seen::Unread { errno: libc::EFAULT };
        assert_eq!(strings(std::process::id(), 8), fault);
        let array = [8u64, 0];
        assert_eq!(strings(std::process::id(), array.as_ptr().expose_provenance() as u64), fault);
        assert_eq!(string(std::process::id(), 8), Seen::Unread { errno: libc::EFAULT });
        assert_eq!(strings(std::process::id(), 0), Seen::Read(Arguments::default()));
    }
}
