use h5i_export::{ByteText, Event, FlowVerdict, NetworkChange};
use h5i_policy::{NetMode, NetPolicy, NetRule};

use super::{Learned, Lesson};

fn of(events: &[Event], allow: &[&str]) -> Learned {
    let mut net = NetPolicy::default();
    net.mode = NetMode::Allow;
    net.allow = allow.iter().map(|rule| NetRule::new(rule).unwrap()).collect();
    let mut lesson = Lesson::default();
    events.iter().for_each(|event| lesson.take_in(event));
    lesson.learned(&net)
}

fn rules(learned: &Learned) -> Vec<String> {
    learned.rules.iter().map(ToString::to_string).collect()
}

fn name(name: &str, record: u16) -> Event {
    name_by(name, record, None, None)
}

fn name_by(name: &str, record: u16, pid: Option<u32>, program: Option<&str>) -> Event {
    let (name, program) = (Some(ByteText::new(name)), program.map(ByteText::new));
    Event::RefusedName { name, record, count: 1, pid, program }
}

fn exec(pid: u32, argv: &[&str], path: &str) -> Event {
    Event::ExecAttempt {
        proc: u64::from(pid),
        pid,
        parent: 1,
        ppid: 1,
        path: ByteText::new(path),
        argv: argv.iter().copied().map(ByteText::new).collect(),
        argv_cut: 0,
        cwd: ByteText::new("/work"),
        unread: Vec::new(),
        unwatched: false,
    }
}

fn address(address: &str, protocol: &str, port: Option<u16>) -> Event {
    let (protocol, address) = (protocol.to_owned(), Some(address.to_owned()));
    Event::RefusedAddress { protocol, address, port, count: 1, pid: None, program: None }
}

fn flow(flow: u64, names: &[&str], rules: &[&str]) -> Event {
    let texts = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
    Event::FlowStart {
        flow,
        protocol: "tcp".to_owned(),
        address: "93.184.216.34".to_owned(),
        port: 8443,
        names: texts(names),
        rules: texts(rules),
        pid: None,
        program: None,
    }
}

fn end(flow: u64, named: Option<&str>) -> Event {
    Event::FlowEnd {
        flow,
        named: named.map(str::to_owned),
        sent: 0,
        received: 0,
        duration_ms: 0,
        verdict: FlowVerdict::Done,
        reason: None,
        errno: None,
        used: None,
        allowed: None,
    }
}

#[test]
fn refused_names_and_destinations_are_rules() {
    let events = [
        name("b.example", 28),
        name("a.example", 1),
        address("192.0.2.9", "tcp", Some(5432)),
        address("2001:db8::9", "udp", Some(53)),
        address("192.0.0.1", "tcp", Some(11434)),
    ];
    let learned = of(&events, &["a.example"]);
    assert_eq!(
        rules(&learned),
        ["b.example:443", "192.0.2.9:5432", "[2001:db8::9]:53/udp", "host:11434"]
    );
    assert_eq!(
        learned.options(),
        "--allow b.example:443 --allow 192.0.2.9:5432 --allow [2001:db8::9]:53/udp --allow host:11434"
    );
    let document = format!("version = 1\n{}", learned.toml("web"));
    h5i_policy::PolicyDocument::parse("learned", document.as_bytes()).unwrap();
}

#[test]
fn another_port_of_a_listed_name_is_a_rule_by_name() {
    let resolved = Event::Resolved {
        name: "a.example".to_owned(),
        addresses: vec!["93.184.216.34".to_owned()],
        withheld: Vec::new(),
    };
    let events = [resolved, address("93.184.216.34", "tcp", Some(22))];
    assert_eq!(rules(&of(&events, &["a.example"])), ["a.example:22"]);
    assert_eq!(rules(&of(&events[1..], &["a.example"])), ["93.184.216.34:22"]);
}

#[test]
fn of_an_open_network_the_flows_are_rules_by_the_name_that_was_named() {
    let events = [
        flow(1, &["a.example", "b.example"], &[]),
        end(1, Some("b.example")),
        flow(2, &[], &[]),
        end(2, None),
        // Without an end.
        flow(3, &["c.example"], &[]),
    ];
    let learned = of(&events, &[]);
    assert_eq!(rules(&learned), ["b.example:8443", "c.example:8443", "93.184.216.34:8443"]);
    // What a rule allowed teaches nothing, unless it named another host.
    let events = [flow(1, &["a.example"], &["a.example:8443"]), end(1, Some("a.example"))];
    assert_eq!(rules(&of(&events, &["a.example:8443"])), [""; 0]);
    let events = [flow(1, &["a.example"], &["a.example:8443"]), end(1, Some("c.example"))];
    assert_eq!(rules(&of(&events, &["a.example:8443"])), ["c.example:8443"]);
}

