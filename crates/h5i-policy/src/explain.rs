//! A policy in plain words, each with where it came from.

use std::fmt::{self, Display};

use crate::escape::{Escaped, Tail};
use crate::git_use::GitUse;
use crate::grant::{Allowed, Grant};
use crate::header_template::HeaderTemplate;
use crate::history::History;
use crate::net_rule::ServerName;
use crate::pattern::Pattern;
use crate::provenance::{Provenance, Source};
use crate::resolved::{
    Combine, Debuggers, Executables, GrantOrigin, LandlockMode, Namespaces, NetMode, RecordOutput,
    ResolvedPolicy,
};
use crate::tier::Tier;

/// One field of a policy in plain words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// The field, as it is named in a policy document.
    pub field: String,
    /// What it means; safe to show.
    pub text: String,
    /// What set it.
    pub source: Source,
}

impl fmt::Display for Line {
    /// `limits.wall  a run ends after 2h  (built-in profile default)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = Escaped(&self.field).to_string();
        write!(f, "{field:<24} {}  ({})", self.text, self.source)
    }
}

/// Every field of the policy in plain words, the boundary first.
#[must_use]
pub fn explain(policy: &ResolvedPolicy, provenance: &Provenance) -> Vec<Line> {
    let mut lines = Lines { lines: Vec::new(), provenance };
    lines.boundary(policy);
    lines.files(policy);
    lines.network(policy);
    lines.environment(policy);
    lines.limits(policy);
    for (name, grant) in &policy.grants {
        lines.add(&format!("grant.{name}"), describe_grant(grant));
    }
    lines.gate(policy);
    lines.lines
}

struct Lines<'a> {
    lines: Vec<Line>,
    provenance: &'a Provenance,
}

