//! What the holder of a session does for another process, in a thread for each.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use h5i_confine::{
    Command, Run, RunHandle, SessionHandle, SpawnError, Stdio, Stop, TerminalModes, TerminalSize,
};
use h5i_policy::Millis;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::AddressFamily;
use rustix::process::{Resource, getrlimit};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGKILL};

use super::Reactions;
use super::control_socket::is_own_user;
use super::frame::{receive, send};
use super::message::{Connected, End, Reply, Request, Wanted};
use super::roster::{Place, Roster};
use super::still;
use crate::failure::{Failure, Kind};
use crate::json_bytes::JsonBytes;
use crate::running::spawn_failure;

/// Others that are served at once, where descriptors suffice.
const MOST: usize = 1000;
/// Descriptors that one of them takes here, and those that the session has anyway, with room for a
/// start and what the record of programs keeps for itself.
const FOR_EACH: u64 = 7;
const FOR_ALL: u64 = 55;
/// How long the programs of a run have to end by themselves once who asked for it is gone.
const AFTER_HANG_UP: Duration = Duration::from_secs(2);

static SERVED: AtomicUsize = AtomicUsize::new(0);

/// Counts one that is served, until it is dropped.
struct Served;

impl Served {
    fn one() -> Option<Self> {
        // Without a descriptor left nobody would be heard any more, not even to be refused.
        let soft = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        // By a quarter of them the ends of programs are heard of.
        let others = soft.saturating_sub(soft / 4).saturating_sub(FOR_ALL);
        let most = usize::try_from(others / FOR_EACH).unwrap_or(MOST).min(MOST);
        let free = |served: usize| (served < most).then_some(served + 1);
        let counted = SERVED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free);
        // Made only where it was counted: the drop of one that was not would count another one off.
        counted.is_ok().then(|| Self)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        SERVED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves another process of the same user; anybody else hears nothing.
pub(super) fn begin(stream: UnixStream, roster: Arc<Roster>) {
    let Some(served) = Served::one() else { return };
    if !is_own_user(&stream) || stream.set_nonblocking(false).is_err() {
        return;
    }
    let thread = std::thread::Builder::new().name("h5i-service".to_owned()).stack_size(256 * 1024);
    // Without a thread the other side finds the conversation ended, and tries again.
    drop(thread.spawn(move || {
        // One that breaks off or talks nonsense has had its answer.
        drop(serve(&stream, &roster));
        drop(served);
    }));
}

fn serve(stream: &UnixStream, roster: &Arc<Roster>) -> io::Result<()> {
    match receive::<Request>(stream)? {
        Some((Request::Enter, _)) => {
            let reactions = roster.recorder.reactions();
            if reactions.is_frozen() {
                return send(stream, &Reply::Refused(frozen(roster, reactions.why())), &[]);
            }
            let (Some(place), Some(session)) = (roster.enter(), roster.session()) else {
                return send(stream, &Reply::Ending, &[]);
            };
            let kept = session.kept_elsewhere();
            let output = kept.output.map(h5i_policy::Bytes::count);
            send(stream, &Reply::Entered { output, owner: kept.owner }, &[])?;
            attend(stream, &place)
        }
        Some((request, _)) => match roster.session() {
            Some(session) => oversee(stream, roster, &session, request),
            None => send(stream, &Reply::Ending, &[]),
        },
        None => Ok(()),
    }
}

fn frozen(roster: &Roster, why: Option<String>) -> Failure {
    let why = why.map_or_else(String::new, |why| format!(" by {why}"));
    Failure::told(Kind::Busy, format!("the box is frozen{why}"))
        .hint(format!("h5i box thaw {}", roster.recorder.box_name()))
}

/// How long programs have to end by themselves when they are asked to.
const GRACE: Duration = Duration::from_secs(2);

/// Does what concerns the whole session.
fn oversee(
    stream: &UnixStream,
    roster: &Arc<Roster>,
    session: &SessionHandle,
    request: Request,
) -> io::Result<()> {
    let recorded = |noted: Result<(), Failure>| noted.map_err(io::Error::other);
    match request {
        Request::Live => send(stream, &Reply::Live(roster.live(session)), &[]),
        Request::End { grace } => {
            roster.close();
            if grace {
                recorded(roster.recorder.note("the session is stopped"))?;
                // One that is stopped hears nothing.
                let processes = session.terminate();
                session.thaw();
                send(stream, &Reply::Done { processes }, &[])?;
                roster.wait_until_empty(GRACE);
            } else {
                recorded(roster.recorder.note("the session is killed"))?;
                send(stream, &Reply::Done { processes: session.processes().len() }, &[])?;
            }
            session.stop();
            Ok(())
        }
        Request::Freeze { frozen } => {
            let reactions = roster.recorder.reactions();
            let (word, processes) = if frozen {
                recorded(reactions.frozen_by_hand(true))?;
                if let Some(grants) = roster.grants() {
                    grants.suspend();
                }
                ("frozen", session.freeze())
            } else {
                let thawed = session.thaw();
                recorded(reactions.frozen_by_hand(false))?;
                if let Some(grants) = roster.grants() {
                    grants.resume();
                }
                ("thawed", thawed)
            };
            recorded(roster.recorder.note(&format!("{word}: {processes} processes")))?;
            send(stream, &Reply::Done { processes }, &[])
        }
        Request::Still => still::serve(stream, roster, session),
        Request::Record { event } => still::write(stream, roster, event),
        Request::Network(wish) => match roster.change_network(&wish) {
            Ok(policy) => send(stream, &Reply::Changed { policy }, &[]),
            Err(failure) => send(stream, &Reply::Refused(failure), &[]),
        },
        Request::Grant(wish) => match roster.change_grant(&wish) {
            Ok(()) => send(stream, &Reply::Done { processes: 0 }, &[]),
            Err(failure) => send(stream, &Reply::Refused(failure), &[]),
        },
        Request::Forward { port, at } => {
            recorded(roster.recorder.note(&format!("forward opened: {at} to port {port}")))?;
            roster.forwards(port, &at);
            let served = forward(stream, session, port);
            roster.forgets(port, &at);
            let connections = served.as_ref().copied().unwrap_or(0);
            let closed = format!("forward closed: {at} to port {port}, {connections} connections");
            recorded(roster.recorder.note(&closed))?;
            served.map(drop)
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Begins connections inside the box's network as they are asked for; yields how many.
fn forward(stream: &UnixStream, session: &SessionHandle, port: u16) -> io::Result<u64> {
    send(stream, &Reply::Done { processes: 0 }, &[])?;
    let mut connections = 0;
    while let Some((Request::Connect { v6 }, _)) = receive::<Request>(stream)? {
        let begun = begin_connection(session, port, v6);
        match begun {
            Ok(socket) => {
                connections += 1;
                send(stream, &Reply::Socket { errno: None }, &[socket.as_fd()])?;
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(libc_eio());
                send(stream, &Reply::Socket { errno: Some(errno) }, &[])?;
            }
        }
    }
    Ok(connections)
}

fn libc_eio() -> i32 {
    rustix::io::Errno::IO.raw_os_error()
}

fn begin_connection(session: &SessionHandle, port: u16, v6: bool) -> io::Result<OwnedFd> {
    let (family, to) = if v6 {
        (AddressFamily::INET6, SocketAddr::from((Ipv6Addr::LOCALHOST, port)))
    } else {
        (AddressFamily::INET, SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    };
    let socket = session.tcp_socket(family)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// Starts the run that is asked for, and attends to it until it has ended.
fn attend(stream: &UnixStream, place: &Place) -> io::Result<()> {
    let Some((Request::Run(wanted), fds)) = receive::<Request>(stream)? else { return Ok(()) };
    let counter = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    let (notice, told) = (counter()?, Arc::new(counter()?));
    let reactions = place.roster().recorder.reactions();
    let mut listening = Listening { said: reactions.said(0).len(), told: Arc::clone(&told) };
    reactions.listen(&told);
    let number = place.number(strings(&wanted.command));
    let started = number.and_then(|number| {
        start(place, number, &wanted, fds, &notice).inspect_err(|_told| {
            place.roster().ends_run(number);
            place.roster().recorder.leave(number);
        })
    });
    let (number, mut run) = match started {
        Ok(started) => started,
        Err(failure) => return send(stream, &Reply::Refused(failure), &[]),
    };
    let terminal = run.take_terminal();
    let left_ms = run.deadline().map(|deadline| {
        let left = deadline.saturating_duration_since(Instant::now());
        u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
    });
    let fds: Vec<_> = terminal.iter().map(OwnedFd::as_fd).collect();
    let started = send(stream, &Reply::Started { run: number, left_ms }, &fds);
    drop(fds);
    drop(terminal);
    let handle = run.handle()?;
    let mut caller = match started {
        Ok(()) => Other::There(stream),
        Err(_) => Other::gone(&handle),
    };
    while caller.wait((&notice, &listening), &handle)? == Waited::More {
        listening.pass_on(reactions, &caller);
    }
    listening.pass_on(reactions, &caller);
    let (outcome, usage) = run.finish();
    place.roster().ends_run(number);
    let recorder = &place.roster().recorder;
    place.roster().counts_network();
    let mut deeds = recorder.leave(number);
    deeds.network = recorder.network_of(number);
    match caller {
        Other::There(stream) => {
            send(stream, &Reply::Ended(End::new(outcome, usage, deeds)), &[])?;
            // Who carried the output comes back with it when its receiver has it.
            if !recorder.keeps_output() {
                return Ok(());
            }
            match receive::<Request>(stream)? {
                Some((Request::Kept { output }, _)) => {
                    recorder.output_kept(number, output).map_err(io::Error::other)
                }
                _ => Ok(()),
            }
        }
        Other::Gone { .. } => Ok(()),
    }
}

/// Who asked for a run.
enum Other<'a> {
    There(&'a UnixStream),
    /// It is gone: what the run started has until then, if it has not had it.
    Gone {
        until: Option<Instant>,
    },
}

/// What is said of the session while it is waited for a run of it.
struct Listening {
    said: usize,
    told: Arc<OwnedFd>,
}

impl Listening {
    fn pass_on(&mut self, reactions: &Reactions, caller: &Other<'_>) {
        let mut counter = [0u8; 8];
        // Nothing in it: nothing was said since.
        if rustix::io::read(&*self.told, &mut counter).is_err() {
            return;
        }
        for line in reactions.said(self.said) {
            self.said += 1;
            if let Other::There(stream) = caller {
                // One that is gone by now is met by the next round.
                send(stream, &Reply::Told { line }, &[]).ok();
            }
        }
    }
}

#[derive(PartialEq, Eq)]
enum Waited {
    More,
    Ended,
}

impl Other<'_> {
    /// The run's programs are told that nobody is there any more, as a closed terminal tells them.
    fn gone(run: &RunHandle) -> Self {
        // A run that has just ended needs no signal.
        run.signal(SIGHUP).and_then(|()| run.signal(SIGCONT)).ok();
        Self::Gone { until: Some(Instant::now() + AFTER_HANG_UP) }
    }

    /// Waits for the run's end or a wish, and does what is wished.
    fn wait(
        &mut self,
        (notice, listening): (&OwnedFd, &Listening),
        run: &RunHandle,
    ) -> io::Result<Waited> {
        let timeout = match self {
            Self::Gone { until: Some(until) } => {
                let left = until.saturating_duration_since(Instant::now());
                let tv_sec = i64::try_from(left.as_secs()).unwrap_or(i64::MAX);
                Some(Timespec { tv_sec, tv_nsec: left.subsec_nanos().into() })
            }
            _ => None,
        };
        let mut fds =
            vec![PollFd::new(notice, PollFlags::IN), PollFd::new(&*listening.told, PollFlags::IN)];
        if let Self::There(stream) = self {
            fds.push(PollFd::new(*stream, PollFlags::IN));
        }
        rustix::io::retry_on_intr(|| poll(&mut fds, timeout.as_ref()))?;
        let ended = !fds[0].revents().is_empty();
        let asked = fds.get(2).is_some_and(|fd| !fd.revents().is_empty());
        if ended {
            return Ok(Waited::Ended);
        }
        match self {
            Self::There(stream) if asked => match receive::<Request>(stream) {
                Ok(Some((Request::Signal { signal }, _))) => {
                    // One that has just ended needs no signal; what is none is no wish.
                    run.signal(signal).ok();
                }
                Ok(Some((Request::StopForOutput { used, allowed }, _))) => {
                    run.stop(Stop::output(used, allowed));
                    // One that is gone by now is met by the next round.
                    send(stream, &Reply::Stopping, &[]).ok();
                }
                _ => *self = Self::gone(run),
            },
            Self::Gone { until } if until.is_some_and(|until| Instant::now() >= until) => {
                *until = None;
                run.signal(SIGKILL).ok();
            }
            _ => {}
        }
        Ok(Waited::More)
    }
}

fn start(
    place: &Place,
    number: u64,
    wanted: &Wanted,
    fds: Vec<OwnedFd>,
    notice: &OwnedFd,
) -> Result<(u64, Run), Failure> {
    let prepare =
        |what| move |source: io::Error| spawn_failure(&SpawnError::Prepare { what, source });
    let ended = || spawn_failure(&SpawnError::SessionEnded);
    let session = place.roster().session().ok_or_else(ended)?;
    let words = strings(&wanted.command);
    let Some((program, args)) = words.split_first() else {
        return Err(Failure::told(Kind::Usage, "no command was given"));
    };
    let mut command = session.command(program);
    command.args(args).number(number).keeper().current_dir(wanted.directory.to_path());
    for (name, value) in &wanted.environment {
        command.env(string(name), string(value));
    }
    for (name, value) in place.roster().issue(number)? {
        command.env(name, value);
    }
    if let Some(terminal) = &wanted.terminal {
        command.terminal(TerminalSize { rows: terminal.rows, columns: terminal.columns });
        if let Some((modes, characters)) = terminal.modes {
            command.terminal_modes(TerminalModes::from_parts(modes, characters));
        }
    }
    if let Some(wall) = wanted.wall_ms {
        command.wall(Millis::new(wall));
    }
    connect(&mut command, wanted.stdio, fds).map_err(prepare("connect input and output"))?;
    command.end_notice(notice.try_clone().map_err(prepare("watch"))?);
    let run = command.spawn().map_err(|error| spawn_failure(&error))?;
    Ok((number, run))
}

/// Connects input, output and errors to the ends of pipes that came.
fn connect(command: &mut Command<'_>, stdio: [Connected; 3], fds: Vec<OwnedFd>) -> io::Result<()> {
    let mut fds = fds.into_iter();
    for (index, connected) in stdio.into_iter().enumerate() {
        let chosen = match connected {
            Connected::Null => Stdio::Null,
            Connected::Terminal => Stdio::Inherit,
            Connected::Pipe => Stdio::Handed(fds.next().ok_or(io::ErrorKind::InvalidInput)?),
        };
        // Inheriting without a terminal would give the holder's own.
        if connected == Connected::Terminal && !command.has_terminal() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        match index {
            0 => command.stdin(chosen),
            1 => command.stdout(chosen),
            _ => command.stderr(chosen),
        };
    }
    Ok(())
}

fn string(bytes: &JsonBytes) -> OsString {
    OsString::from_vec(bytes.0.clone())
}

fn strings(words: &[JsonBytes]) -> Vec<OsString> {
    words.iter().map(string).collect()
}
