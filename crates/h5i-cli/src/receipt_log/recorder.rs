//! How what is seen of a box's session becomes records, and what is kept for its summaries.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use h5i_confine::{self as confine, KnownHolders, SessionHandle, WORKSPACE};
use h5i_export::{Argv, ByteText, Event, Lane, NetworkChange, Timestamp};
use h5i_policy::{NetMode, RecordOutput, ResolvedPolicy, Tier, Violation};

use super::ReceiptLog;
use super::looking::Looking;
use super::seen::{end_event, refused_event};
use crate::canary::Watch;
use crate::failure::Failure;
use crate::gaps::{Gaps, Hook};
use crate::grant_record::{GrantDeeds, GrantRecord};
use crate::hook;
use crate::log_kinds::records_of;
use crate::log_sync::LogSync;
use crate::net_record::{NetDeeds, NetRecord};
use crate::program_record::{Programs, Tally};
use crate::session::{Opened, Reactions, Refused, Spent};
use crate::shown::Shown;
use crate::spool::Spool;
use crate::store::{BoxName, Manifest, StoredBox};

/// Turns the events of a session into records, and keeps what was refused for the summaries.
#[derive(Debug)]
pub struct Recorder {
    pub(super) log: ReceiptLog,
    box_name: BoxName,
    tier: Tier,
    policy: Mutex<String>,
    runs: Mutex<BTreeMap<u64, Going>>,
    /// Programs of runs that are over, and those of which nobody knows whose they are.
    others: Mutex<Programs>,
    pub(super) net: Mutex<NetRecord>,
    pub(super) grants: Mutex<GrantRecord>,
    pub(super) holders: Mutex<KnownHolders>,
    /// The box's socket of each flow that goes.
    pub(super) sockets: Mutex<BTreeMap<u64, u64>>,
    /// The time for looking for who was refused on the network.
    pub(super) looking: Mutex<Looking>,
    pub(super) session: OnceLock<SessionHandle>,
    reactions: Reactions,
    pub(super) sync: Mutex<LogSync>,
    /// What the box says of itself; none where it has no way to.
    pub(super) spool: Mutex<Option<Spool>>,
    pub(super) gaps: Mutex<Gaps>,
    /// What is planted in the box; none where nothing is.
    pub(super) canaries: Mutex<Option<Watch>>,
    keeps_output: bool,
}

/// A run that goes.
#[derive(Debug)]
struct Going {
    argv: Vec<OsString>,
    since: Timestamp,
    refused: Vec<Refused>,
    programs: Programs,
    spent: Option<Spent>,
}

/// What a run did, as far as it is told at its end.
#[derive(Clone, Debug, Default)]
pub struct Deeds {
    /// What it was refused; equal ones counted together.
    pub refused: Vec<Refused>,
    /// The programs that ran.
    pub programs: Tally,
    /// What it did on the network; in a session of this process it is told after its end.
    pub network: NetDeeds,
    /// What it did with its grants.
    pub grants: GrantDeeds,
    /// The budget that it was stopped for.
    pub spent: Option<Spent>,
    /// Planted credentials that it opened.
    pub opened: Vec<Opened>,
    /// Why its session broke, where that is known.
    pub broke: Option<String>,
}

impl Recorder {
    /// Records into `log` for a session of this box.
    #[must_use]
    pub fn new(log: ReceiptLog, manifest: &Manifest, policy_of: &ResolvedPolicy) -> Self {
        let (tier, net) = (policy_of.tier, Mutex::new(NetRecord::new(policy_of.net.mode)));
        let grants = Mutex::new(GrantRecord::new(policy_of));
        let policy = Mutex::new(manifest.policy_digest.to_string());
        let sync = Mutex::new(LogSync::new(log.file()));
        let (runs, others, holders, sockets, looking, session, spool, canaries) =
            Default::default();
        let keeps_output = policy_of.record_output == RecordOutput::On;
        let gaps = Mutex::new(Gaps::new(hook_of(&policy_of.env.set)));
        let name = manifest.name.as_str();
        let reactions = Reactions::new(policy_of.react.clone(), name, log.host_dir());
        Self {
            log,
            box_name: manifest.name.clone(),
            tier,
            policy,
            runs,
            others,
            net,
            grants,
            holders,
            sockets,
            looking,
            session,
            reactions,
            sync,
            spool,
            gaps,
            canaries,
            keeps_output,
        }
    }

