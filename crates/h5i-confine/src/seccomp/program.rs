//! Compiles the table into one seccomp program: a binary search over the call's number.
//!
//! The kernel walks a new program once for every system call there is, to learn which ones it
//! always allows, and does so at each installation: a program that searches is installed in a
//! quarter of the time that one that compares call after call needs. The verdicts are checked
//! against `seccompiler`'s in the tests.

use h5i_policy::Debuggers;

use super::table::{Arg, LAST_KNOWN, Rule};
use super::{Arch, Programs, absent, recorded, refused};
use crate::step::FilterProgram;

const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
const JUMP: u16 = 0x05; // BPF_JMP | BPF_JA
const IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const IF_ABOVE: u16 = 0x25; // BPF_JMP | BPF_JGT | BPF_K
const IF_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const IF_ANY_BIT: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K

const KILL_PROCESS: u32 = 0x8000_0000;
const USER_NOTIF: u32 = 0x7fc0_0000;
const ERRNO: u32 = 0x0005_0000;
const ALLOW: u32 = 0x7fff_0000;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
const AUDIT_ARCH_AARCH64: u32 = 0xc000_00b7;

/// Below this many calls a block compares one after the other.
const LEAF: usize = 3;

type Instruction = (u16, u8, u8, u32);

/// What happens to a listed call whose rule holds.
struct Entry {
    nr: u32,
    rule: Rule,
    verdict: u32,
}

/// Compiles the program of a box: calls that do not exist get ENOSYS, refused and recorded ones go to
/// the listener, a foreign architecture kills the process, everything else passes.
pub(crate) fn compile(
    arch: Arch,
    debuggers: Debuggers,
    programs: Programs,
    wait_killable: bool,
) -> FilterProgram {
    let enosys = ERRNO | libc::ENOSYS.unsigned_abs();
    let mut entries: Vec<Entry> = absent()
        .map(|call| (call, enosys))
        .chain(refused(debuggers).chain(recorded(programs)).map(|call| (call, USER_NOTIF)))
        .filter_map(|(call, verdict)| {
            Some(Entry { nr: arch.number(call)?, rule: call.rule, verdict })
        })
        .collect();
    entries.sort_by_key(|entry| entry.nr);
    let audit = match arch {
        Arch::X86_64 => AUDIT_ARCH_X86_64,
        Arch::Aarch64 => AUDIT_ARCH_AARCH64,
    };
    let mut instructions = vec![
        (LOAD, 0, 0, ARCHITECTURE),
        (IF_EQUAL, 1, 0, audit),
        (RETURN, 0, 0, KILL_PROCESS),
        (LOAD, 0, 0, NUMBER),
        // Every number above the table's knowledge, x32's (bit 30) among them.
        (IF_ABOVE, 0, 1, LAST_KNOWN),
        (RETURN, 0, 0, enosys),
    ];
    instructions.extend(search(&entries));
    FilterProgram { instructions, notifies: true, wait_killable }
}

/// A block that ends in a return on every way through it.
fn search(entries: &[Entry]) -> Vec<Instruction> {
    if entries.len() <= LEAF {
        let mut block = Vec::new();
        for entry in entries {
            let body = body(&entry.rule, entry.verdict);
            block.push((IF_EQUAL, 0, offset(body.len()), entry.nr));
            block.extend(body);
        }
        block.push((RETURN, 0, 0, ALLOW));
        return block;
    }
    let (below, from) = entries.split_at(entries.len() / 2);
    let (left, right) = (search(below), search(from));
    let pivot = from.first().map_or(0, |entry| entry.nr);
    // A conditional jump reaches 255 instructions, an unconditional one all of them.
    let mut block = vec![
        (IF_AT_LEAST, 0, 1, pivot),
        (JUMP, 0, 0, u32::try_from(left.len()).unwrap_or(u32::MAX)),
    ];
    block.extend(left);
    block.extend(right);
    block
}

/// Decides one call; ends in a return.
fn body(rule: &Rule, verdict: u32) -> Vec<Instruction> {
    match rule {
        Rule::Whole => vec![(RETURN, 0, 0, verdict)],
        Rule::AnyFlag(argument, flags) => {
            let mask = flags.iter().fold(0, |all, flag| all | low(*flag));
            vec![
                (LOAD, 0, 0, address(*argument)),
                (IF_ANY_BIT, 0, 1, mask),
                (RETURN, 0, 0, verdict),
                (RETURN, 0, 0, ALLOW),
            ]
        }
        Rule::Argument(alternatives) => {
            let mut block = Vec::new();
            for conditions in *alternatives {
                block.extend(all_of(conditions, verdict));
            }
            block.push((RETURN, 0, 0, ALLOW));
            block
        }
    }
}

/// Returns the verdict when all conditions hold, else falls through.
fn all_of(conditions: &[Arg], verdict: u32) -> Vec<Instruction> {
    let mut block: Vec<Instruction> = vec![(RETURN, 0, 0, verdict)];
    for condition in conditions.iter().rev() {
        let past = offset(block.len());
        let (argument, mask, test) = match *condition {
            Arg::Is(i, value) => (i, None, (IF_EQUAL, 0, past, low(value))),
            Arg::Not(i, value) => (i, None, (IF_EQUAL, past, 0, low(value))),
            Arg::Masked(i, mask, value) => (i, Some(mask), (IF_EQUAL, 0, past, low(value))),
        };
        let mut test_block = vec![(LOAD, 0, 0, address(argument))];
        test_block.extend(mask.map(|mask| (AND, 0, 0, low(mask))));
        test_block.push(test);
        test_block.extend(block);
        block = test_block;
    }
    block
}

/// Where the lower half of an argument lies; both architectures are little-endian.
fn address(argument: u8) -> u32 {
    ARGUMENTS + 8 * u32::from(argument)
}

fn low(value: u64) -> u32 {
    u32::try_from(value & 0xffff_ffff).unwrap_or(u32::MAX)
}

/// Lengths of rule bodies are small by construction; the tests check every jump.
fn offset(length: usize) -> u8 {
    u8::try_from(length).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests;
