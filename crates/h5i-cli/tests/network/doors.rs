//! What a box reaches, each denial with its twin.

use std::time::Duration;

use h5i_testkit::Moment;

use crate::server::Server;
use crate::shapes::BoxRun;
use crate::stand::{Said, Stand};

/// Sends a word to a destination and prints the answer, or why there is none.
pub(crate) fn connect(to: &str) -> String {
    format!(
        r#"perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(PeerAddr => "{to}", Timeout => 20)
             or do {{ print "$!"; exit }}; print $s "word"; $s->shutdown(1); print <$s>'"#
    )
}

fn one_shot(stand: &Stand, words: &[&str], script: &str) -> Said {
    let all = [&["run", "--tier", "supervised"][..], words, &["--", "sh", "-c", script]].concat();
    stand.ok(&all)
}

pub(crate) fn run(stand: &Stand, words: &[&str], script: &str) -> BoxRun {
    of_one_shot(&one_shot(stand, &[words, &["--json"]].concat(), script))
}

/// The part of a one-shot's answer that a run in a box has too.
fn of_one_shot(said: &Said) -> BoxRun {
    let mut data = said.json()["data"].take();
    for more in ["changed", "kept"] {
        data.as_object_mut().unwrap().remove(more).unwrap();
    }
    serde_json::from_value(data).unwrap()
}

fn text(run: &BoxRun) -> String {
    match &run.stdout {
        crate::shapes::Bytes::Text(text) => text.clone(),
        crate::shapes::Bytes::Encoded(_) => panic!("bytes that are no text"),
    }
}

#[test]
fn a_listed_port_of_the_host_is_reached_and_every_other_one_is_refused_at_once() {
    let (stand, listed, other) = (Stand::new(), Server::new(), Server::new());
    let by_name = |server: &Server| connect(&format!("host:{}", server.port()));
    let reached = run(&stand, &["--allow", &listed.rule()], &by_name(&listed));
    assert_eq!(text(&reached), "word");
    let [flow] = &reached.flows[..] else { panic!("{:?}", reached.flows) };
    assert_eq!((flow.port, flow.sent, flow.received), (listed.port(), 4, 4));
    assert_eq!((&flow.verdict[..], &flow.rules[..]), ("done", &[listed.rule()][..]));
    assert_eq!(reached.denied_network.len(), 0);

    let begun = Moment::now();
    let refused = run(&stand, &["--allow", &listed.rule()], &by_name(&other));
    assert_eq!(text(&refused), "Connection refused");
    // The client would wait for 20 seconds.
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert!(refused.flows.is_empty(), "{:?}", refused.flows);
    let [denied] = &refused.denied_network[..] else { panic!("{:?}", refused.denied_network) };
    assert_eq!((&denied.kind[..], denied.count), ("connection", 1));
    assert!(denied.what.ends_with(&format!(":{}", other.port())), "{denied:?}");

    // The twin: with its rule the other one is reached as well.
    let rules = [listed.rule(), other.rule()];
    let both = run(&stand, &["--allow", &rules[0], "--allow", &rules[1]], &by_name(&other));
    assert_eq!(text(&both), "word");
}

#[test]
fn without_rules_nothing_is_reached_and_what_was_tried_is_on_record() {
    let stand = Stand::new();
    let script = format!("{}; {}", connect("192.0.2.9:443"), connect("10.1.1.1:80"));
    let run = run(&stand, &[], &script);
    assert_eq!(text(&run), "Connection refusedConnection refused");
    let denied: Vec<_> =
        run.denied_network.iter().map(|one| (one.what.as_str(), one.count)).collect();
    assert_eq!(denied, [("192.0.2.9:443", 1), ("10.1.1.1:80", 1)]);
    assert_eq!(run.denied_network[0].allowed_by.as_deref(), Some("192.0.2.9:443"));
}

#[test]
fn an_open_network_lets_nothing_private_out() {
    let (stand, server) = (Stand::new(), Server::new());
    let script = connect(&format!("192.0.0.1:{}", server.port()));
    let open = run(&stand, &["--set", "net.mode=\"open\""], &script);
    assert_eq!(text(&open), "Connection refused");
    assert_eq!(open.denied_network[0].reason, "it is not public");
    assert_eq!(open.denied_network[0].allowed_by, None);
    // The twin: where it is listed.
    assert_eq!(text(&run(&stand, &["--allow", &server.rule()], &script)), "word");
}

#[test]
fn a_name_that_no_rule_lists_is_refused_and_on_record() {
    let (stand, server) = (Stand::new(), Server::new());
    let script = "getent hosts host; getent hosts telemetry.example; true";
    let refused = run(&stand, &[], script);
    assert_eq!(text(&refused), "");
    let names: Vec<_> =
        refused.denied_network.iter().map(|one| (&one.kind[..], &one.what[..])).collect();
    assert_eq!(names, [("name", "host"), ("name", "telemetry.example")]);
    // The twin: the name has an answer where a rule lists it, and the other one still has none.
    let answered = run(&stand, &["--allow", &server.rule()], script);
    assert!(text(&answered).ends_with("host\n"), "{}", text(&answered));
    assert_eq!(answered.denied_network.len(), 1, "{:?}", answered.denied_network);
}

#[test]
fn datagrams_are_refused_at_once() {
    let stand = Stand::new();
    let script = r#"perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(
        Proto => "udp", PeerAddr => "192.0.2.9:53"); print $s->send("x") ? "sent" : "$!"'"#;
    let run = run(&stand, &[], script);
    assert_eq!(text(&run), "Operation not permitted");
    assert_eq!(run.denied_network[0].what, "192.0.2.9:53/udp");
}

#[test]
fn the_boxes_own_loopback_works_as_ever() {
    let stand = Stand::new();
    let script = r#"perl -MIO::Socket::INET -e '
        my $l = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die;
        my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:" . $l->sockport) or die;
        my $c = $l->accept; print $c "here"; close $c; print <$s>'"#;
    let run = run(&stand, &[], script);
    assert_eq!(text(&run), "here");
    assert!(run.flows.is_empty() && run.denied_network.is_empty());
}

#[test]
fn runs_that_join_are_behind_the_same_gate() {
    let (stand, listed, other) = (Stand::new(), Server::new(), Server::new());
    stand.ok(&["box", "create", "a", "--tier", "supervised", "--allow", &listed.rule()]);
    stand.ok(&["box", "start", "a"]);
    let script = |server: &Server| connect(&format!("host:{}", server.port()));
    let joined = |script: &str| -> BoxRun {
        let said = stand.ok(&["box", "run", "a", "--json", "--", "sh", "-c", script]);
        said.data()
    };
    let reached = joined(&script(&listed));
    assert_eq!((text(&reached).as_str(), reached.flows.len()), ("word", 1));
    let refused = joined(&script(&other));
    assert_eq!(text(&refused), "Connection refused");
    assert_eq!(refused.denied_network.len(), 1);
    stand.ok(&["box", "stop", "a"]);
}

#[test]
fn the_process_tier_is_as_it_was() {
    let (stand, server) = (Stand::new(), Server::new());
    let to = format!("127.0.0.1:{}", server.port());
    let said = stand.ok(&["run", "--json", "--", "sh", "-c", &connect("192.0.2.9:443")]);
    let run = of_one_shot(&said);
    assert_eq!(text(&run), "Network is unreachable");
    assert!(run.flows.is_empty() && run.denied_network.is_empty());
    let host = ["run", "--set", "net.mode=\"host\"", "--", "sh", "-c", &connect(&to)];
    assert_eq!(stand.ok(&host).out, b"word");
}
