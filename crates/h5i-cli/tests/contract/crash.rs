//! J3: h5i is killed in the middle. The host is as it was, `gc` cleans, the next command works.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::shapes::CollectedRemains;
use crate::stand::{PATH, Stand};
use crate::support::{git, try_git};

on_both_back_ends!(
    Stand:
    killed_while_objects_are_packed,
    killed_while_the_tree_is_written,
    killed_while_a_program_runs,
    killed_one_shot_leaves_a_box_that_can_be_removed,
    what_a_killed_export_leaves_is_collected,
    what_a_killed_export_leaves_goes_with_the_next_look,
    what_a_killed_export_leaves_is_not_archived,
    a_living_export_keeps_what_it_uses,
    a_signal_reaches_the_program_and_its_end_is_told,
);

fn kill(mut child: Child) {
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9), "it had ended by itself");
}

/// What a person would look at.
fn seen(stand: &Stand) -> (String, Vec<String>) {
    let mut names: Vec<String> = fs::read_dir(stand.home())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    (git(&stand.repo(), &["status", "--porcelain=v2", "--branch"]), names)
}

fn has_entries(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some())
}

fn collect_and_go_on(stand: &Stand, expected: usize) {
    let report: CollectedRemains = stand.ok(&["box", "gc", "--json"]).data();
    let remains: Vec<_> = report.removed.iter().filter(|thing| thing.kind == "remains").collect();
    assert_eq!(remains.len(), expected, "{report:?}");
    assert!(stand.box_directories().iter().all(|name| !name.starts_with('.')), "{report:?}");
    let again: CollectedRemains = stand.ok(&["box", "gc", "--json"]).data();
    assert!(again.removed.is_empty() && again.damaged.is_empty(), "{again:?}");
    stand.ok(&["box", "create", "a"]);
    assert_eq!(stand.sh("a", "cat a.txt; git status --porcelain"), "one and more");
    stand.sh("a", "git fsck --strict");
}

fn killed_while_objects_are_packed(stand: &Stand) {
    // A git that stops where the real one would pack.
    let bin = stand.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("git"), "#!/bin/sh\necho here >&3\nread line <&4\n").unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    for fifo in ["here", "hold"] {
        assert!(stand.program("mkfifo").arg(stand.path().join(fifo)).status().unwrap().success());
    }
    let script = "#!/bin/sh\necho here > \"$HERE\"\nread line < \"$HOLD\"\n"
        .replace("$HERE", stand.path().join("here").to_str().unwrap())
        .replace("$HOLD", stand.path().join("hold").to_str().unwrap());
    fs::write(bin.join("git"), script).unwrap();
    let before = (seen(stand), stand.traces());
    let mut child = stand.with(&["box", "create", "a"]);
    child.env("PATH", format!("{}:{PATH}", bin.display()));
    let child = child.stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(fs::File::open(stand.path().join("here")).unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(stand.box_directories().len(), 1);
    // While it lives its draft is its own.
    stand.ok(&["box", "gc"]);
    assert_eq!(stand.box_directories().len(), 1, "gc took a living draft");
    kill(child);
    assert_eq!(stand.box_directories().len(), 1);
    assert_eq!(stand.ok(&["box", "ls"]).text(), "");
    let after = stand.traces();
    assert_eq!(seen(stand), before.0);
    assert_eq!((after.repo, after.home), (before.1.repo, before.1.home));
    // The stand-in of git lives on and may write: its place stays until it ends.
    let packing = fs::read_dir(stand.state().join("h5i/objects")).unwrap();
    let mut packing = packing.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let packing = packing.next().unwrap();
    let report: CollectedRemains = stand.ok(&["box", "gc", "--json"]).data();
    assert_eq!(report.removed.len(), 1, "the box's: {report:?}");
    assert!(packing.is_dir());
    let owner = fs::File::open(packing.join("owner")).unwrap();
    drop(fs::File::options().write(true).open(stand.path().join("hold")).unwrap());
    rustix::fs::flock(&owner, rustix::fs::FlockOperation::LockExclusive).unwrap();
    drop(owner);
    // A program that another test starts at this moment has the file as well until it is itself.
    let patience = Instant::now() + Duration::from_secs(20);
    while packing.try_exists().unwrap() {
        assert!(Instant::now() < patience, "it is not collected");
        stand.ok(&["box", "gc"]);
    }
    collect_and_go_on(stand, 0);
}