impl Lines<'_> {
    fn add(&mut self, field: &str, text: impl Into<String>) {
        let source = self.provenance.source(field).clone();
        self.lines.push(Line { field: field.to_owned(), text: text.into(), source });
    }

    fn boundary(&mut self, policy: &ResolvedPolicy) {
        self.add(
            "tier",
            match policy.tier {
                Tier::Workspace => {
                    "a tree of its own and no confinement: nothing of what follows is enforced on \
                     a run"
                }
                Tier::Process => "namespaces, a private root, Landlock, seccomp and limits",
                Tier::Supervised => "as process, and a private network whose doors the host holds",
                Tier::Container => "a container of a rootless engine",
                Tier::Microvm => "a virtual machine with a kernel of its own",
            },
        );
        self.add(
            "namespaces",
            match policy.namespaces {
                Namespaces::Required => "all namespaces, or a refusal",
                Namespaces::Off => "no namespaces and no private root: Landlock and seccomp alone",
            },
        );
        self.add(
            "landlock",
            match policy.landlock {
                LandlockMode::Required => "the whole Landlock rule set, or a refusal",
                LandlockMode::BestEffort => "as much of Landlock as the host has",
            },
        );
        self.add(
            "debuggers",
            match policy.debuggers {
                Debuggers::Refused => "programs can't trace each other",
                Debuggers::Allowed => "programs can trace others of the same box",
            },
        );
        if policy.combine == Combine::Accepted {
            self.add(
                "combine",
                "open network, private source and grants together were accepted by a person",
            );
        }
    }

    fn files(&mut self, policy: &ResolvedPolicy) {
        for origin in [GrantOrigin::Policy, GrantOrigin::Toolchain, GrantOrigin::System] {
            for (path, grant) in policy.fs.read.iter().filter(|(_, g)| g.origin == origin) {
                let masked = match grant.mask.len() {
                    0 => String::new(),
                    _ => format!(", without {}", listed(&grant.mask)),
                };
                self.add(
                    &format!("fs.read.{path}"),
                    format!("{} is readable{masked}", Escaped(path.as_str())),
                );
            }
        }
        if policy.fs.write.is_empty() {
            self.add("fs.write", "no path of the host is writable");
        } else {
            self.add("fs.write", format!("{} writable on the host", listed(&policy.fs.write)));
        }
        if !policy.fs.hide.is_empty() {
            let patterns = listed(&policy.fs.hide);
            self.add("fs.hide", format!("{patterns} of the repository stay outside"));
        }
        if !policy.fs.canaries.is_empty() {
            let paths = listed(policy.fs.canaries.iter());
            self.add("fs.canaries", format!("{paths} planted in the home, and watched"));
        }
        self.add(
            "history",
            match policy.history {
                History::Full => "every commit that the base is made of".to_owned(),
                History::Depth(n) => format!("the last {n} commits of the base"),
                History::None => "no history, one commit of the base tree".to_owned(),
                History::Borrow => {
                    "every object of the host's repository, also of other branches".to_owned()
                }
            },
        );
    }

    fn network(&mut self, policy: &ResolvedPolicy) {
        self.add(
            "net.mode",
            match policy.net.mode {
                NetMode::None => "no network but the box's own loopback",
                NetMode::Allow => "the box's own loopback and what is listed",
                NetMode::Open => "every public address; private space is refused",
                NetMode::Host => "the host's own network, unfiltered, its loopback included",
            },
        );
        for rule in &policy.net.allow {
            let named = match rule.server_name() {
                ServerName::Listed => "",
                ServerName::Any => ", whatever name its TLS has",
            };
            self.add(&format!("net.allow.{rule}"), format!("{rule} can be reached{named}"));
        }
        let budget = &policy.net.budget;
        self.limit("net.budget.bytes", "bytes over the network", budget.bytes.as_ref());
        self.limit("net.budget.connections", "connections", budget.connections.as_ref());
        self.limit(
            "net.budget.connections_per_second",
            "connections that begin in a second",
            budget.connections_per_second.as_ref(),
        );
    }

    fn environment(&mut self, policy: &ResolvedPolicy) {
        let passed: Vec<&String> = policy.env.pass.iter().collect();
        if passed.is_empty() {
            self.add("env.pass", "no variable of the host is passed on by the policy");
        } else {
            self.add("env.pass", format!("{} passed on from the host", listed(passed)));
        }
        for (name, value) in &policy.env.set {
            self.add(&format!("env.set.{name}"), format!("is \"{}\"", Escaped(value)));
        }
    }

    fn limits(&mut self, policy: &ResolvedPolicy) {
        let limits = &policy.limits;
        self.limit("limits.wall", "wall clock of a run", limits.wall.as_ref());
        self.limit("limits.session", "wall clock of a session", limits.session.as_ref());
        self.limit("limits.cpu", "processor time of a run", limits.cpu.as_ref());
        self.limit(
            "limits.memory",
            "memory of the session, measured every 10 ms to 2 s",
            limits.memory.as_ref(),
        );
        self.limit("limits.processes", "processes at once", limits.processes.as_ref());
        self.limit("limits.open_files", "open files of a process", limits.open_files.as_ref());
        self.limit("limits.file_size", "size of a file", limits.file_size.as_ref());
        self.limit(
            "limits.disk",
            "workspace, home, records and temporary files together, 4KiB at least for each file",
            limits.disk.as_ref(),
        );
        match &limits.keep_free {
            Some(kept) => self.add(
                "limits.keep_free",
                format!("free space left to the host where the box writes: at least {kept}"),
            ),
            None => self.add("limits.keep_free", "a box may take the host's last free space"),
        }
        self.limit("limits.output", "output of a run", limits.output.as_ref());
    }

    fn limit<T: Display>(&mut self, field: &str, what: &str, limit: Option<&T>) {
        match limit {
            Some(limit) => self.add(field, format!("{what}: at most {limit}")),
            None => self.add(field, format!("{what}: no limit")),
        }
    }

    fn gate(&mut self, policy: &ResolvedPolicy) {
        let export = &policy.export;
        self.add("export.max_file", format!("a changed file: at most {}", export.max_file));
        self.add("export.max_total", format!("all changed files: at most {}", export.max_total));
        self.add("export.max_files", format!("changed files: at most {}", export.max_files));
        self.add(
            "export.executables",
            match export.executables {
                Executables::Refuse => "a file that becomes executable is refused",
                Executables::Flag => "a file that becomes executable is named in the report",
                Executables::Allow => "a file may become executable",
            },
        );
        if !export.binaries.is_empty() {
            let patterns = listed(&export.binaries);
            self.add("export.binaries", format!("{patterns} may be machine code"));
        }
        for (kind, reaction) in policy.react.kinds() {
            self.add(&format!("react.{kind}"), format!("recorded, then {reaction}"));
        }
        self.add(
            "record_output",
            match policy.record_output {
                RecordOutput::Off => "output of runs is not kept",
                RecordOutput::On => "output of runs is kept on the host",
            },
        );
        if policy.seed.is_empty() {
            self.add("seed", "the box's home starts empty");
        } else {
            let tools = listed(&policy.seed);
            self.add("seed", format!("the home has the configuration of {tools}, no credentials"));
        }
        match policy.expires {
            Some(span) => self.add("expires", format!("gc removes the box after {span}")),
            None => self.add("expires", "the box stays until it is removed"),
        }
    }
}

