//! The calls that restrict the box's init and all that it will fork.

use super::{AT_FDCWD, CLOEXEC, Compiler, NONE, TAG_LISTENER};
use crate::list::{Arg, List};
use crate::step::{FilterProgram, LandlockRules};

impl Compiler {
    pub(super) fn drop_capabilities(&mut self, last: u32) {
        for capability in 0..=last {
            self.prctl(libc::PR_CAPBSET_DROP, u64::from(capability));
        }
        self.prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as u64);
        // _LINUX_CAPABILITY_VERSION_3 and the calling process; then three sets of two words.
        let header = Arg::Data(self.list.words(&[0x2008_0522]));
        let sets = Arg::Data(self.list.words(&[0, 0, 0]));
        self.list.call(libc::SYS_capset, &[header, sets]);
    }

    pub(super) fn landlock(&mut self, rules: &LandlockRules) {
        // struct landlock_ruleset_attr grew with ABI 4 (network) and 6 (scopes).
        let attributes = Arg::Data(self.list.words(&[rules.handled, 0, rules.scoped]));
        let size = match rules.abi {
            ..4 => 8,
            4..6 => 16,
            _ => 24,
        };
        let args = [attributes, Arg::Value(size), NONE];
        let ruleset = self.list.open(libc::SYS_landlock_create_ruleset, &args);
        for (path, rights) in &rules.rules {
            let path = self.path(path);
            let flags = Arg::Value(libc::O_PATH as u64 | CLOEXEC);
            let slot = self.list.open(libc::SYS_openat, &[AT_FDCWD, path, flags, NONE]);
            // struct landlock_path_beneath_attr, packed: rights, then the descriptor.
            let rule = self.list.words(&[*rights, 0]);
            self.list.patch_fd(slot, List::behind(rule, 8));
            let args = [Arg::Slot(ruleset), Arg::Value(1), Arg::Data(rule), NONE];
            self.list.call(libc::SYS_landlock_add_rule, &args);
            self.list.close(slot);
        }
        self.list.call(libc::SYS_landlock_restrict_self, &[Arg::Slot(ruleset), NONE]);
        self.list.close(ruleset);
    }

    pub(super) fn filter(&mut self, program: &FilterProgram) {
        let mut bytes = Vec::with_capacity(program.instructions.len() * 8);
        for (code, jt, jf, k) in &program.instructions {
            bytes.extend_from_slice(&code.to_ne_bytes());
            bytes.extend_from_slice(&[*jt, *jf]);
            bytes.extend_from_slice(&k.to_ne_bytes());
        }
        let instructions = self.list.bytes(&bytes);
        // struct sock_fprog: a 16-bit length, padding, a pointer.
        let mut head = [0u8; 16];
        let len = u16::try_from(program.instructions.len()).unwrap_or(0);
        head[..2].copy_from_slice(&len.to_ne_bytes());
        let head = self.list.bytes(&head);
        self.list.point(List::behind(head, 8), instructions);
        let mut flags = 0;
        if program.notifies {
            flags |= libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        }
        if program.wait_killable {
            flags |= libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        }
        let args = [
            Arg::Value(u64::from(libc::SECCOMP_SET_MODE_FILTER)),
            Arg::Value(flags),
            Arg::Data(head),
        ];
        if program.notifies {
            let listener = self.list.open(libc::SYS_seccomp, &args);
            self.list.hand_out(listener, TAG_LISTENER);
            self.list.close(listener);
        } else {
            self.list.call(libc::SYS_seccomp, &args);
        }
    }
}
