//! Where what the box reported of its commands and what the host saw of its programs differ.
//!
//! A box that says nothing has no gap, and a lie that fits what was seen is none either: this is for
//! noticing that a report is not the whole of it. So whatever could be otherwise is no finding:
//! builtins start no program, several programs share one exit code, what a job in the background
//! starts belongs to no line.

mod command;

use std::collections::{BTreeMap, VecDeque};

use h5i_export::Gap;

use crate::spool::Form;
use command::{base, command_of, is_builtin, is_plain};

/// Processes that have ended and are still known.
const REMEMBERED: usize = 2048;
/// What one process asked for last.
const NAMES: usize = 8;
/// Shells that report at once.
const SHELLS: usize = 1024;
/// Commands of one shell that are waited for.
const UNSEEN: usize = 64;
/// What the host saw of processes and the box said of commands.
#[derive(Debug)]
pub(crate) struct Gaps {
    hook: Hook,
    /// Counts what happens, for its order.
    clock: u64,
    processes: BTreeMap<u64, Process>,
    by_pid: BTreeMap<u32, u64>,
    ended: VecDeque<u64>,
    /// When the last process happened that is not known any more.
    forgotten: u64,
    shells: BTreeMap<u32, Shell>,
}

/// Whether shells of a box report by its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    /// Every `bash -c` is to.
    Bash,
    /// Those report that want to.
    AsTheyLike,
}

/// A process that asked for a program.
#[derive(Debug, Default)]
struct Process {
    run: u64,
    pid: u32,
    parent: u64,
    first: u64,
    names: VecDeque<(u64, Vec<u8>)>,
    /// The command of a `bash -c`.
    command: Option<Vec<u8>>,
    reports: bool,
    /// The exit code that the box reported of it as a shell.
    reported: Option<i32>,
    end: Option<i32>,
}

/// A shell that reports.
#[derive(Debug, Default)]
struct Shell {
    process: Option<u64>,
    /// When its last command was over.
    before: u64,
    line: Option<Line>,
    /// Commands whose program was not seen yet, and may be started by a job.
    unseen: Vec<(u64, Line)>,
}

#[derive(Debug)]
struct Line {
    number: u64,
    at: u64,
    command: Vec<u8>,
    program: Option<Vec<u8>>,
}

/// A process that asks for a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) run: u64,
    pub(crate) proc: u64,
    pub(crate) pid: u32,
    pub(crate) parent: u64,
    pub(crate) path: &'a [u8],
    pub(crate) argv: &'a [Vec<u8>],
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) run: Option<u64>,
    pub(crate) gap: Gap,
    pub(crate) shell: u32,
    pub(crate) what: Vec<u8>,
    pub(crate) reported: Option<i32>,
    pub(crate) seen: Option<i32>,
}

impl Gaps {
    pub(crate) fn new(hook: Hook) -> Self {
        let (processes, by_pid, ended, shells) = Default::default();
        Self { hook, clock: 0, processes, by_pid, ended, forgotten: 0, shells }
    }

    /// The run of the process with this number in the box.
    pub(crate) fn run_of(&self, pid: u32) -> Option<u64> {
        let process = self.processes.get(self.by_pid.get(&pid)?)?;
        (process.run != 0).then_some(process.run)
    }

    /// A process asks for a program.
    pub(crate) fn asks(&mut self, asked: Asked<'_>) {
        let at = self.tick();
        let process = self.processes.entry(asked.proc).or_default();
        if process.first == 0 {
            process.first = at;
        }
        let Asked { run, pid, parent, .. } = asked;
        (process.run, process.pid, process.parent) = (run, pid, parent);
        for name in [Some(asked.path), asked.argv.first().map(Vec::as_slice)].into_iter().flatten()
        {
            let name = base(name);
            if process.names.back().is_some_and(|(last, known)| *last == at && known == name) {
                continue;
            }
            if process.names.len() == NAMES {
                process.names.pop_front();
            }
            process.names.push_back((at, name.to_vec()));
        }
        // A shell may become its last program.
        if let Some(command) = command_of(asked.argv) {
            process.command = Some(command.to_vec());
        }
        self.by_pid.insert(pid, asked.proc);
    }