    /// The box's name, for what a person is told to do.
    pub(crate) const fn box_name(&self) -> &BoxName {
        &self.box_name
    }

    /// Whether output of runs is kept.
    pub(crate) fn keeps_output(&self) -> bool {
        self.keeps_output
    }

    /// Takes the next number for a run of this command.
    ///
    /// # Errors
    /// As [`ReceiptLog::next_run`].
    pub fn admit(&self, argv: Vec<OsString>) -> Result<u64, Failure> {
        let mut runs = self.runs();
        let number = self.log.next_run()?;
        let (since, refused, programs) = (Timestamp::now(), Vec::new(), Programs::default());
        runs.insert(number, Going { argv, since, refused, programs, spent: None });
        Ok(number)
    }

    /// A run is over: yields what it did.
    pub fn leave(&self, run: u64) -> Deeds {
        self.takes_last_words(run);
        let opened = self.opened_by(run);
        let grants = self.grants_of(run);
        self.known_holders().forget_ended();
        let deeds = |going: Going| {
            let (refused, programs) = (going.refused, going.programs.tally());
            let network = NetDeeds::default();
            let broke = self.log.broke().map(str::to_owned);
            Deeds { refused, programs, network, grants, spent: going.spent, opened, broke }
        };
        self.runs().remove(&run).map(deeds).unwrap_or_default()
    }

    /// What a run did on the network, once it has ended; told once.
    pub fn network_of(&self, run: u64) -> NetDeeds {
        self.net.lock().unwrap_or_else(PoisonError::into_inner).take(run)
    }

