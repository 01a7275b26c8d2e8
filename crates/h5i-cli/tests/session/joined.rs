//! Runs that join a session: as good as a first one, and beside it.

use std::time::{Duration, Instant};

use crate::going::{Going, records, with_box};
use crate::shapes::BoxRun;
use crate::stand::Stand;

/// A server that says a word to everybody.
const SERVER: &str = r#"use IO::Socket::INET; $| = 1;
my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1", LocalPort => 8080) or die;
print "here\n"; while (my $c = $s->accept) { print $c "hello\n"; close $c }"#;
const CLIENT: &str = r#"use IO::Socket::INET;
my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => 8080) or exit 9;
print scalar <$s>;"#;

#[test]
fn a_server_of_one_run_answers_another_and_no_other_box() {
    let stand = with_box();
    stand.ok(&["box", "create", "b"]);
    let mut server = Going::h5i(&stand, &["box", "run", "a", "--", "perl", "-e", SERVER]);
    assert_eq!(server.line(), "here");
    let said = stand.ok(&["box", "run", "a", "--", "perl", "-e", CLIENT]);
    assert_eq!(said.text(), "hello\n");
    assert_eq!(stand.h5i(&["box", "run", "b", "--", "perl", "-e", CLIENT]).code, 9);
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.end().code, 143);
}

#[test]
fn a_joined_run_ends_as_a_first_one_would() {
    let stand = with_box();
    let ways: &[&[&str]] = &[
        &["--", "true"],
        &["--", "sh", "-c", "exit 42"],
        &["--", "sh", "-c", "echo out; echo err >&2; kill -9 $$"],
        &["--timeout", "2s", "--", "sleep", "1000"],
        &["--", "nonesuch"],
        &["--", "/work"],
        &["--env", "X=a b", "--", "sh", "-c", "echo \"$X $HOME $PWD\""],
        &["--json", "--", "sh", "-c", "echo out; echo err >&2; exit 3"],
        &["--json", "--", "nonesuch"],
    ];
    let all = |stand: &Stand| -> Vec<(i32, String, String)> {
        let run = |way: &&[&str]| {
            let said = stand.h5i(&[&["box", "run", "a"], *way].concat());
            (said.code, without_figures(said.text()), without_figures(&said.err))
        };
        ways.iter().map(run).collect()
    };
    let first = all(&stand);
    let holder = Going::waiting(&stand);
    let joined = all(&stand);
    assert_eq!(first, joined);
    assert_eq!(holder.end().code, 7);
}

/// Times, memory and numbers differ from run to run, and with them their units.
fn without_figures(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect();
    let larger = [(" ms", " s"), (" min", " s"), (" KiB", " B"), (" MiB", " B"), (" GiB", " B")];
    larger.iter().fold(text, |text, (unit, base)| text.replace(unit, base))
}

#[test]
fn input_and_output_of_a_joined_run_are_its_callers() {
    let stand = with_box();
    let holder = Going::waiting(&stand);
    let words = ["box", "run", "a", "--", "sh", "-c", "cat; echo more"];
    let said = stand.h5i_reading(&words, &vec![b'x'; 300_000]);
    assert_eq!((said.code, said.out.len()), (0, 300_005));
    let run: BoxRun = stand.ok(&["box", "run", "a", "--json", "--", "echo", "y"]).data();
    assert_eq!((run.run, run.exit_code), (3, 0));
    assert_eq!(holder.end().out, "");
    // One log, in order, with every run's own number.
    let numbers: Vec<(String, u64)> = records(&stand)
        .iter()
        .filter_map(|r| Some((r["kind"].as_str()?.to_owned(), r["run"].as_u64()?)))
        .collect();
    let told = |kind: &str, run| (kind.to_owned(), run);
    assert_eq!(numbers.first(), Some(&told("run-start", 1)));
    assert_eq!(numbers.last(), Some(&told("run-end", 1)));
    for run in [2, 3] {
        assert!(numbers.contains(&told("run-start", run)), "{numbers:?}");
        assert!(numbers.contains(&told("run-end", run)), "{numbers:?}");
    }
}

