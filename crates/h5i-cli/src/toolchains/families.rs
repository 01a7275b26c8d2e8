//! Toolchain managers that live below a person's home, as data.

/// One manager: where it stands, how PATH gives it away, what a box may read of it.
pub(super) struct Family {
    /// The variable that moves its base, of those that [`Question`](super::Question) knows.
    pub(super) variable: Option<&'static str>,
    /// Its base, relative to home.
    pub(super) base: &'static str,
    /// A directory of PATH at or below one of these gives it away; relative to the base, to home
    /// with `~/`, or to CARGO_HOME with `$CARGO_HOME/`.
    pub(super) signs: &'static [&'static str],
    /// What may be read, relative to the base; an empty text is the base itself.
    pub(super) roots: &'static [&'static str],
    /// Files below each root that may hold credentials.
    pub(super) masks: &'static [&'static str],
    /// The variable that tells the programs in the box where the base is.
    pub(super) tells: Option<&'static str>,
    /// Links of the box's home to parts of the base.
    pub(super) links: &'static [(&'static str, &'static str)],
}

const fn whole(base: &'static str, masks: &'static [&'static str]) -> Family {
    Family { variable: None, base, signs: &[""], roots: &[""], masks, tells: None, links: &[] }
}

/// The managers, each with the credential files that it or its tools are known to keep there.
pub(super) const FAMILIES: &[Family] = &[
    // Cargo: its `credentials.toml` and `config.toml` (which may hold tokens) lie beside the roots.
    Family {
        variable: Some("CARGO_HOME"),
        base: ".cargo",
        signs: &["bin"],
        roots: &["bin", "registry", "git"],
        masks: &["credentials", "credentials.toml"],
        tells: None,
        links: &[(".cargo/registry", "registry"), (".cargo/git", "git")],
    },
    // rustup: cargo's own programs are links to it and need its toolchains.
    Family {
        variable: Some("RUSTUP_HOME"),
        base: ".rustup",
        signs: &["", "$CARGO_HOME/bin"],
        roots: &[""],
        masks: &["credentials", "credentials.toml"],
        tells: Some("RUSTUP_HOME"),
        links: &[],
    },
    whole(".nvm", &[".npmrc", "etc/npmrc"]),
    whole(".volta", &[".npmrc"]),
    whole(".bun", &[".npmrc", "bunfig.toml"]),
    whole(".deno", &[]),
    Family { tells: Some("PYENV_ROOT"), ..whole(".pyenv", &["pip.conf", ".pypirc"]) },
    whole(".rbenv", &["credentials"]),
    whole(".asdf", &[]),
    whole(".sdkman", &[]),
    whole(".ghcup", &[]),
    whole(".local/share/fnm", &[".npmrc"]),
    whole(".local/share/mise", &[]),
    whole(".local/share/pnpm", &[".npmrc", "rc"]),
    whole(".local/share/uv", &["credentials"]),
    // uv and pipx put links into `.local/bin` that lead to their own directories.
    Family {
        variable: None,
        base: ".local/share/uv",
        signs: &["~/.local/bin"],
        roots: &["python", "tools"],
        masks: &[],
        tells: None,
        links: &[],
    },
    Family {
        variable: None,
        base: ".local/share/pipx",
        signs: &["~/.local/bin"],
        roots: &["venvs"],
        masks: &[],
        tells: None,
        links: &[],
    },
    // Go: what `go install` made, and the module cache.
    Family { signs: &["bin"], roots: &["bin", "pkg/mod"], ..whole("go", &[]) },
    // Go: a distribution unpacked below home.
    whole("sdk", &[]),
    whole(".local/go", &[]),
];
