//! Builds the list of system calls that the stage executes.
//!
//! Everything that needs an allocation, a format or a decision happens here, in the parent; the
//! stage only makes the calls.

use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::OwnedFd;

use crate::sys;
use crate::wire::{
    ARG_POINTER, ARG_SLOT, ARG_VALUE, Call, Head, MAGIC, NO_SLOT, OP_EXEC, OP_FAIL, OP_HAND_OUT,
    OP_LOAD_FD, OP_PATCH_FD, SLOTS,
};

/// A place in the data of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data(u64);

impl Data {
    /// How far it lies behind another place, wherever the list is mapped; modulo 2^64.
    pub(crate) fn distance_from(self, other: Self) -> u64 {
        self.0.wrapping_sub(other.0)
    }
}

/// A descriptor of the stage, by number of the slot that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u16);

impl Slot {
    pub(crate) fn number(self) -> u64 {
        u64::from(self.0)
    }
}

/// One argument of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arg {
    Value(u64),
    Data(Data),
    Slot(Slot),
}

/// A list under construction.
#[derive(Debug, Default)]
pub(crate) struct List {
    calls: Vec<Call>,
    data: Vec<u8>,
    fixups: Vec<(Data, Data)>,
    step: u32,
    /// Slots below this one belong to the list before.
    first_slot: u16,
    next_slot: u16,
    received: u16,
}

impl List {
    /// A list whose slots begin at `first_slot`, and whose first `received` ones are received.
    pub(crate) fn receiving(first_slot: u16, received: u16) -> Self {
        Self { first_slot, received, next_slot: first_slot + received, ..Self::default() }
    }

    /// Names the step that the following calls belong to.
    pub(crate) fn begin_step(&mut self, step: u32) {
        self.step = step;
    }

    /// The step that calls are added for.
    pub(crate) fn current_step(&self) -> u32 {
        self.step
    }

    /// The slot of the `index`th received descriptor.
    pub(crate) fn received(&self, index: u16) -> Slot {
        debug_assert!(index < self.received);
        Slot(self.first_slot + index)
    }

