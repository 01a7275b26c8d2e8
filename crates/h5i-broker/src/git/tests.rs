use h5i_policy::GitUse;
use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;

use super::commands::{Commands, MALFORMED};
use super::{Asks, asks, refused};
use crate::refusal::Refusal;
use crate::target::Target;

const OLD: &str = "1111111111111111111111111111111111111111";
const NEW: &str = "2222222222222222222222222222222222222222";
const ZERO: &str = "0000000000000000000000000000000000000000";

fn push_to(patterns: &[&str]) -> GitUse {
    GitUse::Push(patterns.iter().map(|text| text.parse().expect(text)).collect())
}

fn line(text: &str) -> Vec<u8> {
    format!("{:04x}{text}", text.len() + 4).into_bytes()
}

/// Lines, a flush, and the beginning of a pack.
fn push(lines: &[&str]) -> Vec<u8> {
    let lines: Vec<u8> = lines.iter().flat_map(|text| line(text)).collect();
    [&lines[..], b"0000PACK\0\0\0\x02"].concat()
}

/// The verdict on bytes that come cut at these places; what was named, where it passes.
fn verdict(bytes: &[u8], cuts: &[usize], git: &GitUse) -> Result<Vec<String>, Refusal> {
    let mut commands = Commands::default();
    let mut from = 0;
    for to in cuts.iter().copied().chain([bytes.len()]) {
        if to > from && !commands.is_whole() {
            commands.push(&bytes[from..to])?;
            from = to;
        }
    }
    if !commands.may_end() {
        return Err(refused(MALFORMED));
    }
    commands.judge(git)?;
    let name = |name: &Vec<u8>| String::from_utf8_lossy(name).into_owned();
    let named = commands.references().iter().map(name).collect();
    // What came is what goes on, to the byte.
    assert_eq!(commands.came(), bytes[..from]);
    Ok(named)
}

fn judged(bytes: &[u8], git: &GitUse) -> Result<Vec<String>, Refusal> {
    verdict(bytes, &[], git)
}

#[test]
fn what_git_writes_passes_and_names_its_references() {
    let git = push_to(&["refs/heads/agent/**", "refs/heads/x"]);
    let caps = "\0 report-status-v2 side-band-64k object-format=sha1 agent=git/2.47.3";
    let one = format!("{OLD} {NEW} refs/heads/x");
    let made = format!("{ZERO} {NEW} refs/heads/agent/\u{e9}/y");
    let long = format!("{} {} refs/heads/x", "1".repeat(64), "a".repeat(64));
    let shallow = format!("shallow {OLD}");
    let first = format!("{one}{caps}");
    for (lines, names) in [
        (vec![first.as_str()], vec!["refs/heads/x"]),
        (vec![&format!("{first}\n")], vec!["refs/heads/x"]),
        (vec![&one], vec!["refs/heads/x"]),
        (vec![&first, &made], vec!["refs/heads/x", "refs/heads/agent/\u{e9}/y"]),
        (vec![&shallow, &first], vec!["refs/heads/x"]),
        (vec![&long], vec!["refs/heads/x"]),
    ] {
        assert_eq!(judged(&push(&lines), &git), Ok(names.into_iter().map(str::to_owned).collect()));
    }
    // Whether it may push at all.
    assert_eq!(judged(b"0000", &git), Ok(Vec::new()));
}

#[test]
fn what_is_not_listed_or_deletes_is_refused_whatever_stands_beside_it() {
    let git = push_to(&["refs/heads/agent/**"]);
    let listed = format!("{OLD} {NEW} refs/heads/agent/x");
    let to = |name: &str| format!("{OLD} {NEW} {name}");
    for name in [
        "refs/heads/main",
        "refs/heads/agent",
        "refs/heads/Agent/x",
        "refs/heads/agentx",
        "refs/tags/agent/x",
        "refs/for/refs/heads/agent/x",
    ] {
        let unlisted = Err(refused("it would push to a reference that is not listed"));
        assert_eq!(judged(&push(&[&to(name)]), &git), unlisted, "{name}");
        assert_eq!(judged(&push(&[&listed, &to(name)]), &git), unlisted, "{name}");
        assert_eq!(judged(&push(&[&to(name), &listed]), &git), unlisted, "{name}");
        assert!(judged(&push(&[&to(name)]), &push_to(&["refs/**"])).is_ok(), "{name}");
    }
    let deletes = format!("{OLD} {ZERO} refs/heads/agent/x");
    let wanted = Err(refused("it would delete a reference"));
    assert_eq!(judged(&push(&[&deletes]), &git), wanted);
    assert_eq!(judged(&push(&[&listed, &deletes]), &git), wanted);
}

