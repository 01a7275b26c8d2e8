//! The words that the parent and the stage exchange.
//!
//! This file is compiled twice: as a module of the library, and as a module of the `no_std` stage.
//! It therefore holds plain data and uses `core` only. Both sides are built by the same compiler in
//! the same build, so native layout is the format; nothing of it is ever stored.

/// First word of every list; a list with another one is not executed.
pub(crate) const MAGIC: u32 = 0x6835_6931;
/// Number of slots a list may use for descriptors.
pub(crate) const SLOTS: usize = 1024;
/// Slots that the first list of a stage has to itself; what the second one receives follows them.
pub(crate) const FIRST_SLOTS: u16 = 8;
/// "No slot": the result of the call is dropped.
pub(crate) const NO_SLOT: u16 = u16::MAX;

/// The stage's end of the control socket, open across its exec.
pub(crate) const CONTROL_FD: i32 = 3;
/// The sealed list that the stage executes, open across its exec.
pub(crate) const LIST_FD: i32 = 4;

/// Head of a list: a sealed memfd that the stage maps privately.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// [`MAGIC`].
    pub(crate) magic: u32,
    /// Number of [`Call`]s that follow the head.
    pub(crate) calls: u32,
    /// Number of pointer fix-ups that follow the calls, each two `u64`: where, and to what offset.
    pub(crate) fixups: u64,
    /// Descriptors that come for this list, in messages of their own. They take the first slots
    /// that no list before it had.
    pub(crate) received: u64,
}

/// One system call of a list.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Call {
    /// Index of the step it belongs to, for the report of a failure.
    pub(crate) step: u32,
    /// System call number, or one of the `OP_` values.
    pub(crate) nr: u32,
    /// How each argument is read: one of the `ARG_` values.
    pub(crate) kinds: [u8; 6],
    /// Slot that receives the result, or [`NO_SLOT`].
    pub(crate) out: u16,
    /// An errno that is as good as success; 0 for none.
    pub(crate) tolerate: u32,
    /// The errno that the call must fail with; 0 when it must not fail.
    pub(crate) expect: u32,
    /// The arguments.
    pub(crate) args: [u64; 6],
}

/// The argument is the number itself.
pub(crate) const ARG_VALUE: u8 = 0;
/// The argument is an offset into the list; the call gets its address.
pub(crate) const ARG_POINTER: u8 = 1;
/// The argument is a slot; the call gets the descriptor in it.
pub(crate) const ARG_SLOT: u8 = 2;

/// The stage forks: the child goes on with the list as the box's init; the stage does errands for
/// it over the socket in slot `args[0]`, then keeps watch. With `args[2]` set, the first errand is
/// to make a network namespace and send it; `args[1]` is a slot with its own `/proc/self/ns`.
pub(crate) const OP_BECOME_INIT: u32 = 0xffff_0001;
/// Writes the descriptor of slot `args[0]` as an `i32` at offset `args[1]`.
pub(crate) const OP_PATCH_FD: u32 = 0xffff_0002;
/// Sends the descriptor of slot `args[0]` to the supervisor, tagged `args[1]`.
pub(crate) const OP_HAND_OUT: u32 = 0xffff_0003;
/// Serves runs until the control socket is closed; the last call of a stage's list.
pub(crate) const OP_SERVE: u32 = 0xffff_0004;
/// `execve` with a shell's search rules: a missing candidate is not tried (each try waits for the
/// supervisor) and falls through to the next call, and the most telling errno is kept for
/// [`OP_FAIL`].
pub(crate) const OP_EXEC: u32 = 0xffff_0005;
/// Enters the network namespace that the stage sends over the socket in slot `args[0]`.
pub(crate) const OP_ENTER_NETWORK: u32 = 0xffff_0008;
/// Puts the descriptor that stands as an `i32` at offset `args[0]` into the result's slot.
pub(crate) const OP_LOAD_FD: u32 = 0xffff_0009;
/// Goes on with the list that the supervisor sends; the last call of a first list.
pub(crate) const OP_NEXT_LIST: u32 = 0xffff_000c;
/// Has the stage unmount the host's root: sends it the descriptor in slot `args[1]` over the socket
/// in slot `args[0]`.
pub(crate) const OP_LEAVE_HOST: u32 = 0xffff_000a;
/// Waits until the stage has done that.
pub(crate) const OP_HOST_LEFT: u32 = 0xffff_000b;
/// Ends the process with code 0.
pub(crate) const OP_DONE: u32 = 0xffff_0007;
/// Fails with the errno that the `OP_EXEC`s before it kept.
pub(crate) const OP_FAIL: u32 = 0xffff_0006;

/// A message from the box's side to the supervisor, or the other way.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Message {
    /// One of the `MSG_` values.
    pub(crate) kind: u32,
    /// Step index, wait status or tag.
    pub(crate) code: u32,
    /// Run id.
    pub(crate) run: u64,
    /// errno, pid, or number of descriptors.
    pub(crate) value: i64,
    /// Processor time in user mode, microseconds.
    pub(crate) user_us: u64,
    /// Processor time in kernel mode, microseconds.
    pub(crate) system_us: u64,
    /// Peak resident set, kibibytes.
    pub(crate) max_rss_kib: u64,
}

/// Step `code` failed with errno `value`.
pub(crate) const MSG_FAILED: u32 = 1;
/// A descriptor, tagged `code`, comes with the message.
pub(crate) const MSG_DESCRIPTOR: u32 = 2;
/// Every step is done; runs are served.
pub(crate) const MSG_READY: u32 = 3;
/// To the box: start run `run` from the list that comes first among the descriptors.
pub(crate) const MSG_START: u32 = 4;
/// Run `run` is process `value`; its pidfd comes with the message.
pub(crate) const MSG_STARTED: u32 = 5;
/// Run `run` ended with wait status `code`.
pub(crate) const MSG_ENDED: u32 = 6;
/// To the box's init, after [`MSG_LIST`]: the descriptors of the head's `received`.
pub(crate) const MSG_SLOTS: u32 = 7;
/// To the box's init, once: the sealed list to go on with.
pub(crate) const MSG_LIST: u32 = 8;

/// What a run's child writes to its status pipe when a step fails before exec.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExecFailure {
    /// Step index.
    pub(crate) step: u32,
    /// errno.
    pub(crate) errno: i32,
}

/// Most descriptors that one message carries; the kernel's own bound is 253 (`SCM_MAX_FD`).
pub(crate) const MAX_FDS: usize = 200;
