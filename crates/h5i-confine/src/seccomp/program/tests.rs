//! The compiled program, in an interpreter, on both architectures, beside `seccompiler`'s.

use std::collections::BTreeMap;

use proptest::prelude::*;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::super::Refused;
use super::*;

/// Interprets classic BPF as the kernel's seccomp does, for the instructions that occur.
fn verdict(program: &[Instruction], audit: u32, nr: u32, args: [u64; 6]) -> u32 {
    let mut data = [0u8; 64];
    data[..4].copy_from_slice(&nr.to_le_bytes());
    data[4..8].copy_from_slice(&audit.to_le_bytes());
    for (i, arg) in args.iter().enumerate() {
        data[16 + 8 * i..24 + 8 * i].copy_from_slice(&arg.to_le_bytes());
    }
    let (mut at, mut accumulator) = (0usize, 0u32);
    loop {
        let (code, jt, jf, k) = program[at];
        at += 1;
        let branch = |holds: bool| usize::from(if holds { jt } else { jf });
        match code {
            LOAD => {
                let k = k as usize;
                accumulator = u32::from_le_bytes(data[k..k + 4].try_into().unwrap());
            }
            AND => accumulator &= k,
            JUMP => at += k as usize,
            IF_EQUAL => at += branch(accumulator == k),
            IF_ABOVE => at += branch(accumulator > k),
            IF_AT_LEAST => at += branch(accumulator >= k),
            IF_ANY_BIT => at += branch(accumulator & k != 0),
            RETURN => return k,
            other => panic!("instruction {other:#x} is not known"),
        }
    }
}

fn audit(arch: Arch) -> u32 {
    match arch {
        Arch::X86_64 => AUDIT_ARCH_X86_64,
        Arch::Aarch64 => AUDIT_ARCH_AARCH64,
    }
}

/// The same rules compiled by `seccompiler`; the verdict "listed" stands for any other than allow.
fn reference(arch: Arch, debuggers: Debuggers) -> Vec<Instruction> {
    let condition = |arg: &Arg| {
        let (index, operator, value) = match *arg {
            Arg::Is(i, v) => (i, SeccompCmpOp::Eq, v),
            Arg::Not(i, v) => (i, SeccompCmpOp::Ne, v),
            Arg::Masked(i, m, v) => (i, SeccompCmpOp::MaskedEq(m), v),
        };
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value).unwrap()
    };
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in absent().chain(refused(debuggers)) {
        let Some(nr) = arch.number(call) else { continue };
        let chain: Vec<SeccompRule> = match call.rule {
            Rule::Whole => vec![],
            Rule::AnyFlag(i, flags) => flags
                .iter()
                .map(|f| SeccompRule::new(vec![condition(&Arg::Masked(i, *f, *f))]).unwrap())
                .collect(),
            Rule::Argument(alternatives) => alternatives
                .iter()
                .map(|all| SeccompRule::new(all.iter().map(condition).collect()).unwrap())
                .collect(),
        };
        assert!(rules.insert(i64::from(nr), chain).is_none(), "{} is listed twice", call.name);
    }
    let target = match arch {
        Arch::X86_64 => TargetArch::x86_64,
        Arch::Aarch64 => TargetArch::aarch64,
    };
    let program: BpfProgram =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Trap, target)
            .unwrap()
            .try_into()
            .unwrap();
    program.iter().map(|i| (i.code, i.jt, i.jf, i.k)).collect()
}

const ARCHES: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];
const SWITCHES: [Debuggers; 2] = [Debuggers::Refused, Debuggers::Allowed];

/// Arguments that rules ask for, their neighbours, and litter in the upper half.
fn argument() -> impl Strategy<Value = u64> {
    let interesting: Vec<u64> = vec![
        0,
        1,
        2,
        3,
        5,
        10,
        16,
        17,
        38,
        0x11,
        0x80,
        0x2_0000,
        0x4_0000,
        0x80003,
        0x1000_0000,
        0x5412,
        0x541c,
        0x541d,
        0x5423,
        0xffff_ffff,
        0x1_0000_0001,
        0xdead_0000_0000_0001,
    ];
    prop_oneof![proptest::sample::select(interesting), any::<u64>()]
}

proptest! {
    #[test]
    fn verdicts_agree_with_seccompiler(
        arch in proptest::sample::select(&ARCHES[..]),
        debuggers in proptest::sample::select(&SWITCHES[..]),
        nr in 0..=LAST_KNOWN,
        args in prop::array::uniform6(argument()),
    ) {
        let ours = compile(arch, debuggers, Programs::Unrecorded, true).instructions;
        let theirs = reference(arch, debuggers);
        let refused = verdict(&ours, audit(arch), nr, args) != ALLOW;
        let expected = verdict(&theirs, audit(arch), nr, args) != ALLOW;
        prop_assert_eq!(refused, expected, "call {}", nr);
    }
}

