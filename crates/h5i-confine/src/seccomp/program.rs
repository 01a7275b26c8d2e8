//! Compiles the table by `seccompiler` into the programs that the stage installs.

use std::collections::BTreeMap;

use h5i_policy::Debuggers;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

use super::table::{Arg, LAST_KNOWN, Refused, Rule};
use super::{Arch, absent, refused};
use crate::step::FilterProgram;

/// Stands for "notify" while seccompiler, which does not know that action, compiles.
const PLACEHOLDER: u32 = 0x6835;
const RET_K: u16 = 0x06;
const LD_W_ABS: u16 = 0x20;
const JMP_JGT_K: u16 = 0x25;
const SECCOMP_RET_TRACE: u32 = 0x7ff0_0000;
const SECCOMP_RET_USER_NOTIF: u32 = 0x7fc0_0000;
const SECCOMP_RET_ERRNO: u32 = 0x0005_0000;
/// Instructions of seccompiler's architecture check, which every program starts with.
const ARCH_CHECK: usize = 3;

/// Compiles both programs: calls that do not exist, then calls that are refused and reported.
pub(crate) fn compile(
    arch: Arch,
    debuggers: Debuggers,
    wait_killable: bool,
) -> Result<Vec<FilterProgram>, BackendError> {
    let enosys = libc::ENOSYS.unsigned_abs();
    let mut missing = filter(arch, absent(), SeccompAction::Errno(enosys))?;
    // Every number above the table's knowledge, x32's (bit 30) among them.
    let unknown = [
        sock_filter { code: LD_W_ABS, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JMP_JGT_K, jt: 0, jf: 1, k: LAST_KNOWN },
        sock_filter { code: RET_K, jt: 0, jf: 0, k: SECCOMP_RET_ERRNO | enosys },
    ];
    missing.splice(ARCH_CHECK..ARCH_CHECK, unknown);

    let mut reported = filter(arch, refused(debuggers), SeccompAction::Trace(PLACEHOLDER))?;
    for instruction in &mut reported {
        if instruction.code == RET_K && instruction.k == SECCOMP_RET_TRACE | PLACEHOLDER {
            instruction.k = SECCOMP_RET_USER_NOTIF;
        }
    }
    Ok(vec![
        FilterProgram {
            purpose: "calls that do not exist",
            instructions: words(&missing),
            notifies: false,
            wait_killable: false,
        },
        FilterProgram {
            purpose: "calls that are refused and recorded",
            instructions: words(&reported),
            notifies: true,
            wait_killable,
        },
    ])
}

fn words(program: &BpfProgram) -> Vec<(u16, u8, u8, u32)> {
    program.iter().map(|i| (i.code, i.jt, i.jf, i.k)).collect()
}

fn filter<'a>(
    arch: Arch,
    calls: impl Iterator<Item = &'a Refused>,
    action: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in calls {
        if let Some(nr) = arch.number(call) {
            rules.entry(i64::from(nr)).or_default().extend(chain(&call.rule)?);
        }
    }
    let target = match arch {
        Arch::X86_64 => TargetArch::x86_64,
        Arch::Aarch64 => TargetArch::aarch64,
    };
    SeccompFilter::new(rules, SeccompAction::Allow, action, target)?.try_into()
}

fn chain(rule: &Rule) -> Result<Vec<SeccompRule>, BackendError> {
    match rule {
        Rule::Whole => Ok(Vec::new()),
        Rule::AnyFlag(arg, flags) => flags
            .iter()
            .map(|&flag| SeccompRule::new(vec![condition(&Arg::Masked(*arg, flag, flag))?]))
            .collect(),
        Rule::Argument(alternatives) => alternatives
            .iter()
            .map(|all| SeccompRule::new(all.iter().map(condition).collect::<Result<_, _>>()?))
            .collect(),
    }
}

fn condition(arg: &Arg) -> Result<SeccompCondition, BackendError> {
    let (index, operator, value) = match *arg {
        Arg::Is(index, value) => (index, SeccompCmpOp::Eq, value),
        Arg::Not(index, value) => (index, SeccompCmpOp::Ne, value),
        Arg::Masked(index, mask, value) => (index, SeccompCmpOp::MaskedEq(mask), value),
    };
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)
}
