//! By a grant to push to one branch.

use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::world::{LISTED, PUSH, WAYS, Way, World};

const MAIN: &str = "refs/heads/main";

fn push<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["-C", "work", "push", "URL"], more].concat()
}

#[test]
fn exactly_the_listed_branch_can_be_pushed_to() {
    let world = World::new();
    for way in WAYS {
        let ours = format!("HEAD:{LISTED}");
        let main = world.service.tip(MAIN);
        let commit = world.commit(format!("{way:?}").as_bytes());
        world.ok(PUSH, way, &push(&[&format!("+{ours}")]));
        assert_eq!(world.service.tip(LISTED), Some(commit.clone()));

        // Each refused, with nothing of it at the service but the question what there is.
        world.commit(format!("{way:?} again").as_bytes());
        world.forget();
        for refused in [
            &["HEAD:refs/heads/main"][..],
            &["HEAD:refs/heads/agents"],
            &["HEAD:refs/tags/agent"],
            &[&ours, "HEAD:refs/heads/main"],
            &["HEAD:refs/heads/main", &ours],
            &["--atomic", &ours, "HEAD:refs/heads/new"],
            &[":refs/heads/agent"],
            &[":refs/heads/main", &ours],
            &["-o", "merge", &ours],
        ] {
            let said = world.fails(PUSH, way, &push(refused));
            assert!(said.contains("HTTP 403"), "{refused:?}: {said}");
        }
        assert!(world.asked().iter().all(|(asked, _)| asked.starts_with("GET ")));
        assert_eq!(world.service.tip(MAIN), main);
        assert_eq!(world.service.tip(LISTED), Some(commit));
        for other in ["refs/heads/agents", "refs/tags/agent", "refs/heads/new"] {
            assert_eq!(world.service.tip(other), None);
        }
        world.ok(PUSH, way, &push(&[&ours]));
    }
    let told = world.told();
    let is_told = |line: &str| told.iter().any(|one| one == line);
    let post = "POST /repo.git/git-receive-pack";
    assert!(is_told(&format!("passed {post} refs/heads/agent")), "{told:#?}");
    assert!(is_told(&format!("git {post} refs/heads/main")), "{told:#?}");
    assert!(is_told(&format!("git {post} refs/heads/agent refs/heads/main")), "{told:#?}");
    assert!(!told.iter().any(|one| one.starts_with("passed POST") && one.contains("main")));
}

#[test]
fn a_push_is_judged_before_its_objects_are_there_however_slowly_it_comes() {
    let world = World::new();
    let url = world.url(PUSH, Way::Reverse);
    let address = url.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let ask = |length: usize, body: &[u8]| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        let token = world.token(PUSH);
        let head = format!(
            "POST /repo.git/git-receive-pack HTTP/1.1\r\nHost: {address}\r\n\
             Authorization: Bearer {token}\r\nExpect: 100-continue\r\n\
             Content-Type: application/x-git-receive-pack-request\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let go_on = b"HTTP/1.1 100 Continue\r\n\r\n";
        let mut said = vec![0; go_on.len()];
        stream.read_exact(&mut said).unwrap();
        assert_eq!(said, go_on);
        for byte in body {
            // What was refused before its end is not read to it, where that takes long.
            match stream.write_all(&[*byte]) {
                Err(error) if matches!(error.kind(), BrokenPipe | ConnectionReset) => break,
                written => written.unwrap(),
            }
        }
        let mut said = String::new();
        // What was refused may be reset after it was answered.
        stream.read_to_string(&mut said).ok();
        said
    };
    let (old, new) = ("0".repeat(40), "1".repeat(40));
    let command = |name: &str| {
        let line = format!("{old} {new} {name}\0 report-status");
        format!("{:04x}{line}0000", line.len() + 4).into_bytes()
    };
    let said = ask(1_000_000, &command("refs/heads/other"));
    assert!(said.starts_with("HTTP/1.1 403 ") && said.contains("x-h5i-refused: git"), "{said}");
    let sentence = "h5i refused this request to the grant push: it would push to a reference that \
                    is not listed; the grant lets git fetch and push to refs/heads/agent.\n";
    assert!(said.ends_with(sentence), "{said}");
    let said = ask(9, b"0000PACK.");
    assert!(said.contains("its push is not as git writes it"), "{said}");
    assert_eq!(world.asked(), []);
    // Git's own question whether it may push, and a push whose objects the service misses.
    assert!(ask(4, b"0000").starts_with("HTTP/1.1 200 "));
    let listed = command(LISTED);
    let said = ask(listed.len(), &listed);
    assert!(said.starts_with("HTTP/1.1 200 ") && said.contains("unpack "), "{said}");
    let sizes: Vec<usize> = world.asked().iter().map(|(_, size)| *size).collect();
    assert_eq!(sizes, [4, listed.len()]);
}

/// More than git keeps in memory is sent in chunks, after a push of nothing at all.
#[test]
fn a_push_of_any_size_goes_on_unchanged() {
    let world = World::new();
    let mut state = 1_u64;
    for way in WAYS {
        let mut content = Vec::new();
        while content.len() < 3_000_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            content.extend_from_slice(&state.to_le_bytes());
        }
        let commit = world.commit(&content);
        world.forget();
        world.ok(PUSH, way, &["-C", "work", "push", "URL", &format!("+HEAD:{LISTED}")]);
        assert_eq!(world.service.tip(LISTED), Some(commit));
        let sizes: Vec<usize> = world
            .asked()
            .iter()
            .filter(|(asked, _)| asked == "POST /repo.git/git-receive-pack")
            .map(|(_, size)| *size)
            .collect();
        assert!(matches!(sizes[..], [4, size] if size > 2_000_000), "{sizes:?}");
        // And one that is refused is refused as quickly.
        world.commit(&[content, b"more".to_vec()].concat());
        world.fails(PUSH, way, &["-C", "work", "push", "URL", "+HEAD:refs/heads/main"]);
        world.ok(PUSH, way, &["clone", "-q", "-b", "agent", "URL", &format!("{way:?}")]);
    }
}