#[test]
fn every_listed_call_is_refused_and_its_twin_without_the_rule_is_allowed() {
    for arch in ARCHES {
        let program = compile(arch, Debuggers::Refused, Programs::Unrecorded, true).instructions;
        for call in refused(Debuggers::Refused) {
            let Some(nr) = arch.number(call) else { continue };
            let (bad, good) = match call.rule {
                Rule::Whole => (vec![[0; 6]], None),
                Rule::AnyFlag(i, flags) => {
                    (flags.iter().map(|flag| with(i, *flag)).collect(), Some([0; 6]))
                }
                Rule::Argument(alternatives) => {
                    let (bad, good) = examples(call.name, alternatives);
                    (bad, Some(good))
                }
            };
            for bad in bad {
                assert_eq!(verdict(&program, audit(arch), nr, bad), USER_NOTIF, "{}", call.name);
            }
            if let Some(good) = good {
                assert_eq!(verdict(&program, audit(arch), nr, good), ALLOW, "{}", call.name);
            }
        }
        for call in absent() {
            let nr = arch.number(call).unwrap();
            let got = verdict(&program, audit(arch), nr, [0; 6]);
            assert_eq!(got, ERRNO | 38, "{}", call.name);
        }
    }
}

fn with(argument: u8, value: u64) -> [u64; 6] {
    let mut args = [0; 6];
    args[usize::from(argument)] = value;
    args
}

/// A refused set of arguments for each alternative of the rule, and one that is allowed.
fn examples(name: &str, alternatives: &[&[Arg]]) -> (Vec<[u64; 6]>, [u64; 6]) {
    let bad = alternatives
        .iter()
        .map(|all| {
            let mut args = [0; 6];
            for condition in *all {
                let place = usize::from(condition.index());
                match *condition {
                    Arg::Is(_, value) | Arg::Masked(_, _, value) => args[place] = value,
                    // No rule excludes this value.
                    Arg::Not(..) => args[place] = 0x7777,
                }
            }
            args
        })
        .collect();
    let good = match name {
        "socket" => [2, 1, 0, 0, 0, 0],
        _ => [0; 6],
    };
    (bad, good)
}

#[test]
fn programs_go_to_the_listener_where_they_are_recorded_and_pass_where_not() {
    for arch in ARCHES {
        let verdict_of = |programs, call: &Refused| {
            let program = compile(arch, Debuggers::Refused, programs, true).instructions;
            verdict(&program, audit(arch), arch.number(call).unwrap(), [0; 6])
        };
        for call in recorded(Programs::Recorded) {
            assert_eq!(verdict_of(Programs::Recorded, call), USER_NOTIF, "{}", call.name);
            assert_eq!(verdict_of(Programs::Unrecorded, call), ALLOW, "{}", call.name);
        }
    }
}

#[test]
fn foreign_architectures_are_killed() {
    const AUDIT_ARCH_I386: u32 = 0x4000_0003;
    const AUDIT_ARCH_ARM: u32 = 0x4000_0028;
    let native = compile(Arch::X86_64, Debuggers::Refused, Programs::Unrecorded, true).instructions;
    assert_eq!(verdict(&native, AUDIT_ARCH_I386, 4, [0; 6]), KILL_PROCESS);
    assert_eq!(verdict(&native, AUDIT_ARCH_X86_64, 4, [0; 6]), ALLOW);
    let arm = compile(Arch::Aarch64, Debuggers::Refused, Programs::Unrecorded, true).instructions;
    assert_eq!(verdict(&arm, AUDIT_ARCH_ARM, 4, [0; 6]), KILL_PROCESS);
    assert_eq!(verdict(&arm, AUDIT_ARCH_AARCH64, 4, [0; 6]), ALLOW);
}

#[test]
fn unknown_numbers_and_x32_do_not_exist() {
    for arch in ARCHES {
        let program = compile(arch, Debuggers::Refused, Programs::Unrecorded, true).instructions;
        for nr in [LAST_KNOWN + 1, 512, 0x4000_0000, 0x4000_0001, u32::MAX] {
            assert_eq!(verdict(&program, audit(arch), nr, [0; 6]), ERRNO | 38, "{nr:#x}");
        }
        assert_eq!(verdict(&program, audit(arch), LAST_KNOWN, [0; 6]), ALLOW);
    }
}

#[test]
fn debuggers_by_profile_may_trace_and_switch_randomisation_off_and_nothing_more() {
    let arch = Arch::X86_64;
    let strict = compile(arch, Debuggers::Refused, Programs::Unrecorded, true).instructions;
    let open = compile(arch, Debuggers::Allowed, Programs::Unrecorded, true).instructions;
    let (ptrace, personality) = (101, 135);
    for (nr, args) in [(ptrace, [0; 6]), (personality, with(0, 0x4_0000))] {
        assert_eq!(verdict(&strict, audit(arch), nr, args), USER_NOTIF);
        assert_eq!(verdict(&open, audit(arch), nr, args), ALLOW);
    }
    assert_eq!(verdict(&open, audit(arch), personality, with(0, 8)), USER_NOTIF);
}

#[test]
fn no_jump_is_cut_short() {
    for arch in ARCHES {
        for debuggers in SWITCHES {
            for (code, jt, jf, _) in
                compile(arch, debuggers, Programs::Unrecorded, true).instructions
            {
                assert!(code == JUMP || (jt < u8::MAX && jf < u8::MAX));
            }
        }
    }
}