/// A box in the middle of being made: its hidden directory, and how many directories there are that
/// nobody will finish. It looks at a tree that changes under its eyes.
fn half_made(stand: &Stand) -> Option<(String, usize)> {
    let state = stand.state().join("h5i");
    let scopes = fs::read_dir(state.join("repos")).ok()?.flatten();
    let boxes = scopes.filter_map(|scope| fs::read_dir(scope.path().join("boxes")).ok());
    let hidden = |path: &PathBuf| path.file_name().unwrap().as_bytes().starts_with(b".a.");
    let hidden = boxes.flatten().flatten().map(|entry| entry.path()).find(hidden)?;
    let name = hidden.file_name()?.to_str()?.to_owned();
    if has_entries(&hidden.join("box/work/many")) {
        return Some((name, 1));
    }
    let trees = fs::read_dir(state.join("trees")).ok()?.flatten().map(|tree| tree.path());
    let begun = |tree: &PathBuf| has_entries(&tree.join("files/many"));
    // The box's and the tree's. One that is whole has its name.
    let half = |tree: &PathBuf| tree.file_name().unwrap().as_bytes().starts_with(b".");
    trees.filter(half).any(|tree| begun(&tree)).then_some((name, 2))
}

/// A command that was stopped; it does not stay so, whatever becomes of the test.
struct Stopped(Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Stopped {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    /// Lets it end by a signal, and sees that it did.
    fn ends_by(mut self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
        self.goes_on();
        assert_eq!(self.0.wait().unwrap().signal(), Some(signal.as_raw()), "it ended by itself");
    }

    fn goes_on(&self) {
        kill_process(self.pid(), Signal::CONT).unwrap();
    }
}

/// Starts a command and stops it while something is seen. No event tells of such things without a
/// race; so it is looked for, and once more when the command stands still. One that was quicker goes
/// on to its end, what it did is undone, and it begins anew.
fn caught<T>(
    words: &[&str],
    stand: &Stand,
    look: impl Fn(&Stand) -> Option<T>,
    undo: impl Fn(),
) -> (Stopped, T) {
    for _ in 0..20 {
        let mut command = stand.with(words);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut child = Stopped(child);
        while child.0.try_wait().unwrap().is_none() && look(stand).is_none() {}
        if child.0.try_wait().unwrap().is_none() {
            kill_process(child.pid(), Signal::STOP).unwrap();
            // Every thread of it stands still when this is told, or it has ended.
            let what = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(child.pid()), what).unwrap();
            if let Some(seen) = look(stand) {
                return (child, seen);
            }
            child.goes_on();
        }
        assert!(child.0.wait().unwrap().success());
        undo();
    }
    panic!("it was faster than the eye");
}

fn killed_while_the_tree_is_written(stand: &Stand) {
    for number in 0..4000 {
        stand.ground.write(&format!("many/{}/{number}", number % 50), b"x\n");
    }
    stand.ground.commit("many");
    let before = (seen(stand), stand.traces());
    let (child, (draft, remains)) = caught(&["box", "create", "a"], stand, half_made, || {
        stand.ok(&["box", "rm", "--force", "a"]);
        // With the tree that is kept there would be nothing to write.
        fs::remove_dir_all(stand.state()).unwrap();
    });
    child.ends_by(Signal::KILL);
    assert_eq!(stand.box_directories(), [draft]);
    let after = stand.traces();
    assert_eq!(seen(stand), before.0);
    assert_eq!((after.repo, after.home), (before.1.repo, before.1.home));
    collect_and_go_on(stand, remains);
}

fn killed_while_a_program_runs(stand: &Stand) {
    stand.ok(&["box", "create", "a"]);
    let before = (seen(stand), stand.traces());
    let script = "echo half > /work/half; (setsid sleep 1000 &) ; echo here; sleep 1000";
    let mut child = stand.command();
    child.args(["box", "run", "a", "--", "sh", "-c", script]).stdout(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "here\n");
    kill(child);
    // Every process of the box holds this pipe: its end is theirs.
    assert_eq!(stdout.read_to_end(&mut Vec::new()).unwrap(), 0);
    let after = stand.traces();
    assert_eq!(seen(stand), before.0);
    assert_eq!((after.repo, after.home), (before.1.repo, before.1.home));
    let report: CollectedRemains = stand.ok(&["box", "gc", "--json"]).data();
    assert!(report.removed.is_empty() && report.busy.is_empty(), "{report:?}");
    // The box goes on with what was written, and its log is whole.
    assert_eq!(stand.sh("a", "cat half; cat a.txt"), "half\none and more");
    let log = stand.ok(&["box", "log", "a", "--json"]);
    let kinds: Vec<String> = log
        .text()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["kind"].to_string())
        .collect();
    assert_eq!(kinds[..2], ["\"create\"", "\"run-start\""]);
    let last = kinds.iter().rposition(|kind| kind == "\"run-start\"").unwrap();
    assert!(kinds[..last].iter().any(|kind| kind == "\"exec-attempt\""), "{kinds:?}");
    assert_eq!(kinds.last().unwrap(), "\"run-end\"");
    stand.ok(&["box", "rm", "--force", "a"]);
}

