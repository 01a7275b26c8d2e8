//! `h5i box shell`

use std::fs;
use std::path::{Path, PathBuf};

use h5i_policy::{ResolvedPolicy, Tier};
use rustix::fs::{Access, access};

use super::run::{Asked, run_in};
use super::{Answer, Refusal};
use crate::args::{Assignment, ShellArgs};
use crate::caller::Caller;
use crate::running::Capture;
use crate::store::BoxName;

/// Where a shell is found in most systems, the most comfortable one first.
const SHELLS: [&str; 2] = ["/bin/bash", "/usr/bin/bash"];
/// Every system has it.
const PLAIN: &str = "/bin/sh";
/// Login shells that are none.
const NO_SHELLS: [&str; 3] = ["false", "nologin", "true"];

pub(super) fn shell(caller: &Caller, args: &ShellArgs) -> Result<Answer, Refusal> {
    let asked = Asked { name: &args.name, timeout: args.timeout, output: Capture::Converse };
    run_in(caller, &asked, |stored, manifest, policy| {
        if !args.command.is_empty() {
            return (args.command.clone(), args.variables.clone());
        }
        let shell = shell_of(policy, caller.surroundings.shell.as_deref());
        let mut variables = settings(&shell, &manifest.name);
        variables.extend(args.variables.iter().cloned());
        let mut command = vec![shell.clone().into_os_string()];
        if is(&shell, "zsh") && !has_settings_of_zsh(&stored.box_dir().join("home")) {
            command.push("-f".into());
        }
        (command, variables)
    })
}

/// Whether zsh finds settings of the person's in a home; without any it would ask questions first
/// (`zsh-newuser-install`), unless it is told (`-f`) to read none.
fn has_settings_of_zsh(home: &Path) -> bool {
    let files = [".zshenv", ".zprofile", ".zshrc", ".zlogin"];
    files.iter().any(|file| fs::symlink_metadata(home.join(file)).is_ok())
}

fn is(shell: &Path, name: &str) -> bool {
    shell.file_name().is_some_and(|file| file == name)
}

/// The caller's own shell if the box has it, else bash, else sh.
fn shell_of(policy: &ResolvedPolicy, own: Option<&Path>) -> PathBuf {
    let granted = |path: &Path| {
        policy.tier == Tier::Workspace
            || policy.fs.read.keys().any(|grant| path.starts_with(grant.as_path()))
    };
    let is_shell = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        NO_SHELLS.iter().all(|no| name != *no)
    };
    own.filter(|path| is_shell(path))
        .into_iter()
        .chain(SHELLS.map(Path::new))
        .find(|path| granted(path) && access(*path, Access::EXEC_OK).is_ok())
        .unwrap_or(Path::new(PLAIN))
        .to_owned()
}

/// What tells programs which shell it is, and a person which box.
fn settings(shell: &Path, name: &BoxName) -> Vec<Assignment> {
    let of = |name: &str, value: String| Assignment { name: name.to_owned(), value };
    let mut settings = Vec::new();
    settings.extend(shell.to_str().map(|path| of("SHELL", path.to_owned())));
    // Other shells do not read it, or read it otherwise.
    if is(shell, "bash") {
        settings.push(of("PS1", format!("box@{name}:\\w\\$ ")));
    }
    if is(shell, "zsh") {
        settings.push(of("PS1", format!("box@{name}:%~%# ")));
    }
    settings
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use h5i_policy::{
        GrantOrigin, HostFacts, HostPath, Layer, ReadGrant, ResolveRequest, ResolvedPolicy, resolve,
    };

    use super::{settings, shell_of};
    use crate::store::BoxName;

    fn with(grants: &[&str]) -> ResolvedPolicy {
        let request = ResolveRequest::new("default");
        let mut policy = resolve(&[Layer::built_in()], &request, &HostFacts::new()).unwrap().policy;
        policy.fs.read.clear();
        for grant in grants {
            let grant = HostPath::new(grant).unwrap();
            policy.fs.read.insert(grant, ReadGrant::whole(GrantOrigin::System));
        }
        policy
    }

    #[test]
    fn the_shell_is_ones_own_where_the_box_has_it() {
        let shell = |grants: &[&str], own: &str| shell_of(&with(grants), Some(Path::new(own)));
        // Programs that every host has stand for a person's shell.
        assert_eq!(shell(&["/bin", "/usr"], "/usr/bin/env"), Path::new("/usr/bin/env"));
        assert_eq!(shell(&["/bin"], "/usr/bin/env"), shell(&["/bin"], "/nonexistent/zsh"));
        assert_eq!(shell(&["/usr", "/bin"], "/usr/bin/false"), shell(&["/bin"], "/x"));
        assert_eq!(shell(&[], "/usr/bin/env"), Path::new("/bin/sh"));
    }

    #[test]
    fn the_prompt_tells_the_box() {
        let name = BoxName::new("fix-auth").unwrap();
        let names = |shell: &str| -> Vec<String> {
            settings(Path::new(shell), &name).into_iter().map(|a| a.name).collect()
        };
        assert_eq!(names("/bin/bash"), ["SHELL", "PS1"]);
        assert_eq!(names("/usr/bin/zsh"), ["SHELL", "PS1"]);
        assert_eq!(names("/bin/sh"), ["SHELL"]);
        assert_eq!(settings(Path::new("/bin/bash"), &name)[1].value, "box@fix-auth:\\w\\$ ");
    }
}
