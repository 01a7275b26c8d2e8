use std::fs;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, SystemTime};

use h5i_broker::Credentials as _;

use super::logins::claude;
use super::support::{Home, headers, seconds};

const API: &str = "api.anthropic.com";
const FRESH: &str = r#"{"access_token":"new-access","expires_in":28800}"#;

#[test]
fn the_programs_own_locks_are_held_while_a_login_is_renewed() {
    let home = Home::new();
    home.put(".claude/.credentials.json", &claude(seconds() - 1));
    let locks = [home.path(".claude/.oauth_refresh.lock"), home.path(".claude.lock")];
    let held = locks.clone();
    home.endpoint.answer(move |_| {
        assert!(held.iter().all(|lock| lock.is_dir()));
        (200, FRESH.to_owned())
    });
    home.grant(API, "login:claude", None).current().expect("a credential");
    assert_eq!(home.endpoint.count(), 1);
    assert!(locks.iter().all(|lock| !lock.try_exists().expect("a look")));
}

#[test]
fn a_renewal_by_the_program_is_waited_for_and_taken() {
    for lock in [".claude/.oauth_refresh.lock", ".claude.lock"] {
        let home = Home::new();
        home.put(".claude/.credentials.json", &claude(seconds() - 1));
        fs::create_dir(home.path(lock)).expect("the program's lock");
        home.endpoint.answer(|_| (500, String::new()));
        let grant = home.grant(API, "login:claude", None);
        let (done, answer) = channel();
        let waiting = thread::spawn(move || {
            let found = grant.current().map(|credential| headers(&credential));
            done.send(()).expect("a listener");
            found
        });
        assert!(answer.recv_timeout(Duration::from_millis(200)).is_err(), "it did not wait");
        let theirs = claude(seconds() + 3600).replace("old-", "their-");
        home.replace(".claude/.credentials.json", &theirs);
        fs::remove_dir(home.path(lock)).expect("the program lets go");
        let found = waiting.join().expect("a thread").expect("a credential");
        assert_eq!(found, ["authorization: Bearer their-access"]);
        assert_eq!(home.endpoint.count(), 0);
    }
}

#[test]
fn a_lock_that_nobody_touches_is_a_leftover() {
    let home = Home::new();
    home.put(".claude/.credentials.json", &claude(seconds() - 1));
    let lock = home.path(".claude/.oauth_refresh.lock");
    fs::create_dir(&lock).expect("a lock");
    let before = SystemTime::now() - Duration::from_secs(11);
    fs::File::open(&lock).expect("a lock").set_modified(before).expect("a time");
    home.endpoint.answer(|_| (200, FRESH.to_owned()));
    let credential = home.grant(API, "login:claude", None).current().expect("a credential");
    assert_eq!(headers(&credential), ["authorization: Bearer new-access"]);
    assert!(!lock.try_exists().expect("a look"));
}
