//! A list of system calls that the parent built, mapped privately and executed in order.

use crate::sys::{self, EACCES, ENOENT, ENOTDIR, nr};
use crate::wire::{
    ARG_POINTER, ARG_SLOT, Call, Head, MAGIC, NO_SLOT, OP_DONE, OP_EXEC, OP_FAIL, OP_LOAD_FD, OP_PATCH_FD, SLOTS,
};

const AT_FDCWD: usize = -100isize as usize;
const F_OK: usize = 0;

/// A mapped list. The parent built it; the stage trusts it as it trusts its own code.
#[derive(Clone, Copy)]
pub struct List {
    base: usize,
    len: usize,
}

/// Where a list stopped.
pub struct Failure {
    pub step: u32,
    pub errno: i64,
}

/// What one call of a list asks of its executor.
pub enum Next {
    /// It was done here.
    Done,
    /// It is an operation that only the executor knows.
    Operation(Call),
}

/// Descriptors by slot; -1 where there is none.
pub struct Slots(pub [i32; SLOTS]);

impl Slots {
    pub const fn empty() -> Self {
        Self([-1; SLOTS])
    }

    pub fn at(&self, slot: u64) -> i32 {
        let index = slot as usize;
        if index < SLOTS { self.0[index] } else { -1 }
    }
}

impl List {
    /// Maps the list in `fd` and applies its pointer fix-ups.
    pub fn map(fd: i32) -> Option<Self> {
        // SAFETY: lseek takes numbers; SEEK_END (2) yields the size of the memfd.
        let len = unsafe { sys::call(nr::LSEEK, [fd as usize, 0, 2, 0, 0, 0]) };
        if len < size_of::<Head>() as isize {
            return None;
        }
        // SAFETY: a new private mapping (PROT_READ|PROT_WRITE = 3, MAP_PRIVATE = 2) of the whole
        // file at an address that the kernel chooses.
        let base = unsafe { sys::call(nr::MMAP, [0, len as usize, 3, 2, fd as usize, 0]) };
        if base < 0 {
            return None;
        }
        let list = Self { base: base as usize, len: len as usize };
        if list.head().magic != MAGIC {
            return None;
        }
        let table = size_of::<Head>() + list.head().calls as usize * size_of::<Call>();
        for i in 0..list.head().fixups as usize {
            let at = list.base + table + i * 16;
            // SAFETY: the parent wrote `fixups` pairs of aligned u64 there.
            let [place, target] = unsafe { (at as *const [u64; 2]).read() };
            let pointer = list.base as u64 + target;
            // SAFETY: `place` is the aligned offset of a pointer-sized field inside the mapping.
            unsafe { ((list.base + place as usize) as *mut u64).write(pointer) };
        }
        Some(list)
    }

    pub fn unmap(self) {
        // SAFETY: the mapping is this list's own, and `self` is not used again.
        let _ = unsafe { sys::call(nr::MUNMAP, [self.base, self.len, 0, 0, 0, 0]) };
    }

    pub fn head(&self) -> Head {
        // SAFETY: `map` checked that the mapping holds at least a head; mappings are page-aligned.
        unsafe { (self.base as *const Head).read() }
    }

    pub fn call(&self, index: usize) -> Call {
        let at = self.base + size_of::<Head>() + index * size_of::<Call>();
        // SAFETY: callers stay below `head().calls`, and the parent wrote that many aligned calls.
        unsafe { (at as *const Call).read() }
    }

    /// Does one call, or hands it back when only the executor can.
    pub fn step(&self, call: &Call, slots: &mut Slots, kept: &mut isize) -> Result<Next, Failure> {
        let mut args = [0usize; 6];
        for (i, arg) in args.iter_mut().enumerate() {
            *arg = match call.kinds[i] {
                ARG_POINTER => self.base + call.args[i] as usize,
                ARG_SLOT => slots.at(call.args[i]) as usize,
                _ => call.args[i] as usize,
            };
        }
        match call.nr {
            OP_PATCH_FD => {
                let fd = slots.at(call.args[0]);
                // SAFETY: args[1] is the aligned offset of an i32 field inside the mapping.
                unsafe { ((self.base + call.args[1] as usize) as *mut i32).write(fd) };
                Ok(Next::Done)
            }
            OP_EXEC => {
                let there = [AT_FDCWD, args[0], F_OK, 0, 0, 0];
                // SAFETY: the path is NUL-terminated data of the list.
                let mut result = unsafe { sys::call(nr::FACCESSAT, there) };
                if result == 0 {
                    // SAFETY: path, argv and envp are NUL-terminated data of the list, fixed up by
                    // map.
                    result = unsafe { sys::call(nr::EXECVE, args) };
                }
                match -result {
                    ENOENT | ENOTDIR => {}
                    EACCES => *kept = EACCES,
                    other => return Err(Failure { step: call.step, errno: other as i64 }),
                }
                Ok(Next::Done)
            }
            OP_LOAD_FD => {
                // SAFETY: args[0] is the aligned offset of an i32 field inside the mapping.
                let fd = unsafe { ((self.base + call.args[0] as usize) as *const i32).read() };
                slots.0[call.out as usize] = fd;
                Ok(Next::Done)
            }
            OP_DONE => sys::exit(0),
            OP_FAIL => {
                let errno = if *kept == 0 { ENOENT } else { *kept };
                Err(Failure { step: call.step, errno: errno as i64 })
            }
            n if n >= 0xffff_0000 => Ok(Next::Operation(*call)),
            n => {
                // SAFETY: the parent compiled this call and its data; see `wire`.
                let result = unsafe { sys::call_again(n as usize, args) };
                if call.expect != 0 {
                    if -result == call.expect as isize {
                        return Ok(Next::Done);
                    }
                    let errno = if result < 0 { -result } else { 0 };
                    return Err(Failure { step: call.step, errno: errno as i64 });
                }
                if result < 0 && -result != call.tolerate as isize {
                    return Err(Failure { step: call.step, errno: -result as i64 });
                }
                if call.out != NO_SLOT && (call.out as usize) < SLOTS {
                    slots.0[call.out as usize] = result as i32;
                }
                Ok(Next::Done)
            }
        }
    }
}