    pub(super) fn of_program(
        &self,
        run: u64,
        make: impl FnOnce(&mut Programs) -> Event,
    ) -> Result<(), Failure> {
        let event = match self.runs().get_mut(&run) {
            Some(going) => make(&mut going.programs),
            None => make(&mut self.others.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        self.log.append(Lane::Kernel, (run != 0).then_some(run), event).map(drop)
    }

    /// The runs that go: number, command, and since when in milliseconds of Unix time.
    #[must_use]
    pub fn going(&self) -> Vec<(u64, Vec<OsString>, u64)> {
        let told = |(run, going): (&u64, &Going)| {
            (*run, going.argv.clone(), going.since.unix_micros() / 1000)
        };
        self.runs().iter().map(told).collect()
    }

    /// Records what the host did to the session.
    ///
    /// # Errors
    /// As [`ReceiptLog::append`].
    pub fn host(&self, event: Event) -> Result<(), Failure> {
        self.log.append(Lane::Host, None, event).map(drop)
    }

    /// As [`ReceiptLog::sync`].
    ///
    /// # Errors
    /// An I/O failure.
    pub(crate) fn sync(&self) -> Result<(), Failure> {
        self.log.sync()
    }

    /// Says that the runs without an end on record had none: who held their session died.
    ///
    /// # Errors
    /// As [`ReceiptLog::append`].
    pub(crate) fn cut_off_what_goes_on(&self, stored: &StoredBox) -> Result<(), Failure> {
        let mut open = BTreeSet::new();
        for record in records_of(&stored.host_dir(), &["run-start", "run-end", "cut-off"])? {
            match (record.event, record.run) {
                (Event::RunStart { .. }, Some(run)) => drop(open.insert(run)),
                (Event::RunEnd { .. }, Some(run)) => drop(open.remove(&run)),
                (Event::CutOff { .. }, _) => open.clear(),
                _ => {}
            }
        }
        if open.is_empty() {
            Ok(())
        } else {
            self.host(Event::CutOff { torn_bytes: 0, torn: None })
        }
    }

    /// A remark of the host.
    ///
    /// # Errors
    /// As [`ReceiptLog::append`].
    pub fn note(&self, text: &str) -> Result<(), Failure> {
        self.host(Event::Note { text: ByteText::new(text.as_bytes()) })
    }

    /// The digest of the policy that holds.
    #[must_use]
    pub fn policy(&self) -> String {
        self.policy.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records a change of the network; runs that start from here on name the new policy.
    ///
    /// # Errors
    /// As [`ReceiptLog::append`]; the change must not be made then.
    pub fn network_changes(
        &self,
        change: NetworkChange,
        rule: Option<String>,
        policy: &str,
        mode: NetMode,
    ) -> Result<(), Failure> {
        self.host(Event::NetworkChange { change, rule, policy: policy.to_owned() })?;
        self.net.lock().unwrap_or_else(PoisonError::into_inner).is_of(mode);
        policy.clone_into(&mut self.policy.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    /// The record of a run's start.
    ///
    /// # Errors
    /// As [`ReceiptLog::append`].
    pub fn run_starts(&self, run: u64) -> Result<(), Failure> {
        let argv = self.runs().get(&run).map(|going| going.argv.clone()).unwrap_or_default();
        let argv = Argv::bounded(argv.iter().map(|arg| arg.as_bytes()));
        let event = Event::RunStart {
            argv: argv.argv,
            argv_cut: argv.cut,
            cwd: ByteText::new(WORKSPACE.as_bytes()),
            tier: self.tier.to_string(),
            policy: self.policy(),
        };
        self.log.append(Lane::Host, Some(run), event).map(drop)
    }

    /// The record of a run's end.
    ///
    /// # Errors
    /// As [`ReceiptLog::append`].
    pub fn run_ends(
        &self,
        run: u64,
        outcome: confine::Outcome,
        usage: confine::Usage,
    ) -> Result<(), Failure> {
        self.log.append(Lane::Host, Some(run), end_event(outcome, usage)).map(drop)
    }

    /// From here on a refusal among several runs is looked up here.
    pub(crate) fn tells_runs_apart(&self, session: SessionHandle) {
        self.reactions.act_on(session.clone());
        // There is one session in a recorder's life.
        self.session.set(session).ok();
    }

    /// What is done about violations.
    pub(crate) fn reactions(&self) -> &Reactions {
        &self.reactions
    }

    /// Something was violated, and that is on record: does what the policy says of it.
    ///
    /// # Errors
    /// As [`ReceiptLog::append`]; nothing may go on then.
    pub(crate) fn violated(&self, violation: Violation, cause: &str) -> Result<(), Failure> {
        self.reactions.violated(violation, cause, |event| self.host(event))
    }

    /// A budget is spent.
    pub(super) fn budget_spent(&self, spent: &confine::Spent) -> Result<(), Failure> {
        let (limit, used, allowed) = (spent.stop.limit.name(), spent.stop.used, spent.stop.allowed);
        let event = Event::BudgetSpent {
            limit: limit.to_owned(),
            used,
            allowed,
            pid: spent.pid,
            program: ByteText::new(spent.program.clone()),
        };
        self.log.append(Lane::Host, spent.run, event)?;
        let by = Shown::bytes(&spent.program).to_string();
        let told = Spent::from(spent);
        if let (Some(run), mut runs) = (spent.run, self.runs())
            && let Some(going) = runs.get_mut(&run)
        {
            going.spent = Some(told);
        }
        let of = spent.run.map_or_else(String::new, |run| format!(" in run {run}"));
        self.violated(Violation::Budget, &format!("limits.{limit} spent by {by}{of}"))
    }

    /// A refusal is of the run that goes alone, of the one that its process belongs to, or, where that
    /// is gone, of one that was refused the same before.
    pub(super) fn refused(&self, call: &confine::RefusedCall) -> Result<(), Failure> {
        let alone = self.alone();
        let refused = Refused::from(call);
        let run = alone.or_else(|| self.session.get()?.run_of(call.pid)).or_else(|| {
            let same = |going: &Going| going.refused.iter().any(|kind| kind.is_kind_of(&refused));
            self.runs().iter().find(|(_, going)| same(going)).map(|(run, _)| *run)
        });
        if let (Some(run), mut runs) = (run, self.runs())
            && let Some(going) = runs.get_mut(&run)
        {
            refused.count_among(&mut going.refused);
        }
        self.log.append(Lane::Kernel, run, refused_event(call))?;
        let by = Shown::bytes(&call.program);
        self.violated(Violation::RefusedCall, &format!("{} by {by}", call.name))
    }

    /// The run that goes, if it is only one.
    pub(crate) fn alone(&self) -> Option<u64> {
        let runs = self.runs();
        runs.keys().next().copied().filter(|_| runs.len() == 1)
    }

    fn runs(&self) -> MutexGuard<'_, BTreeMap<u64, Going>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether shells report by the variables of a policy.
fn hook_of(set: &BTreeMap<String, String>) -> Hook {
    match set.get(hook::BASH_ENV) {
        Some(path) if path == hook::BASH_AT => Hook::Bash,
        _ => Hook::AsTheyLike,
    }
}
