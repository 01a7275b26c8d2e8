//! H3: a log that a power cut has torn is read up to there, the cut is named, and nothing before is lost.

use std::fs;

use crate::stand::Stand;

#[test]
fn a_log_torn_anywhere_in_its_last_records_is_read_and_goes_on() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    stand.ok(&["box", "run", "a", "--", "true"]);
    let path = stand.box_dir("a").join("host/receipt.jsonl");
    let whole = fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let last_two = whole.len() - lines[lines.len() - 1].len() - lines[lines.len() - 2].len();
    let ends = [last_two, last_two + lines[lines.len() - 2].len(), whole.len()];
    let cuts =
        (last_two..whole.len()).step_by(41).chain(ends.into_iter().flat_map(|end| end - 1..=end));
    for cut in cuts.filter(|cut| (last_two..=whole.len()).contains(cut)) {
        fs::write(&path, &whole[..cut]).unwrap();
        let kept = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        let torn =
            cut - whole[..cut].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let said = stand.ok(&["box", "log", "a", "--json"]);
        assert_eq!(said.text().lines().count(), kept, "cut at {cut}");
        let named = said.err.contains(&format!("{torn} bytes"));
        assert_eq!(named, torn > 0, "cut at {cut}: {}", said.err);
        stand.ok(&["box", "run", "a", "--", "true"]);
        let log = stand.ok(&["box", "log", "a", "--json"]);
        assert!(log.out.starts_with(&whole[..cut - torn]), "cut at {cut}");
        let told = log.text().contains(&format!("\"kind\":\"cut-off\",\"torn_bytes\":{torn}"));
        assert_eq!(told, torn > 0, "cut at {cut}");
        stand.ok(&["box", "export", "a", "-o", "out", "--force"]);
        stand.ok(&["receipt", "verify", "out"]);
        let aside = fs::read_dir(path.parent().unwrap()).unwrap();
        for entry in aside.map(|entry| entry.unwrap().path()) {
            if entry.to_str().unwrap().contains(".torn-") {
                fs::remove_file(entry).unwrap();
            }
        }
    }
}

#[test]
fn a_long_log_is_followed_from_its_end() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    for _ in 0..3 {
        stand.ok(&["box", "run", "a", "--", "sh", "-c", "for i in $(seq 30); do /bin/true; done"]);
    }
    let count = |words: &[&str]| {
        let said = stand.ok(&[&["box", "log", "a", "--json"], words].concat());
        said.text().lines().count()
    };
    let all = count(&[]);
    assert!(all > 250, "{all}");
    assert_eq!(
        (count(&["--follow"]), count(&["--tail", "7"]), count(&["--tail", "0"])),
        (100, 7, 0)
    );
    assert_eq!(count(&["--follow", "--tail", "100000"]), all);
    assert_eq!(count(&["--follow", "--since", "1h"]), all);
}