#[test]
fn what_servers_could_read_in_another_way_is_refused() {
    let git = push_to(&["refs/**"]);
    let good = format!("{OLD} {NEW} refs/heads/x");
    for text in [
        "",
        "\n",
        "x",
        &format!("{OLD} {NEW}"),
        &format!("{OLD}  {NEW} refs/heads/x"),
        &format!("{OLD} {NEW} HEAD"),
        &format!("{OLD} {NEW} heads/x"),
        &format!("{OLD} {NEW} refs/heads/../x"),
        &format!("{OLD} {NEW} refs/heads//x"),
        &format!("{OLD} {NEW} refs/heads/x/"),
        &format!("{OLD} {NEW} refs/heads/.x"),
        &format!("{OLD} {NEW} refs/heads/x.lock"),
        &format!("{OLD} {NEW} refs/heads/x y"),
        &format!("{OLD} {NEW} refs/heads/x\n\n"),
        &format!("{OLD} {NEW} refs/heads/x\n\0 atomic"),
        &format!("{OLD} {NEW} refs/heads/x\\y"),
        &format!("{OLD} {NEW} refs/heads/x@{{1}}"),
        &format!("{OLD} {}1 refs/heads/x", "2".repeat(38)),
        &format!("{OLD} {} refs/heads/x", "2".repeat(64)),
        &format!("{OLD} {} refs/heads/x", "G".repeat(40)),
        &format!("shallow {OLD} "),
        "shallow ",
    ] {
        assert_eq!(judged(&push(&[text]), &git), Err(refused(MALFORMED)), "{text:?}");
    }
    // Capabilities stand with the first command alone.
    let twice = format!("{good}\0 atomic");
    assert_eq!(judged(&push(&[&twice]), &git).map(|names| names.len()), Ok(1));
    assert_eq!(judged(&push(&[&good, &twice]), &git), Err(refused(MALFORMED)));
    let told = |text: &str| judged(&push(&[text]), &git).expect_err(text);
    let signed = refused("its push is signed, and names its references elsewhere");
    assert_eq!(told("push-cert\0 atomic"), signed);
    assert_eq!(told("push-cert\n"), signed);
    let options = refused("its push has options");
    assert_eq!(told(&format!("{good}\0 report-status push-options")), options);
    // Lengths, other delimiters, and bytes where there is no command.
    let good = line(&good);
    let after = |end: &[u8]| judged(&[&good[..], end].concat(), &git);
    assert!(after(b"0000").is_ok() && after(b"0000PACK").is_ok());
    for end in ["", "000", "0001", "0002", "0003", "0004", "+000", "000G", "00 0", "0X00", "ffff"] {
        assert_eq!(after(end.as_bytes()), Err(refused(MALFORMED)), "{end:?}");
    }
    assert_eq!(judged(b"0000PACK", &git), Err(refused(MALFORMED)));
    assert_eq!(judged(b"PACK", &git), Err(refused(MALFORMED)));
}