    /// A process has ended: with this exit code, or 128 and the signal; none where that is not
    /// known. `complete` is whether all that the box reported was taken in.
    pub(crate) fn ends(&mut self, proc: u64, end: Option<i32>, complete: bool) -> Vec<Difference> {
        let mut found = Vec::new();
        let Some(process) = self.processes.get_mut(&proc) else { return found };
        process.end = end;
        let (pid, run, reported) = (process.pid, process.run, process.reported);
        // From here on it is one of thousands that are only looked up.
        let command = process.command.take();
        process.names.shrink_to_fit();
        let silent = self.hook == Hook::Bash
            && complete
            && end.is_some_and(|code| code < 128)
            && !self.is_below_one_that_reports(proc);
        if let (true, Some(what)) = (silent, &command) {
            found.push(difference(run, Gap::NotReported, pid, what));
        }
        // A shell that a signal ends runs its trap before, and knows nothing of that.
        if let (Some(reported), Some(seen)) = (reported, end)
            && reported != seen
            && seen < 128
        {
            let what = command.unwrap_or_default();
            let (reported, seen) = (Some(reported), Some(seen));
            let gap = difference(run, Gap::OtherEnd, pid, &what);
            found.push(Difference { reported, seen, ..gap });
        }
        if self.by_pid.get(&pid) == Some(&proc) {
            self.by_pid.remove(&pid);
            let shell = self.shells.remove(&pid);
            found.extend(shell.iter().flat_map(|shell| self.never_seen(pid, shell)));
        }
        self.ended.push_back(proc);
        if self.ended.len() > REMEMBERED
            && let Some(oldest) = self.ended.pop_front()
            && let Some(gone) = self.processes.remove(&oldest)
        {
            let last = gone.names.back().map_or(gone.first, |(at, _)| *at);
            self.forgotten = self.forgotten.max(last);
        }
        found
    }

    /// A shell says that it begins with a command.
    pub(crate) fn begins(&mut self, pid: u32, number: u64, command: &[u8], program: Option<&[u8]>) {
        let at = self.tick();
        let process = self.by_pid.get(&pid).copied();
        if let Some(process) = process.and_then(|proc| self.processes.get_mut(&proc)) {
            process.reports = true;
        }
        if self.shells.len() >= SHELLS && !self.shells.contains_key(&pid) {
            return;
        }
        let first = process.and_then(|proc| self.processes.get(&proc)).map_or(0, |p| p.first);
        let shell = self.shells.entry(pid).or_default();
        if shell.process != process || shell.before == 0 {
            *shell = Shell { process, before: first, ..Shell::default() };
        }
        let (command, program) = (command.to_vec(), program.map(<[u8]>::to_vec));
        shell.line = Some(Line { number, at, command, program });
    }

    /// A shell says that it is through with one.
    pub(crate) fn through(
        &mut self,
        pid: u32,
        number: u64,
        status: i32,
        form: Form,
    ) -> Vec<Difference> {
        let now = self.tick();
        let Some(shell) = self.shells.get_mut(&pid) else { return Vec::new() };
        let Some(line) = shell.line.take_if(|line| line.number == number) else {
            return Vec::new();
        };
        let (before, process) = (shell.before, shell.process);
        shell.before = now;
        let run = process.and_then(|proc| self.processes.get(&proc)).map_or(0, |p| p.run);
        let about = |gap| difference(run, gap, pid, &line.command);
        let mut found = Vec::new();
        if self.is_unseen(&line, before) {
            if form == Form::Other || process.is_none() {
                self.wait_for(pid, before, line);
                return found;
            }
            found.push(about(Gap::NotSeen));
        }
        let Some(proc) = process else { return found };
        match form {
            Form::Shell => {
                if let Some(process) = self.processes.get_mut(&proc) {
                    process.reported = Some(status);
                    // For what is said of it once its end is known.
                    process.command = Some(line.command);
                }
            }
            Form::Program if before >= self.forgotten && is_plain(&line.command) => {
                if let Some(program) = &line.program {
                    found.extend(self.of_one_program(&line, base(program), (proc, before), status));
                }
            }
            Form::Program | Form::Other => {}
        }
        found
    }

    /// Whether a command's program was not asked for since.
    fn is_unseen(&self, line: &Line, since: u64) -> bool {
        let asked = |program| self.processes.values().any(|p| p.asked(base(program), since));
        since >= self.forgotten && line.program.as_ref().is_some_and(|program| !asked(program))
    }

