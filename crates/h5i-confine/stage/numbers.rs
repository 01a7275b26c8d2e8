//! Numbers of the system calls that the stage makes itself.
//! A test of the library reads this file and compares it with the kernel's own table.

#[cfg(target_arch = "x86_64")]
pub mod x86_64 {
    pub const READ: usize = 0;
    pub const WRITE: usize = 1;
    pub const CLOSE: usize = 3;
    pub const PPOLL: usize = 271;
    pub const MMAP: usize = 9;
    pub const MUNMAP: usize = 11;
    pub const RT_SIGACTION: usize = 13;
    pub const RT_SIGPROCMASK: usize = 14;
    pub const SENDMSG: usize = 46;
    pub const RECVMSG: usize = 47;
    pub const CLONE: usize = 56;
    pub const EXECVE: usize = 59;
    pub const FACCESSAT: usize = 269;
    pub const GETPID: usize = 39;
    pub const WAIT4: usize = 61;
    pub const KILL: usize = 62;
    pub const EXIT_GROUP: usize = 231;
    pub const EXIT: usize = 60;
    pub const SIGNALFD4: usize = 289;
    pub const LSEEK: usize = 8;
    pub const CAPSET: usize = 126;
    pub const DUP3: usize = 292;
    pub const OPENAT: usize = 257;
    pub const SETNS: usize = 308;
    pub const UNSHARE: usize = 272;
    pub const PRCTL: usize = 157;
    pub const SOCKET: usize = 41;
    pub const IOCTL: usize = 16;
    pub const FCHDIR: usize = 81;
    pub const CHDIR: usize = 80;
    pub const UMOUNT2: usize = 166;
}

#[cfg(target_arch = "aarch64")]
pub mod aarch64 {
    pub const READ: usize = 63;
    pub const WRITE: usize = 64;
    pub const CLOSE: usize = 57;
    pub const PPOLL: usize = 73;
    pub const MMAP: usize = 222;
    pub const MUNMAP: usize = 215;
    pub const RT_SIGACTION: usize = 134;
    pub const RT_SIGPROCMASK: usize = 135;
    pub const SENDMSG: usize = 211;
    pub const RECVMSG: usize = 212;
    pub const CLONE: usize = 220;
    pub const EXECVE: usize = 221;
    pub const FACCESSAT: usize = 48;
    pub const GETPID: usize = 172;
    pub const WAIT4: usize = 260;
    pub const KILL: usize = 129;
    pub const EXIT_GROUP: usize = 94;
    pub const EXIT: usize = 93;
    pub const SIGNALFD4: usize = 74;
    pub const LSEEK: usize = 62;
    pub const CAPSET: usize = 91;
    pub const DUP3: usize = 24;
    pub const OPENAT: usize = 56;
    pub const SETNS: usize = 268;
    pub const UNSHARE: usize = 97;
    pub const PRCTL: usize = 167;
    pub const SOCKET: usize = 198;
    pub const IOCTL: usize = 29;
    pub const FCHDIR: usize = 50;
    pub const CHDIR: usize = 49;
    pub const UMOUNT2: usize = 39;
}
