//! Which system calls are refused, and why: data, one line a rule.

use Rule::{AnyFlag, Argument, Whole};

/// Numbers above this one were unknown when the table was last read against the kernel
/// (Linux 6.18: `file_setattr`). They are answered with ENOSYS, as an older kernel would.
pub(crate) const LAST_KNOWN: u32 = 469;

/// When a call is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// Always.
    Whole,
    /// When any of these bits is set in the argument.
    AnyFlag(u8, &'static [u64]),
    /// When one of these conditions holds.
    Argument(&'static [&'static [Arg]]),
}

impl Rule {
    /// Whether the rule holds for these first arguments; no rule looks at others.
    pub(crate) fn holds(&self, args: [u64; 3]) -> bool {
        let argument = |index: u8| args.get(usize::from(index)).map_or(0, |arg| arg & 0xffff_ffff);
        match self {
            Whole => true,
            AnyFlag(index, flags) => flags.iter().any(|flag| argument(*index) & flag != 0),
            Argument(alternatives) => alternatives.iter().any(|all| {
                all.iter().all(|condition| match *condition {
                    Arg::Is(index, value) => argument(index) == value,
                    Arg::Not(index, value) => argument(index) != value,
                    Arg::Masked(index, mask, value) => argument(index) & mask == value,
                })
            }),
        }
    }
}

/// One condition on a scalar argument, compared as 32 bits. All of a list must hold.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arg {
    /// Equal to.
    Is(u8, u64),
    /// Not equal to.
    Not(u8, u64),
    /// Equal after masking: argument, mask, value.
    Masked(u8, u64, u64),
}

impl Arg {
    /// The argument that the condition looks at, from 0.
    pub(crate) fn index(self) -> u8 {
        match self {
            Self::Is(index, _) | Self::Not(index, _) | Self::Masked(index, _, _) => index,
        }
    }
}

/// One refused call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    pub(crate) name: &'static str,
    pub(crate) x86_64: Option<u32>,
    pub(crate) aarch64: Option<u32>,
    pub(crate) rule: Rule,
    pub(crate) reason: &'static str,
}

impl Refused {
    /// Which of the first three arguments the rule looks at, and so are worth reporting: pointers
    /// are not, and no rule looks at one.
    pub(crate) fn reports(&self, argument: u8) -> bool {
        match self.rule {
            Rule::Whole => false,
            Rule::AnyFlag(looked_at, _) => looked_at == argument,
            Rule::Argument(alternatives) => {
                alternatives.iter().flat_map(|all| all.iter()).any(|arg| arg.index() == argument)
            }
        }
    }
}

const fn both(
    name: &'static str,
    x86_64: u32,
    aarch64: u32,
    rule: Rule,
    reason: &'static str,
) -> Refused {
    Refused { name, x86_64: Some(x86_64), aarch64: Some(aarch64), rule, reason }
}

const fn x86(name: &'static str, x86_64: u32, reason: &'static str) -> Refused {
    Refused { name, x86_64: Some(x86_64), aarch64: None, rule: Whole, reason }
}

const NAMESPACE_FLAGS: &[u64] = &[
    0x0002_0000, // CLONE_NEWNS
    0x0200_0000, // CLONE_NEWCGROUP
    0x0400_0000, // CLONE_NEWUTS
    0x0800_0000, // CLONE_NEWIPC
    0x1000_0000, // CLONE_NEWUSER
    0x2000_0000, // CLONE_NEWPID
    0x4000_0000, // CLONE_NEWNET
];
/// `clone` has the exit signal where `unshare` has CLONE_NEWTIME.
const UNSHARE_FLAGS: &[u64] = &[
    0x0000_0080,
    0x0002_0000,
    0x0200_0000,
    0x0400_0000,
    0x0800_0000,
    0x1000_0000,
    0x2000_0000,
    0x4000_0000,
];

const MOUNTS: &str = "the box's file systems are set up once, from outside";
const NAMESPACES: &str = "a nested namespace would bring back capabilities in it";
const MEMORY: &str = "reads or writes another process";
const INIT: &str = "the box's init can't be signalled from inside";
const INIT_BOUNDS: &str = "later runs would inherit what is set for the box's init";
const MARKS: &str = "moves the marks by which it is seen that a process became another program";
const KERNEL: &str = "changes or inspects the kernel";
const CLOCK: &str = "changes the host's clock";
const KEYS: &str = "kernel keyrings are not separated by namespaces";
const TERMINAL: &str = "types into or reconfigures a terminal";
const LEGACY: &str = "a legacy interface with a large attack surface";