#[test]
fn commands_are_bounded() {
    let git = push_to(&["refs/**"]);
    let many = |count: usize, name: &str| {
        let lines: Vec<String> =
            (0..count).map(|n| format!("{OLD} {NEW} refs/{name}{n}")).collect();
        push(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let too_many = Err(refused("its push has more than 1,000 references, or 64 KiB of them"));
    // 500 lines of 109 to 111 bytes, or 130.
    assert_eq!(judged(&many(500, &"a".repeat(18)), &git).map(|names| names.len()), Ok(500));
    assert_eq!(judged(&many(600, &"a".repeat(18)), &git), too_many);
    assert_eq!(judged(&many(1001, ""), &git), too_many);
    let endless = [b"fff0".as_slice(), &[b'x'; 70_000]].concat();
    let mut commands = Commands::default();
    let verdict = endless.chunks(1000).find_map(|part| commands.push(part).err());
    assert!(verdict.is_some());
}

#[test]
fn requests_that_git_makes_pass_and_no_others() {
    let fetch = GitUse::Fetch;
    let push = push_to(&["refs/heads/x"]);
    let plain = HeaderMap::new();
    let ask = |git: &GitUse, method: &str, target: &str| {
        asks(git, method, &Target::new(target).expect(target), &plain)
    };
    for (method, target, kind) in [
        ("GET", "/r.git/info/refs?service=git-upload-pack", Asks::Fetch),
        ("POST", "/r.git/git-upload-pack", Asks::Fetch),
        ("GET", "/r.git/info/refs?service=git-receive-pack", Asks::Pushable),
        ("POST", "/r.git/git-receive-pack", Asks::Push),
    ] {
        assert_eq!(ask(&push, method, target), Ok(kind), "{target}");
        let fetched = ask(&fetch, method, target);
        let wanted = if kind == Asks::Fetch { Ok(kind) } else { Err(refused("it would push")) };
        assert_eq!(fetched, wanted, "{target}");
    }
    for (method, target) in [
        ("GET", "/r.git/info/refs"),
        ("GET", "/r.git/info/refs?"),
        ("GET", "/r.git/info/refs?service=git-upload-archive"),
        ("GET", "/r.git/info/refs?service=git-upload-pack&service=git-receive-pack"),
        ("GET", "/r.git/info/refs?service=git-receive-pack&x"),
        ("GET", "/r.git/info/refs?service=git%2dreceive-pack"),
        ("GET", "/r.git/info/refs?Service=git-upload-pack"),
        ("GET", "/r.git/xinfo/refs2?service=git-upload-pack"),
        ("HEAD", "/r.git/info/refs?service=git-upload-pack"),
        ("POST", "/r.git/info/refs?service=git-upload-pack"),
        ("GET", "/r.git/git-upload-pack"),
        ("GET", "/r.git/git-receive-pack"),
        ("PUT", "/r.git/git-receive-pack"),
        ("POST", "/r.git/git-upload-pack?x"),
        ("POST", "/r.git/git-receive-pack?"),
        ("POST", "/r.git/git-receive-pack/"),
        ("POST", "/r.git/info/lfs/objects/batch"),
        ("GET", "/r.git/HEAD"),
        ("GET", "/r.git/objects/info/packs"),
    ] {
        let none = refused("it is none of those that git makes to fetch or push");
        assert_eq!(ask(&push, method, target), Err(none), "{method} {target}");
    }
    let mut packed = HeaderMap::new();
    packed.insert("content-encoding", HeaderValue::from_static("gzip"));
    let target = |text: &str| Target::new(text).expect(text);
    let fetched = asks(&push, "POST", &target("/r/git-upload-pack"), &packed);
    assert_eq!(fetched, Ok(Asks::Fetch));
    let pushed = asks(&push, "POST", &target("/r/git-receive-pack"), &packed);
    assert_eq!(pushed, Err(refused("its push is compressed as a whole, and can't be read")));
}

fn a_line() -> impl Strategy<Value = Vec<u8>> {
    let name = prop::sample::select(vec!["refs/heads/x", "refs/heads/y", "refs/../x", "HEAD"]);
    let id = || prop::sample::select(vec![OLD, NEW, ZERO, "123"]);
    let end = prop::sample::select(vec!["", "\n", "\0 atomic", "\0 push-options", "\0"]);
    prop_oneof![
        8 => (id(), id(), name, end).prop_map(|(a, b, c, d)| line(&format!("{a} {b} {c}{d}"))),
        1 => Just(line(&format!("shallow {OLD}"))),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ]
}

proptest! {
    #[test]
    fn however_the_bytes_are_cut_the_verdict_is_the_same(
        lines in prop::collection::vec(a_line(), 0..4),
        end in prop::sample::select(vec!["0000", "0000PACK...", "0001", "", "00"]),
        mut cuts in prop::collection::vec(0..400_usize, 0..8),
    ) {
        let bytes = [lines.concat(), end.as_bytes().to_vec()].concat();
        let git = push_to(&["refs/heads/x"]);
        cuts.retain(|cut| *cut <= bytes.len());
        cuts.sort_unstable();
        let whole = verdict(&bytes, &[], &git);
        let one_by_one: Vec<usize> = (0..bytes.len()).collect();
        prop_assert_eq!(&verdict(&bytes, &cuts, &git), &whole);
        prop_assert_eq!(&verdict(&bytes, &one_by_one, &git), &whole);
        for name in whole.into_iter().flatten() {
            prop_assert_eq!(name, "refs/heads/x");
        }
    }
}
