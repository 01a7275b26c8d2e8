//! System-call filters: rules are data, the program is compiled, the kernel decides.

mod program;
mod table;

use h5i_policy::Debuggers;
use program::compile;

use crate::step::FilterProgram;
pub(crate) use table::Refused;
use table::{ABSENT, DEBUGGERS, RECORDED, REFUSED, WITH_DEBUGGERS};

/// An architecture a filter can be compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arch {
    X86_64,
    Aarch64,
}

impl Arch {
    /// The one this program runs on.
    pub(crate) const NATIVE: Self =
        if cfg!(target_arch = "x86_64") { Self::X86_64 } else { Self::Aarch64 };

    pub(crate) fn number(self, call: &Refused) -> Option<u32> {
        match self {
            Self::X86_64 => call.x86_64,
            Self::Aarch64 => call.aarch64,
        }
    }
}

/// The calls that are refused and recorded under this policy switch.
pub(crate) fn refused(debuggers: Debuggers) -> impl Iterator<Item = &'static Refused> {
    let extra = match debuggers {
        Debuggers::Allowed => WITH_DEBUGGERS,
        _ => DEBUGGERS,
    };
    REFUSED.iter().chain(extra)
}

/// The calls that do not exist in a box.
pub(crate) fn absent() -> impl Iterator<Item = &'static Refused> {
    ABSENT.iter()
}

/// The setting under which this refused call passes, if there is one.
pub(crate) fn allowed_by(nr: i32, args: [u64; 3]) -> Option<&'static str> {
    let is =
        |call: &&Refused| Arch::NATIVE.number(call).is_some_and(|n| i64::from(n) == i64::from(nr));
    let refused = DEBUGGERS.iter().any(|call| is(&call));
    let stays = WITH_DEBUGGERS.iter().find(is).is_some_and(|call| call.rule.holds(args));
    (refused && !stays).then_some("debuggers=\"allowed\"")
}

/// Whether programs that are started are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Programs {
    Recorded,
    Unrecorded,
}

/// The calls that go on once they are on record.
pub(crate) fn recorded(programs: Programs) -> impl Iterator<Item = &'static Refused> {
    match programs {
        Programs::Recorded => RECORDED,
        Programs::Unrecorded => &[],
    }
    .iter()
}

/// The refused call with this number on this architecture.
pub(crate) fn by_number(nr: i32) -> Option<&'static Refused> {
    REFUSED
        .iter()
        .chain(DEBUGGERS)
        .find(|call| Arch::NATIVE.number(call).is_some_and(|n| i64::from(n) == i64::from(nr)))
}

/// The program of a box.
pub(crate) fn program(
    debuggers: Debuggers,
    programs: Programs,
    kernel: (u32, u32),
) -> FilterProgram {
    compile(Arch::NATIVE, debuggers, programs, kernel >= (5, 19))
}