/// Calls that do not exist in a box (ENOSYS, no record): programs probe for them and fall back.
pub(crate) const ABSENT: &[Refused] = &[
    both("clone3", 435, 435, Whole, "its flags lie behind a pointer; libc falls back to clone"),
    both("io_uring_setup", 425, 425, Whole, "its operations pass by the system-call filter"),
    both("io_uring_enter", 426, 426, Whole, "its operations pass by the system-call filter"),
    both("io_uring_register", 427, 427, Whole, "its operations pass by the system-call filter"),
    both("memfd_secret", 447, 447, Whole, "takes memory that no account shows"),
];

/// Calls that wait until they are on record and then go on. The end of a process is the moment in
/// which it is certain what it was: looked at later, it may have been reaped.
pub(crate) const RECORDED: &[Refused] = &[
    both("execve", 59, 221, Whole, "starts a program"),
    both("execveat", 322, 281, Whole, "starts a program"),
    both("exit_group", 231, 94, Whole, "ends a process"),
];

/// Calls that trace other processes; a profile switch may allow them among the box's own.
pub(crate) const DEBUGGERS: &[Refused] = &[
    both("ptrace", 101, 117, Whole, MEMORY),
    both("process_vm_readv", 310, 270, Whole, MEMORY),
    both("process_vm_writev", 311, 271, Whole, MEMORY),
    both("kcmp", 312, 272, Whole, MEMORY),
    both(
        "personality",
        135,
        92,
        Argument(&[&[Arg::Not(0, 0), Arg::Not(0, 0xffff_ffff)]]),
        "switches off address randomisation or changes the ABI",
    ),
];

/// With debuggers allowed, address randomisation may be switched off, and nothing else.
pub(crate) const WITH_DEBUGGERS: &[Refused] = &[both(
    "personality",
    135,
    92,
    Argument(&[&[Arg::Not(0, 0), Arg::Not(0, 0xffff_ffff), Arg::Not(0, 0x0004_0000)]]),
    "changes the ABI",
)];