fn describe_grant(grant: &Grant) -> String {
    let methods = allowed(&grant.methods);
    let paths = allowed(&grant.paths);
    let mut text = format!("{methods} {paths} of {}:{} by {}", grant.host, grant.port, grant.via);
    let mut also = |what: &str, value: Option<&dyn Display>| {
        if let Some(value) = value {
            text.push_str(&format!(", {what} {}", Escaped(&value.to_string())));
        }
    };
    let git = Some(&grant.git).filter(|git| **git != GitUse::Any);
    also("for git to", git.map(|git| git as &dyn Display));
    also("secret", grant.secret.as_ref().map(|secret| secret as &dyn Display));
    let (carry, fixed): (Vec<_>, Vec<_>) =
        grant.header.iter().partition(|header| header.holds_secret());
    if !carry.is_empty() {
        also("in header", Some(&listed(carry.into_iter().map(HeaderTemplate::name))));
    }
    if let Some(query) = &grant.query {
        let logged = "which services write in their logs: take a header if this one has one";
        also("in the query", Some(&format!("as {query}=, {logged}")));
    }
    for header in fixed {
        also("always with header", Some(header));
    }
    also("requests at most", grant.requests.as_ref().map(|n| n as &dyn Display));
    also("up at most", grant.bytes_up.as_ref().map(|n| n as &dyn Display));
    also("down at most", grant.bytes_down.as_ref().map(|n| n as &dyn Display));
    also("for", grant.lasts.as_ref().map(|n| n as &dyn Display));
    if let Allowed::Only(programs) = &grant.programs {
        also("by programs", Some(&listed(programs.iter().map(program))));
    }
    text
}

/// Which files a pattern of programs is about.
fn program(pattern: &Pattern) -> String {
    match pattern.is_anchored() {
        true => pattern.to_string(),
        false => format!("{pattern} (any file of this name in the box)"),
    }
}

fn allowed<T: Ord + Display>(allowed: &Allowed<T>) -> String {
    match allowed {
        Allowed::Any => "any".to_owned(),
        Allowed::Only(only) => listed(only),
    }
}

/// A list in words, the first few by name.
fn listed<T: Display>(entries: impl IntoIterator<Item = T>) -> String {
    const SHOWN: usize = 8;
    let all: Vec<String> =
        entries.into_iter().map(|entry| Tail(&entry.to_string()).to_string()).collect();
    match all.len() {
        0 => "nothing".to_owned(),
        n if n <= SHOWN => all.join(", "),
        n => format!("{} and {} more", all[..SHOWN].join(", "), n - SHOWN),
    }
}
