mod programs;

use h5i_policy::Tier;

use super::text::{size, span};
use super::{Mechanism, MechanismState, ReportInput};
use crate::Digest;
use crate::fixture::Fixture;
use crate::record::{
    Argv, ByteText, CanaryLoss, Event, FlowVerdict, GrantChange, GrantEnd, Lane, Outcome, Record,
    Timestamp,
};
use crate::review::Secrets;

fn record(seq: u64, run: Option<u64>, event: Event) -> Record {
    let at = Timestamp::from_unix_micros(1_777_644_131_482_913 + seq);
    Record { seq, at, lane: Lane::Host, run, event, prev: Digest::of(b"") }
}

fn start(argv: &[&[u8]]) -> Event {
    let argv = Argv::bounded(argv.iter().copied());
    let (tier, policy) = ("process".to_owned(), "sha256:9b".to_owned());
    Event::RunStart {
        argv: argv.argv,
        argv_cut: argv.cut,
        cwd: ByteText::new("/work"),
        tier,
        policy,
    }
}

fn end(outcome: Outcome) -> Event {
    let stopped = outcome == Outcome::Stopped;
    Event::RunEnd {
        outcome,
        exit_code: (!stopped).then_some(0),
        signal: None,
        limit: stopped.then(|| "wall".to_owned()),
        used: stopped.then_some(7_200_001),
        allowed: stopped.then_some(7_200_000),
        wall_ms: 12_400,
        cpu_ms: 900,
        max_rss_bytes: 3 << 20,
    }
}

fn report(fixture: &Fixture, records: &[Record]) -> String {
    written(fixture, records, |input| input.to_markdown())
}