/// Calls that are refused (EPERM) and recorded, in every box.
pub(crate) const REFUSED: &[Refused] = &[
    both("mount", 165, 40, Whole, MOUNTS),
    both("umount2", 166, 39, Whole, MOUNTS),
    both("pivot_root", 155, 41, Whole, MOUNTS),
    both("chroot", 161, 51, Whole, MOUNTS),
    both("open_tree", 428, 428, Whole, MOUNTS),
    both("move_mount", 429, 429, Whole, MOUNTS),
    both("fsopen", 430, 430, Whole, MOUNTS),
    both("fsconfig", 431, 431, Whole, MOUNTS),
    both("fsmount", 432, 432, Whole, MOUNTS),
    both("fspick", 433, 433, Whole, MOUNTS),
    both("mount_setattr", 442, 442, Whole, MOUNTS),
    both("open_tree_attr", 467, 467, Whole, MOUNTS),
    both("clone", 56, 220, AnyFlag(0, NAMESPACE_FLAGS), NAMESPACES),
    both("unshare", 272, 97, AnyFlag(0, UNSHARE_FLAGS), NAMESPACES),
    both("setns", 308, 268, Whole, NAMESPACES),
    both("pidfd_getfd", 438, 438, Whole, "takes descriptors out of another process"),
    both("process_madvise", 440, 440, Whole, MEMORY),
    both("process_mrelease", 448, 448, Whole, MEMORY),
    both("kill", 62, 129, Argument(&[&[Arg::Is(0, 1)]]), INIT),
    both("tkill", 200, 130, Argument(&[&[Arg::Is(0, 1)]]), INIT),
    both("tgkill", 234, 131, Argument(&[&[Arg::Is(0, 1)], &[Arg::Is(1, 1)]]), INIT),
    both("rt_sigqueueinfo", 129, 138, Argument(&[&[Arg::Is(0, 1)]]), INIT),
    both("rt_tgsigqueueinfo", 297, 240, Argument(&[&[Arg::Is(0, 1)], &[Arg::Is(1, 1)]]), INIT),
    both("pidfd_open", 434, 434, Argument(&[&[Arg::Is(0, 1)]]), INIT),
    both("prlimit64", 302, 261, Argument(&[&[Arg::Is(0, 1)]]), INIT_BOUNDS),
    both("sched_setaffinity", 203, 122, Argument(&[&[Arg::Is(0, 1)]]), INIT_BOUNDS),
    both("sched_setscheduler", 144, 119, Argument(&[&[Arg::Is(0, 1)]]), INIT_BOUNDS),
    both("sched_setparam", 142, 118, Argument(&[&[Arg::Is(0, 1)]]), INIT_BOUNDS),
    both("sched_setattr", 314, 274, Argument(&[&[Arg::Is(0, 1)]]), INIT_BOUNDS),
    both(
        "setpriority",
        141,
        140,
        // PRIO_PROCESS of init; PRIO_USER, where init is among them.
        Argument(&[&[Arg::Is(0, 0), Arg::Is(1, 1)], &[Arg::Is(0, 2)]]),
        INIT_BOUNDS,
    ),
    both(
        "ioprio_set",
        251,
        30,
        // IOPRIO_WHO_PROCESS of init; IOPRIO_WHO_USER.
        Argument(&[&[Arg::Is(0, 1), Arg::Is(1, 1)], &[Arg::Is(0, 3)]]),
        INIT_BOUNDS,
    ),
    both("bpf", 321, 280, Whole, KERNEL),
    both("perf_event_open", 298, 241, Whole, KERNEL),
    both("userfaultfd", 323, 282, Whole, "holds kernel threads at a fault; used to win races"),
    both("kexec_load", 246, 104, Whole, KERNEL),
    both("kexec_file_load", 320, 294, Whole, KERNEL),
    both("init_module", 175, 105, Whole, KERNEL),
    both("finit_module", 313, 273, Whole, KERNEL),
    both("delete_module", 176, 106, Whole, KERNEL),
    both("syslog", 103, 116, Whole, "the kernel's log tells about the host"),
    both("reboot", 169, 142, Whole, KERNEL),
    both("swapon", 167, 224, Whole, KERNEL),
    both("swapoff", 168, 225, Whole, KERNEL),
    both("acct", 163, 89, Whole, KERNEL),
    both("quotactl", 179, 60, Whole, KERNEL),
    both("quotactl_fd", 443, 443, Whole, KERNEL),
    both("sethostname", 170, 161, Whole, "the box has its name from outside"),
    both("setdomainname", 171, 162, Whole, "the box has its name from outside"),
    both("vhangup", 153, 58, Whole, TERMINAL),
    both("fanotify_init", 300, 262, Whole, "watches whole file systems"),
    both("open_by_handle_at", 304, 265, Whole, "opens files past every path check"),
    both("lookup_dcookie", 212, 18, Whole, LEGACY),
    both("nfsservctl", 180, 42, Whole, LEGACY),
    both("add_key", 248, 217, Whole, KEYS),
    both("request_key", 249, 218, Whole, KEYS),
    both("keyctl", 250, 219, Whole, KEYS),
    both("settimeofday", 164, 170, Whole, CLOCK),
    both("clock_settime", 227, 112, Whole, CLOCK),
    both("adjtimex", 159, 171, Argument(&[&[Arg::Not(0, 0)]]), CLOCK),
    x86("iopl", 172, "reaches hardware ports"),
    x86("ioperm", 173, "reaches hardware ports"),
    x86("modify_ldt", 154, LEGACY),
    x86("uselib", 134, LEGACY),
    x86("_sysctl", 156, LEGACY),
    both(
        "ioctl",
        16,
        29,
        Argument(&[
            &[Arg::Is(1, 0x5412)], // TIOCSTI
            &[Arg::Is(1, 0x541c)], // TIOCLINUX
            &[Arg::Is(1, 0x541d)], // TIOCCONS
            &[Arg::Is(1, 0x5423)], // TIOCSETD
        ]),
        TERMINAL,
    ),
    both("prctl", 157, 167, Argument(&[&[Arg::Is(0, 35)]]), MARKS), // PR_SET_MM
    both(
        "fcntl",
        72,
        25,
        Argument(&[
            &[Arg::Is(1, 1024)], // F_SETLEASE
            &[Arg::Is(1, 1040)], // F_SETDELEG
        ]),
        "makes whoever opens the file wait: other boxes that share it, and the host",
    ),
    both(
        "socket",
        41,
        198,
        Argument(&[
            // Families other than UNIX, INET, INET6, NETLINK.
            &[Arg::Not(0, 1), Arg::Not(0, 2), Arg::Not(0, 10), Arg::Not(0, 16)],
            // NETLINK other than NETLINK_ROUTE.
            &[Arg::Is(0, 16), Arg::Not(2, 0)],
            // SOCK_RAW and SOCK_PACKET of the internet families.
            &[Arg::Is(0, 2), Arg::Masked(1, 0xf, 3)],
            &[Arg::Is(0, 10), Arg::Masked(1, 0xf, 3)],
            &[Arg::Is(0, 2), Arg::Masked(1, 0xf, 10)],
        ]),
        "a socket family or type that a box has no use for",
    ),
];

#[cfg(test)]
mod tests;
