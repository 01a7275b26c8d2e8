//! The kernel's reading of a system-call filter, for doors that the host keeps shut anyway.

use h5i_confine::FilterProgram;

pub(crate) const USER_NOTIF: u32 = 0x7fc0_0000;
pub(crate) const ALLOW: u32 = 0x7fff_0000;

const AUDIT_ARCH: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };

/// What the filter says of a native call with these first three arguments.
pub(crate) fn verdict(filter: &FilterProgram, nr: i64, args: [u64; 3]) -> u32 {
    let mut data = [0u8; 64];
    data[..4].copy_from_slice(&(nr as u32).to_ne_bytes());
    data[4..8].copy_from_slice(&AUDIT_ARCH.to_ne_bytes());
    for (place, arg) in data[16..].chunks_mut(8).zip(args) {
        place.copy_from_slice(&arg.to_ne_bytes());
    }
    let (mut at, mut accumulator) = (0usize, 0u32);
    loop {
        let (code, jt, jf, k) = filter.instructions[at];
        at += 1;
        let holds = match code {
            0x20 => {
                let k = k as usize;
                accumulator = u32::from_ne_bytes(data[k..k + 4].try_into().unwrap());
                continue;
            }
            0x54 => {
                accumulator &= k;
                continue;
            }
            0x05 => {
                at += k as usize;
                continue;
            }
            0x06 => return k,
            0x15 => accumulator == k,
            0x25 => accumulator > k,
            0x35 => accumulator >= k,
            0x45 => accumulator & k != 0,
            other => panic!("instruction {other:#x} is not known"),
        };
        at += usize::from(if holds { jt } else { jf });
    }
}
