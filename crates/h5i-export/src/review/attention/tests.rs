use super::rules::{Place, RULES};
use super::{DEEPEST, When, attention_of};

/// When each takes effect, and paths of that; separated by white space, braces as in a shell.
const KNOWN: [(When, &str); 6] = [
    (When::Sandbox, ".h5i/policy.toml sub/.h5i/policy.toml .h5i/x/y"),
    (
        When::Open,
        ".vscode/tasks.json .idea/x.xml .zed/tasks.json .fleet/run.json .vs/tasks.vs.json \
         .theia/tasks.json .helix/languages.toml .devcontainer/devcontainer.json \
         .devcontainer.json .gitpod.{yml,yaml} x.code-workspace x.sublime-project .nvim.lua \
         .nvimrc .exrc .vimrc .lvimrc .dir-locals.el .ycm_extra_conf.py .clangd \
         compile_commands.json .gdbinit .lldbinit .claude/settings.json .codex/config.toml \
         .gemini/settings.json .cursor/rules/x .windsurf/rules/x.md .windsurfrules .clinerules \
         .clinerules/x.md .roo/rules.md .kiro/hooks/x.json .continue/config.json .opencode/x.json \
         opencode.{json,jsonc} .agents/skills/x/SKILL.md .goosehints .aider.conf.{yml,yaml} \
         .mcp.json mcp.json AGENTS.md AGENTS.override.md AGENT.md CLAUDE.md CLAUDE.local.md \
         GEMINI.md .github/copilot-instructions.md .cursorrules .envrc .env .env.local \
         .env.production .mise.toml mise.toml .tool-versions .bashrc .bash_profile .bash_login \
         .zshrc .zshenv .zprofile .zlogin .profile eslint.config.{js,mjs,cjs,ts,mts,cts} \
         .eslintrc.{js,cjs,json,yml} prettier.config.{js,mjs,ts} .prettierrc.{js,cjs,mjs} \
         .pylintrc pylintrc mypy.ini",
    ),
    (
        When::Git,
        ".gitattributes a/.gitmodules .gitconfig .lfsconfig .gitignore .mailmap .husky/pre-commit \
         .githooks/x .git-hooks/pre-commit hooks/{pre-commit,post-checkout,commit-msg} \
         .huskyrc .huskyrc.{js,json} .pre-commit-config.{yaml,yml} lefthook.{yml,yaml,json,toml} \
         .lefthook.{yml,yaml} lefthook-local.{yml,yaml} .lefthook-local.yml .overcommit.yml \
         .lintstagedrc .lintstagedrc.{js,mjs,cjs,json,yaml} lint-staged.config.{js,mjs,ts} \
         commitlint.config.{js,ts}",
    ),
    (
        When::Build,
        "package.json a/b/PACKAGE.JSON package-lock.json npm-shrinkwrap.json yarn.lock \
         pnpm-lock.yaml bun.{lock,lockb} pnpm-workspace.yaml .npmrc .yarnrc .yarnrc.yml \
         .yarn/releases/x.cjs .pnpmfile.{cjs,mjs} pnpmfile.{js,cjs} bunfig.toml \
         deno.{json,jsonc} webpack.config.{js,ts,cjs,mjs} vite.config.{js,ts,mjs,mts,cjs} \
         next.config.{js,mjs,ts} nuxt.config.ts svelte.config.js astro.config.mjs \
         rollup.config.{js,mjs,ts} babel.config.{js,cjs,json} .babelrc .babelrc.js \
         postcss.config.{js,mjs} tailwind.config.{js,ts} Gruntfile.js gulpfile.{js,mjs,ts} \
         binding.gyp rust-toolchain rust-toolchain.toml crates/a/build.rs Cargo.{toml,lock} \
         .cargo/config.toml Makefile Makefile.am GNUmakefile x.mk justfile .justfile \
         Taskfile.{yml,yaml} CMakeLists.txt CMakePresets.json x.cmake meson.build configure \
         configure.ac autogen.sh m4/x.m4 SConstruct wscript build.gradle build.gradle.kts \
         settings.gradle settings.gradle.kts init.gradle \
         gradle/wrapper/gradle-wrapper.{properties,jar} gradlew gradlew.bat mvnw mvnw.cmd \
         .mvn/extensions.xml .mvn/maven.config pom.xml build.sbt project/plugins.sbt \
         project/build.properties build.xml WORKSPACE WORKSPACE.bazel MODULE.bazel BUILD \
         BUILD.bazel BUCK tools/bazel .bazelrc x.bzl setup.{py,cfg} pyproject.toml \
         requirements.txt requirements/dev.txt Pipfile Pipfile.lock poetry.lock uv.lock pip.conf \
         x.pth sitecustomize.py Rakefile Gemfile Gemfile.lock x.gemspec Podfile \
         fastlane/Fastfile x.csproj x.vcxproj Directory.Build.{props,targets} nuget.config \
         x.xcodeproj/project.pbxproj build.zig flake.nix shell.nix default.nix composer.json \
         composer.lock mix.exs rebar.config Package.swift go.{mod,sum,work} Setup.hs dune",
    ),
    (
        When::Test,
        "tests/conftest.py tox.ini noxfile.py pytest.ini jest.config.{js,ts,cjs,mjs,json} \
         vitest.config.{js,ts,mts} playwright.config.{js,ts} cypress.config.{js,ts} karma.conf.js \
         phpunit.xml phpunit.xml.dist .rspec .rspec-local spec/spec_helper.rb test/test_helper.rb",
    ),
    (
        When::Elsewhere,
        "x/.github/workflows/ci.yml .github/actions/x/action.yml .circleci/config.yml \
         .buildkite/x .ci/x .gitlab-ci.{yml,yaml} .travis.yml .drone.yml .woodpecker.yml \
         .woodpecker/x.yml bitbucket-pipelines.yml .appveyor.yml appveyor.yml \
         azure-pipelines.{yml,yaml} Jenkinsfile CODEOWNERS Dockerfile Dockerfile.dev \
         dev.Dockerfile Containerfile docker-compose.{yml,yaml} docker-compose.override.yml \
         compose.{yml,yaml} compose.override.yaml Vagrantfile main.tf main.tofu terragrunt.hcl \
         Procfile Tiltfile skaffold.yaml",
    ),
];

