//! How a terminal treats what is typed and what is written: `termios(3)`, as a value.

use std::io;
use std::os::fd::AsFd;

use rustix::termios::{InputModes, LocalModes, OutputModes, SpecialCodeIndex, Termios, tcgetattr};

/// The special characters that the kernel keeps, by their index in `c_cc`.
const CHARACTERS: [(usize, SpecialCodeIndex); 17] = [
    (libc::VINTR, SpecialCodeIndex::VINTR),
    (libc::VQUIT, SpecialCodeIndex::VQUIT),
    (libc::VERASE, SpecialCodeIndex::VERASE),
    (libc::VKILL, SpecialCodeIndex::VKILL),
    (libc::VEOF, SpecialCodeIndex::VEOF),
    (libc::VTIME, SpecialCodeIndex::VTIME),
    (libc::VMIN, SpecialCodeIndex::VMIN),
    (libc::VSWTC, SpecialCodeIndex::VSWTC),
    (libc::VSTART, SpecialCodeIndex::VSTART),
    (libc::VSTOP, SpecialCodeIndex::VSTOP),
    (libc::VSUSP, SpecialCodeIndex::VSUSP),
    (libc::VEOL, SpecialCodeIndex::VEOL),
    (libc::VREPRINT, SpecialCodeIndex::VREPRINT),
    (libc::VDISCARD, SpecialCodeIndex::VDISCARD),
    (libc::VWERASE, SpecialCodeIndex::VWERASE),
    (libc::VLNEXT, SpecialCodeIndex::VLNEXT),
    (libc::VEOL2, SpecialCodeIndex::VEOL2),
];
/// 38400 baud, eight bits, receiver on: what a new pseudoterminal has. It heeds nothing else.
const CONTROL: u32 = 0o277;

/// How a terminal treats what is typed and what is written.
///
/// A run's terminal starts in the kernel's default modes; given those of the caller's terminal, a
/// person's own erase key and UTF-8 editing hold in the box as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TerminalModes {
    input: u32,
    output: u32,
    local: u32,
    characters: [u8; 19],
}

impl TerminalModes {
    /// The modes that a terminal has now.
    ///
    /// # Errors
    /// `ENOTTY` for what is no terminal.
    pub fn of(terminal: impl AsFd) -> io::Result<Self> {
        let found: Termios = tcgetattr(terminal)?;
        let mut characters = [0; 19];
        for (index, code) in CHARACTERS {
            characters[index] = found.special_codes[code];
        }
        Ok(Self {
            input: found.input_modes.bits(),
            output: found.output_modes.bits(),
            local: found.local_modes.bits(),
            characters,
        })
    }

    /// The same without any change to what is written (`OPOST`), for output that passes through
    /// another terminal which does that.
    #[must_use]
    pub fn writing_as_is(mut self) -> Self {
        self.output &= !OutputModes::OPOST.bits();
        self
    }

    /// The same with lines edited, shown and ended by keys, whatever another program made of them.
    #[must_use]
    pub fn taking_lines(mut self) -> Self {
        let lines = LocalModes::ICANON
            | LocalModes::ECHO
            | LocalModes::ECHOE
            | LocalModes::ECHOK
            | LocalModes::ECHOCTL
            | LocalModes::ECHOKE
            | LocalModes::ISIG
            | LocalModes::IEXTEN;
        self.local |= lines.bits();
        self.input |= (InputModes::ICRNL | InputModes::IXON).bits();
        self
    }

    /// Whether what is typed is edited line by line and shown: the state in which no program has
    /// asked for keys or hidden what is typed.
    #[must_use]
    pub fn takes_lines(&self) -> bool {
        let plain = (LocalModes::ICANON | LocalModes::ECHO).bits();
        self.local & plain == plain
    }

    /// Whether line ends that are written are translated (`OPOST`).
    #[must_use]
    pub fn translates_output(&self) -> bool {
        self.output & OutputModes::OPOST.bits() != 0
    }

    /// The modes as numbers, for another process of this host.
    #[must_use]
    pub fn to_parts(&self) -> ([u32; 3], [u8; 19]) {
        ([self.input, self.output, self.local], self.characters)
    }

    /// The modes that [`to_parts`](Self::to_parts) told of. Any numbers are modes of some terminal.
    #[must_use]
    pub fn from_parts([input, output, local]: [u32; 3], characters: [u8; 19]) -> Self {
        Self { input, output, local, characters }
    }

    /// The kernel's `struct termios`, for `TCSETS`.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(36);
        for word in [self.input, self.output, CONTROL, self.local] {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        bytes.push(0);
        bytes.extend_from_slice(&self.characters);
        bytes
    }
}
