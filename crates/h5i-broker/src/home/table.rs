//! Which files of which tools a box gets.

use super::Format;

/// A tool whose configuration a box can get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Tool {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Git.
    Git,
    /// npm.
    Npm,
    /// Cargo.
    Cargo,
    /// pip.
    Pip,
}

impl Tool {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Claude, Self::Codex, Self::Git, Self::Npm, Self::Cargo, Self::Pip];
}

/// A file or directory below a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeedFile {
    /// Its path below the home. A directory's ends with a slash; all below it is taken.
    pub path: &'static str,
    /// How it is written.
    pub format: Format,
    /// What of it is taken.
    pub(super) keep: Keep,
}

/// What is kept of a file, beside credentials, which never are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// All of it.
    All,
    /// These names at the top, or, in git's configuration, `section.name`; `*` is any name.
    Only(&'static [&'static str]),
    /// Everything but what these paths lead to.
    Without(&'static [&'static str]),
}

/// Why something that is no credential is left out.
pub(super) const NEEDLESS: &str = "of no use in a box";

impl Keep {
    /// Whether what stands at a place is kept.
    pub(super) fn keeps(self, place: &[String]) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => place.len() > 1 || names.iter().any(|name| place[0] == *name),
            Self::Without(paths) => !paths.contains(&place.join(".").as_str()),
        }
    }

    /// Whether a name of git's configuration is kept. Sections and names have no case there.
    pub(super) fn keeps_name(self, section: &str, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Without(paths) => {
                !paths.iter().any(|path| path.eq_ignore_ascii_case(&format!("{section}.{name}")))
            }
            Self::Only(names) => names.iter().any(|kept| match kept.split_once('.') {
                Some((of, "*")) => of.eq_ignore_ascii_case(section),
                Some((of, one)) => {
                    of.eq_ignore_ascii_case(section) && one.eq_ignore_ascii_case(name)
                }
                None => false,
            }),
        }
    }
}

const fn whole(path: &'static str, format: Format) -> SeedFile {
    SeedFile { path, format, keep: Keep::All }
}

/// What makes Claude Code start without questions. The rest of this file is its state: projects by
/// their paths, the account, the end of an API key.
const CLAUDE_STATE: &[&str] = &[
    "hasCompletedOnboarding",
    "lastOnboardingVersion",
    "theme",
    "editorMode",
    "verbose",
    "preferredNotifChannel",
    "autoCompactEnabled",
    "diffTool",
];

/// Where the model is, which the box is told by the broker.
const CLAUDE_SETTINGS: &[&str] = &[
    "env.ANTHROPIC_BASE_URL",
    "env.ANTHROPIC_BEDROCK_BASE_URL",
    "env.ANTHROPIC_VERTEX_BASE_URL",
    "env.CLAUDE_CODE_USE_BEDROCK",
    "env.CLAUDE_CODE_USE_VERTEX",
];

/// Paths of the host's projects, and where the model is.
const CODEX_CONFIG: &[&str] = &["projects", "openai_base_url", "chatgpt_base_url"];

/// Who commits, and how git looks and merges. Nothing that names a program or another file: helpers
/// for credentials, hooks, filters, pagers, includes are of the host.
const GIT: &[&str] = &[
    "user.name",
    "user.email",
    "alias.*",
    "branch.autoSetupMerge",
    "branch.autoSetupRebase",
    "branch.sort",
    "color.*",
    "column.ui",
    "commit.cleanup",
    "commit.verbose",
    "core.abbrev",
    "core.autocrlf",
    "core.commentChar",
    "core.eol",
    "core.ignoreCase",
    "core.precomposeUnicode",
    "core.quotePath",
    "core.safecrlf",
    "core.whitespace",
    "diff.algorithm",
    "diff.colorMoved",
    "diff.mnemonicPrefix",
    "diff.noprefix",
    "diff.renames",
    "fetch.prune",
    "help.autocorrect",
    "init.defaultBranch",
    "log.date",
    "merge.conflictStyle",
    "merge.ff",
    "pull.ff",
    "pull.rebase",
    "push.autoSetupRemote",
    "push.default",
    "push.followTags",
    "rebase.autoSquash",
    "rebase.autoStash",
    "rebase.updateRefs",
    "rerere.autoUpdate",
    "rerere.enabled",
    "status.short",
    "status.showUntrackedFiles",
    "tag.sort",
];

/// The files of a tool.
#[must_use]
pub fn seeds_of(tool: Tool) -> &'static [SeedFile] {
    const CLAUDE: &[SeedFile] = &[
        SeedFile {
            path: ".claude/settings.json",
            format: Format::Json,
            keep: Keep::Without(CLAUDE_SETTINGS),
        },
        whole(".claude/CLAUDE.md", Format::Text),
        whole(".claude/commands/", Format::Text),
        whole(".claude/agents/", Format::Text),
        SeedFile { path: ".claude.json", format: Format::Json, keep: Keep::Only(CLAUDE_STATE) },
    ];
    const CODEX: &[SeedFile] = &[
        SeedFile {
            path: ".codex/config.toml",
            format: Format::Toml,
            keep: Keep::Without(CODEX_CONFIG),
        },
        whole(".codex/AGENTS.md", Format::Text),
        whole(".codex/prompts/", Format::Text),
    ];
    const GIT_FILES: &[SeedFile] = &[
        SeedFile { path: ".gitconfig", format: Format::GitConfig, keep: Keep::Only(GIT) },
        SeedFile { path: ".config/git/config", format: Format::GitConfig, keep: Keep::Only(GIT) },
        whole(".config/git/ignore", Format::Text),
    ];
    const NPM: &[SeedFile] = &[whole(".npmrc", Format::Npmrc)];
    const CARGO: &[SeedFile] =
        &[whole(".cargo/config.toml", Format::Toml), whole(".cargo/config", Format::Toml)];
    const PIP: &[SeedFile] =
        &[whole(".config/pip/pip.conf", Format::Ini), whole(".pip/pip.conf", Format::Ini)];
    match tool {
        Tool::Claude => CLAUDE,
        Tool::Codex => CODEX,
        Tool::Git => GIT_FILES,
        Tool::Npm => NPM,
        Tool::Cargo => CARGO,
        Tool::Pip => PIP,
    }
}
