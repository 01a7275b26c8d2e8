//! A real box, and the programs that people run in one.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use h5i_confine::{Layout, NoSink, Outcome, Plan, Session, Stdio, system_grants};
use h5i_net::{Budgets, Event, Refusal, requests};
use h5i_policy::{NetMode, NetPolicy, ResolvedPolicy};
use h5i_testkit::{BoxDirs, Moment, Need, have};

use crate::server;
use crate::world::{LONG, PUBLIC, PUBLIC_V6, World, policy, v6};

/// A box behind the gate; the directories go with it.
fn start(world: &mut World, net: &NetPolicy) -> (Session, BoxDirs) {
    let (session, sockets, dirs) = with_sockets(net);
    world.network = Some(world.start(sockets, net, Budgets::default()));
    (session, dirs)
}

/// A box, and the sockets that its network needs.
pub(super) fn with_sockets(net: &NetPolicy) -> (Session, Vec<OwnedFd>, BoxDirs) {
    let dirs = BoxDirs::new().unwrap();
    let mut policy = ResolvedPolicy::default();
    policy.fs.read = system_grants();
    let mut layout = Layout::new(dirs.work(), dirs.home());
    layout.host_id = dirs.host_id();
    let mut plan = Plan::for_host(&policy, &layout).unwrap();
    let slots =
        requests(net).unwrap().map(|one| plan.request_socket(one.domain, one.kind, one.protocol));
    let mut session = plan.start(Arc::new(NoSink)).unwrap();
    let sockets = slots.map(|slot| session.take_socket(slot).unwrap()).into();
    (session, sockets, dirs)
}

/// Runs a program to its end; whether it succeeded, and what it printed.
pub(super) fn run(session: &Session, program: &str, args: &[&str]) -> (bool, String) {
    let output = session.command(program).args(args).stdin(Stdio::Null).output().unwrap();
    let mut printed = String::from_utf8_lossy(&output.stdout).into_owned();
    printed.push_str(&String::from_utf8_lossy(&output.stderr));
    (output.outcome == Outcome::Exited(0), printed)
}

/// Answers each request with `hello`, and keeps the connection.
fn web(mut stream: std::net::TcpStream) {
    let mut head = Vec::new();
    let mut byte = [0];
    while let Ok(1) = stream.read(&mut byte) {
        head.extend(byte);
        if head.ends_with(b"\r\n\r\n") {
            head.clear();
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
            if stream.write_all(answer).is_err() {
                return;
            }
        }
    }
}

const PYTHON: &str =
    "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=9).read())";
const NODE: &str = "fetch(process.argv[1]).then(r => r.text()).then(console.log, e => { console.log(e.cause ?? e); process.exit(1) })";

