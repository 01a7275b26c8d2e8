//! The order between policies: which allows no more than which.

use std::fmt::Display;

use crate::escape::Whole;
use crate::grant::Grant;
use crate::net_rule::NetRule;
use crate::resolved::{
    EnvPolicy, ExportPolicy, FsPolicy, Limits, NetBudget, NetMode, NetPolicy, ResolvedPolicy,
};
use crate::units::budget;

/// One field in which a policy allows more than another one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}`: {} is looser than {}", Whole(field), Whole(asked), Whole(allowed))]
#[non_exhaustive]
pub struct Loosening {
    /// The field, as it is named in a policy document.
    pub field: String,
    /// What the looser policy says.
    pub asked: String,
    /// What the tighter policy says.
    pub allowed: String,
}

impl ResolvedPolicy {
    /// Checks that this policy allows no more than `outer` in any field.
    ///
    /// It is a preorder: reflexive and transitive. Patterns are compared as text, and names are
    /// never compared with addresses, so a policy that in truth allows no more may be called
    /// looser; the other way round never. Order of the fields: tier, stronger is tighter; budgets,
    /// smaller is tighter; grants and seeds, fewer is tighter; `fs.hide`, `fs.canaries`, `env.set` and
    /// what is recorded, more is tighter; reactions, harsher is tighter.
    ///
    /// # Errors
    /// Each field that is looser, with both values.
    pub fn is_within(&self, outer: &Self) -> Result<(), Vec<Loosening>> {
        // Taken apart, so that a new field can't be forgotten here.
        let Self {
            tier,
            namespaces,
            landlock,
            debuggers,
            combine,
            fs,
            history,
            net,
            env,
            limits,
            grants,
            export,
            react,
            record_output,
            seed,
            expires,
        } = self;
        let mut found = Findings::default();
        found.check("tier", *tier >= outer.tier, tier, &outer.tier);
        found.at_most("namespaces", namespaces, &outer.namespaces);
        found.at_most("landlock", landlock, &outer.landlock);
        found.at_most("debuggers", debuggers, &outer.debuggers);
        found.at_most("combine", combine, &outer.combine);
        found.fs(fs, &outer.fs);
        found.at_most("history", history, &outer.history);
        found.net(net, &outer.net);
        found.env(env, &outer.env);
        found.limits(limits, &outer.limits);
        for (name, grant) in grants {
            found.grant(&format!("grant.{name}"), grant, outer.grants.get(name));
        }
        found.export(export, &outer.export);
        for ((kind, own), (_, theirs)) in react.kinds().into_iter().zip(outer.react.kinds()) {
            found.check(&format!("react.{kind}"), own >= theirs, &own, &theirs);
        }
        found.check(
            "record_output",
            *record_output >= outer.record_output,
            record_output,
            &outer.record_output,
        );
        for one in seed.difference(&outer.seed) {
            found.add("seed", one, &"none");
        }
        found.budget("expires", expires.as_ref(), outer.expires.as_ref());
        if found.0.is_empty() { Ok(()) } else { Err(found.0) }
    }
}

impl NetPolicy {
    /// Whether a rule's flows are all allowed.
    pub(crate) fn allows(&self, rule: &NetRule) -> bool {
        match self.mode {
            NetMode::None => false,
            NetMode::Allow => self.allow.iter().any(|own| own.covers(rule)),
            NetMode::Open => rule.public_part().as_slice() == std::slice::from_ref(rule),
            NetMode::Host => true,
        }
    }
}

#[derive(Default)]
struct Findings(Vec<Loosening>);

impl Findings {
    fn add(&mut self, field: &str, asked: &dyn Display, allowed: &dyn Display) {
        self.0.push(Loosening {
            field: field.to_owned(),
            asked: asked.to_string(),
            allowed: allowed.to_string(),
        });
    }

    fn check(&mut self, field: &str, holds: bool, asked: &dyn Display, allowed: &dyn Display) {
        if !holds {
            self.add(field, asked, allowed);
        }
    }

    fn at_most<T: Ord + Display>(&mut self, field: &str, own: &T, outer: &T) {
        self.check(field, own <= outer, own, outer);
    }

    fn budget<T: Ord + Display>(&mut self, field: &str, own: Option<&T>, outer: Option<&T>) {
        match (own, outer) {
            (_, None) => {}
            (Some(own), Some(outer)) => self.at_most(field, own, outer),
            (None, Some(outer)) => self.add(field, &budget::NONE, outer),
        }
    }

    /// As a budget, of which less is looser.
    fn floor<T: Ord + Display>(&mut self, field: &str, own: Option<&T>, outer: Option<&T>) {
        match (own, outer) {
            (_, None) => {}
            (Some(own), Some(outer)) => self.check(field, own >= outer, own, outer),
            (None, Some(outer)) => self.add(field, &budget::NONE, outer),
        }
    }

