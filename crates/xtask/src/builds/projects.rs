//! The projects that are built, each with what it needs fetched beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::directory;
use crate::bench::repository::{commit, git};

/// A repository, what was fetched for it, and the script that builds it.
pub(super) struct Project {
    pub(super) name: &'static str,
    pub(super) repository: PathBuf,
    /// Granted to the box for reading, if it is there.
    pub(super) fetched: PathBuf,
    /// Run by `sh -ec` in the repository's copy, on both sides.
    pub(super) script: String,
}

/// This workspace; what cargo fetched is where cargo keeps it.
pub(super) fn rust(root: &Path, scratch: &Path) -> Result<Project> {
    fetch(Command::new("cargo").arg("fetch").current_dir(root))?;
    let repository = scratch.join("rust");
    let (from, to) = (root.display().to_string(), repository.display().to_string());
    git(scratch, &["clone", "--quiet", "--no-hardlinks", &from, &to])?;
    Ok(Project {
        name: "Rust: cargo build -p h5i-policy",
        repository,
        fetched: scratch.join("nothing"),
        script: "rm -rf target; cargo build --quiet --offline -p h5i-policy --target-dir target"
            .into(),
    })
}

/// TypeScript and React, checked and bundled by programs of npm packages, one of them native.
pub(super) fn node(_root: &Path, scratch: &Path) -> Result<Project> {
    let (repository, fetched) = (directory(scratch, "node")?, directory(scratch, "node-fetched")?);
    let package = r#"{
  "name": "page", "version": "1.0.0", "private": true,
  "scripts": {"build": "tsc --noEmit && esbuild src/main.tsx --bundle --minify --outfile=dist/main.js"}
}
"#;
    fs::write(repository.join("package.json"), package)?;
    let settings = r#"{"compilerOptions": {"strict": true, "jsx": "react-jsx", "module": "esnext",
  "moduleResolution": "bundler", "target": "es2022"}, "include": ["src"]}
"#;
    fs::write(repository.join("tsconfig.json"), settings)?;
    fs::write(repository.join(".gitignore"), "node_modules\ndist\n.cache\n")?;
    fs::create_dir(repository.join("src"))?;
    let mut main = String::from("import {createRoot} from 'react-dom/client';\n");
    for number in 0..200 {
        let part = format!(
            "export function Part{number}(props: {{name: string}}) {{\n  return <li>{{props.name}} {number}</li>;\n}}\n"
        );
        fs::write(repository.join(format!("src/part{number}.tsx")), part)?;
        main.push_str(&format!("import {{Part{number}}} from './part{number}';\n"));
    }
    main.push_str("createRoot(document.body).render(<ul>");
    for number in 0..200 {
        main.push_str(&format!("<Part{number} name='n'/>"));
    }
    main.push_str("</ul>);\n");
    fs::write(repository.join("src/main.tsx"), main)?;
    let cache = fetched.display();
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--cache"]).arg(&fetched);
    npm.args(["esbuild", "typescript", "react", "react-dom", "@types/react", "@types/react-dom"]);
    fetch(npm.current_dir(&repository))?;
    // What an installation by the lock file asks for is cached by one.
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--cache"]).arg(&fetched);
    fetch(npm.current_dir(&repository))?;
    fs::remove_dir_all(repository.join("node_modules"))?;
    git(&repository, &["init", "--quiet", "--initial-branch=main"])?;
    commit(&repository)?;
    Ok(Project {
        name: "Node: npm ci, tsc, esbuild",
        repository,
        script: format!(
            "rm -rf node_modules dist .cache; cp -r {cache} .cache; chmod -R u+w .cache; \
             npm ci --offline --no-audit --no-fund --cache .cache >/dev/null; npm run --silent build; test -s dist/main.js"
        ),
        fetched,
    })
}

/// A package with an environment of its own and a thousand tests.
pub(super) fn python(_root: &Path, scratch: &Path) -> Result<Project> {
    let (repository, fetched) =
        (directory(scratch, "python")?, directory(scratch, "python-fetched")?);
    let tests = "import attrs\nimport pytest\n\n@attrs.define\nclass Point:\n    x: int\n    y: int\n\n\n\
                 @pytest.mark.parametrize('n', range(1000))\n\
                 def test_point(n, tmp_path):\n    (tmp_path / 'f').write_text(str(n))\n    \
                 assert Point(n, n + 1).y - int((tmp_path / 'f').read_text()) == 1\n";
    fs::write(repository.join("test_point.py"), tests)?;
    fs::write(repository.join(".gitignore"), ".venv\n.tmp\n__pycache__\n.pytest_cache\n")?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--dest"]);
    fetch(pip.arg(&fetched).args(["pytest", "attrs"]).current_dir(&repository))?;
    git(&repository, &["init", "--quiet", "--initial-branch=main"])?;
    commit(&repository)?;
    Ok(Project {
        name: "Python: venv, pip, pytest",
        repository,
        script: format!(
            "rm -rf .venv .tmp; python3 -m venv .venv; . .venv/bin/activate; \
             pip install --quiet --disable-pip-version-check --no-cache-dir --no-index --find-links {} pytest attrs; \
             pytest -q --basetemp=.tmp >/dev/null",
            fetched.display()
        ),
        fetched,
    })
}

fn fetch(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("could not start {command:?}"))?;
    if !output.status.success() {
        bail!("could not fetch: {command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
