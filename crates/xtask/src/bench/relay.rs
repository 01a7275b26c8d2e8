//! Short connections through a box's relay, beside bare loopback and beside a CONNECT proxy.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::repository::{commit, repository_with, say};
use super::{build, scratch};

/// Connections of one measurement.
const COUNT: usize = 10_000;
/// How many of them at once.
const AT_ONCE: [usize; 2] = [1, 64];
/// Rounds; each takes every way once, so that a slow moment hits them all.
const ROUNDS: usize = 3;
/// Bytes each way.
const BYTES: usize = 1024;
/// Connections that the server serves at once.
const SERVED: usize = 80;
/// The address that is the host's loopback in a box.
const HOST: &str = "192.0.0.1";
const CLIENT: &str = include_str!("client.c");

/// Prints the table.
pub(crate) fn run(root: &Path) -> Result<u8> {
    let root = root.canonicalize().context("could not find the workspace")?;
    let h5i = build(&root)?;
    let scratch = scratch()?;
    let result = measure(&h5i, &scratch);
    fs::remove_dir_all(&scratch).context("could not remove the scratch directory")?;
    result.map(|()| 0)
}

fn measure(h5i: &Path, scratch: &Path) -> Result<()> {
    let repository = scratch.join("repository");
    repository_with(&repository, 10)?;
    let client = client(&repository)?;
    commit(&repository)?;
    let port = serve()?;
    let proxy = Proxy::start(scratch)?;
    let ground = Ground { h5i, repository: &repository, state: scratch.join("state") };
    let rule = format!("host:{port}");
    let create = ["box", "create", "a", "--tier", "supervised", "--allow", &rule];
    let budget = ["--set", "net.budget.connections_per_second=1000000"];
    ground.ok(&[&create[..], &budget].concat())?;
    let holder = Holder::start(&ground)?;
    // What the first run that joins and the first flow leave is kept for all that follow.
    ground.ok(&["box", "run", "a", "--", "./client", HOST, &port.to_string(), "1", "1"])?;
    say(&format!("{COUNT} connections, {BYTES} bytes each way; medians of {ROUNDS} rounds"));
    let mut relayed = 1;
    for at_once in AT_ONCE {
        let [count, at_once_text, port] = [COUNT, at_once, port.into()].map(|n| n.to_string());
        let mut ways = vec![
            ("bare loopback", {
                let mut bare = Command::new(&client);
                bare.args(["127.0.0.1", &port, &count, &at_once_text]);
                bare
            }),
            ("a box's relay", {
                let words = ["box", "run", "a", "--", "./client", HOST, &port, &count];
                ground.command(&[&words[..], &[at_once_text.as_str()]].concat())
            }),
        ];
        if let Some(proxy) = &proxy {
            let mut by = Command::new(&client);
            by.args(["127.0.0.1", &port, &count, &at_once_text, &proxy.port.to_string()]);
            ways.push(("tinyproxy", by));
        }
        let before = holder.figures()?;
        let mut found: Vec<Vec<Times>> = ways.iter().map(|_| Vec::new()).collect();
        for _ in 0..ROUNDS {
            for ((_, way), found) in ways.iter_mut().zip(&mut found) {
                found.push(Times::of(way)?);
            }
        }
        relayed += ROUNDS * COUNT;
        print(at_once, &ways.iter().map(|(name, _)| *name).zip(found).collect::<Vec<_>>());
        let after = holder.settled(before.descriptors)?;
        say(&format!(
            "  the supervisor before and after: {} and {} KiB, {} and {} descriptors",
            before.resident, after.resident, before.descriptors, after.descriptors
        ));
    }
    drop(holder);
    ground.ok(&["box", "stop", "a"]).ok();
    let log = ground.ok(&["box", "log", "a", "--json"])?;
    let of = |kind: &str| log.lines().filter(|line| line.contains(kind)).count();
    let (began, done) = (of("\"kind\":\"flow-start\""), of("\"verdict\":\"done\""));
    let named = of("/client\"");
    say(&format!(
        "  on record: {began} begun and {done} done of {relayed}; {named} records name it"
    ));
    ground.ok(&["box", "rm", "--force", "a"])?;
    if (began, done) != (relayed, relayed) {
        bail!("connections are missing on record");
    }
    Ok(())
}