#[test]
fn a_joined_run_that_writes_too_much_is_stopped_and_the_first_one_is_not() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a", "--set", "limits.output=\"1MiB\""]);
    let holder = Going::waiting(&stand);
    let said = stand.h5i(&["box", "run", "a", "--", "sh", "-c", "yes"]);
    assert_eq!(said.code, 123, "{}", said.err);
    assert!(said.err.contains("stopped by limits.output"), "{}", said.err);
    assert!(said.out.len() <= 1 << 20, "{}", said.out.len());
    let said = stand.ok(&["box", "run", "a", "--", "head", "-c", "1000000", "/dev/zero"]);
    assert_eq!(said.out.len(), 1_000_000);
    assert_eq!(holder.end().code, 7);
}

#[test]
fn the_first_command_waits_for_the_others_and_says_so() {
    let stand = with_box();
    let mut first = Going::waiting(&stand);
    let mut second = Going::waiting(&stand);
    // Who reads its output, in a pipeline say, has all of it although the command is still there.
    assert_eq!(first.rest(), "");
    let ends = std::thread::spawn(move || first.end());
    // The first one's end is on record before it waits.
    let over = |r: &serde_json::Value| r["kind"] == "run-end" && r["run"] == 1;
    let patience = Instant::now() + Duration::from_secs(60);
    while !records(&stand).iter().any(over) {
        assert!(Instant::now() < patience, "{:?}", records(&stand));
    }
    second.type_line("still here");
    assert_eq!(second.line(), "still here");
    assert!(!ends.is_finished());
    assert_eq!(second.end().code, 7);
    let first = ends.join().unwrap();
    assert_eq!(first.code, 7);
    assert!(first.err.contains("1 other run in the session of box `a` goes on"), "{}", first.err);
}

#[test]
fn runs_share_signals_and_sockets_and_do_not_reach_what_is_above_them() {
    let stand = with_box();
    let script = "trap 'echo got; exit 5' USR1; echo $$; while :; do sleep 1000 & wait; done";
    let mut first = Going::sh(&stand, script);
    let pid = first.line();
    // The init is 1. No signal reaches it, from a run that joined or from the first one.
    let attempt = "kill -9 1 2>/dev/null && echo reached; kill -0 1 2>/dev/null; cat /proc/1/maps \
                   /proc/1/environ 2>/dev/null | head -c1 | wc -c; ls /proc/1/fd 2>/dev/null; true";
    // What stands above a run that joined is its keeper, as closed as the init.
    let keeper = "cat /proc/$PPID/maps /proc/$PPID/environ 2> /dev/null | head -c1 | wc -c; \
                  ls /proc/$PPID/fd 2> /dev/null; cat /proc/$PPID/comm";
    let told = stand.sh("a", keeper);
    // The name is the stage's, whatever the kernel puts before it.
    assert!(told.starts_with("0\n") && told.ends_with("h5i-stage"), "{told}");
    assert_eq!(told.lines().count(), 2, "{told}");
    assert_eq!(stand.sh("a", attempt), "0");
    // The twin: its own processes it reaches.
    assert_eq!(stand.sh("a", "cat /proc/$$/maps | head -c1 | wc -c"), "1");
    let listen = r#"use IO::Socket::UNIX; $| = 1;
        my $s = IO::Socket::UNIX->new(Type => SOCK_STREAM, Local => "/tmp/s", Listen => 1) or die;
        print "here\n"; my $c = $s->accept; print $c "through\n";"#;
    let mut listener = Going::h5i(&stand, &["box", "run", "a", "--", "perl", "-e", listen]);
    assert_eq!(listener.line(), "here");
    let ask = r#"use IO::Socket::UNIX;
        print scalar readline(IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => "/tmp/s"));"#;
    assert_eq!(stand.ok(&["box", "run", "a", "--", "perl", "-e", ask]).text(), "through\n");
    assert_eq!(listener.end().code, 0);
    stand.sh("a", &format!("kill -USR1 {pid}"));
    assert_eq!(first.line(), "got");
    assert_eq!(first.end().code, 5);
}

