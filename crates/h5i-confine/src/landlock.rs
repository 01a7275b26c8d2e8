//! The Landlock rights that a box gets, by the host's ABI.

use std::path::PathBuf;

use landlock::{ABI, Access as _, AccessFs, BitFlags, Scope};

use crate::step::LandlockRules;

/// Rights on directories that the box may write.
fn write_rights(abi: ABI) -> BitFlags<AccessFs> {
    // Device nodes can't be made without a capability that no box has; the wall says so as well.
    AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock)
}

/// Builds the rules: everything below the root may be read and executed, `writable` may be
/// written, devices may be read, written and controlled. A socket of any kind may be made.
///
/// Network ports are not restricted here: in a network namespace of its own a box may use every
/// port of its loopback, and a network shared with the host is a choice for all of it.
pub(crate) fn rules(host_abi: u32, writable: &[PathBuf]) -> LandlockRules {
    let abi = known(host_abi);
    let read = AccessFs::from_read(abi);
    let devices = (read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev)
        & AccessFs::from_all(abi);
    let mut rules =
        vec![(PathBuf::from("/"), read.bits()), (PathBuf::from("/dev"), devices.bits())];
    rules.extend(writable.iter().map(|path| (path.clone(), write_rights(abi).bits())));
    LandlockRules {
        abi: abi as u32,
        handled: AccessFs::from_all(abi).bits(),
        scoped: Scope::from_all(abi).bits(),
        rules,
    }
}

/// The newest ABI that both the host and the `landlock` crate know.
fn known(host: u32) -> ABI {
    match host {
        0 => ABI::Unsupported,
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        6 => ABI::V6,
        7 => ABI::V7,
        8 => ABI::V8,
        9 => ABI::V9,
        _ => ABI::V10,
    }
}
