//! A service, a broker in front of it, and a run that holds its grants.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use h5i_broker::{
    Broker, Credential, CredentialError, Credentials, Diverted, Event, EventSink, Holder,
    HostSources, Issue, Patience, Peers, Program, Roots, Secret, Service, Setup, SinkClosed, Way,
};
use h5i_policy::{Grant, HostName};
use rustix::net::{AddressFamily, SocketType};

use crate::client::{Answer, Connection, LONG};
use crate::server::{CANARY, RENEWED, Server, Speaks};

pub(crate) const HOST: &str = "api.example.com";
/// The run of every world.
pub(crate) const RUN: u64 = 1;
pub(crate) const WAYS: [Way; 2] = [Way::Reverse, Way::Intercept];

type Hook = Box<dyn Fn(&Event) + Send>;

/// Keeps every event, and wakes who waits for one.
#[derive(Default)]
pub(crate) struct Log {
    events: Mutex<Vec<Event>>,
    came: Condvar,
    pub(crate) closed: Mutex<bool>,
    /// Called with each event, before anybody else knows of it.
    pub(crate) hook: Mutex<Option<Hook>>,
}

impl EventSink for Log {
    fn event(&self, event: Event) -> Result<(), SinkClosed> {
        if *self.closed.lock().unwrap() {
            return Err(SinkClosed);
        }
        if let Some(hook) = &*self.hook.lock().unwrap() {
            hook(&event);
        }
        self.events.lock().unwrap().push(event);
        self.came.notify_all();
        Ok(())
    }
}

impl Log {
    pub(crate) fn all(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    /// Waits for an event.
    pub(crate) fn wait(&self, wanted: impl Fn(&Event) -> bool) -> Event {
        let mut events = self.events.lock().unwrap();
        let end = Instant::now() + LONG;
        loop {
            if let Some(found) = events.iter().find(|event| wanted(event)) {
                return found.clone();
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "not in {events:#?}");
            events = self.came.wait_timeout(events, left).unwrap().0;
        }
    }
}

/// Says who holds a connection, as the test wants it.
#[derive(Default)]
pub(crate) struct Said(pub(crate) Mutex<Option<Holder>>, pub(crate) Gate);

/// Where questions wait.
#[derive(Default)]
pub(crate) struct Gate {
    /// Whether it is shut, and how many have come through.
    state: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Gate {
    pub(crate) fn shut(&self, shut: bool) {
        self.state.lock().unwrap().0 = shut;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let state = self.state.lock().unwrap();
        let mut state = self.changed.wait_while(state, |(shut, _)| *shut).unwrap();
        state.1 += 1;
        self.changed.notify_all();
    }

    /// Waits until so many have come through.
    pub(crate) fn passed(&self, count: usize) {
        let state = self.state.lock().unwrap();
        let waited = self.changed.wait_timeout_while(state, LONG, |(_, passed)| *passed < count);
        assert!(!waited.unwrap().1.timed_out());
    }
}

impl Peers for Said {
    fn holder(&self, _: std::net::SocketAddr, _: std::net::SocketAddr) -> Option<Holder> {
        self.1.pass();
        self.0.lock().unwrap().clone()
    }
}

/// The service's credential, as the host would find it.
pub(crate) struct Kept {
    key: Key,
    now: Mutex<&'static str>,
}

impl Kept {
    fn credential(&self) -> Arc<Credential> {
        let now = *self.now.lock().unwrap();
        let secret = |text: String| Secret::new(text.into_bytes());
        Arc::new(Credential {
            headers: vec![("authorization".to_owned(), secret(format!("Bearer {now}")))],
            query: None,
            append: vec![("beta".to_owned(), "login".to_owned())],
            secrets: vec![secret(now.to_owned())],
            until: None,
        })
    }
}

impl Credentials for Kept {
    fn current(&self) -> Result<Arc<Credential>, CredentialError> {
        if self.key == Key::Missing {
            let (source_name, why) = ("env:KEY".to_owned(), "it is not set".to_owned());
            return Err(CredentialError::Source { source_name, why });
        }
        Ok(self.credential())
    }