/// `a.{b,c}` as `a.b` and `a.c`.
fn expand(word: &str) -> Vec<String> {
    match word.split_once('{').and_then(|(stem, rest)| Some((stem, rest.split_once('}')?))) {
        Some((stem, (endings, end))) => {
            endings.split(',').map(|ending| format!("{stem}{ending}{end}")).collect()
        }
        None => vec![word.to_owned()],
    }
}

fn known() -> impl Iterator<Item = (When, String)> {
    KNOWN.into_iter().flat_map(|(when, words)| {
        words.split_whitespace().flat_map(expand).map(move |path| (when, path))
    })
}

#[test]
fn files_that_execute_are_known_at_any_depth_and_case() {
    for (when, path) in known() {
        for path in [path.clone(), format!("a/b.c/{path}"), path.to_ascii_uppercase()] {
            let found = attention_of(path.as_bytes()).map(|found| found.when);
            assert_eq!(found, Some(when), "{path}");
        }
    }
}

#[test]
fn names_that_only_resemble_them_are_not() {
    for (_, path) in known() {
        let (before, name) = path.rsplit_once('/').unwrap_or(("", &path));
        // What is under a directory is known whatever its name is.
        if attention_of(format!("{before}/other").as_bytes()).is_some() {
            continue;
        }
        for like in [format!("x{path}x"), format!("{name}x/y"), format!("not-{name}-at-all")] {
            assert_eq!(attention_of(like.as_bytes()), None, "{like}");
        }
    }
    for path in [
        "src/main.rs",
        "package.json.md",
        "a.vscode/x",
        ".vscode",
        "github/workflows/x",
        "x.ci/y",
        "docs/eslint.config.md",
        "lefthook.md",
        ".h5i",
        "x.h5i/policy.toml",
        "policy.toml",
        "src/hooks/useThing.ts",
        "hooks/readme.md",
        "hooks",
        "bazel",
        "bin/bazel",
        "project/Main.scala",
        "build/main.c",
        "workspace/x.c",
        "docs/requirements/goals.md",
        ".github/pull_request_template.md",
        "environment.ts",
        ".env.example",
        "compose.rs",
        "src/package.rs",
        "agents.rs",
        "makefile.rs",
        "jest.config",
        "vite.config.md",
    ] {
        assert_eq!(attention_of(path.as_bytes()), None, "{path}");
    }
}

#[test]
fn names_that_a_file_system_takes_for_them_are_known() {
    // A long s, and a joiner that is not seen.
    for path in [".v\u{17f}code/tasks.json", "pac\u{200d}kage.json", ".H5I/policy.toml"] {
        assert!(attention_of(path.as_bytes()).is_some(), "{path}");
    }
    assert_eq!(attention_of(b".v\xffscode/tasks.json"), None);
}

#[test]
fn of_several_rules_the_first_one_is_told() {
    let why = |path: &[u8]| attention_of(path).map(|found| found.why);
    assert_eq!(why(b".vscode/package.json"), why(b".vscode/x"));
    assert_ne!(why(b".vscode/package.json"), why(b"package.json"));
    assert_eq!(why(b"package.json/.h5i/.vscode/x"), why(b".h5i/x"));
}

#[test]
fn the_rules_are_in_the_order_of_their_urgency_and_in_folded_letters() {
    assert!(RULES.is_sorted_by_key(|rule| rule.when));
    for rule in RULES {
        let text = match rule.place {
            Place::Name(stem, endings) => {
                endings.iter().map(|ending| format!("{stem}{ending}")).collect()
            }
            Place::Head(text) => {
                assert!(text.ends_with('.'), "{text}");
                text.to_owned()
            }
            Place::Tail(text) => {
                assert!(text.starts_with('.'), "{text}");
                text.to_owned()
            }
            Place::Under(text) => {
                assert!(text.split('/').count() <= DEEPEST, "{text}");
                text.to_owned()
            }
        };
        assert_eq!(text, text.to_lowercase());
    }
}