#[test]
fn rules_that_a_person_gave_while_it_ran_are_learned_until_taken_back() {
    let change = |change, rule: &str| {
        let rule = Some(rule.to_owned());
        Event::NetworkChange { change, rule, policy: String::new() }
    };
    let events = [
        change(NetworkChange::Allow, "a.example:443"),
        change(NetworkChange::Allow, "b.example:443"),
        change(NetworkChange::Revoke, "a.example:443"),
    ];
    assert_eq!(rules(&of(&events, &[])), ["b.example:443"]);
}

#[test]
fn what_no_rule_can_allow_is_told_apart() {
    let events = [
        name("host", 1),
        name("1.2.0.192.in-addr.arpa", 12),
        name("a\u{202e}b", 1),
        name("localhost.", 1),
        address("192.0.2.9", "icmp", None),
    ];
    let learned = of(&events, &[]);
    assert_eq!((rules(&learned), learned.beyond.len()), (vec![], 5));
    assert!(learned.is_empty());
}

#[test]
fn a_name_that_was_only_spoken_on_a_flow_to_another_place_is_remarked() {
    let spoken = |more: &[Event]| {
        let flows = [flow(1, &["host"], &["host:8443"]), end(1, Some("evil.example"))];
        let events = [more, &flows[..]].concat();
        let learned = of(&events, &["host:8443"]);
        let remarks = learned.remarks();
        remarks.iter().map(|(rule, why)| format!("{rule}: {why}")).collect::<Vec<_>>()
    };
    let [remark] = &spoken(&[])[..] else { panic!("{:?}", spoken(&[])) };
    assert!(remark.starts_with("evil.example:8443: "), "{remark}");
    assert!(remark.ends_with("on a flow to host:8443"), "{remark}");
    // The twin: it was asked for as well.
    assert_eq!(spoken(&[name("evil.example", 1)]), [""; 0]);
}

#[test]
fn what_no_rule_can_allow_has_its_reason() {
    let learned = of(&[name("host", 1), address("192.0.2.9", "icmp", None)], &[]);
    let told: Vec<&str> = learned.beyond.iter().map(String::as_str).collect();
    assert_eq!(
        told,
        [
            "192.0.2.9 icmp: no rule is for protocols but TCP and UDP",
            "host: it is allowed by its ports, as host:PORT",
        ]
    );
}

#[test]
fn a_rule_names_who_asked_as_it_was_started() {
    let node = Some("/usr/bin/node");
    let end = |pid| Event::ProcessEnd {
        proc: u64::from(pid),
        pid,
        exit_code: Some(0),
        signal: None,
        wall_ms: 0,
        cpu_ms: None,
        max_rss_bytes: None,
        unseen: false,
    };
    let events = [
        // A script whose first line names env, which looks for its interpreter.
        exec(2, &["npm", "install"], "/usr/bin/npm"),
        exec(2, &["node", "/usr/bin/npm", "install"], "/usr/local/bin/node"),
        exec(2, &["node", "/usr/bin/npm", "install"], "/usr/bin/node"),
        name_by("a.example", 1, Some(2), node),
        // A program that is replaced by another one.
        exec(3, &["sh", "-c", "exec curl b.example"], "/bin/sh"),
        exec(3, &["curl", "b.example"], "/usr/bin/curl"),
        name_by("a.example", 28, Some(3), Some("/usr/bin/curl")),
        end(2),
        // The number is another's, of which only the executable is known.
        name_by("b.example", 1, Some(2), node),
        name_by("c.example", 1, None, None),
        exec(4, &["x"], "/work/x\n# \u{202e}"),
        name_by("d.example", 1, Some(4), None),
        name_by("listed.example", 1, Some(3), None),
    ];
    let learned = of(&events, &["listed.example"]);
    assert_eq!(
        learned.toml("web"),
        "[profile.web.net]\nmode = \"allow\"\nallow = [\n  \
         \"a.example:443\", # asked by curl, npm\n  \
         \"b.example:443\", # asked by node\n  \
         \"c.example:443\",\n  \
         \"d.example:443\", # asked by x\\n# \\u{202e}\n]\n"
    );
    let document = format!("version = 1\n{}", learned.toml("web"));
    h5i_policy::PolicyDocument::parse("learned", document.as_bytes()).unwrap();
}
