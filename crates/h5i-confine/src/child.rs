//! What a run's child does between fork and exec: a list of calls, like everything else.

use std::os::unix::ffi::{OsStrExt, OsStringExt};

use h5i_policy::Limits;

use crate::command::{Command, TerminalSize};
use crate::compile::{AT_FDCWD, TAG_TERMINALS, c_string, limit};
use crate::exec_record::FirstProgram;
use crate::list::{Arg, List, Slot};
use crate::stdio::StdioPlan;
use crate::terminal_modes::TerminalModes;

pub(crate) const EXECUTE: &str = "execute the program";
/// The steps of a run between fork and exec, by their index in the list.
pub(crate) const STEPS: [&str; 6] = [
    "start a terminal session",
    "open the terminal",
    "connect input and output",
    "set limits and signals",
    "change to the directory",
    EXECUTE,
];

/// The calls of a run's child, up to its exec.
///
/// Yields as well what they execute, for the record.
pub(crate) fn list(
    command: &Command<'_>,
    stdio: &StdioPlan,
    id: u64,
    limits: &Limits,
) -> (List, FirstProgram) {
    let count = u16::try_from(stdio.inside.len()).unwrap_or(u16::MAX);
    let mut list = List::receiving(0, count);
    list.begin_step(0);
    list.call(libc::SYS_setsid, &[]);
    list.begin_step(1);
    let modes = command.terminal_modes;
    let terminal = command.terminal.map(|size| open_terminal(&mut list, size, modes, id));
    list.begin_step(2);
    for (place, (index, _)) in stdio.inside.iter().enumerate() {
        let slot = list.received(u16::try_from(place).unwrap_or(u16::MAX));
        put_at(&mut list, slot, *index);
    }
    if !stdio.null.is_empty() {
        let path = Arg::Data(list.string(b"/dev/null"));
        let flags = Arg::Value((libc::O_RDWR | libc::O_CLOEXEC) as u64);
        let null = list.open(libc::SYS_openat, &[AT_FDCWD, path, flags, Arg::Value(0)]);
        for index in &stdio.null {
            put_at(&mut list, null, *index);
        }
    }
    if let Some(slot) = terminal {
        for index in &stdio.on_terminal {
            put_at(&mut list, slot, *index);
        }
    }
    list.begin_step(3);
    if let Some(cpu) = limits.cpu {
        // The supervisor accounts the whole; this bounds one process should it come too late.
        let seconds = cpu.count().div_ceil(1000) + 1;
        limit(&mut list, libc::RLIMIT_CPU, seconds, seconds + 1);
    }
    default_signals(&mut list);
    list.begin_step(4);
    let directory = Arg::Data(c_string(&mut list, command.directory.as_os_str()));
    list.call(libc::SYS_chdir, &[directory]);
    list.begin_step(5);
    let argv: Vec<&[u8]> =
        std::iter::once(&command.program).chain(&command.args).map(|arg| arg.as_bytes()).collect();
    let array = list.strings(argv.iter().copied());
    let variables: Vec<Vec<u8>> = command
        .environment
        .iter()
        .map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat())
        .collect();
    let envp = list.strings(variables.iter().map(Vec::as_slice));
    let mut candidates = Vec::new();
    for candidate in command.candidates() {
        let path = c_string(&mut list, candidate.as_os_str());
        list.exec(path, array, envp);
        candidates.push((path.distance_from(array), candidate.into_os_string().into_vec()));
    }
    list.fail();
    let program = FirstProgram::new(argv, command.directory.as_os_str(), candidates);
    (list, program)
}

fn put_at(list: &mut List, slot: Slot, index: usize) {
    list.call(libc::SYS_dup3, &[Arg::Slot(slot), Arg::Value(index as u64), Arg::Value(0)]);
}

/// Opens a terminal of the box, makes it the controlling one, and hands its other side out.
fn open_terminal(
    list: &mut List,
    size: TerminalSize,
    modes: Option<TerminalModes>,
    id: u64,
) -> Slot {
    let flags = Arg::Value((libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC) as u64);
    let path = Arg::Data(list.string(b"/dev/pts/ptmx"));
    let master = list.open(libc::SYS_openat, &[AT_FDCWD, path, flags, Arg::Value(0)]);
    let unlock = Arg::Data(list.words(&[0]));
    list.call(libc::SYS_ioctl, &[Arg::Slot(master), Arg::Value(libc::TIOCSPTLCK), unlock]);
    let peer = Arg::Value(libc::TIOCGPTPEER);
    let terminal = list.open(libc::SYS_ioctl, &[Arg::Slot(master), peer, flags]);
    let [r0, r1] = size.rows.to_ne_bytes();
    let [c0, c1] = size.columns.to_ne_bytes();
    let winsize = Arg::Data(list.bytes(&[r0, r1, c0, c1, 0, 0, 0, 0]));
    let set_size = Arg::Value(libc::TIOCSWINSZ);
    list.call(libc::SYS_ioctl, &[Arg::Slot(master), set_size, winsize]);
    if let Some(modes) = modes {
        let modes = Arg::Data(list.bytes(&modes.bytes()));
        list.call(libc::SYS_ioctl, &[Arg::Slot(terminal), Arg::Value(libc::TCSETS), modes]);
    }
    let controlling = Arg::Value(libc::TIOCSCTTY);
    list.call(libc::SYS_ioctl, &[Arg::Slot(terminal), controlling, Arg::Value(0)]);
    list.hand_out(master, TAG_TERMINALS + u32::try_from(id).unwrap_or(0));
    terminal
}

/// What the supervisor ignores (SIGPIPE, always, in a Rust program) is not ignored in the box.
fn default_signals(list: &mut List) {
    // struct sigaction of the kernel, all zero: SIG_DFL, no flags, an empty mask of eight bytes.
    let default = Arg::Data(list.words(&[0, 0, 0, 0]));
    for signal in 1..=64u64 {
        if signal != libc::SIGKILL as u64 && signal != libc::SIGSTOP as u64 {
            let args = [Arg::Value(signal), default, Arg::Value(0), Arg::Value(8)];
            list.call(libc::SYS_rt_sigaction, &args);
        }
    }
}
