//! Two boxes, and the host: what listens in one is reached from nowhere else.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::doors::{connect, run};
use crate::stand::Stand;

const PORT: u16 = 3000;

/// A dev server in a box: on every address that the box has, until its input ends.
const SERVE: &str = r#"alarm 120; $| = 1;
    my $l = IO::Socket::INET->new(Listen => 9, LocalAddr => "0.0.0.0:3000", ReuseAddr => 1) or die;
    print "up\n";
    while (my $c = $l->accept) { print $c "dev"; close $c }"#;

fn serve(stand: &Stand, name: &str) -> Child {
    let mut command = stand.command();
    command.args(["box", "run", name, "--", "perl", "-MIO::Socket::INET", "-e", SERVE]);
    let mut server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    server
}

/// Every IPv4 address of the host's interfaces, its loopback included.
fn hosts_own() -> Vec<String> {
    // Local addresses stand in the table of routes as hosts.
    let table = std::fs::read_to_string("/proc/net/fib_trie").unwrap();
    let lines: Vec<&str> = table.lines().map(str::trim).collect();
    let local = |two: &[&str]| {
        let address = two[0].strip_prefix("|-- ")?;
        two[1].contains("host LOCAL").then(|| address.to_owned())
    };
    let mut all: Vec<String> = lines.windows(2).filter_map(local).collect();
    all.sort();
    all.dedup();
    all
}

/// What the host gets from an address at the server's port.
fn from_host(address: &str) -> Option<String> {
    let to: SocketAddr = format!("{address}:{PORT}").parse().unwrap();
    let mut stream = TcpStream::connect_timeout(&to, Duration::from_millis(500)).ok()?;
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut stream, &mut said).ok()?;
    Some(said)
}

#[test]
fn the_server_of_a_box_is_reached_in_it_and_by_a_forward_and_from_nowhere_else() {
    let stand = Stand::new();
    // The other box has all that can be asked for: the open network, or that very port by its rule.
    for name in ["a", "b", "c"] {
        let words: &[&str] = match name {
            "a" => &[],
            "b" => &["--set", "net.mode=open"],
            _ => &["--allow", "192.0.0.2:3000", "--allow", "host:3000"],
        };
        stand.ok(&[&["box", "create", name, "--tier", "supervised"][..], words].concat());
        stand.ok(&["box", "start", name]);
    }
    let mut server = serve(&stand, "a");
    let tries = ["127.0.0.1", "192.0.0.2", "192.0.0.1"].map(|to| connect(&format!("{to}:{PORT}")));
    assert_eq!(stand.sh("a", &tries[0]), "dev");
    for name in ["b", "c"] {
        for reach in &tries {
            let said = stand.sh(name, reach);
            assert_ne!(said, "dev", "{name}: {reach}");
        }
    }
    let own = hosts_own();
    assert!(own.contains(&"127.0.0.1".to_owned()), "{own:?}");
    for address in own.iter().map(String::as_str).chain(["192.0.0.2"]) {
        assert_ne!(from_host(address).as_deref(), Some("dev"), "{address}");
    }
    // The twin: where a person opens it, the host has it, and by its rule the other box as well.
    let mut command = stand.command();
    command.args(["box", "forward", "a", "3000", "--as", "0"]);
    let mut forward = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut at = String::new();
    BufReader::new(forward.stdout.take().unwrap()).read_line(&mut at).unwrap();
    let port: u16 = at.trim().rsplit(':').next().unwrap().parse().unwrap();
    let rule = format!("host:{port}");
    stand.ok(&["box", "allow", "c", &rule]);
    assert_eq!(stand.sh("c", &connect(&rule)), "dev");
    // After the end nothing answers, there either.
    stand.ok(&["box", "stop", "a"]);
    server.wait().unwrap();
    forward.wait().unwrap();
    assert_ne!(stand.sh("c", &connect(&rule)), "dev");
    // Another test may have been given the port meanwhile.
    let patience = Instant::now() + Duration::from_secs(20);
    while TcpListener::bind(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < patience, "the port outlives the command");
        std::thread::sleep(Duration::from_millis(5));
    }
    for address in &own {
        assert_ne!(from_host(address).as_deref(), Some("dev"), "{address}");
    }
    for name in ["b", "c"] {
        stand.ok(&["box", "stop", name]);
    }
}

#[test]
fn a_namespace_in_a_box_is_no_way_around_its_gate() {
    let stand = Stand::new();
    // User and network namespaces, by the program that makes them and by the raw call, and a name of
    // the box's own that is entered again.
    let script = "unshare --user --map-root-user --net true; echo $?
                  unshare --net true; echo $?
                  nsenter --net=/proc/self/ns/net true; echo $?
                  perl -e 'print syscall(272, 0x50000000), qq(\\n)'";
    let outcome = run(&stand, &["--allow", "192.0.2.1:80", "--keep"], script);
    let crate::shapes::Bytes::Text(text) = &outcome.stdout else { panic!("{outcome:?}") };
    let codes: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(codes, ["1", "1", "1", "-1"], "{outcome:?}");
    let refused: Vec<&str> = outcome.denied.iter().map(|call| call.call.as_str()).collect();
    assert!(refused.contains(&"unshare") && refused.contains(&"setns"), "{refused:?}");
}
