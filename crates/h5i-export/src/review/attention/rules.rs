//! The list of files that execute, in the order of their urgency.

use super::When::{self, Build, Elsewhere, Git, Open, Sandbox, Test};

/// Where a file of a rule is. All in lower case.
pub(super) enum Place {
    /// A file whose name, or whose path's end, is the first text with one of the endings.
    Name(&'static str, &'static [&'static str]),
    /// A file whose name begins like this; the text ends with a dot.
    Head(&'static str),
    /// A file whose name ends like this; the text begins with a dot.
    Tail(&'static str),
    /// Anything under a directory of this name, at any depth.
    Under(&'static str),
}

pub(super) struct Rule {
    pub(super) place: Place,
    pub(super) when: When,
    pub(super) why: &'static str,
}

const fn one(name: &'static str, when: When, why: &'static str) -> Rule {
    any(name, &[""], when, why)
}
const fn any(
    stem: &'static str,
    endings: &'static [&'static str],
    when: When,
    why: &'static str,
) -> Rule {
    Rule { place: Place::Name(stem, endings), when, why }
}
const fn head(wanted: &'static str, when: When, why: &'static str) -> Rule {
    Rule { place: Place::Head(wanted), when, why }
}
const fn tail(wanted: &'static str, when: When, why: &'static str) -> Rule {
    Rule { place: Place::Tail(wanted), when, why }
}
const fn under(wanted: &'static str, when: When, why: &'static str) -> Rule {
    Rule { place: Place::Under(wanted), when, why }
}

/// What a module of JavaScript or TypeScript ends with.
const JS: &[&str] = &[".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"];
const YAML: &[&str] = &[".yml", ".yaml"];
const DATA: &[&str] = &[".yml", ".yaml", ".json", ".jsonc", ".json5", ".toml"];
/// A file without ending, with data or a module.
const RC: &[&str] = &[
    "", ".yml", ".yaml", ".json", ".jsonc", ".json5", ".toml", ".js", ".mjs", ".cjs", ".ts",
    ".mts", ".cts",
];
const GRADLE: &[&str] = &[".gradle", ".gradle.kts", ".gradle.dcl"];
const SCRIPT: &[&str] = &["", ".bat", ".cmd", ".ps1", ".sh"];
const RUBY: &[&str] = &["", ".rb"];
const BAZEL: &[&str] = &["", ".bazel"];
/// Names of hooks that git runs.
#[rustfmt::skip]
const HOOKS: &[&str] = &[
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout",
    "post-commit", "post-merge", "post-receive", "post-rewrite", "post-update", "pre-applypatch",
    "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive",
    "prepare-commit-msg", "proc-receive", "push-to-checkout", "reference-transaction",
    "sendemail-validate", "update",
];

const POLICY: &str = "it says what a box of this repository may do and reach";
const AGENT: &str = "agents follow it as instructions";
const AGENT_RUNS: &str = "agent settings and hooks run commands";
const TOOLS: &str = "agents start the tool servers that it names";
const EDITOR: &str = "editor settings, tasks and run configurations run commands";
const EDITOR_RUNS: &str = "the editor may run it when the directory is opened";
const SERVER: &str = "the editor's language server takes programs and flags from it";
const DEBUGGER: &str = "the debugger may run it when it is started here";
const SHELL: &str = "shells run it";
const LINTER: &str = "linters run it, also in editors";
const FORMATTER: &str = "formatters run it, also in editors";
const CHOOSES: &str = "it chooses which programs run";
const COMMIT: &str = "hooks run on commit and push";
const CI: &str = "continuous integration runs it with its credentials";
const CONTAINERS: &str = "it starts containers with the mounts that it names";
const IMAGE: &str = "building the image runs it";
const SOURCES: &str = "it decides where dependencies come from";
const BUILD: &str = "it runs on build";
const SERVE: &str = "it runs on build and when the dev server starts";
const INSTALL: &str = "it is code that runs on install";
const GRADLE_RUNS: &str = "gradle runs it, also by editors";
const MAKE: &str = "make runs it";
const CMAKE: &str = "cmake runs it, also by editors";
const CONFIGURE: &str = "it becomes part of what runs before a build";
const BAZEL_RUNS: &str = "bazel, buck or another build tool runs it";
const TOOL: &str = "it runs as the build tool";
const FETCHED: &str = "it decides which program is fetched and run";
const PROJECT: &str = "its targets and tasks run on build, also in editors";
const TEST: &str = "the test runner runs it before any test";
const LOADS: &str = "it changes what a test run loads";
const INFRA: &str = "applying it changes infrastructure";
const STARTUP: &str = "the interpreter runs it at every start";

/// The list; the first rule that holds is the one that is told.
#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    under(".h5i", Sandbox, POLICY),
    // Editors.
    under(".vscode", Open, "editor tasks and settings can run commands when the folder is opened"),
    under(".idea", Open, "editor run configurations and file watchers run commands"),
    under(".zed", Open, EDITOR),
    under(".fleet", Open, EDITOR),
    under(".vs", Open, EDITOR),
    under(".theia", Open, EDITOR),
    under(".nova", Open, EDITOR),
    under(".helix", Open, "it names the language servers and formatters that the editor starts"),
    under(".devcontainer", Open, "the container's set-up commands run when the folder is opened"),
    one(".devcontainer.json", Open, "the container's set-up commands run when the folder is opened"),
    any(".gitpod", YAML, Open, "its tasks run when the workspace is opened"),
    tail(".code-workspace", Open, "a workspace file holds tasks and settings"),
    tail(".sublime-project", Open, "a project file holds build commands"),
    any(".nvim", &[".lua"], Open, EDITOR_RUNS),
    any(".nvimrc", &["", ".lua"], Open, EDITOR_RUNS),
    any(".exrc", &["", ".lua"], Open, EDITOR_RUNS),
    any(".vimrc", &["", ".local", ".lua"], Open, EDITOR_RUNS),
    one("_vimrc", Open, EDITOR_RUNS),
    one(".local.vimrc", Open, EDITOR_RUNS),
    one(".lvimrc", Open, EDITOR_RUNS),
    any(".dir-locals", &[".el"], Open, "the editor evaluates it when a file is opened"),
    any(".dir-locals-2", &[".el"], Open, "the editor evaluates it when a file is opened"),
    any(".vimspector", &[".json"], Open, "it names the programs that the editor debugs with"),
    any(".ycm_extra_conf", &[".py"], Open, EDITOR_RUNS),
    one(".clangd", Open, SERVER),
    any("compile_commands", &[".json"], Open, SERVER),
    any("compile_flags", &[".txt"], Open, SERVER),
    any(".gdbinit", &["", ".gdb", ".py"], Open, DEBUGGER),
    one(".lldbinit", Open, DEBUGGER),
    one(".pdbrc", Open, DEBUGGER),
    // Agents.
    under(".claude", Open, AGENT_RUNS),
    under(".codex", Open, AGENT_RUNS),
    under(".gemini", Open, AGENT_RUNS),
    under(".opencode", Open, AGENT_RUNS),
    under(".kiro", Open, AGENT_RUNS),
    under(".agents", Open, AGENT_RUNS),
    under(".amazonq", Open, AGENT_RUNS),
    under(".cursor", Open, "agent rules and tool servers take effect when the folder is opened"),
    under(".windsurf", Open, "agent rules and tool servers take effect when the folder is opened"),
    under(".clinerules", Open, AGENT),
    under(".roo", Open, "agent rules and tool servers take effect when the folder is opened"),
    under(".continue", Open, "agent rules and tool servers take effect when the folder is opened"),
    under(".junie", Open, AGENT),
    under(".trae", Open, AGENT),
    under(".augment", Open, AGENT),
    under(".github/instructions", Open, AGENT),
    under(".github/prompts", Open, AGENT),
    any("opencode", DATA, Open, AGENT_RUNS),
    any(".aider.conf", YAML, Open, AGENT_RUNS),
    any(".mcp", DATA, Open, TOOLS),
    any("mcp", DATA, Open, TOOLS),
    under(".mcp", Open, TOOLS),
    any("agents", &[".md", ".override.md", ".local.md"], Open, AGENT),
    any("agent", &[".md", ".override.md", ".local.md"], Open, AGENT),
    any("claude", &[".md", ".override.md", ".local.md"], Open, AGENT),
    any("gemini", &[".md", ".override.md", ".local.md"], Open, AGENT),
    any("copilot-instructions", &[".md"], Open, AGENT),
    one(".cursorrules", Open, AGENT),
    one(".windsurfrules", Open, AGENT),
    one(".clinerules", Open, AGENT),
    one(".roorules", Open, AGENT),
    one(".goosehints", Open, AGENT),
    // Shells.
    any(".envrc", &["", ".local"], Open, "direnv runs it when the directory is entered"),
    any(".autoenv", &["", ".zsh"], Open, "shells run it when the directory is entered"),
    any(".env", &[
        "", ".local", ".development", ".production", ".test", ".staging", ".development.local",
        ".production.local", ".test.local", ".staging.local",
    ], Open, "shells and programs take variables from it"),
    any(".mise", &[".toml", ".local.toml"], Open, "the tool manager runs hooks and sets variables from it"),
    any("mise", &[".toml", ".local.toml"], Open, "the tool manager runs hooks and sets variables from it"),
    under(".mise", Open, "the tool manager runs hooks and sets variables from it"),
    under(".config/mise", Open, "the tool manager runs hooks and sets variables from it"),
    one(".tool-versions", Open, CHOOSES),
    one(".nvmrc", Open, CHOOSES),
    one(".node-version", Open, CHOOSES),
    one(".python-version", Open, CHOOSES),
    one(".ruby-version", Open, CHOOSES),
    one(".java-version", Open, CHOOSES),
    one(".sdkmanrc", Open, CHOOSES),
    any("devbox", &[".json"], Open, "its hooks run when the environment is entered"),
    any("devenv", &[".nix", ".yaml"], Open, "its hooks run when the environment is entered"),
    one(".bashrc", Open, SHELL),
    one(".bash_profile", Open, SHELL),
    one(".bash_login", Open, SHELL),
    one(".bash_logout", Open, SHELL),
    one(".zshrc", Open, SHELL),
    one(".zshenv", Open, SHELL),
    one(".zprofile", Open, SHELL),
    one(".zlogin", Open, SHELL),
    one(".zlogout", Open, SHELL),
    one(".profile", Open, SHELL),
    one(".rprofile", Open, STARTUP),
    one(".irbrc", Open, STARTUP),
    one(".pryrc", Open, STARTUP),
    // Linters and formatters, which editors start.
    any("eslint.config", JS, Open, LINTER),
    any(".eslintrc", RC, Open, LINTER),
    any("stylelint.config", JS, Open, LINTER),
    any(".stylelintrc", RC, Open, LINTER),
    any(".pylintrc", &["", ".toml"], Open, LINTER),
    any("pylintrc", &["", ".toml"], Open, LINTER),
    any("mypy", &[".ini"], Open, "the type checker loads the plugins that it names, also in editors"),
    any(".mypy", &[".ini"], Open, "the type checker loads the plugins that it names, also in editors"),
    any(".php-cs-fixer", &[".php", ".dist.php"], Open, FORMATTER),
    any("prettier.config", JS, Open, FORMATTER),
    any(".prettierrc", RC, Open, FORMATTER),
    // Git.
    one(".gitattributes", Git, "it can name filters and diff drivers and hide changes from review"),
    one(".gitmodules", Git, "it names other repositories to fetch"),
    one(".gitconfig", Git, "git configuration can run commands"),
    one(".lfsconfig", Git, "it decides where large files are fetched from and sent to"),
    one(".gitignore", Git, "it hides files from git and from review"),
    one(".mailmap", Git, "it changes whose name is shown for a commit"),
    under(".husky", Git, COMMIT),
    under(".githooks", Git, COMMIT),
    under(".git-hooks", Git, COMMIT),
    any("hooks/", HOOKS, Git, COMMIT),
    any(".huskyrc", RC, Git, COMMIT),
    any(".pre-commit-config", YAML, Git, "hooks run on commit"),
    any(".pre-commit-hooks", YAML, Git, "it names the hooks that other repositories take from here"),
    any("lefthook", DATA, Git, COMMIT),
    any(".lefthook", DATA, Git, COMMIT),
    any("lefthook-local", DATA, Git, COMMIT),
    any(".lefthook-local", DATA, Git, COMMIT),
    any(".overcommit", YAML, Git, COMMIT),
    any(".lintstagedrc", RC, Git, "commands run on commit"),
    any("lint-staged.config", JS, Git, "commands run on commit"),
    any("commitlint.config", JS, Git, "it runs on commit"),
    any(".commitlintrc", RC, Git, "it runs on commit"),
    // Build: JavaScript.
    any("package", &[".json", ".json5", ".yaml"], Build, "its scripts run on install, build and test"),
    any("package-lock", &[".json"], Build, SOURCES),
    any("npm-shrinkwrap", &[".json"], Build, SOURCES),
    any("yarn", &[".lock"], Build, SOURCES),
    any("pnpm-lock", YAML, Build, SOURCES),
    any("bun", &[".lock", ".lockb"], Build, SOURCES),
    any("deno", &[".lock"], Build, SOURCES),
    any("pnpm-workspace", YAML, Build, "it decides which install scripts may run"),
    one(".npmrc", Build, "it decides where packages come from and which shell runs scripts"),
    any(".yarnrc", &["", ".yml", ".yaml"], Build, "it can name a program to run as the package manager"),
    under(".yarn", Build, "the package manager's own code runs from here"),
    any(".pnpmfile", JS, Build, "it runs on install"),
    any("pnpmfile", JS, Build, "it runs on install"),
    any("bunfig", &[".toml"], Build, "it preloads code and decides where packages come from"),
    any("deno", &[".json", ".jsonc"], Build, "its tasks run commands"),
    any("webpack.config", JS, Build, BUILD),
    any("vite.config", JS, Build, SERVE),
    any("next.config", JS, Build, SERVE),
    any("nuxt.config", JS, Build, SERVE),
    any("svelte.config", JS, Build, SERVE),
    any("astro.config", JS, Build, SERVE),
    any("rollup.config", JS, Build, BUILD),
    any("rspack.config", JS, Build, BUILD),
    any("tsup.config", JS, Build, BUILD),
    any("babel.config", RC, Build, BUILD),
    any(".babelrc", RC, Build, BUILD),
    any("postcss.config", RC, Build, BUILD),
    any(".postcssrc", RC, Build, BUILD),
    any("tailwind.config", JS, Build, BUILD),
    any("gruntfile", &["", ".js", ".cjs", ".mjs", ".ts", ".coffee"], Build, BUILD),
    any("gulpfile", &["", ".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".babel.js", ".coffee"], Build, BUILD),
    any("release.config", JS, Build, "it runs on release"),
    any(".releaserc", RC, Build, "it runs on release"),
    any("binding", &[".gyp"], Build, "it runs on install"),
    // Build: Rust.
    any("rust-toolchain", &["", ".toml"], Build, "it chooses which compiler runs, perhaps by path"),
    any("build", &[".rs"], Build, "it runs when the crate is built, also by editors"),
    any("cargo", &[".toml"], Build, "it names dependencies, build scripts and procedural macros"),
    any("cargo", &[".lock"], Build, SOURCES),
    under(".cargo", Build, "it can name linkers, runners and wrappers to run"),
    // Build: make, CMake and the like.
    any("makefile", &["", ".am", ".in", ".inc", ".common"], Build, MAKE),
    one("gnumakefile", Build, MAKE),
    one("bsdmakefile", Build, MAKE),
    tail(".mk", Build, MAKE),
    one("justfile", Build, "just runs it"),
    one(".justfile", Build, "just runs it"),
    tail(".just", Build, "just runs it"),
    any("taskfile", &[".yml", ".yaml", ".dist.yml", ".dist.yaml"], Build, "task runs it"),
    any("cmakelists", &[".txt"], Build, CMAKE),
    any("cmakepresets", &[".json"], Build, "it sets variables and programs of a build, also for editors"),
    any("cmakeuserpresets", &[".json"], Build, "it sets variables and programs of a build, also for editors"),
    tail(".cmake", Build, CMAKE),
    any("meson", &[".build", ".options"], Build, "meson runs it"),
    one("configure", Build, "it runs before a build"),
    any("configure", &[".ac", ".in"], Build, CONFIGURE),
    any("autogen", SCRIPT, Build, "it runs before a build"),
    tail(".m4", Build, CONFIGURE),
    one("sconstruct", Build, BUILD),
    one("sconscript", Build, BUILD),
    one("wscript", Build, BUILD),
    any("xmake", &[".lua"], Build, BUILD),
    any("premake5", &[".lua"], Build, BUILD),
    any("build", &[".ninja"], Build, BUILD),
    any("conanfile", &[".py", ".txt"], Build, INSTALL),
    // Build: the JVM.
    any("build", GRADLE, Build, GRADLE_RUNS),
    any("settings", GRADLE, Build, GRADLE_RUNS),
    any("init", GRADLE, Build, GRADLE_RUNS),
    tail(".gradle", Build, GRADLE_RUNS),
    tail(".gradle.kts", Build, GRADLE_RUNS),
    any("gradle", &[".properties"], Build, "it sets what gradle and its machine are started with"),
    any("gradle-wrapper", &[".properties", ".jar"], Build, FETCHED),
    any("gradlew", SCRIPT, Build, TOOL),
    any("mvnw", SCRIPT, Build, TOOL),
    under(".mvn", Build, "it adds extensions and options to every build"),
    any("pom", &[".xml"], Build, "its plugins run on build"),
    any("build", &[".sbt", ".sc", ".mill", ".cake", ".xml", ".ps1"], Build, BUILD),
    tail(".sbt", Build, BUILD),
    any("project/build", &[".properties", ".scala"], Build, FETCHED),
    any("ivy", &[".xml"], Build, SOURCES),
    any("project", &[".clj"], Build, INSTALL),
    any("deps", &[".edn"], Build, SOURCES),
    // Build: Bazel and its kin.
    any("workspace", &["", ".bazel", ".bzlmod"], Build, BAZEL_RUNS),
    any("module", &[".bazel"], Build, BAZEL_RUNS),
    any("build", BAZEL, Build, BAZEL_RUNS),
    one("buck", Build, BAZEL_RUNS),
    any(".buckconfig", &["", ".local"], Build, BAZEL_RUNS),
    any("pants", &[".toml"], Build, BAZEL_RUNS),
    any("build", &[".pants"], Build, BAZEL_RUNS),
    any("tools/bazel", SCRIPT, Build, TOOL),
    any(".bazelrc", &["", ".user"], Build, "it changes what bazel runs"),
    one(".bazelversion", Build, FETCHED),
    tail(".bzl", Build, BAZEL_RUNS),
    // Build: Python.
    any("setup", &[".py"], Build, "it runs on install"),
    any("setup", &[".cfg"], Build, "it configures what runs on install and test"),
    any("pyproject", &[".toml"], Build, "it names the code that builds and tests"),
    any("requirements", &[
        ".txt", ".in", "-dev.txt", "-test.txt", "_dev.txt", "_test.txt", "-dev.in", "-test.in",
    ], Build, SOURCES),
    any("requirements/", &[
        "base.txt", "common.txt", "dev.txt", "development.txt", "docs.txt", "lint.txt",
        "local.txt", "main.txt", "prod.txt", "production.txt", "test.txt", "tests.txt",
    ], Build, SOURCES),
    any("constraints", &[".txt"], Build, SOURCES),
    any("pipfile", &["", ".lock"], Build, SOURCES),
    any("poetry", &[".lock", ".toml"], Build, SOURCES),
    any("uv", &[".lock", ".toml"], Build, SOURCES),
    any("pdm", &[".lock", ".toml"], Build, SOURCES),
    any("pip", &[".conf", ".ini"], Build, "it decides where packages come from"),
    tail(".pth", Build, STARTUP),
    any("sitecustomize", &[".py"], Build, STARTUP),
    any("usercustomize", &[".py"], Build, STARTUP),
    // Build: Ruby.
    any("rakefile", RUBY, Build, "rake runs it"),
    tail(".rake", Build, "rake runs it"),
    any("gemfile", &["", ".rb"], Build, INSTALL),
    any("gems", &[".rb"], Build, INSTALL),
    any("gemfile", &[".lock"], Build, SOURCES),
    any("gems", &[".locked"], Build, SOURCES),
    tail(".gemspec", Build, INSTALL),
    any("podfile", RUBY, Build, INSTALL),
    any("podfile", &[".lock"], Build, SOURCES),
    any("fastfile", RUBY, Build, BUILD),
    any("guardfile", RUBY, Build, BUILD),
    any("dangerfile", &["", ".rb", ".js", ".ts", ".mjs", ".mts"], Build, "it runs on review"),
    any("brewfile", RUBY, Build, INSTALL),
    // Build: .NET and Xcode.
    tail(".csproj", Build, PROJECT),
    tail(".fsproj", Build, PROJECT),
    tail(".vbproj", Build, PROJECT),
    tail(".vcxproj", Build, PROJECT),
    tail(".targets", Build, PROJECT),
    tail(".props", Build, PROJECT),
    any("nuget", &[".config"], Build, "it decides where packages come from"),
    any("global", &[".json"], Build, CHOOSES),
    tail(".pbxproj", Build, PROJECT),
    tail(".xcscheme", Build, PROJECT),
    tail(".xcworkspacedata", Build, PROJECT),
    tail(".xcconfig", Build, PROJECT),
    // Build: the rest.
    any("build", &[".zig", ".zig.zon"], Build, "it runs when the project is built"),
    any("flake", &[".nix"], Build, "nix evaluates it"),
    any("flake", &[".lock"], Build, SOURCES),
    any("shell", &[".nix"], Build, "nix evaluates it"),
    any("default", &[".nix"], Build, "nix evaluates it"),
    any("composer", &[".json"], Build, "its scripts run on install"),
    any("composer", &[".lock"], Build, SOURCES),
    any("mix", &[".exs"], Build, "it is code that runs on install and build"),
    any("mix", &[".lock"], Build, SOURCES),
    any("rebar", &[".config", ".config.script"], Build, "its hooks run on build"),
    any("rebar", &[".lock"], Build, SOURCES),
    any("package", &[".swift"], Build, "it is code that runs on build"),
    any("package", &[".resolved"], Build, SOURCES),
    any("go", &[".mod", ".sum", ".work", ".work.sum"], Build, SOURCES),
    any("magefile", &[".go"], Build, BUILD),
    any("setup", &[".hs", ".lhs"], Build, BUILD),
    tail(".cabal", Build, BUILD),
    any("cabal.project", &["", ".local", ".freeze"], Build, SOURCES),
    any("stack", YAML, Build, SOURCES),
    any("dune", &["", ".inc"], Build, "dune runs its rules, also by editors"),
    any("dune-project", &[""], Build, "dune runs its rules, also by editors"),
    any("makefile", &[".pl"], Build, INSTALL),
    any("build", &[".pl"], Build, INSTALL),
    one("cpanfile", Build, SOURCES),
    // Tests.
    any("conftest", &[".py"], Test, TEST),
    any("tox", &[".ini", ".toml"], Test, "it names the commands of a test run"),
    any("noxfile", &[".py"], Test, "it runs on test"),
    any("pytest", &[".ini", ".toml"], Test, LOADS),
    any(".pytest", &[".ini", ".toml"], Test, LOADS),
    one(".coveragerc", Test, LOADS),
    any("jest.config", &[".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".json"], Test, TEST),
    any("jest.setup", JS, Test, TEST),
    any("vitest.config", JS, Test, TEST),
    any("vitest.workspace", &[".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".json"], Test, TEST),
    any("playwright.config", JS, Test, TEST),
    any("cypress.config", JS, Test, TEST),
    any("karma.conf", JS, Test, TEST),
    any(".mocharc", RC, Test, LOADS),
    any("phpunit", &[".xml", ".xml.dist", ".dist.xml"], Test, LOADS),
    any(".rspec", &["", "-local"], Test, LOADS),
    any("spec_helper", &[".rb"], Test, TEST),
    any("rails_helper", &[".rb"], Test, TEST),
    any("test_helper", &[".rb", ".exs"], Test, TEST),
    one(".simplecov", Test, TEST),
    // Other machines.
    under(".github/workflows", Elsewhere, CI),
    under(".github/actions", Elsewhere, CI),
    under(".circleci", Elsewhere, CI),
    under(".buildkite", Elsewhere, CI),
    under(".ci", Elsewhere, CI),
    under(".woodpecker", Elsewhere, CI),
    under(".jenkins", Elsewhere, CI),
    any("action", YAML, Elsewhere, CI),
    any(".gitlab-ci", YAML, Elsewhere, CI),
    any(".travis", YAML, Elsewhere, CI),
    any(".drone", &[".yml", ".yaml", ".jsonnet", ".star"], Elsewhere, CI),
    any(".woodpecker", YAML, Elsewhere, CI),
    any("bitbucket-pipelines", YAML, Elsewhere, CI),
    any("appveyor", YAML, Elsewhere, CI),
    any(".appveyor", YAML, Elsewhere, CI),
    any("azure-pipelines", YAML, Elsewhere, CI),
    any(".cirrus", &[".yml", ".yaml", ".star"], Elsewhere, CI),
    any("cloudbuild", DATA, Elsewhere, CI),
    any("buildspec", YAML, Elsewhere, CI),
    any("jenkinsfile", &["", ".groovy"], Elsewhere, CI),
    head("jenkinsfile.", Elsewhere, CI),
    any(".goreleaser", YAML, Elsewhere, CI),
    one("codeowners", Elsewhere, "it decides who has to approve a change"),
    one("dockerfile", Elsewhere, IMAGE),
    head("dockerfile.", Elsewhere, IMAGE),
    tail(".dockerfile", Elsewhere, IMAGE),
    one("containerfile", Elsewhere, IMAGE),
    head("containerfile.", Elsewhere, IMAGE),
    one("earthfile", Elsewhere, IMAGE),
    any("docker-bake", &[".hcl", ".json", ".override.hcl", ".override.json"], Elsewhere, IMAGE),
    head("docker-compose.", Elsewhere, CONTAINERS),
    any("compose", &[".yml", ".yaml", ".override.yml", ".override.yaml"], Elsewhere, CONTAINERS),
    any("skaffold", YAML, Elsewhere, CONTAINERS),
    one("tiltfile", Elsewhere, "it runs commands when the development environment is started"),
    any("procfile", &["", ".dev"], Elsewhere, "it names the commands that are started"),
    one("vagrantfile", Elsewhere, "starting the machine runs it on the host"),
    any("ansible", &[".cfg"], Elsewhere, "it chooses the code that runs against other machines"),
    tail(".tf", Elsewhere, INFRA),
    tail(".tofu", Elsewhere, INFRA),
    tail(".tf.json", Elsewhere, INFRA),
    tail(".tofu.json", Elsewhere, INFRA),
    any("terragrunt", &[".hcl", ".hcl.json"], Elsewhere, INFRA),
    any(".terraformrc", &[""], Elsewhere, INFRA),
    any("pulumi", YAML, Elsewhere, INFRA),
    any("serverless", &[".yml", ".yaml", ".json", ".js", ".ts"], Elsewhere, INFRA),
];