    fn fs(&mut self, own: &FsPolicy, outer: &FsPolicy) {
        // The access is constant between boundaries, so these paths stand for all paths.
        for path in own.boundaries().union(&outer.boundaries()) {
            let (here, there) = (own.access(path), outer.access(path));
            if !here.is_within(there) {
                let field = format!("fs.{}", here.describe());
                self.add(&field, &path, &format!("{} ({path})", there.describe()));
            }
        }
        for pattern in outer.hide.difference(&own.hide) {
            self.add("fs.hide", &"not hidden", &pattern);
        }
        for path in outer.canaries.beyond(&own.canaries) {
            self.add("fs.canaries", &"not planted", path);
        }
    }

    fn net(&mut self, own: &NetPolicy, outer: &NetPolicy) {
        if own.mode > outer.mode {
            return self.add("net.mode", &own.mode, &outer.mode);
        }
        if own.mode == NetMode::Allow {
            for rule in &own.allow {
                self.check("net.allow", outer.allows(rule), rule, &"not listed");
            }
        }
        let NetBudget { bytes, connections, connections_per_second } = &own.budget;
        let budget = &outer.budget;
        self.budget("net.budget.bytes", bytes.as_ref(), budget.bytes.as_ref());
        self.budget("net.budget.connections", connections.as_ref(), budget.connections.as_ref());
        self.budget(
            "net.budget.connections_per_second",
            connections_per_second.as_ref(),
            budget.connections_per_second.as_ref(),
        );
    }

    fn env(&mut self, own: &EnvPolicy, outer: &EnvPolicy) {
        for name in own.pass.difference(&outer.pass) {
            self.add("env.pass", name, &"not passed");
        }
        for (name, value) in &outer.set {
            let field = format!("env.set.{name}");
            match own.set.get(name) {
                Some(own) if own == value => {}
                Some(own) => self.add(&field, own, value),
                None => self.add(&field, &"not set", value),
            }
        }
    }

    fn limits(&mut self, own: &Limits, outer: &Limits) {
        let Limits {
            wall,
            session,
            cpu,
            memory,
            processes,
            open_files,
            file_size,
            disk,
            keep_free,
            output,
        } = own;
        self.budget("limits.wall", wall.as_ref(), outer.wall.as_ref());
        self.budget("limits.session", session.as_ref(), outer.session.as_ref());
        self.budget("limits.cpu", cpu.as_ref(), outer.cpu.as_ref());
        self.budget("limits.memory", memory.as_ref(), outer.memory.as_ref());
        self.budget("limits.processes", processes.as_ref(), outer.processes.as_ref());
        self.budget("limits.open_files", open_files.as_ref(), outer.open_files.as_ref());
        self.budget("limits.file_size", file_size.as_ref(), outer.file_size.as_ref());
        self.budget("limits.disk", disk.as_ref(), outer.disk.as_ref());
        self.floor("limits.keep_free", keep_free.as_ref(), outer.keep_free.as_ref());
        self.budget("limits.output", output.as_ref(), outer.output.as_ref());
    }

    fn grant(&mut self, field: &str, own: &Grant, outer: Option<&Grant>) {
        let Some(outer) = outer else { return self.add(field, &own.host, &"not granted") };
        let Grant {
            host: _,
            port: _,
            secret: _,
            header: _,
            query: _,
            methods,
            paths,
            git,
            programs,
            via: _,
            variables: _,
            requests,
            bytes_up,
            bytes_down,
            lasts,
        } = own;
        if !own.is_same_door(outer) {
            let door = |grant: &Grant| format!("{} by {}", grant.host, grant.via);
            return self.add(field, &door(own), &format!("another grant, {}", door(outer)));
        }
        let at = |key: &str| format!("{field}.{key}");
        let (more, fewer) = ("more than listed", "as listed");
        self.check(&at("methods"), methods.is_within(&outer.methods), &more, &fewer);
        self.check(&at("paths"), paths.is_within(&outer.paths), &more, &fewer);
        self.check(&at("git"), git.is_within(&outer.git), git, &outer.git);
        self.check(&at("programs"), programs.is_within(&outer.programs), &more, &fewer);
        self.budget(&at("requests"), requests.as_ref(), outer.requests.as_ref());
        self.budget(&at("bytes_up"), bytes_up.as_ref(), outer.bytes_up.as_ref());
        self.budget(&at("bytes_down"), bytes_down.as_ref(), outer.bytes_down.as_ref());
        self.budget(&at("lasts"), lasts.as_ref(), outer.lasts.as_ref());
    }

    fn export(&mut self, own: &ExportPolicy, outer: &ExportPolicy) {
        let ExportPolicy { max_file, max_total, max_files, executables, binaries } = own;
        self.at_most("export.max_file", max_file, &outer.max_file);
        self.at_most("export.max_total", max_total, &outer.max_total);
        self.at_most("export.max_files", max_files, &outer.max_files);
        self.at_most("export.executables", executables, &outer.executables);
        for pattern in binaries.difference(&outer.binaries) {
            self.add("export.binaries", pattern, &"not named");
        }
    }
}

impl Grant {
    /// Whether both lead to the same service by the same credential and the same way, so that
    /// they differ at most in what may pass and how much.
    pub(crate) fn is_same_door(&self, other: &Self) -> bool {
        (&self.host, self.port, self.via) == (&other.host, other.port, other.via)
            && self.secret == other.secret
            && (&self.header, &self.query) == (&other.header, &other.query)
            && self.variables == other.variables
    }
}
