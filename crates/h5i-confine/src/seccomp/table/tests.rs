//! The numbers of aarch64, which most tests never meet, beside the kernel's own: its table is
//! `asm-generic/unistd.h`, a header that every machine with a C compiler has.

use std::collections::BTreeMap;
use std::fs;

use super::*;

/// The numbers by name: `#define __NR_name 1`, or `__NR3264_name` where 32-bit machines differ.
fn kernel() -> BTreeMap<String, u32> {
    let header = fs::read_to_string("/usr/include/asm-generic/unistd.h")
        .expect("the kernel's headers, which come with those of the C library");
    let defined = |line: &str| {
        let mut words = line.strip_prefix("#define ")?.split_whitespace();
        let name = words.next()?;
        let name = name.strip_prefix("__NR_").or_else(|| name.strip_prefix("__NR3264_"))?;
        Some((name.to_owned(), words.next()?.parse().ok()?))
    };
    let mut numbers: BTreeMap<String, u32> = header.lines().filter_map(defined).collect();
    // The end of the table, not a call.
    numbers.remove("syscalls");
    numbers
}

#[test]
fn the_numbers_of_aarch64_are_the_kernels() {
    let kernel = kernel();
    let last = *kernel.values().max().unwrap();
    let mut compared = 0;
    for call in REFUSED.iter().chain(ABSENT).chain(DEBUGGERS).chain(WITH_DEBUGGERS) {
        let Some(number) = call.aarch64 else {
            assert!(!kernel.contains_key(call.name), "{} has a number", call.name);
            continue;
        };
        // What is newer than the headers has one number on every architecture.
        if number > last {
            assert_eq!(call.x86_64, Some(number), "{}", call.name);
            continue;
        }
        assert_eq!(kernel.get(call.name), Some(&number), "{}", call.name);
        compared += 1;
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn the_numbers_of_the_stage_on_aarch64_are_the_kernels() {
    let kernel = kernel();
    let stage = include_str!("../../../stage/numbers.rs");
    let (_, aarch64) = stage.split_once("pub mod aarch64 {").unwrap();
    let numbers: Vec<(String, u32)> = aarch64
        .lines()
        .filter_map(|line| {
            let (name, number) =
                line.trim().strip_prefix("pub const ")?.split_once(": usize = ")?;
            Some((name.to_lowercase(), number.strip_suffix(';')?.parse().ok()?))
        })
        .collect();
    assert!(numbers.len() > 20, "{numbers:?}");
    for (name, number) in numbers {
        assert_eq!(kernel.get(&name), Some(&number), "{name}");
    }
}
