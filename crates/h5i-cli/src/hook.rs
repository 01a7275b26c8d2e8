//! What a shell of a box reads to report its commands.

/// The hook of bash.
pub(crate) const BASH: &str = include_str!("hook/hook.bash");
/// The hook of zsh.
pub(crate) const ZSH: &str = include_str!("hook/hook.zsh");

/// Where a box has the hook of bash.
pub(crate) const BASH_AT: &str = "/etc/h5i/hook.bash";
/// Where it has the one of zsh.
pub(crate) const ZSH_AT: &str = "/etc/h5i/hook.zsh";

/// The shell that bash's hook is for by the policy, if its `-c` is to report.
pub(crate) const BASH_ENV: &str = "BASH_ENV";
