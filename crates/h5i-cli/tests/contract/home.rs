//! J8: what a run leaves in the private home is named before the next one.

use crate::shapes::{BoxStatus, Bytes};
use crate::stand::Stand;

#[test]
fn what_a_run_planted_in_the_home_is_named_in_status_and_report() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    stand.sh("a", "echo notes > ~/notes; mkdir -p ~/.cache/x; echo x > x");
    // The twin: what does nothing by itself is not named.
    let told: BoxStatus = stand.ok(&["box", "status", "a", "--json"]).data();
    assert!(told.home.is_empty(), "{:?}", told.home);
    let report = || std::fs::read_to_string(stand.export("a").join("report.md")).unwrap();
    assert!(!report().contains("the box's home"), "{}", report());
    stand.sh(
        "a",
        "echo 'touch /tmp/ran' >> ~/.bashrc; git config --global core.fsmonitor /tmp/x
         mkdir -p ~/.local/bin ~/.claude; printf x > ~/.local/bin/$(printf 'l\\033s'); echo {} > ~/.claude/settings.json",
    );
    let told: BoxStatus = stand.ok(&["box", "status", "a", "--json"]).data();
    let paths: Vec<&Bytes> = told.home.iter().map(|file| &file.path).collect();
    let expected = [".bashrc", ".claude/settings.json", ".gitconfig", ".local/bin/l\x1bs"]
        .map(|path| Bytes::Text(path.to_owned()));
    assert_eq!(paths, expected.iter().collect::<Vec<_>>());
    assert!(told.home[0].why.contains("next shell"));
    let said = stand.ok(&["box", "status", "a"]);
    assert!(said.text().contains("~/.bashrc: the next shell runs it"), "{}", said.text());
    assert!(said.text().contains("l\\u{1b}s") && !said.text().contains('\x1b'), "{}", said.text());
    assert!(
        report().contains("**`~/.gitconfig`** stands in the box's home: git runs"),
        "{}",
        report()
    );
}
