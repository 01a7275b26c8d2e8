//! Files that execute when a person opens, builds, tests or reviews.

/// When such a file takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum When {
    /// A directory is opened or entered, in an editor, an agent or a shell.
    Open,
    /// A person or a machine uses git on it.
    Git,
    /// Dependencies are installed or the project is built.
    Build,
    /// Tests are run.
    Test,
    /// A machine elsewhere takes it up: continuous integration, containers.
    Elsewhere,
}

/// Why a file deserves a look first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attention {
    /// When it takes effect.
    pub when: When,
    /// What happens then.
    pub why: &'static str,
}

/// Why the file at `path` deserves a look first, if it does.
///
/// Names are compared without regard to ASCII case.
#[must_use]
pub fn attention_of(path: &[u8]) -> Option<Attention> {
    let path = path.to_ascii_lowercase();
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(&path);
    RULES
        .iter()
        .find(|rule| rule.place.holds(&path, name))
        .map(|rule| Attention { when: rule.when, why: rule.why })
}

enum Place {
    /// A file of this name in any directory.
    Name(&'static str),
    /// A file whose name ends like this.
    Suffix(&'static str),
    /// Anything under a directory of this name, at any depth.
    Under(&'static str),
}

impl Place {
    fn holds(&self, path: &[u8], name: &[u8]) -> bool {
        match self {
            Self::Name(wanted) => name == wanted.as_bytes(),
            Self::Suffix(wanted) => name.ends_with(wanted.as_bytes()),
            Self::Under(directory) => {
                let wanted = directory.as_bytes();
                path.windows(wanted.len()).enumerate().any(|(at, found)| {
                    found == wanted
                        && (at == 0 || path[at - 1] == b'/')
                        && path.get(at + wanted.len()) == Some(&b'/')
                })
            }
        }
    }
}

struct Rule {
    place: Place,
    when: When,
    why: &'static str,
}

const fn name(wanted: &'static str, when: When, why: &'static str) -> Rule {
    Rule { place: Place::Name(wanted), when, why }
}
const fn suffix(wanted: &'static str, when: When, why: &'static str) -> Rule {
    Rule { place: Place::Suffix(wanted), when, why }
}
const fn under(wanted: &'static str, when: When, why: &'static str) -> Rule {
    Rule { place: Place::Under(wanted), when, why }
}

/// The list; the first rule that holds is the one that is told.
#[rustfmt::skip]
const RULES: &[Rule] = &[
    under(".vscode", When::Open, "editor tasks and settings can run commands when the folder is opened"),
    under(".idea", When::Open, "editor run configurations and file watchers run commands"),
    under(".zed", When::Open, "editor tasks and settings can run commands"),
    under(".fleet", When::Open, "editor run configurations run commands"),
    under(".devcontainer", When::Open, "the container's set-up commands run when the folder is opened"),
    suffix(".code-workspace", When::Open, "a workspace file holds tasks and settings"),
    suffix(".sublime-project", When::Open, "a project file holds build commands"),
    name(".nvim.lua", When::Open, "the editor runs it when the directory is opened"),
    name(".nvimrc", When::Open, "the editor runs it when the directory is opened"),
    name(".exrc", When::Open, "the editor runs it when the directory is opened"),
    name(".vimrc", When::Open, "the editor may run it when the directory is opened"),
    name(".dir-locals.el", When::Open, "the editor evaluates it when a file is opened"),
    under(".claude", When::Open, "agent settings and hooks run commands"),
    under(".codex", When::Open, "agent settings run commands"),
    under(".cursor", When::Open, "agent rules and tool servers take effect when the folder is opened"),
    under(".gemini", When::Open, "agent settings run commands"),
    name(".mcp.json", When::Open, "agents start the tool servers that it names"),
    name("agents.md", When::Open, "agents follow it as instructions"),
    name("claude.md", When::Open, "agents follow it as instructions"),
    name(".cursorrules", When::Open, "agents follow it as instructions"),
    name("copilot-instructions.md", When::Open, "agents follow it as instructions"),
    name(".envrc", When::Open, "direnv runs it when the directory is entered"),
    name(".env", When::Open, "shells and programs take variables from it"),
    name(".mise.toml", When::Open, "the tool manager runs hooks and sets variables from it"),
    name("mise.toml", When::Open, "the tool manager runs hooks and sets variables from it"),
    name(".tool-versions", When::Open, "it chooses which programs run"),
    name("rust-toolchain", When::Build, "it chooses which compiler runs, perhaps by path"),
    name("rust-toolchain.toml", When::Build, "it chooses which compiler runs, perhaps by path"),
    name(".bashrc", When::Open, "shells run it"),
    name(".bash_profile", When::Open, "shells run it"),
    name(".zshrc", When::Open, "shells run it"),
    name(".zshenv", When::Open, "shells run it"),
    name(".profile", When::Open, "shells run it"),
    name(".gitattributes", When::Git, "it can name filters and diff drivers and hide changes from review"),
    name(".gitmodules", When::Git, "it names other repositories to fetch"),
    name(".gitconfig", When::Git, "git configuration can run commands"),
    name(".gitignore", When::Git, "it hides files from git and from review"),
    name(".mailmap", When::Git, "it changes whose name is shown for a commit"),
    under(".husky", When::Git, "hooks run on commit and push"),
    under(".githooks", When::Git, "hooks run on commit and push"),
    name(".pre-commit-config.yaml", When::Git, "hooks run on commit"),
    name("lefthook.yml", When::Git, "hooks run on commit and push"),
    name(".lefthook.yml", When::Git, "hooks run on commit and push"),
    name(".lintstagedrc", When::Git, "commands run on commit"),
    name(".lintstagedrc.json", When::Git, "commands run on commit"),
    under(".github/workflows", When::Elsewhere, "continuous integration runs it with its credentials"),
    under(".github/actions", When::Elsewhere, "continuous integration runs it with its credentials"),
    under(".circleci", When::Elsewhere, "continuous integration runs it with its credentials"),
    under(".buildkite", When::Elsewhere, "continuous integration runs it with its credentials"),
    under(".ci", When::Elsewhere, "continuous integration runs it with its credentials"),
    name(".gitlab-ci.yml", When::Elsewhere, "continuous integration runs it with its credentials"),
    name(".travis.yml", When::Elsewhere, "continuous integration runs it with its credentials"),
    name("azure-pipelines.yml", When::Elsewhere, "continuous integration runs it with its credentials"),
    name("jenkinsfile", When::Elsewhere, "continuous integration runs it with its credentials"),
    name("codeowners", When::Elsewhere, "it decides who has to approve a change"),
    name("dockerfile", When::Elsewhere, "building the image runs it"),
    suffix(".dockerfile", When::Elsewhere, "building the image runs it"),
    name("containerfile", When::Elsewhere, "building the image runs it"),
    name("docker-compose.yml", When::Elsewhere, "it starts containers with the mounts that it names"),
    name("compose.yaml", When::Elsewhere, "it starts containers with the mounts that it names"),
    name("compose.yml", When::Elsewhere, "it starts containers with the mounts that it names"),
    name("vagrantfile", When::Elsewhere, "starting the machine runs it on the host"),
    suffix(".tf", When::Elsewhere, "applying it changes infrastructure"),
    name("package.json", When::Build, "its scripts run on install, build and test"),
    name("package-lock.json", When::Build, "it decides where dependencies come from"),
    name("npm-shrinkwrap.json", When::Build, "it decides where dependencies come from"),
    name("yarn.lock", When::Build, "it decides where dependencies come from"),
    name("pnpm-lock.yaml", When::Build, "it decides where dependencies come from"),
    name("pnpm-workspace.yaml", When::Build, "it decides which install scripts may run"),
    name(".npmrc", When::Build, "it decides where packages come from and which shell runs scripts"),
    name(".yarnrc.yml", When::Build, "it can name a program to run as the package manager"),
    name(".yarnrc", When::Build, "it can name a program to run as the package manager"),
    under(".yarn", When::Build, "the package manager's own code runs from here"),
    name(".pnpmfile.cjs", When::Build, "it runs on install"),
    name("bunfig.toml", When::Build, "it preloads code and decides where packages come from"),
    name("deno.json", When::Build, "its tasks run commands"),
    name("build.rs", When::Build, "it runs when the crate is built, also by editors"),
    name("cargo.toml", When::Build, "it names dependencies, build scripts and procedural macros"),
    name("cargo.lock", When::Build, "it decides where dependencies come from"),
    under(".cargo", When::Build, "it can name linkers, runners and wrappers to run"),
    name("makefile", When::Build, "make runs it"),
    name("gnumakefile", When::Build, "make runs it"),
    suffix(".mk", When::Build, "make runs it"),
    name("justfile", When::Build, "just runs it"),
    name("taskfile.yml", When::Build, "task runs it"),
    name("rakefile", When::Build, "rake runs it"),
    name("gemfile", When::Build, "it is code that runs on install"),
    suffix(".gemspec", When::Build, "it is code that runs on install"),
    name("cmakelists.txt", When::Build, "cmake runs it, also by editors"),
    suffix(".cmake", When::Build, "cmake runs it"),
    name("meson.build", When::Build, "meson runs it"),
    name("configure", When::Build, "it runs before a build"),
    suffix(".m4", When::Build, "it becomes part of the configure script"),
    name("build.gradle", When::Build, "gradle runs it, also by editors"),
    name("build.gradle.kts", When::Build, "gradle runs it, also by editors"),
    name("settings.gradle", When::Build, "gradle runs it, also by editors"),
    name("gradle-wrapper.properties", When::Build, "it decides which program is fetched and run"),
    name("gradlew", When::Build, "it runs as the build tool"),
    name("mvnw", When::Build, "it runs as the build tool"),
    name("pom.xml", When::Build, "its plugins run on build"),
    name("setup.py", When::Build, "it runs on install"),
    name("setup.cfg", When::Build, "it configures what runs on install and test"),
    name("pyproject.toml", When::Build, "it names the code that builds and tests"),
    name("requirements.txt", When::Build, "it decides where dependencies come from"),
    name("pip.conf", When::Build, "it decides where packages come from"),
    suffix(".pth", When::Build, "the interpreter runs it at every start"),
    name("sitecustomize.py", When::Build, "the interpreter runs it at every start"),
    name("usercustomize.py", When::Build, "the interpreter runs it at every start"),
    name("build.zig", When::Build, "it runs when the project is built"),
    name("build.bazel", When::Build, "bazel runs it"),
    name(".bazelrc", When::Build, "it changes what bazel runs"),
    suffix(".bzl", When::Build, "bazel runs it"),
    name("flake.nix", When::Build, "nix evaluates it"),
    name("shell.nix", When::Build, "nix evaluates it"),
    name("default.nix", When::Build, "nix evaluates it"),
    name("binding.gyp", When::Build, "it runs on install"),
    name("composer.json", When::Build, "its scripts run on install"),
    name("mix.exs", When::Build, "it is code that runs on install and build"),
    name("package.swift", When::Build, "it is code that runs on build"),
    name("go.mod", When::Build, "it decides where dependencies come from"),
    name("webpack.config.js", When::Build, "it runs on build"),
    name("vite.config.js", When::Build, "it runs on build and when the dev server starts"),
    name("vite.config.ts", When::Build, "it runs on build and when the dev server starts"),
    name("rollup.config.js", When::Build, "it runs on build"),
    name("babel.config.js", When::Build, "it runs on build"),
    name("gulpfile.js", When::Build, "it runs on build"),
    name("next.config.js", When::Build, "it runs on build and when the dev server starts"),
    name("eslint.config.js", When::Open, "linters run it, also in editors"),
    name(".eslintrc.js", When::Open, "linters run it, also in editors"),
    name(".prettierrc.js", When::Open, "formatters run it, also in editors"),
    name("conftest.py", When::Test, "the test runner runs it before any test"),
    name("tox.ini", When::Test, "it names the commands of a test run"),
    name("noxfile.py", When::Test, "it runs on test"),
    name("pytest.ini", When::Test, "it changes what a test run loads"),
    name("jest.config.js", When::Test, "the test runner runs it before any test"),
    name("vitest.config.ts", When::Test, "the test runner runs it before any test"),
    name("playwright.config.ts", When::Test, "the test runner runs it before any test"),
    name(".rspec", When::Test, "it changes what a test run loads"),
];

#[cfg(test)]
mod tests {
    use super::{When, attention_of};

    #[test]
    fn files_that_execute_are_known_at_any_depth_and_case() {
        let table = [
            ("package.json", When::Build),
            ("a/b/PACKAGE.JSON", When::Build),
            (".vscode/tasks.json", When::Open),
            ("x/.github/workflows/ci.yml", When::Elsewhere),
            (".envrc", When::Open),
            ("crates/a/build.rs", When::Build),
            ("Makefile", When::Build),
            ("tests/conftest.py", When::Test),
            (".gitattributes", When::Git),
            (".gitmodules", When::Git),
            ("Dockerfile", When::Elsewhere),
            (".claude/settings.json", When::Open),
        ];
        for (path, when) in table {
            assert_eq!(attention_of(path.as_bytes()).map(|found| found.when), Some(when), "{path}");
        }
    }

    #[test]
    fn ordinary_files_are_not() {
        for path in [
            "src/main.rs",
            "package.json.md",
            "a.vscode/x",
            ".vscode",
            "github/workflows/x",
            "x.ci/y",
        ] {
            assert_eq!(attention_of(path.as_bytes()), None, "{path}");
        }
    }
}