fn killed_one_shot_leaves_a_box_that_can_be_removed(stand: &Stand) {
    let mut child = stand.with(&["run", "--", "sh", "-c", "echo here; sleep 1000"]);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    kill(child);
    assert_eq!(stdout.read_to_end(&mut Vec::new()).unwrap(), 0);
    let names = stand.box_directories();
    assert_eq!(names.len(), 1);
    stand.ok(&["box", "run", &names[0], "--", "true"]);
    stand.ok(&["box", "rm", "--force", &names[0]]);
    assert!(try_git(&stand.repo(), &["fsck", "--full"]).status.success());
}

fn a_signal_reaches_the_program_and_its_end_is_told(stand: &Stand) {
    stand.ok(&["box", "create", "a"]);
    for (signal, script, code) in [
        (Signal::TERM, "trap 'exit 7' TERM; echo here; while :; do sleep 1000 & wait; done", 7),
        (Signal::INT, "echo here; exec sleep 1000", 130),
    ] {
        let mut child = stand.command();
        child.args(["box", "run", "a", "--", "sh", "-c", script]).stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut String::new()).unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal:?}");
    }
}

/// The directories that an export of `a` keeps what it has read in.
fn quarantines(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let is_one = |path: &PathBuf| path.file_name().unwrap().as_bytes().starts_with(b"quarantine-");
    entries.filter(is_one).collect()
}

/// An export of the new box `a` that stands still while its quarantine is there, and that directory.
fn standing_export(stand: &Stand) -> (Stopped, PathBuf) {
    stand.ok(&["box", "create", "a"]);
    // More than is kept in memory.
    stand.sh("a", "for i in 1 2 3 4 5 6; do head -c 4000000 /dev/urandom > big$i; done");
    let made = |stand: &Stand| {
        let all = quarantines(&stand.box_dir("a").join("host"));
        all.into_iter().next().filter(|made| has_entries(made))
    };
    caught(&["box", "export", "a", "--force"], stand, made, || {})
}

/// The quarantine of an export that was ended by that signal.
fn cut_off_export(stand: &Stand, by: Signal) -> PathBuf {
    let (child, left) = standing_export(stand);
    child.ends_by(by);
    assert!(left.is_dir());
    left
}

fn what_a_killed_export_leaves_is_collected(stand: &Stand) {
    let left = cut_off_export(stand, Signal::KILL);
    let report: CollectedRemains = stand.ok(&["box", "gc", "--json"]).data();
    let remains: Vec<_> = report.removed.iter().map(|thing| thing.what.as_str()).collect();
    assert_eq!(remains, [left.to_str().unwrap()], "{report:?}");
    assert!(!left.try_exists().unwrap());
}

fn what_a_killed_export_leaves_goes_with_the_next_look(stand: &Stand) {
    let left = cut_off_export(stand, Signal::INT);
    stand.ok(&["box", "status", "a"]);
    assert!(!left.try_exists().unwrap());
    stand.ok(&["box", "export", "a"]);
    assert_eq!(quarantines(&stand.box_dir("a").join("host")), Vec::<PathBuf>::new());
}

fn what_a_killed_export_leaves_is_not_archived(stand: &Stand) {
    let left = cut_off_export(stand, Signal::KILL);
    stand.ok(&["box", "rm", "--force", "a"]);
    assert!(!left.try_exists().unwrap());
    let archive = fs::read_dir(stand.state().join("h5i/archive")).unwrap();
    let archived: Vec<PathBuf> = archive.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(archived.len(), 1);
    assert!(archived[0].join("receipt.jsonl").is_file());
    assert_eq!(quarantines(&archived[0]), Vec::<PathBuf>::new());
    assert_eq!(stand.box_directories(), [""; 0]);
}

fn a_living_export_keeps_what_it_uses(stand: &Stand) {
    let (mut child, used) = standing_export(stand);
    let report: CollectedRemains = stand.ok(&["box", "gc", "--json"]).data();
    assert!(report.removed.is_empty() && used.is_dir(), "{report:?}");
    // Looking at the box beside it is no reason either.
    stand.ok(&["box", "status", "a"]);
    assert!(used.is_dir());
    child.goes_on();
    assert!(child.0.wait().unwrap().success());
    assert!(!used.try_exists().unwrap());
}
