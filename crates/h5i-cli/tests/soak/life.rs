//! One life after the other: something is begun, killed, and looked after.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::chance::Chance;
use crate::left::Left;
use crate::shapes::CollectedRemains;
use crate::stand::Stand;
use crate::steps::{Killer, Walk};
use crate::traces::{assert_no_mount, await_quiet, processes_of, seen};

/// What a box does when its supervisor is killed: it writes, has children of its own session, and
/// does not end by itself.
const BUSY: &str = "mkdir -p d; (setsid sleep 1000 &); for i in $(seq 200); do echo $i > d/$i; git add d/$i; done; sleep 1000";

/// A run that ends by itself, and does a little of everything before that.
const WHOLE: &str =
    "(setsid sleep 1000 &); echo x >> new; /bin/true; sh -c '/bin/false; mkdir -p e/f'; exit 0";

/// The stand of all lives on one back end.
pub(crate) struct Life {
    stand: Stand,
    layout: Option<&'static str>,
    chance: Chance,
    before: (String, Vec<String>),
    /// How long each verb takes when it is left alone.
    spans: BTreeMap<&'static str, Duration>,
    killed: u64,
    ended: u64,
    remains: usize,
}

/// The back ends that this host has; one without a name where there is no choice.
pub(crate) fn layouts() -> Vec<Option<&'static str>> {
    let stand = Stand::new();
    if !stand.ok(&["box", "create", "--help"]).text().contains("--workspace") {
        return vec![None];
    }
    let overlay = stand.h5i(&["box", "create", "--workspace", "overlay", "probe"]).code == 0;
    let mut all = vec![Some("checkout")];
    all.extend(overlay.then_some(Some("overlay")));
    all
}

impl Life {
    pub(crate) fn begin(layout: Option<&'static str>, chance: Chance) -> Self {
        let stand = Stand::new();
        for number in 0..400 {
            stand.ground.write(&format!("many/{}/{number}", number % 20), b"some text\n");
        }
        stand.ground.commit("many");
        let before = seen(&stand);
        let mut life = Self {
            stand,
            layout,
            chance,
            before,
            spans: BTreeMap::new(),
            killed: 0,
            ended: 0,
            remains: 0,
        };
        assert!(processes_of(life.stand.path()).is_empty());
        for verb in ["create", "run", "diff", "export", "one-shot", "rm", "gc"] {
            let started = Instant::now();
            if verb != "run" {
                life.stand.ok(&life.words(verb));
            }
            life.spans.insert(verb, started.elapsed());
        }
        life.spans.insert("run", Duration::from_millis(250));
        life
    }

    pub(crate) const fn stand(&self) -> &Stand {
        &self.stand
    }

    /// Begins something, kills it, and sees that nothing is left and all goes on.
    pub(crate) fn once(&mut self, number: u64) {
        let boxed = !self.stand.box_directories().is_empty();
        let verb = match boxed {
            true => {
                *self.chance.of(&["run", "run", "one-shot", "diff", "export", "rm", "gc", "create"])
            }
            false => *self.chance.of(&["create", "create", "create", "one-shot", "gc"]),
        };
        // `create` of a box that is there is refused at once; it gets another name.
        let words = self.words(if verb == "create" && boxed { "one-shot" } else { verb });
        let moment = self.chance.time(self.spans[verb].mul_f64(1.2));
        let mut command = self.stand.command();
        command.args(&words).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        if kill_after(child, moment) {
            self.killed += 1;
        } else {
            self.ended += 1;
        }
        let said = format!("life {number}: {words:?} killed after {moment:?}");
        await_quiet(self.stand.path());
        assert_no_mount(self.stand.path());
        assert_eq!(seen(&self.stand), self.before, "{said}");
        self.look_after(&said);
    }

    /// Walks over the steps of a verb, from its first to its last one, and kills it at `points` of them, or
    /// at all where there are fewer. Yields how many steps there are.
    pub(crate) fn walk(&mut self, verb: &'static str, killer: &Killer, points: u64) -> u64 {
        self.make_ready(verb);
        let words = self.words(verb);
        let steps = killer.steps(&self.stand, &words);
        self.look_after(&format!("{words:?} as a whole"));
        let between = steps.div_ceil(points).max(1);
        for step in (1..=steps).step_by(usize::try_from(between).unwrap()) {
            self.make_ready(verb);
            let said = format!("{words:?} killed before step {step} of {steps}");
            match killer.kill(&self.stand, &words, step) {
                Walk::Killed => self.killed += 1,
                // Threads take turns as they like, and so not every walk has the same length.
                Walk::Ended(fewer) => assert!(fewer < step, "{said}: {fewer}"),
            }
            let left = Left::by(&self.stand);
            await_quiet(self.stand.path());
            assert_no_mount(self.stand.path());
            assert_eq!(seen(&self.stand), self.before, "{said}");
            self.look_after(&said);
            left.stands(&self.stand, &said);
        }
        steps
    }

