//! A box that is made by a person's approval: one artifact, one use, until a moment.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::shapes::CreatedBox;
use crate::with_grants::{With, ask};

/// The bundle of box `a` after a script in it.
pub(crate) fn exported(with: &With, out: &str, script: &str) -> PathBuf {
    with.sh(script);
    with.ok(&["box", "export", "a", "-o", out]);
    with.stand.repo().join(out)
}

/// Approves a bundle of box `a`, and yields the id.
pub(crate) fn approved(with: &With, bundle: &str, span: &str) -> String {
    let words = ["box", "approve", "a", "--bundle", bundle, "--for", span, "--yes"];
    with.ok(&words).text().trim_end().to_owned()
}

/// The words that make a box of an artifact.
pub(crate) fn made<'a>(name: &'a str, bundle: &'a str, id: &'a str) -> [&'a str; 9] {
    ["box", "create", name, "--profile", "deploy", "--artifact", bundle, "--grant", id]
}

fn manifest(with: &With, name: &str) -> Value {
    let path = with.stand.box_dir(name).join("host/manifest.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn it_holds_the_artifact_and_one_request_bound_to_it() {
    let with = With::deploying("reverse");
    let out = exported(&with, "out", "echo new > new; git rm -q dir/b.txt; echo left > ~/left");
    let id = approved(&with, "out", "10m");
    let note = &with.records(&["note"])[0]["text"];
    let told = format!("approved bundle {}", bundle(&with, "out"));
    assert!(note.as_str().unwrap().starts_with(&told), "{note}");
    assert!(note.as_str().unwrap().ends_with(&format!("id {id}")), "{note}");
    let said = with.ok(&[&made("b", "out", &id)[..], &["--json"]].concat());
    let created: CreatedBox = said.data();
    let digest = bundle(&with, "out");
    let artifact = &manifest(&with, "b")["artifact"];
    let told = created.artifact.unwrap();
    assert_eq!((&told.bundle, &told.approval), (&digest, &id));
    assert_eq!(artifact["until"], told.until);
    assert_eq!(
        (&artifact["bundle"], &artifact["approval"]),
        (&digest.clone().into(), &id.clone().into())
    );
    for verb in ["status", "explain"] {
        let said = with.ok(&["box", verb, "b"]);
        let line = format!("{digest}, by approval {id}; one use of each grant");
        assert!(said.text().contains(&line), "{}", said.text());
        let json = with.ok(&["box", verb, "b", "--json"]).json();
        assert_eq!(json["data"]["artifact"]["approval"], id.as_str());
        assert_eq!(json["data"]["grants"]["api"]["host"], "localhost");
        // The twin: a box of its own making.
        let json = with.ok(&["box", verb, "a", "--json"]).json();
        assert_eq!(
            (&json["data"]["artifact"], &json["data"]["grants"]),
            (&Value::Null, &serde_json::json!({}))
        );
    }
    // The artifact, and nothing of where it comes from.
    fs::remove_dir_all(out).unwrap();
    let first = with.stand.ground.git(&["rev-parse", "HEAD~1"]);
    let script = format!(
        "ls; ls -A ~ | grep left; git rev-list --count --all; git cat-file -t {first} || echo none; \
         echo $H5I_ARTIFACT_DIGEST; {}; {}",
        // What the box says of itself does not reach the service.
        ask("/v1/a -H 'x-h5i-artifact: mine' -H 'x_h5i_artifact: mine'"),
        ask("/v1/b"),
    );
    let said = with.sh_in("b", &script);
    assert!(said.starts_with(&format!("a.txt\nnew\n1\nnone\n{digest}\n/v1/a 200")), "{said}");
    assert!(said.ends_with(" 429"), "{said}");
    // Another run, also in another session, has nothing to ask with.
    let again = format!("echo ${{API_TOKEN-none}} $H5I_ARTIFACT_DIGEST; {} || true", ask("/v1/c"));
    assert_eq!(with.sh_in("b", &again), format!("none {digest}\n 000"));
    let [asked] = &with.service.asked()[..] else { panic!("one request") };
    assert_eq!(asked.line, "GET /v1/a HTTP/1.1");
    assert_eq!(asked.header("x-h5i-artifact"), Some(digest.as_str()));
    assert!(!asked.headers.iter().any(|header| header.contains("mine")), "{asked:?}");
    let [issued] = &with.records_of("b", &["grant-issued"])[..] else { panic!("one run") };
    assert!((1..=600_000).contains(&issued["lasts_ms"].as_u64().unwrap()), "{issued}");
    let notes = with.records_of("b", &["note"]);
    let later = "run 2 holds no grant: an earlier run had the approval";
    assert!(notes.iter().any(|note| note["text"] == later), "{notes:?}");
}

#[test]
fn an_unchanged_program_asks_once_for_the_artifact_too() {
    let with = With::deploying("intercept");
    exported(&with, "out", "echo new > new");
    let id = approved(&with, "out", "10m");
    with.ok(&made("b", "out", &id));
    let port = with.service.port;
    let ask = |path| format!("curl -s -w ' %{{http_code}}' https://api.test:{port}{path}");
    let said = with.sh_in("b", &format!("{}; {}", ask("/v1/a"), ask("/v1/b")));
    assert!(said.starts_with("/v1/a 200") && said.ends_with(" 429"), "{said}");
    let said = with.sh_in("b", &ask("/v1/c"));
    assert!(said.ends_with(" 401"), "{said}");
    let [asked] = &with.service.asked()[..] else { panic!("one request") };
    assert_eq!(asked.header("x-h5i-artifact"), Some(bundle(&with, "out").as_str()));
}

#[test]
fn a_box_without_an_approval_is_as_it_was() {
    let with = With::deploying("reverse");
    with.ok(&["box", "create", "b", "--profile", "deploy"]);
    assert!(manifest(&with, "b").get("artifact").is_none());
    let script = format!("echo ${{H5I_ARTIFACT_DIGEST-none}}; {}", ask("/v1/a"));
    assert_eq!(with.sh_in("b", &script), "none\n/v1/a 200");
    assert_eq!(with.sh_in("b", &ask("/v1/b")), "/v1/b 200");
    let asked = with.service.asked();
    assert!(asked.iter().all(|asked| asked.header("x-h5i-artifact").is_none()), "{asked:?}");
}

#[test]
fn what_is_open_when_the_approval_ends_is_cut() {
    let with = With::deploying("reverse");
    exported(&with, "out", "echo new > new");
    // Long enough for a slow machine to begin the stream.
    let id = approved(&with, "out", "20s");
    with.ok(&made("b", "out", &id));
    let stream = "curl -sN -H \"authorization: Bearer $API_TOKEN\" $API_URL/stream; echo ended $?";
    // It ends by the approval's end alone: the service says nothing, and waits.
    let said = with.sh_in("b", stream);
    assert!(said.starts_with("ended ") && said != "ended 0", "{said}");
    let [used] = &with.records_of("b", &["grant-use-end"])[..] else { panic!("one use") };
    assert_eq!(used["end"], "expired");
}

#[test]
fn nobody_has_the_approved_grant_hold_longer() {
    let with = With::deploying("reverse");
    exported(&with, "out", "echo new > new");
    let id = approved(&with, "out", "10m");
    with.ok(&made("b", "out", &id));
    with.ok(&["box", "create", "c", "--profile", "deploy"]);
    let extended = |name| {
        with.ok(&["box", "start", name]);
        let said = with.h5i(&["grant", "extend", name, "api", "--by", "10m"]);
        with.ok(&["box", "stop", name]);
        said.err
    };
    let said = extended("b");
    assert!(said.contains("was made by an approval end with it"), "{said}");
    // The twin: one that was made without is refused only for want of a run.
    let said = extended("c");
    assert!(said.contains("no run of the box holds a grant"), "{said}");
}

#[test]
fn of_many_at_once_one_gets_the_approval() {
    let with = With::deploying("reverse");
    exported(&with, "out", "echo new > new");
    let id = approved(&with, "out", "10m");
    let names = ["b", "c", "d", "e"];
    let started: Vec<_> = names
        .iter()
        .map(|name| {
            let mut command = with.command();
            command.args(made(name, "out", &id)).stderr(std::process::Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    let said: Vec<_> = started.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let won = said.iter().filter(|said| said.status.success()).count();
    assert_eq!(won, 1, "{said:?}");
    let lost = said.iter().filter(|said| said.status.code() == Some(4));
    assert_eq!(lost.count(), 3, "{said:?}");
    assert_eq!(with.stand.box_directories().len(), 2);
}

fn bundle(with: &With, out: &str) -> String {
    let said = with.stand.ok(&["receipt", "verify", out, "--json"]).json();
    said["data"]["bundle"].as_str().unwrap().to_owned()
}