    fn wait_for(&mut self, shell: u32, since: u64, line: Line) {
        if let Some(shell) = self.shells.get_mut(&shell).filter(|s| s.unseen.len() < UNSEEN) {
            shell.unseen.push((since, line));
        }
    }

    /// What a shell reported and was not seen until its end.
    fn never_seen(&self, pid: u32, shell: &Shell) -> Vec<Difference> {
        let run = shell.process.and_then(|proc| self.processes.get(&proc)).map_or(0, |p| p.run);
        let lines = shell.unseen.iter().filter(|(since, line)| self.is_unseen(line, *since));
        lines.map(|(_, line)| difference(run, Gap::NotSeen, pid, &line.command)).collect()
    }

    /// A run is over; so is what its shells had to say.
    pub(crate) fn over(&mut self, run: u64) -> Vec<Difference> {
        let of = |shell: &Shell| match shell.process.map(|proc| self.processes.get(&proc)) {
            Some(Some(process)) => process.run == run,
            _ => true,
        };
        let over: Vec<u32> =
            self.shells.iter().filter(|(_, shell)| of(shell)).map(|(pid, _)| *pid).collect();
        let mut found = Vec::new();
        for pid in over {
            if let Some(mut shell) = self.shells.remove(&pid) {
                found.extend(self.never_seen(pid, &shell));
                shell.unseen.clear();
                self.shells.insert(pid, shell);
            }
        }
        found
    }

    /// A line that is one program, in the foreground, of a shell without jobs.
    fn of_one_program(
        &self,
        line: &Line,
        program: &[u8],
        (shell, before): (u64, u64),
        status: i32,
    ) -> Vec<Difference> {
        let children = || self.processes.values().filter(move |p| p.parent == shell);
        let (pid, run) = self.processes.get(&shell).map_or((0, 0), |p| (p.pid, p.run));
        let mut found = Vec::new();
        let others = children().filter(|p| p.first > line.at && !p.asked(program, before));
        for other in others {
            let name = other.names.back().map(|(_, name)| name.clone()).unwrap_or_default();
            found.push(difference(run, Gap::NotReported, pid, &name));
        }
        let own = children().filter(|p| p.first > before && p.asked(program, before));
        let ends: Option<Vec<i32>> = own.map(|p| p.end).collect();
        if let Some(ends) = ends
            && let Some(seen) = ends.last()
            && !ends.contains(&status)
        {
            let (reported, seen) = (Some(status), Some(*seen));
            let gap = difference(run, Gap::OtherEnd, pid, &line.command);
            found.push(Difference { reported, seen, ..gap });
        }
        found
    }

    /// A program reports a command that is over.
    pub(crate) fn ran(
        &mut self,
        run: Option<u64>,
        command: &[u8],
        program: &[u8],
        status: i32,
    ) -> Vec<Difference> {
        let program = base(program);
        if self.forgotten > 0 || is_builtin(program) {
            return Vec::new();
        }
        let about = |gap| Difference { run, ..difference(0, gap, 0, command) };
        let ends: Vec<Option<i32>> =
            self.processes.values().filter(|p| p.asked(program, 0)).map(|p| p.end).collect();
        if ends.is_empty() {
            return vec![about(Gap::NotSeen)];
        }
        // One that goes on may be the one.
        match ends.into_iter().collect::<Option<Vec<i32>>>() {
            Some(ends) if !ends.contains(&status) => {
                let (reported, seen) = (Some(status), ends.last().copied());
                vec![Difference { reported, seen, ..about(Gap::OtherEnd) }]
            }
            _ => Vec::new(),
        }
    }

    /// Whether it, or one that it descends from, reports; also where that is not known any more.
    fn is_below_one_that_reports(&self, proc: u64) -> bool {
        let mut at = proc;
        while at != 0 {
            match self.processes.get(&at) {
                // A child has a higher number than its parent, so this ends.
                Some(process) if !process.reports && process.parent < at => at = process.parent,
                _ => return true,
            }
        }
        false
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

impl Process {
    fn asked(&self, program: &[u8], since: u64) -> bool {
        self.names.iter().any(|(at, name)| *at >= since && name == program)
    }
}

fn difference(run: u64, gap: Gap, shell: u32, what: &[u8]) -> Difference {
    let run = (run != 0).then_some(run);
    Difference { run, gap, shell, what: what.to_vec(), reported: None, seen: None }
}

#[cfg(test)]
mod tests;
