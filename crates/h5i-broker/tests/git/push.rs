//! By a grant to push to one branch.

use crate::world::{LISTED, PUSH, WAYS, World};

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