fn written(fixture: &Fixture, records: &[Record], form: fn(&ReportInput<'_>) -> String) -> String {
    let reviewed = fixture
        .export()
        .secrets(Secrets::Flag)
        .read(fixture.source())
        .expect("reads")
        .review()
        .expect("may leave");
    form(&ReportInput {
        name: "fix-auth",
        base_name: "main",
        tier: Tier::Process,
        profile: "default",
        policy: "sha256:9b1f",
        purpose: None,
        network: "nothing",
        home: &[],
        history: &records.iter().collect(),
        enforcement: &[
            Mechanism {
                name: "seccomp".into(),
                state: MechanismState::On,
                detail: "61 rules".into(),
            },
            Mechanism {
                name: "cgroup limits".into(),
                state: MechanismState::Absent,
                detail: "not delegated".into(),
            },
        ],
        not_enforced: &["Memory is not limited.".to_owned()],
        reviewed: &reviewed,
    })
}

#[test]
fn the_report_is_ordered_by_urgency() {
    let secret = format!("ghp_{}", "A1b2".repeat(9));
    let fixture = Fixture::new(|tree| {
        tree.file("src/a.rs", "a\n")
            .file("old", "x\n")
            .file("package.json", "{}\n")
            .file(".gitignore", "target/\n");
    });
    fixture
        .tree()
        .remove("old")
        .file("src/a.rs", "b\n")
        .file("tests/a.rs", "t\n")
        .file("package.json", "{\"scripts\":{}}\n")
        .file("key.txt", format!("x\n{secret}\n"))
        .file("run.sh", "#!/bin/sh\n")
        .mode("run.sh", 0o755)
        .file("target/x", "");
    let refused = Event::RefusedCall {
        call: "ptrace".into(),
        args: vec![16],
        pid: 88,
        program: ByteText::new("/usr/bin/gdb"),
        errno: "EPERM".into(),
        count: 2,
    };
    let records = [
        record(0, Some(1), start(&[b"npm", b"test"])),
        record(1, Some(1), refused),
        record(2, Some(1), end(Outcome::Exited)),
        record(3, Some(2), start(&[b"npm", secret.as_bytes()])),
        record(4, Some(2), end(Outcome::Stopped)),
    ];
    let text = report(&fixture, &records);
    assert!(!text.contains(&secret), "{text}");
    let text = text.replace(&fixture.base.commit.expect("a commit").to_string()[..12], "BASE");
    insta::assert_snapshot!(text);
}

#[test]
fn planted_credentials_that_were_opened_come_first() {
    let fixture = Fixture::new(|_| ());
    let read = |path: &str, count| Event::CanaryRead { path: path.into(), count };
    let refused = Event::RefusedCall {
        call: "ptrace".into(),
        args: vec![16],
        pid: 88,
        program: ByteText::new("/usr/bin/gdb"),
        errno: "EPERM".into(),
        count: 2,
    };
    let lost = Event::CanaryLost { path: "~/`b".into(), why: CanaryLoss::Changed };
    let records = [
        record(0, Some(1), refused),
        record(1, Some(3), read("~/`a", 1)),
        record(2, Some(3), read("~/`a", 41)),
        record(3, None, read("~/b", 1)),
        record(4, None, lost),
    ];
    let text = report(&fixture, &records);
    let section = text.split("## Look here first").nth(1).unwrap_or_default();
    let lines: Vec<&str> = section.lines().filter(|line| !line.is_empty()).take(4).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    1. A planted credential was opened: **`` ~/`a ``**, 42 times, in run 3.
    2. A planted credential was opened: **`~/b`**, 1 time, by no run that went alone.
    3. Refused: `ptrace` by `/usr/bin/gdb`, 2 times (EPERM).
    4. The planted credential **`` ~/`b ``** was written to by the box: who opened it then was not seen.
    ");
}

#[test]
fn no_kind_of_finding_pushes_another_out() {
    let fixture = Fixture::new(|_| ());
    for n in 0..3000 {
        fixture.tree().file(format!("a{n:04}/package.json"), "{}\n");
    }
    let tree = fixture.tree();
    tree.file("zz/build.rs", "fn main() {}\n").file(".env", "A=1\n").file("zz/run", "#!/bin/sh\n");
    tree.mode("zz/run", 0o755);
    let call = |program: String, name: &str| Event::RefusedCall {
        call: name.into(),
        args: vec![],
        pid: 88,
        program: ByteText::new(program),
        errno: "EPERM".into(),
        count: 1,
    };
    let calls = (0..500)
        .map(|n| call(format!("/work/{n:04}"), "bpf"))
        .chain([call("/work/x".into(), "ptrace")]);
    let records: Vec<_> =
        (1..).zip(calls).map(|(seq, event)| record(seq, Some(1), event)).collect();
    let both = written(&fixture, &records, |input| {
        format!("{}\0{}", input.to_markdown(), input.to_html())
    });
    let (text, page) = both.split_once('\0').expect("two forms");
    let first = text.split("\n## ").nth(1).expect("a first section");
    assert!(first.starts_with("Look here first"), "{first}");
    let named = ["zz/build.rs", ".env", "zz/run", "ptrace", "a0000/package.json", "/work/0000"];
    let on_page = page.split("</section>").next().expect("a first section");
    for name in named {
        assert!(first.contains(&format!("`{name}`")), "{name}: {first}");
        assert!(on_page.contains(&format!("<code>{name}</code>")), "{name}: {on_page}");
    }
    let counted = "And 2900 files changed: its scripts run on install, build and test.";
    assert!(first.contains(counted) && on_page.contains(counted), "{first}");
    assert!(first.contains("And 400 programs were refused bpf."), "{first}");
    assert!(first.lines().count() < 520, "{}", first.lines().count());
    assert!(text.starts_with("# Box fix-auth: 3003 files changed, 3504 things need your eyes"));
}

#[test]
fn what_is_few_is_named_one_by_one() {
    let fixture = Fixture::new(|_| ());
    for n in 0..101 {
        fixture.tree().file(format!("a{n:04}/package.json"), "{}\n");
    }
    let text = report(&fixture, &[]);
    let first = text.split("\n## ").nth(1).expect("a first section");
    assert!(first.contains("101. **`a0100/package.json`**") && !first.contains("And "), "{first}");
}

#[test]
fn the_network_is_told_destination_by_destination() {
    let fixture = Fixture::new(|_| ());
    let flow = |flow, name: &str| Event::FlowStart {
        flow,
        protocol: "tcp".into(),
        address: "2001:db8::1".into(),
        port: 443,
        names: vec![name.into()],
        rules: vec![format!("{name}:443")],
        pid: Some(7),
        program: Some(ByteText::new("/usr/bin/cu`rl")),
    };
    let ended = |flow, verdict, reason: Option<&str>| Event::FlowEnd {
        flow,
        named: (flow == 1).then(|| "c.example".to_owned()),
        sent: 1536,
        received: 3,
        duration_ms: 5,
        verdict,
        reason: reason.map(str::to_owned),
        errno: None,
        used: None,
        allowed: None,
    };
    let program = |path: Option<&str>| path.map(ByteText::new);
    let address = |count, by| Event::RefusedAddress {
        protocol: "tcp".into(),
        address: Some("192.0.2.7".into()),
        port: Some(22),
        count,
        pid: None,
        program: program(by),
    };
    let name = |count, by| Event::RefusedName {
        name: Some(ByteText::new("`t.example")),
        record: 1,
        count,
        pid: None,
        program: program(by),
    };
    let events = [
        flow(1, "a.example"),
        ended(1, FlowVerdict::Done, None),
        flow(2, "a.example"),
        ended(2, FlowVerdict::Unreachable, None),
        address(1, Some("/usr/bin/ssh")),
        address(5, None),
        name(1, Some("/usr/bin/get`ent")),
        flow(1, "b.example"),
        ended(1, FlowVerdict::Refused, Some("its rule was revoked")),
    ];
    let records: Vec<_> =
        (0..).zip(events).map(|(seq, event)| record(seq, Some(1), event)).collect();
    let text = report(&fixture, &records);
    let section = text.split("## Network").nth(1).and_then(|rest| rest.split("\n## ").next());
    insta::assert_snapshot!(section.unwrap_or_default());
    assert!(text.contains("3 things need your eyes"), "{text}");
}

#[test]
fn credentials_are_told_grant_by_grant_and_who_else_used_them_comes_first() {
    let fixture = Fixture::new(|_| ());
    let used = |request, pid, program: &str| Event::GrantUse {
        grant: "anthropic".into(),
        request,
        via: "reverse".into(),
        method: "POST".into(),
        path: ByteText::new("/v1/`messages"),
        pid: Some(pid),
        program: Some(ByteText::new(program)),
    };
    let ended = |request, end, scrubbed| Event::GrantUseEnd {
        grant: "anthropic".into(),
        request,
        status: Some(200),
        sent: 1536,
        received: 3,
        duration_ms: 5,
        end,
        scrubbed,
    };
    let events = [
        Event::GrantIssued {
            grant: "anthropic".into(),
            host: "api.example".into(),
            port: 443,
            lasts_ms: None,
        },
        used(1, 7, "/usr/bin/node"),
        ended(1, GrantEnd::Done, 0),
        used(2, 7, "/usr/bin/node"),
        used(3, 9, "/work/node_modules/x/post`install"),
        ended(2, GrantEnd::Revoked, 2),
        ended(3, GrantEnd::Done, 0),
        Event::GrantRefused {
            grant: "anthropic".into(),
            reason: "the path is not listed".into(),
            request: Some(ByteText::new("GET /v1/`files")),
            pid: Some(9),
            program: Some(ByteText::new("/work/node_modules/x/post`install")),
            count: 2,
        },
        Event::GrantChange { grant: "anthropic".into(), change: GrantChange::Revoke, by_ms: None },
    ];
    let records: Vec<_> =
        (0..).zip(events).map(|(seq, event)| record(seq, Some(1), event)).collect();
    let text = report(&fixture, &records);
    let section = |title: &str| {
        let rest = text.split(title).nth(1).unwrap_or_default();
        rest.split("\n## ").next().unwrap_or_default().to_owned()
    };
    let (first, credentials) = (section("## Look here first"), section("## Credentials used"));
    insta::assert_snapshot!(format!("{first}{credentials}"));
}

#[test]
fn nothing_of_the_box_becomes_markup_or_control() {
    let fixture = Fixture::new(|_| ());
    fixture.tree().file("`](x)<script>", "x\n").file("# title", "x\n");
    let records =
        [record(0, Some(1), start(&[b"a\x1b[2J\n## Look here first", "\u{202e}b".as_bytes()]))];
    let text = report(&fixture, &records);
    assert!(!text.chars().any(|c| c != '\n' && crate::escape::is_unprintable(c)), "{text}");
    assert_eq!(text.matches("\n## ").count(), 6, "{text}");
    assert!(text.contains("`` `](x)<script> ``"), "{text}");
}

#[test]
fn numbers_have_their_unit() {
    assert_eq!(
        (size(0), size(1536), size(5 << 20)),
        ("0 B".into(), "1.5 KiB".into(), "5.0 MiB".into())
    );
    assert_eq!(
        (span(12), span(12_400), span(840_000)),
        ("12 ms".into(), "12.4 s".into(), "14 min".into())
    );
    assert_eq!(span(9_960_000), "2 h 46 min");
}

#[test]
fn the_page_says_what_the_report_says_and_shows_the_patch() {
    let secret = format!("ghp_{}", "A1b2".repeat(9));
    let key =
        ["-----BEGIN OPENSSH PRIVATE KEY-----", "c2VjcmV0", "-----END OPENSSH PRIVATE KEY-----"];
    let fixture = Fixture::new(|tree| {
        tree.file("src/a.rs", "a\n\tb\n").file("t", "t\n");
    });
    fixture
        .tree()
        .file("src/a.rs", "a <b>\n\tb\n")
        .file("key.txt", format!("x\n{secret}\n"))
        .file("id", key.join("\n"))
        .file("blob", b"\0\x01")
        .remove("t")
        .link("t", "src")
        .file("package.json", "{}\n");
    let records = [
        record(0, Some(1), start(&[b"npm", b"<test>"])),
        record(1, Some(1), end(Outcome::Stopped)),
    ];
    let page = written(&fixture, &records, |input| input.to_html());
    assert!(!page.contains(&secret) && !page.contains("c2VjcmV0"), "{page}");
    for says in [
        "<strong>Incomplete:</strong>",
        "<strong><code>package.json</code></strong> is new",
        "<code>&lt;test&gt;</code>",
        "The box could reach nothing.",
        "<div class=\"add\">+a &lt;b&gt;</div>",
        "<div class=\"same\"> \tb</div>",
        "[redacted: private key]",
        "binary, in patch.diff",
    ] {
        assert!(page.contains(says), "{says}: {page}");
    }
    // The type change is two parts of the patch.
    assert_eq!(page.matches("<summary><code>t</code>").count(), 2);
    assert_eq!(page.matches("<details").count(), page.matches("</details>").count());
    let page = page.replace(&fixture.base.commit.expect("a commit").to_string()[..12], "BASE");
    insta::assert_snapshot!(page);
}

#[test]
fn nothing_of_the_box_becomes_an_element_or_a_control_of_the_page() {
    let fixture = Fixture::new(|_| ());
    let evil = "<script>alert(1)</script>\" onload='x' &lt;\u{202e}\x1b[2J";
    fixture.tree().file("a", format!("{evil}\n")).file("`<img src=x>", "x\n");
    let records = [record(0, Some(1), start(&[evil.as_bytes()]))];
    let page = written(&fixture, &records, |input| input.to_html());
    let inert = |c: char| matches!(c, '\n' | '\t') || !crate::escape::is_unprintable(c);
    assert!(page.chars().all(inert), "{page}");
    // Every element and attribute is one that this program writes.
    for element in page.split('<').skip(1) {
        let name =
            element.split(|c: char| !c.is_ascii_alphanumeric() && c != '/' && c != '!').next();
        let known = [
            "!doctype", "html", "head", "meta", "title", "style", "body", "header", "main", "h1",
            "h2", "p", "section", "ol", "ul", "li", "code", "strong", "details", "summary", "div",
        ];
        let name = name.unwrap_or_default().trim_start_matches('/');
        assert!(known.contains(&name), "{element}");
    }
    for attribute in ["onload=", "src=", "href=", "url(", "@import", "http:", "https:"] {
        let ours = page.replace("&quot; onload=&#39;", "").replace("&lt;img src=x", "");
        assert!(!ours.contains(attribute), "{attribute}");
    }
    assert!(page.contains("default-src &#39;none&#39;"), "{page}");
}

#[test]
fn a_large_patch_is_cut_on_the_page_and_that_is_said() {
    let fixture = Fixture::new(|_| ());
    let many: String = (0..1500).map(|line| format!("{line}\n")).collect();
    let wide: String = (0..900).map(|_| format!("{}\n", "y".repeat(1500))).collect();
    fixture.tree().file("many", many).file("long", "x".repeat(5000)).file("wide", wide);
    let page = written(&fixture, &[], |input| input.to_html());
    assert!(
        page.contains("more lines in patch.diff") && !page.contains("+1499<"),
        "{}",
        page.len()
    );
    assert!(page.contains("xx…</div>"), "{}", page.len());
    assert!(page.contains("<div class=\"meta\">more in patch.diff</div>"), "{}", page.len());
    assert!(page.len() < 300_000, "{}", page.len());
}

#[test]
fn large_files_hide_no_small_one_on_the_page() {
    let fixture = Fixture::new(|_| ());
    for number in 0..80 {
        let wide: String = (0..200).map(|_| format!("{}\n", "y".repeat(1000))).collect();
        fixture.tree().file(format!("a{number}"), wide);
    }
    fixture.tree().file("b", [&b"\0"[..], &[7; 1 << 20]].concat()).file("z", "the small one\n");
    let page = written(&fixture, &[], |input| input.to_html());
    assert!(page.contains("<div class=\"add\">+the small one</div>"), "{}", page.len());
    assert!(page.contains("binary, in patch.diff"), "{}", page.len());
    assert!(page.contains("<div class=\"meta\">more in patch.diff</div>"), "{}", page.len());
    assert_eq!(page.matches("<details").count(), 82);
    assert!(page.len() < 10 << 20, "{}", page.len());
}