    /// Sees to it that a verb finds what it needs.
    fn make_ready(&mut self, verb: &str) {
        let there = self.stand.box_directories().iter().any(|name| name == "a");
        match verb {
            "create" if there => drop(self.stand.ok(&["box", "rm", "--force", "a"])),
            "create" | "one-shot" => {}
            _ if there => {}
            _ => drop(self.stand.ok(&self.words("create"))),
        }
    }

    /// The next commands work, and `gc` tells what it removed.
    fn look_after(&mut self, said: &str) {
        let hidden = |stand: &Stand| {
            stand.box_directories().iter().filter(|name| name.starts_with('.')).count()
        };
        let half = hidden(&self.stand);
        let report: CollectedRemains = self.stand.ok(&["box", "gc", "--json"]).data();
        let remains = report
            .removed
            .iter()
            .filter(|thing| thing.kind == "remains" && thing.what.contains("/boxes/."));
        assert_eq!(remains.count(), half, "{said}: {report:?}");
        assert_eq!(hidden(&self.stand), 0, "{said}: {report:?}");
        self.remains += half;
        let again: CollectedRemains = self.stand.ok(&["box", "gc", "--json"]).data();
        assert!(again.removed.is_empty() && again.damaged.is_empty(), "{said}: {again:?}");
        // Whatever boxes there are now are whole.
        for name in self.stand.box_directories() {
            let whole = "test $(git ls-files many | wc -l) -ge 400 && git status >/dev/null";
            self.stand.sh(&name, whole);
            self.stand.ok(&["box", "log", &name]);
            if name != "a" || self.chance.below(4) == 0 {
                self.stand.ok(&["box", "rm", "--force", &name]);
            }
        }
        let bundle = self.stand.path().join("bundle");
        if bundle.try_exists().unwrap() {
            std::fs::remove_dir_all(&bundle).unwrap();
        }
        assert!(processes_of(self.stand.path()).is_empty(), "{said}");
    }

    fn words(&self, verb: &str) -> Vec<&'static str> {
        let mut words = match verb {
            "create" => vec!["box", "create", "a"],
            "run" => vec!["box", "run", "a", "--", "sh", "-c", BUSY],
            "whole run" => vec!["box", "run", "a", "--", "sh", "-c", WHOLE],
            "one-shot" => vec!["run", "--rm", "--", "sh", "-c", "echo x > new"],
            "diff" => vec!["box", "diff", "a"],
            "export" => vec!["box", "export", "a", "--force", "-o", "../bundle"],
            "rm" => vec!["box", "rm", "--force", "a"],
            _ => vec!["box", "gc"],
        };
        let at = match verb {
            "create" => 2,
            "one-shot" => 1,
            _ => return words,
        };
        if let Some(layout) = self.layout {
            words.splice(at..at, ["--workspace", layout]);
        }
        words
    }

    pub(crate) fn told(&self) -> String {
        let Self { killed, ended, remains, .. } = self;
        format!("{killed} killed, {ended} had ended, gc removed {remains} half things")
    }

    /// Nothing stays when everything is removed.
    pub(crate) fn end(self) {
        for name in self.stand.box_directories() {
            self.stand.ok(&["box", "rm", "--force", &name]);
        }
        self.stand.ok(&["box", "gc"]);
        assert!(self.stand.box_directories().is_empty());
        assert_eq!(seen(&self.stand), self.before);
        assert!(self.killed > 0, "every life ended by itself");
    }
}

/// Kills a child when the time has come; false if it had ended before.
fn kill_after(mut child: Child, moment: Duration) -> bool {
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
    let mut fds = [PollFd::new(&process, PollFlags::IN)];
    let time = Timespec {
        tv_sec: i64::try_from(moment.as_secs()).unwrap(),
        tv_nsec: moment.subsec_nanos().into(),
    };
    let ended = poll(&mut fds, Some(&time)).unwrap() == 1;
    child.kill().unwrap();
    child.wait().unwrap();
    !ended
}
