//! Many short connections: each carried whole, each on record, and nothing left of them.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::doors::connect;
use crate::holder_figures::settled;
use crate::server::Server;
use crate::shapes::BoxRun;
use crate::stand::Stand;

/// Eight processes with 125 connections each, 1 KiB each way.
const CLIENT: &str = r#"alarm 120;
    for (1..8) {
        fork or do {
            for (1..125) {
                my $s = IO::Socket::INET->new(PeerAddr => $ARGV[0]) or die "$!";
                my $words = "w" x 1024;
                print $s $words; $s->shutdown(1);
                local $/; die "cut" unless <$s> eq $words;
            }
            exit 0;
        }
    }
    my $failed = 0; while (wait != -1) { $failed++ if $? } print "$failed failed""#;

#[test]
fn a_thousand_short_connections_are_carried_and_on_record_and_leave_nothing() {
    let (stand, server) = (Stand::new(), Server::new());
    stand.ok(&["box", "create", "a", "--tier", "supervised", "--allow", &server.rule()]);
    let mut holds = stand.command();
    holds.args(["box", "run", "a", "--", "sh", "-c", "echo up; read word; true"]);
    let mut holder = holds.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    let to = format!("host:{}", server.port());
    // What the first run that joins and the first flow leave is kept for all that follow.
    stand.sh("a", &connect(&to));
    let before = settled(holder.id(), u64::MAX);
    let client = ["perl", "-MIO::Socket::INET", "-e", CLIENT, &to];
    let run: BoxRun =
        stand.ok(&[&["box", "run", "a", "--json", "--"][..], &client].concat()).data();
    assert_eq!(run.stdout.text(), "0 failed");
    assert_eq!((run.flows.len(), run.network_untold), (1000, 0));
    for flow in &run.flows {
        assert_eq!((flow.sent, flow.received, flow.verdict.as_str()), (1024, 1024, "done"));
        assert!(flow.program.as_deref().is_some_and(|one| one.ends_with("/perl")), "{flow:?}");
    }
    let after = settled(holder.id(), before[0]);
    assert!(after[0] <= before[0], "{before:?} {after:?}");
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    let log = stand.ok(&["box", "log", "a", "--lane", "net", "--json"]);
    let of = |word: &str| log.text().lines().filter(|line| line.contains(word)).count();
    assert_eq!((of("\"flow-start\""), of("\"verdict\":\"done\"")), (1001, 1001));
}