pub(super) fn clients() {
    let mut world = World::bare();
    let net = policy(NetMode::Allow, &["a.example:80", "a.example:443", "host:8000"]);
    let (session, _dirs) = start(&mut world, &net);
    world.names.set("a.example", &[PUBLIC, PUBLIC_V6]);
    world.names.set("b.example", &[PUBLIC]);
    server::each(world.listen(&format!("{PUBLIC}:80")), web);
    server::each(world.listen(&v6(PUBLIC_V6, 80)), web);
    server::each(std::net::TcpListener::bind("127.0.0.1:8000").unwrap(), web);
    let named = |hello: &[u8]| hello.windows(9).any(|part| part == b"a.example");
    let heard = server::hears_until(world.listen(&format!("{PUBLIC}:443")), named);
    let all: [(&'static str, &[&str]); 3] = [
        ("/usr/bin/curl", &["-sS", "-m9"]),
        ("/usr/bin/python3", &["-c", PYTHON]),
        ("/usr/bin/node", &["-e", NODE]),
    ];
    for (program, args) in all {
        if !have("clients", Need::Program(program)) {
            continue;
        }
        let fetch = |url: &str| run(&session, program, &[args, &[url]].concat());
        for url in ["http://a.example/", "http://host:8000/"] {
            let (worked, printed) = fetch(url);
            assert!(worked && printed.contains("hello"), "{program} {url}: {printed}");
        }
        for url in ["http://b.example/", "http://93.184.216.35/", "http://a.example:8080/"] {
            let began = Moment::now();
            let (worked, printed) = fetch(url);
            assert!(!worked, "{program} {url}: {printed}");
            assert!(began.elapsed() < Duration::from_secs(4), "{program} {url}: {printed}");
        }
        // What a real client says first in TLS is understood; the server here says nothing. At one
        // address: a client that is late gives up the first of several, although it answered.
        world.names.set("a.example", &[PUBLIC]);
        world.forget_answers();
        fetch("https://a.example/");
        world.names.set("a.example", &[PUBLIC, PUBLIC_V6]);
        world.forget_answers();
        let mut said = std::iter::from_fn(|| heard.recv_timeout(LONG).ok());
        assert!(
            said.find(|hello| !hello.is_empty()).is_some_and(|hello| named(&hello)),
            "{program}"
        );
    }
    if have("clients", Need::Program("/usr/bin/curl")) {
        let pinned = format!("c.example:443:{PUBLIC}");
        let (worked, printed) = run(
            &session,
            "/usr/bin/curl",
            &["-sS", "-m9", "--resolve", &pinned, "https://c.example/"],
        );
        assert!(!worked, "{printed}");
        world.log.wait_refusal(Refusal::OtherName);
        assert_eq!(heard.recv_timeout(LONG).unwrap(), b"");
    }
    session.end();
    drop(world.network.take());
    let refused = |event: &Event| matches!(event, Event::RefusedName { .. });
    assert!(world.log.all().iter().any(refused));
}

/// Connects by the numbers of its arguments and prints the answer, or the errno: no library looks at
/// names or variables here.
const STATIC: &str = r#"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv) {
    struct sockaddr_in to = { .sin_family = AF_INET };
    char answer[64] = "";
    to.sin_port = htons(atoi(argv[2]));
    inet_pton(AF_INET, argv[1], &to.sin_addr);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, (struct sockaddr *)&to, sizeof to)) { printf("%s", strerror(errno)); return 1; }
    shutdown(s, SHUT_WR);
    if (read(s, answer, sizeof answer - 1) < 0) { printf("%s", strerror(errno)); return 1; }
    printf("%s", answer);
    return 0;
}
"#;

#[expect(clippy::disallowed_methods, reason = "tests start programs")]
fn host(program: &str, args: &[&str], directory: &std::path::Path) {
    let output =
        std::process::Command::new(program).args(args).current_dir(directory).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {args:?}: {printed}");
}