fn print(at_once: usize, ways: &[(&str, Vec<Times>)]) {
    let middle = |found: &[Times], of: fn(&Times) -> f64| {
        let mut all: Vec<f64> = found.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    say(&format!(
        "  {:<24}{:>14}{:>10}{:>16}{:>12}",
        format!("{at_once} at once"),
        "connections/s",
        "× bare",
        "first byte µs",
        "99 of 100"
    ));
    let rate = |found: &[Times]| COUNT as f64 / middle(found, |times| times.seconds);
    let bare = ways.first().map_or(f64::NAN, |(_, found)| rate(found));
    for (name, found) in ways {
        say(&format!(
            "  {name:<24}{:>14.0}{:>10.2}{:>16.0}{:>12.0}",
            rate(found),
            rate(found) / bare,
            middle(found, |times| times.median),
            middle(found, |times| times.slow)
        ));
    }
}

/// What the client has measured.
struct Times {
    seconds: f64,
    /// Microseconds until the first byte: the median, and 99 of 100.
    median: f64,
    slow: f64,
}

impl Times {
    fn of(client: &mut Command) -> Result<Self> {
        let output = client.stdin(Stdio::null()).output().context("could not start a client")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            bail!("{client:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
        }
        let numbers: Vec<f64> = said.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        let [_, seconds, median, slow] = numbers[..] else { bail!("the client said {said}") };
        Ok(Self { seconds, median, slow })
    }
}

/// Compiles the client into the repository, so that it is in the box as well.
fn client(repository: &Path) -> Result<PathBuf> {
    let (source, client) = (repository.join("client.c"), repository.join("client"));
    fs::write(&source, CLIENT)?;
    let status = Command::new("cc")
        .args(["-O2", "-static", "-pthread", "-o"])
        .args([&client, &source])
        .status()
        .context("could not start cc")?;
    if !status.success() {
        bail!("the client does not compile");
    }
    Ok(client)
}

/// A server that answers with what it was sent, until this program ends.
fn serve() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    for _ in 0..SERVED {
        let listener = listener.try_clone()?;
        std::thread::spawn(move || {
            let mut buffer = [0; BYTES];
            while let Ok((mut stream, _)) = listener.accept() {
                if stream.read_exact(&mut buffer).is_ok() {
                    stream.write_all(&buffer).ok();
                }
            }
        });
    }
    Ok(port)
}

/// A CONNECT proxy, where the host has one.
struct Proxy {
    child: Child,
    port: u16,
}

impl Proxy {
    fn start(scratch: &Path) -> Result<Option<Self>> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let configuration = scratch.join("tinyproxy.conf");
        let text = format!("Port {port}\nListen 127.0.0.1\nMaxClients 200\nLogLevel Error\n");
        fs::write(&configuration, text)?;
        let mut command = Command::new("tinyproxy");
        command.arg("-d").arg("-c").arg(configuration).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            say("without tinyproxy beside it: it is not on this host");
            return Ok(None);
        };
        let proxy = Self { child, port };
        let patience = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if Instant::now() > patience {
                bail!("tinyproxy does not listen");
            }
            std::thread::yield_now();
        }
        Ok(Some(proxy))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).ok();
    }
}

struct Ground<'a> {
    h5i: &'a Path,
    repository: &'a Path,
    state: PathBuf,
}

impl Ground<'_> {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.h5i);
        command.arg("-C").arg(self.repository).args(words).env("XDG_STATE_HOME", &self.state);
        command
    }

    fn ok(&self, words: &[&str]) -> Result<String> {
        let output = self.command(words).stdin(Stdio::null()).output()?;
        if !output.status.success() {
            bail!("h5i {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The first run of a session, whose process is the supervisor.
struct Holder(Child);

struct Figures {
    resident: u64,
    descriptors: usize,
}

impl Holder {
    fn start(ground: &Ground<'_>) -> Result<Self> {
        let mut command = ground.command(&["box", "run", "a", "--", "sh", "-c", "echo up; read x"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("no pipe")?;
        BufReader::new(stdout).read_line(&mut line)?;
        if line != "up\n" {
            bail!("the box did not come up");
        }
        Ok(Self(child))
    }

    fn figures(&self) -> Result<Figures> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        let descriptors = fs::read_dir(format!("/proc/{}/fd", self.0.id()))?.count();
        Ok(Figures { resident: resident.context("the kernel does not tell")?, descriptors })
    }

    /// Once what the last client had open is closed, which is heard a moment after its end.
    fn settled(&self, descriptors: usize) -> Result<Figures> {
        let patience = Instant::now() + Duration::from_secs(5);
        loop {
            let figures = self.figures()?;
            if figures.descriptors <= descriptors || Instant::now() > patience {
                return Ok(figures);
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().ok();
    }
}