#[test]
fn a_signal_to_a_joined_caller_is_for_its_run() {
    let stand = with_box();
    let holder = Going::waiting(&stand);
    for (signal, script, code) in [
        (
            rustix::process::Signal::TERM,
            "trap 'exit 9' TERM; echo here; while :; do sleep 1000 & wait; done",
            9,
        ),
        (rustix::process::Signal::INT, "echo here; exec sleep 1000", 130),
    ] {
        let mut joined = Going::sh(&stand, script);
        assert_eq!(joined.line(), "here");
        joined.signal(signal);
        let joined = joined.end();
        assert_eq!(joined.code, code, "{}", joined.err);
    }
    assert_eq!(holder.end().code, 7);
}

#[test]
fn more_callers_than_descriptors_are_told_that_the_box_is_busy() {
    let stand = with_box();
    let mut command = stand.program("sh");
    // Room for ten others.
    command.args(["-c", "ulimit -n 168; exec \"$H5I\" box run a -- sh -c 'echo here; cat'"]);
    let stdio = std::process::Stdio::piped;
    let mut holder = command.stdin(stdio()).stdout(stdio()).spawn().unwrap();
    let mut line = [0; 5];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut line).unwrap();
    let many: Vec<Going> = (0..10).map(|_| Going::waiting(&stand)).collect();
    let said = stand.h5i(&["box", "run", "a", "--json", "--", "true"]);
    assert_eq!((said.code, said.failure().kind.as_str()), (125, "busy"));
    for one in many {
        assert_eq!(one.end().code, 7);
    }
    stand.sh("a", "true");
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
}

#[test]
fn what_a_run_was_refused_is_told_to_its_own_caller() {
    let stand = with_box();
    let mut holder = Going::sh(&stand, "echo here; cat; unshare -U true; unshare -U true; exit 7");
    assert_eq!(holder.line(), "here");
    let joined: BoxRun =
        stand.h5i(&["box", "run", "a", "--json", "--", "unshare", "-r", "true"]).data();
    assert_eq!((joined.run, joined.denied.len()), (2, 1), "{joined:?}");
    let clean: BoxRun = stand.ok(&["box", "run", "a", "--json", "--", "true"]).data();
    assert!(clean.denied.is_empty(), "{clean:?}");
    let refused: Vec<u64> = records(&stand)
        .iter()
        .filter(|r| r["kind"] == "refused-call")
        .map(|r| r["run"].as_u64().unwrap())
        .collect();
    assert_eq!(refused, [2]);
    let holder = holder.end();
    assert_eq!(holder.code, 7);
    assert!(holder.err.contains("unshare ×2"), "{}", holder.err);
}

#[test]
fn the_holders_socket_is_the_hosts_alone() {
    let stand = with_box();
    let holder = Going::waiting(&stand);
    let socket = stand.box_dir("a").join("host/control.sock");
    let path = socket.to_str().unwrap();
    // From inside, there is no such path, and no such name among the sockets that the kernel tells of.
    let found = stand.sh(
        "a",
        &format!(
            "ls {path} 2>&1; cat /proc/net/unix; find / -xdev -name control.sock 2> /dev/null; true"
        ),
    );
    assert!(found.contains("No such file"), "{found}");
    assert_eq!(found.matches("control.sock").count(), 1, "{found}");
    // The twin: from outside it can be reached, and answers nonsense by hanging up.
    use std::io::{Read as _, Write as _};
    let mut reached = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    reached.write_all(&[0xff; 64]).unwrap();
    assert!(matches!(reached.read(&mut [0; 8]), Ok(0) | Err(_)));
    stand.sh("a", "true");
    assert_eq!(holder.end().code, 7);
}

#[test]
fn a_caller_that_dies_is_a_hang_up_for_its_run_alone() {
    let stand = with_box();
    let holder = Going::waiting(&stand);
    let script =
        "trap 'echo hup > /tmp/told; exit' HUP; echo here; while :; do sleep 1000 & wait; done";
    let mut second = Going::sh(&stand, script);
    assert_eq!(second.line(), "here");
    second.signal(rustix::process::Signal::KILL);
    assert_eq!(second.end().code, 137);
    let waits = "i=0; while [ ! -s /tmp/told ] && [ $i -lt 1000 ]; \
                 do i=$((i + 1)); sleep 0.02; done; cat /tmp/told";
    assert_eq!(stand.sh("a", waits), "hup");
    assert_eq!(holder.end().code, 7);
}
