//! The process that holds a box's session: it began it, and others may join.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use h5i_confine::{Ahead, Command, EventSink, Launched, Session, SpawnError};
use h5i_export::Event;
use h5i_net::HostResolver;
use h5i_policy::ResolvedPolicy;

use super::control_socket::{self, Before};
use super::lasting::when_it_lasts;
use super::roster::{Lifetime, Place, Roster};
use super::service;
use crate::box_grants::{Mouths, check_private, with_trust};
use crate::box_network::{Doors, LiveNetwork};
use crate::box_plan;
use crate::caller::Caller;
use crate::canary::Watch;
use crate::failure::{Failure, Kind};
use crate::open_files;
use crate::path_error::{Action, PathError};
use crate::receipt_log::{Deeds, ReceiptLog, Recorder};
use crate::running::spawn_failure;
use crate::spool::Spool;
use crate::store::{Manifest, StoredBox};

/// How long others may take to hear how their runs ended.
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(1);

/// A session that this process holds. Dropping it ends the box, whoever is in it.
#[derive(Debug)]
pub(crate) struct Host {
    session: Session,
    place: Option<Place>,
    roster: Arc<Roster>,
    socket: PathBuf,
}

impl Host {
    /// Brings a box to life and takes others in from here on. The caller holds the box's lock.
    /// `prepare` is called while the box is being made.
    ///
    /// # Errors
    /// A failure when nothing was started.
    pub(crate) fn open<T>(
        caller: &Caller,
        (stored, manifest, policy): (&StoredBox, &Manifest, &ResolvedPolicy),
        lifetime: Lifetime,
        prepare: impl FnOnce(&mut Launched<'_>) -> Result<T, Failure>,
    ) -> Result<(Self, T), Failure> {
        open_files::make_room();
        stored.open_own_roots()?;
        let layout = box_plan::layout_of(&caller.store, stored, manifest)?;
        check_private(policy, &HostResolver)?;
        let (layout, trust) = with_trust(layout, stored, policy)?;
        // The stage's first steps are the same whatever the plan; a plan that is refused ends them.
        let ahead = Ahead::start(policy, &layout);
        let mut plan = box_plan::plan(policy, &layout)?;
        let doors = Doors::ask(&mut plan, policy)?;
        let mouths = Mouths::ask(&mut plan, (stored, manifest, policy), trust);
        let started = |e| spawn_failure(&SpawnError::Session(e));
        let mut launched = plan.launch(Some(ahead.map_err(started)?)).map_err(started)?;
        // While the stage builds the box. Nothing of the box runs before the log is open.
        let log = ReceiptLog::open(stored)?;
        let recorder = Arc::new(Recorder::new(log, manifest, policy));
        when_it_lasts(&mut launched);
        hear_spool(stored, &recorder)?;
        watch_planted(stored, (manifest, policy), &recorder, &mut launched)?;
        let roster = Roster::new(Arc::clone(&recorder), lifetime);
        if listen(stored, &roster, &mut launched)? == Before::Died {
            recorder.cut_off_what_goes_on(stored)?;
        }
        let prepared = prepare(&mut launched)?;
        let sink: Arc<dyn EventSink> = Arc::<Recorder>::clone(&recorder);
        let mut session = launched.session(sink).map_err(started)?;
        roster.recorder.tells_runs_apart(session.handle());
        if let Some(doors) = doors {
            // Who waits to come in is let in when the network stands.
            let opened = doors.open(&mut session, policy, Arc::clone(&recorder) as _);
            let opened = opened.and_then(|network| {
                if let Some(mouths) = mouths {
                    let grants = mouths.open(&mut session, caller, &recorder)?;
                    grants.divert(&network, &recorder)?;
                    roster.has_grants(grants);
                }
                roster.has_network(LiveNetwork::new(network, policy.clone()));
                Ok(())
            });
            if let Err(failure) = opened {
                roster.close();
                return Err(failure);
            }
        }
        roster.opens(session.handle());
        let place = roster.enter();
        let socket = control_socket::path(&stored.host_dir());
        Ok((Self { session, place, roster, socket }, prepared))
    }

    /// A run of this process, with its number in the box.
    ///
    /// # Errors
    /// An I/O failure of the log.
    pub(crate) fn command(
        &self,
        argv: &[std::ffi::OsString],
    ) -> Result<(u64, Command<'static>), Failure> {
        let [program, args @ ..] = argv else {
            return Err(Failure::told(Kind::Usage, "no command was given"));
        };
        let number = self.roster.recorder.admit(argv.to_vec())?;
        let mut command = self.session.handle().command(program);
        command.args(args).number(number);
        for (name, value) in self.roster.issue(number)? {
            command.env(name, value);
        }
        Ok((number, command))
    }

    /// What is on record.
    pub(crate) fn recorder(&self) -> &Arc<Recorder> {
        &self.roster.recorder
    }

    /// A run of this process is over: yields what it did, but for what it did on the network, whose
    /// flows may outlive it.
    pub(crate) fn leave(&self, run: u64) -> Deeds {
        self.roster.ends_run(run);
        self.roster.counts_network();
        self.roster.recorder.leave(run)
    }

    /// The session, for other threads.
    pub(crate) fn handle(&self) -> h5i_confine::SessionHandle {
        self.session.handle()
    }

    /// Keeps the session until it is stopped, or breaks.
    ///
    /// # Errors
    /// An I/O failure of the log; the session is over then as well.
    pub(crate) fn keep(
        mut self,
        ready: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.handle().wait_ready().map_err(|e| spawn_failure(&SpawnError::Session(e)))?;
        let recorder = Arc::clone(&self.roster.recorder);
        recorder.host(Event::SessionStart { policy: recorder.policy() })?;
        ready()?;
        drop(self.place.take());
        self.session.wait();
        self.roster.close();
        // Whoever had a run in it is told how that ended.
        self.roster.wait_until_empty(FAREWELL);
        self.roster.ends_network();
        recorder.takes_all_in();
        recorder.planted_is_over();
        std::fs::remove_file(&self.socket).ok();
        recorder.host(Event::SessionEnd)
    }

    /// Ends the session with its last run. `waits` is told how many others have one, if there are any.
    pub(crate) fn end(mut self, waits: impl FnOnce(usize)) {
        drop(self.place.take());
        let others = self.roster.places();
        if others > 0 {
            waits(others);
        }
        self.roster.close_when_empty();
        // While the box ends. What is there later was left by a holder that died.
        self.session.stop();
        std::fs::remove_file(&self.socket).ok();
        let recorder = Arc::clone(&self.roster.recorder);
        self.session.end();
        self.roster.ends_network();
        recorder.takes_all_in();
        recorder.planted_is_over();
    }
}

/// Has what the box says of itself taken in, as often as a program starts or ends in it.
fn hear_spool(stored: &StoredBox, recorder: &Recorder) -> Result<(), Failure> {
    let path = stored.box_dir().join("spool");
    let spool = Spool::open(&path).map_err(PathError::at(Action::Open, &path))?;
    recorder.hears(spool);
    // What a session that was killed left there; nothing of this one runs yet.
    recorder.takes_all_in();
    Ok(())
}

/// Plants what is missing, and has the session's thread hear who opens it.
fn watch_planted(
    stored: &StoredBox,
    (manifest, policy): (&Manifest, &ResolvedPolicy),
    recorder: &Arc<Recorder>,
    launched: &mut Launched<'_>,
) -> Result<(), Failure> {
    if policy.fs.canaries.is_empty() {
        return Ok(());
    }
    let Some((watch, lost)) = Watch::begin(stored, manifest.host_id)? else {
        let message = format!("what is planted in box `{}` is not written down", stored.name());
        return Err(Failure::told(Kind::Corrupt, message)
            .hint(format!("h5i box rm {} keeps its receipt", stored.name())));
    };
    let failed = |error| Failure::told(Kind::Io, format!("cannot watch what is planted: {error}"));
    let told = watch.descriptor().map_err(failed)?;
    recorder.watches(watch, lost)?;
    let hears = Arc::clone(recorder);
    launched.also_watch(told, move || hears.hears_of_planted());
    Ok(())
}

/// Listens for others; they are heard by the session's thread.
fn listen(
    stored: &StoredBox,
    roster: &Arc<Roster>,
    launched: &mut Launched<'_>,
) -> Result<Before, Failure> {
    let failed = |error: std::io::Error| {
        Failure::told(Kind::Io, format!("cannot listen for other runs of the box: {error}"))
            .hint("see that the state directory is writable and has room (XDG_STATE_HOME)")
    };
    let (listener, before) = control_socket::listen(&stored.host_dir()).map_err(failed)?;
    let told: OwnedFd = listener.as_fd().try_clone_to_owned().map_err(failed)?;
    let roster = Arc::clone(roster);
    launched.also_watch(told, move || {
        while let Ok((stream, _)) = listener.accept() {
            service::begin(stream, Arc::clone(&roster));
        }
    });
    Ok(before)
}