    /// Stores bytes, aligned for every C type.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Data {
        while !self.data.len().is_multiple_of(16) {
            self.data.push(0);
        }
        let at = self.data.len() as u64;
        self.data.extend_from_slice(bytes);
        Data(at)
    }

    /// Stores a string with its closing NUL. Callers have refused strings that contain NUL.
    pub(crate) fn string(&mut self, text: &[u8]) -> Data {
        let at = self.data.len() as u64;
        self.data.extend_from_slice(text);
        self.data.push(0);
        Data(at)
    }

    /// Stores words in native order.
    pub(crate) fn words(&mut self, words: &[u64]) -> Data {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        self.bytes(&bytes)
    }

    /// Stores a NULL-terminated array of pointers to strings.
    pub(crate) fn strings<'a>(&mut self, texts: impl IntoIterator<Item = &'a [u8]>) -> Data {
        let stored: Vec<Data> = texts.into_iter().map(|t| self.string(t)).collect();
        let array = self.words(&vec![0; stored.len() + 1]);
        for (i, text) in stored.into_iter().enumerate() {
            self.point(Data(array.0 + 8 * i as u64), text);
        }
        array
    }

    /// Makes the eight bytes at `place` a pointer to `target` when the list is mapped.
    pub(crate) fn point(&mut self, place: Data, target: Data) {
        self.fixups.push((place, target));
    }

    /// The place `bytes` behind another one.
    pub(crate) fn behind(place: Data, bytes: u64) -> Data {
        Data(place.0 + bytes)
    }

    /// Adds a system call.
    pub(crate) fn call(&mut self, nr: libc::c_long, args: &[Arg]) {
        self.push(number(nr), args, NO_SLOT, 0);
    }

    /// Adds a system call for which one errno is as good as success.
    pub(crate) fn call_or(&mut self, nr: libc::c_long, args: &[Arg], tolerate: i32) {
        self.push(number(nr), args, NO_SLOT, tolerate.unsigned_abs());
    }

    /// Adds a system call that must fail with this errno.
    pub(crate) fn call_refused(&mut self, nr: libc::c_long, args: &[Arg], errno: i32) {
        self.push(number(nr), args, NO_SLOT, 0);
        if let Some(call) = self.calls.last_mut() {
            call.expect = errno.unsigned_abs();
        }
    }

    /// Adds a system call whose result is a descriptor, and names its slot.
    pub(crate) fn open(&mut self, nr: libc::c_long, args: &[Arg]) -> Slot {
        let slot = self.next_slot;
        debug_assert!(usize::from(slot) < SLOTS);
        self.next_slot += 1;
        self.push(number(nr), args, slot, 0);
        Slot(slot)
    }

    /// Closes a slot's descriptor. The most recently opened slot is used again.
    pub(crate) fn close(&mut self, slot: Slot) {
        self.call(libc::SYS_close, &[Arg::Slot(slot)]);
        if slot.0 + 1 == self.next_slot && slot.0 >= self.first_slot + self.received {
            self.next_slot = slot.0;
        }
    }

    /// Writes a slot's descriptor as an `i32` into the data.
    pub(crate) fn patch_fd(&mut self, slot: Slot, place: Data) {
        self.push(OP_PATCH_FD, &[Arg::Value(slot.number()), Arg::Data(place)], NO_SLOT, 0);
    }

    /// Takes an `i32` of the data for a descriptor, and names its slot.
    pub(crate) fn load_fd(&mut self, place: Data) -> Slot {
        let slot = self.next_slot;
        self.next_slot += 1;
        self.push(OP_LOAD_FD, &[Arg::Data(place)], slot, 0);
        Slot(slot)
    }

    /// Sends a slot's descriptor to the supervisor.
    pub(crate) fn hand_out(&mut self, slot: Slot, tag: u32) {
        self.push(
            OP_HAND_OUT,
            &[Arg::Value(slot.number()), Arg::Value(u64::from(tag))],
            NO_SLOT,
            0,
        );
    }

    /// Adds an operation of the stage on slots; a slot's number is passed.
    pub(crate) fn operation_on(&mut self, op: u32, slots: &[Slot], more: u64) {
        let mut args: Vec<Arg> = slots.iter().map(|slot| Arg::Value(slot.number())).collect();
        args.push(Arg::Value(more));
        self.push(op, &args, NO_SLOT, 0);
    }

    /// Adds an operation of the stage without arguments.
    pub(crate) fn operation(&mut self, op: u32) {
        self.push(op, &[], NO_SLOT, 0);
    }

    /// Adds an `execve` that is not made when the file is not there, and falls through when it is
    /// not executable.
    pub(crate) fn exec(&mut self, path: Data, argv: Data, envp: Data) {
        self.push(OP_EXEC, &[Arg::Data(path), Arg::Data(argv), Arg::Data(envp)], NO_SLOT, 0);
    }

    /// Fails with the most telling errno of the `exec`s before.
    pub(crate) fn fail(&mut self) {
        self.operation(OP_FAIL);
    }

    fn push(&mut self, nr: u32, args: &[Arg], out: u16, tolerate: u32) {
        let mut call = Call { step: self.step, nr, out, tolerate, ..Call::default() };
        for (i, arg) in args.iter().enumerate().take(6) {
            (call.kinds[i], call.args[i]) = match *arg {
                Arg::Value(v) => (ARG_VALUE, v),
                Arg::Data(d) => (ARG_POINTER, d.0),
                Arg::Slot(s) => (ARG_SLOT, s.number()),
            };
        }
        self.calls.push(call);
    }

    /// Lays the list out and seals it in a memfd.
    pub(crate) fn seal(mut self) -> io::Result<OwnedFd> {
        let table = size_of::<Head>() + self.calls.len() * size_of::<Call>();
        let data = (table + self.fixups.len() * 16).next_multiple_of(16);
        let start = data as u64;
        for call in &mut self.calls {
            for (kind, arg) in call.kinds.iter().zip(&mut call.args) {
                if *kind == ARG_POINTER {
                    *arg += start;
                }
            }
        }
        let head = Head {
            magic: MAGIC,
            calls: u32::try_from(self.calls.len()).map_err(io::Error::other)?,
            fixups: self.fixups.len() as u64,
            received: u64::from(self.received),
        };
        let mut bytes = Vec::with_capacity(data + self.data.len());
        bytes.extend_from_slice(&head.magic.to_ne_bytes());
        bytes.extend_from_slice(&head.calls.to_ne_bytes());
        bytes.extend_from_slice(&head.fixups.to_ne_bytes());
        bytes.extend_from_slice(&head.received.to_ne_bytes());
        for call in &self.calls {
            push_call(&mut bytes, call);
        }
        for (place, target) in &self.fixups {
            bytes.extend_from_slice(&(place.0 + start).to_ne_bytes());
            bytes.extend_from_slice(&(target.0 + start).to_ne_bytes());
        }
        bytes.resize(data, 0);
        bytes.extend_from_slice(&self.data);
        sys::sealed_memfd("h5i-list", &bytes)
    }
}

fn number(nr: libc::c_long) -> u32 {
    u32::try_from(nr).unwrap_or(u32::MAX)
}

/// The fields in the order and places of `repr(C)`, which the assertions below pin.
fn push_call(bytes: &mut Vec<u8>, call: &Call) {
    bytes.extend_from_slice(&call.step.to_ne_bytes());
    bytes.extend_from_slice(&call.nr.to_ne_bytes());
    bytes.extend_from_slice(&call.kinds);
    bytes.extend_from_slice(&call.out.to_ne_bytes());
    bytes.extend_from_slice(&call.tolerate.to_ne_bytes());
    bytes.extend_from_slice(&call.expect.to_ne_bytes());
    for arg in &call.args {
        bytes.extend_from_slice(&arg.to_ne_bytes());
    }
}

const _: () = {
    assert!(offset_of!(Call, nr) == 4 && offset_of!(Call, kinds) == 8);
    assert!(offset_of!(Call, out) == 14 && offset_of!(Call, tolerate) == 16);
    assert!(offset_of!(Call, expect) == 20 && offset_of!(Call, args) == 24);
    assert!(size_of::<Call>() == 72 && size_of::<Head>() == 24);
};