pub(super) fn static_program() {
    let mut world = World::bare();
    let (session, dirs) = start(&mut world, &policy(NetMode::Allow, &["93.184.216.34:7"]));
    server::says(world.listen("93.184.216.34:7"), b"hello");
    std::fs::write(dirs.work().join("c.c"), STATIC).unwrap();
    host("cc", &["-static", "-o", "c", "c.c"], &dirs.work());
    dirs.give(&dirs.work().join("c")).unwrap();
    let ask = |port: &str| run(&session, "/work/c", &["93.184.216.34", port]);
    assert_eq!(ask("7"), (true, "hello".to_owned()));
    let began = Moment::now();
    assert_eq!(ask("8"), (false, "Connection refused".to_owned()));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

/// Serves a directory over TLS, with the certificate beside it, on the listener that is its input.
const TLS_SERVER: &str = "
import http.server as h, socket, ssl
class Quiet(h.SimpleHTTPRequestHandler):
    def log_message(self, *args): pass
s = h.ThreadingHTTPServer(('', 0), Quiet, bind_and_activate=False)
c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
c.load_cert_chain('cert.pem', 'key.pem')
s.socket = c.wrap_socket(socket.socket(fileno=0), server_side=True)
s.serve_forever()
";

pub(super) fn git() {
    let needs = ["/usr/bin/git", "/usr/bin/python3", "/usr/bin/openssl"];
    if !needs.into_iter().all(|program| have("git", Need::Program(program))) {
        return;
    }
    let mut world = World::bare();
    let (session, dirs) = start(&mut world, &policy(NetMode::Allow, &["a.example"]));
    for name in ["a.example", "b.example"] {
        world.names.set(name, &[PUBLIC]);
    }
    let own = dirs.path().join("site");
    let (own, repo) = (own.as_path(), own.join("r"));
    std::fs::create_dir_all(&repo).unwrap();
    host("git", &["init", "--quiet", "--initial-branch=main"], &repo);
    let id = ["-c", "user.name=a", "-c", "user.email=a@a.example"];
    let commit = ["commit", "--quiet", "--allow-empty", "-m", "over https"];
    host("git", &[&id[..], &commit].concat(), &repo);
    host("git", &["update-server-info"], &repo);
    let request = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 \
                   -subj /CN=a.example -addext subjectAltName=DNS:a.example,DNS:b.example";
    host("openssl", &request.split_whitespace().collect::<Vec<_>>(), own);
    let trusted = dirs.work().join("cert.pem");
    std::fs::copy(own.join("cert.pem"), &trusted).unwrap();
    dirs.give(&trusted).unwrap();
    // Bound here, because an ordinary user's program has no right to such a port.
    let listener = world.listen(&format!("{PUBLIC}:443"));
    #[expect(clippy::disallowed_methods, reason = "tests start programs")]
    let mut server = std::process::Command::new("/usr/bin/python3")
        .args(["-c", TLS_SERVER])
        .current_dir(own)
        .stdin(std::os::fd::OwnedFd::from(listener))
        .spawn()
        .unwrap();
    let clone = |host: &str| {
        let ca = "http.sslCAInfo=/work/cert.pem";
        let url = format!("https://{host}/r/.git");
        run(&session, "/usr/bin/git", &["-c", ca, "ls-remote", &url, "refs/heads/main"])
    };
    let (worked, printed) = clone("a.example");
    assert!(worked && printed.contains("refs/heads/main"), "{printed}");
    let began = Moment::now();
    let (worked, printed) = clone("b.example");
    assert!(!worked && printed.contains("Could not resolve host"), "{printed}");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    server.kill().unwrap();
    server.wait().unwrap();
}

const TAMPER: &str = "
import socket, os, ctypes
libc = ctypes.CDLL(None, use_errno=True)
def errno_of(act):
    try:
        act()
        return 0
    except OSError as e:
        return e.errno
print(errno_of(lambda: socket.socket(16, 3, 12)))
route = socket.socket(16, 3, 0)
route.send(bytes.fromhex('1c000000 1900 0500 01000000 00000000 02000000fe000000 00000000'.replace(' ', '')))
print(-int.from_bytes(route.recv(4096)[16:20], 'little', signed=True))
print(errno_of(lambda: socket.socket(2, 3, 1)))
print(errno_of(lambda: socket.socket(17, 3, 0)))
for flags in (0x10000000, 0x40000000, 0x50000000):
    libc.unshare(flags)
    print(ctypes.get_errno())
print(errno_of(lambda: socket.socket(2, 2).setsockopt(0, 19, 1)))
print(errno_of(lambda: socket.socket(2, 1).setsockopt(1, 36, 1)))
";

pub(super) fn tampering() {
    if !have("tampering", Need::Program("/usr/bin/python3")) {
        return;
    }
    let mut world = World::bare();
    let net = policy(NetMode::Allow, &["93.184.216.34:7"]);
    let (session, _dirs) = start(&mut world, &net);
    server::says(world.listen("93.184.216.34:7"), b"hello");
    let (worked, printed) = run(&session, "/usr/bin/python3", &["-c", TAMPER]);
    assert!(worked, "{printed}");
    // Another netlink family, deletion of a route, raw and packet sockets, namespaces, and the
    // socket options for any address and for marks: all EPERM.
    let errors: Vec<&str> = printed.split_whitespace().collect();
    assert_eq!(errors, ["1"; 9], "{printed}");
    // The twin: what is allowed still is.
    let connect = "import socket; s = socket.create_connection(('93.184.216.34', 7)); \
                   s.shutdown(1); print(s.recv(9))";
    let (worked, printed) = run(&session, "/usr/bin/python3", &["-c", connect]);
    assert!(worked && printed.contains("hello"), "{printed}");
    let elsewhere = connect.replace(", 7)", ", 8)");
    let (worked, printed) = run(&session, "/usr/bin/python3", &["-c", &elsewhere]);
    assert!(!worked && printed.contains("refused"), "{printed}");
}
