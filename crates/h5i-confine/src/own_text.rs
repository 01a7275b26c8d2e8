//! What of the calling program's own code is in its memory.

use std::fs;
use std::io;
use std::ops::Range;

use crate::sys;

/// Takes the code of the program that this library is part of out of the calling process's memory,
/// for a process that will mostly sleep from here on; yields how many bytes of address space that
/// was.
///
/// The pages stay in the kernel's page cache, where all processes of the program share them, and
/// come back one after the other as they are run. What it changes: the process's resident set, and
/// that the kernel may drop the pages when memory is short, which it does last for code that is
/// mapped. Costs some tens of microseconds now, and a page fault for each part that is run again.
///
/// # Errors
/// That of reading `/proc/self/maps`, or of `madvise(2)`; nothing else has changed then.
pub fn give_back_text() -> io::Result<usize> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let here = (give_back_text as fn() -> io::Result<usize>) as usize;
    match text_at(&maps, here) {
        Some(text) => sys::forget_text(text),
        None => Ok(0),
    }
}

/// The mapping that holds an address, if it is code of a file that nobody can have written to.
fn text_at(maps: &str, address: usize) -> Option<Range<usize>> {
    maps.lines().find_map(|line| {
        // address perms offset dev inode path (proc_pid_maps(5))
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let parse = |hex| usize::from_str_radix(hex, 16).ok();
        let range = parse(start)?..parse(end)?;
        let code = fields.next()? == "r-xp" && fields.nth(2)? != "0";
        (code && range.contains(&address)).then_some(range)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
5651f868c000-5651f88ca000 r--p 00000000 fe:00 5342250                    /usr/bin/h5i
5651f88ca000-5651f93b5000 r-xp 0023d000 fe:00 5342250                    /usr/bin/h5i
5651f93b5000-5651f93ec000 r--p 00d27000 fe:00 5342250                    /usr/bin/h5i
7fa40e32b000-7fa40e36b000 r-xp 00000000 00:00 0
7ffca7105000-7ffca7126000 rw-p 00000000 00:00 0                          [stack]
";

    #[test]
    fn only_code_of_a_file_is_text() {
        assert_eq!(text_at(MAPS, 0x5651_f88c_a000), Some(0x5651_f88c_a000..0x5651_f93b_5000));
        for other in [0x5651_f868_c000, 0x5651_f93b_5000, 0x7fa4_0e32_b000, 0x7ffc_a710_5000, 0] {
            assert_eq!(text_at(MAPS, other), None, "{other:x}");
        }
    }

    #[test]
    fn a_program_goes_on_without_its_text_in_memory() {
        assert!(give_back_text().unwrap() > 0);
    }
}