    fn renewed(&self, _: &Credential) -> Result<Option<Arc<Credential>>, CredentialError> {
        if self.key != Key::Renewable {
            return Ok(None);
        }
        *self.now.lock().unwrap() = RENEWED;
        Ok(Some(self.credential()))
    }
}

/// Where the service's credential comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// Nowhere: nobody is asked.
    None,
    Fixed,
    /// There is another one after a 401.
    Renewable,
    /// Who is asked has none.
    Missing,
    /// A variable of the host has this one, and the grant says where it goes.
    Sourced(&'static str),
}

/// What a world is made of.
pub(crate) struct Make {
    pub(crate) grant: Grant,
    pub(crate) speaks: Speaks,
    pub(crate) patience: Patience,
    pub(crate) key: Key,
    pub(crate) trusted: bool,
    pub(crate) at_once: usize,
}

pub(crate) struct World {
    pub(crate) broker: Option<Broker>,
    pub(crate) log: Arc<Log>,
    pub(crate) peers: Arc<Said>,
    pub(crate) server: Server,
    pub(crate) port: u16,
    pub(crate) token: String,
}

/// A TCP socket, as it would be made in a box.
pub(crate) fn socket() -> OwnedFd {
    rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap()
}

/// Says who the test's program is.
pub(crate) fn program(path: &str, run: Option<u64>) -> Holder {
    Holder { run, program: Program { pid: 7, path: path.into() } }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Make)) -> Self {
        let mut make = Make {
            grant: Grant::to(HostName::new(HOST).unwrap()),
            speaks: Speaks::Http1,
            patience: Patience::default(),
            key: Key::Fixed,
            trusted: true,
            at_once: 1024,
        };
        make.grant.variables.base_url = ["BASE".to_owned()].into();
        make.grant.variables.token = ["TOKEN".to_owned()].into();
        change(&mut make);
        let server = Server::new(HOST, make.speaks);
        make.grant.port = server.address.port();
        let kept: Arc<dyn Credentials> = match make.key {
            Key::Sourced(value) => {
                make.grant.secret = Some("env:KEY".parse().unwrap());
                let sources = HostSources::new(Path::new("/"), move |_| Some(value.into()));
                Arc::new(sources.credentials(&make.grant).unwrap())
            }
            key => Arc::new(Kept { key, now: Mutex::new(CANARY) }),
        };
        let with = |service: Service| {
            if make.key != Key::None { service.with(Arc::clone(&kept)) } else { service }
        };
        let mut setup = Setup::new(vec![
            with(Service::reverse("reverse", make.grant.clone(), socket())),
            with(Service::intercept("intercept", make.grant.clone())),
            with(Service::reverse("other", make.grant.clone(), socket())),
        ]);
        let roots = if make.trusted { vec![server.root.clone()] } else { Vec::new() };
        setup.roots = Roots::These(roots);
        setup.resolver = Arc::new(|name: &HostName| -> std::io::Result<Vec<IpAddr>> {
            assert_eq!(name.as_str(), HOST, "no other name is ever asked for");
            Ok(vec![Server::ip()])
        });
        setup.patience = make.patience;
        setup.at_once = make.at_once;
        let (log, peers) = (Arc::new(Log::default()), Arc::new(Said::default()));
        setup.peers = Arc::clone(&peers) as Arc<dyn Peers>;
        let broker = Broker::start(setup, Arc::clone(&log) as Arc<dyn EventSink>).unwrap();
        let mut world =
            Self { broker: Some(broker), log, peers, server, port: 0, token: String::new() };
        (world.port, world.token) = world.issue(RUN);
        world
    }

    pub(crate) fn broker(&self) -> &Broker {
        self.broker.as_ref().unwrap()
    }

    /// Issues all grants to a run; where `reverse` is found, and its token.
    pub(crate) fn issue(&self, run: u64) -> (u16, String) {
        let variables = self.broker().issue(&Issue::to(run)).unwrap();
        let find = |name: &str| variables.iter().find(|(own, _)| own == name).unwrap().1.clone();
        let base = find("BASE");
        (base.strip_prefix("http://127.0.0.1:").unwrap().parse().unwrap(), find("TOKEN"))
    }

    /// How the service is called on this way.
    pub(crate) fn host(&self, way: Way) -> String {
        match way {
            Way::Intercept => format!("{HOST}:{}", self.server.address.port()),
            _ => format!("127.0.0.1:{}", self.port),
        }
    }

    pub(crate) fn name(way: Way) -> &'static str {
        match way {
            Way::Intercept => "intercept",
            _ => "reverse",
        }
    }

    /// Hands one end of a pair to the broker; the other is the program's.
    pub(crate) fn divert(&self, run: Option<u64>) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut diverted = Diverted::new(theirs.into(), "intercept");
        diverted.run = run;
        diverted.program = self.peers.0.lock().unwrap().clone().map(|holder| holder.program);
        self.broker().intercept(diverted).unwrap();
        ours
    }

    /// A connection of the run's.
    pub(crate) fn connect(&self, way: Way) -> Connection {
        match way {
            Way::Intercept => {
                let pem = self.broker().authority().unwrap();
                Connection::tls(self.divert(Some(RUN)), pem, HOST)
            }
            _ => Connection::plain(self.port),
        }
    }

    /// A request with the token; lines are added as they are.
    pub(crate) fn text(&self, way: Way, line: &str, more: &str) -> String {
        let token = match way {
            Way::Intercept => String::new(),
            _ => format!("authorization: Bearer {}\r\n", self.token),
        };
        format!("{line} HTTP/1.1\r\nHost: {}\r\n{token}{more}\r\n", self.host(way))
    }

    /// One request on a connection of its own.
    pub(crate) fn ask(&self, way: Way, line: &str, more: &str) -> Answer {
        let mut connection = self.connect(way);
        connection.send(self.text(way, line, more));
        connection.answer().unwrap_or_else(|| panic!("no answer to {line} {more} by {way:?}"))
    }

    /// As [`World::ask`], by a client that writes all of this and nothing else.
    pub(crate) fn raw(&self, way: Way, text: &str) -> Option<Answer> {
        let mut connection = self.connect(way);
        connection.send(text);
        connection.answer()
    }

    /// Waits for an answer's refusal on record.
    pub(crate) fn refused(&self, denial: h5i_broker::Denial) -> Event {
        let is_it =
            |event: &Event| matches!(event, Event::Refused { denial: own, .. } if *own == denial);
        self.log.wait(is_it)
    }
}
