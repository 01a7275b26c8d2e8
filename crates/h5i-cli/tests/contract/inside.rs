//! J5 and J7: nothing in the box loosens it, and h5i in the box reaches nothing of the host.

use crate::stand::{H5I, Stand};

on_both_back_ends!(
    Stand:
    no_file_or_variable_of_the_box_loosens_it,
    no_descriptor_or_socket_of_h5i_is_in_the_box,
    h5i_in_the_box_can_not_act_on_the_box_or_the_host,
);

/// What is enforced, as `status` tells it.
fn enforced(stand: &Stand, name: &str) -> serde_json::Value {
    let data = stand.ok(&["box", "status", name, "--json"]).json();
    let fields = ["policy", "network", "tier", "enforcement"];
    fields.into_iter().map(|field| (field.to_owned(), data["data"][field].clone())).collect()
}

fn no_file_or_variable_of_the_box_loosens_it(stand: &Stand) {
    stand.ok(&["box", "create", "a"]);
    let before = enforced(stand, "a");
    let loose = "version = 1\\n[profile.default]\\ntier = \"workspace\"\\n[profile.default.net]\\nmode = \"host\"\\n";
    let script = format!(
        "mkdir -p .h5i ~/.config/h5i ~/.local/state/h5i
         for f in .h5i/policy.toml ~/.config/h5i/policy.toml /run/h5i/spool/policy.toml \
                  /run/h5i/spool/manifest.json ~/.local/state/h5i/manifest.json; do printf '{loose}' > $f; done
         git config --file .git/config h5i.tier workspace
         git -c user.name=x -c user.email=x@example.com add -A
         git -c user.name=x -c user.email=x@example.com commit -qm loose"
    );
    stand.sh("a", &script);
    assert_eq!(enforced(stand, "a"), before);
    // As variables, the same words say nothing either.
    let look = "ls /sys/class/net 2>/dev/null; cat /proc/net/route | wc -l; grep -c . /proc/net/dev; \
                grep -E '^(NoNewPrivs|Seccomp|CapEff)' /proc/self/status; ls /";
    let plain = stand.sh("a", look);
    let words = [
        "box",
        "run",
        "a",
        "-e",
        "H5I_TIER=workspace",
        "-e",
        "H5I_NETWORK=host",
        "-e",
        "XDG_CONFIG_HOME=/home/box/.config",
        "--",
        "sh",
        "-c",
        look,
    ];
    assert_eq!(stand.ok(&words).text().trim_end(), plain);
    // The twin: a person's word at create does.
    stand.ok(&["box", "create", "b", "--set", "net.mode=\"host\""]);
    assert_ne!(enforced(stand, "b"), before);
}

fn no_descriptor_or_socket_of_h5i_is_in_the_box(stand: &Stand) {
    stand.ok(&["box", "create", "a"]);
    let script = "for fd in /proc/self/fd/*; do readlink $fd; done | grep -v '^/proc/' ; find / -xdev -type s 2>/dev/null; true";
    let said = stand.ok(&["box", "run", "a", "--", "sh", "-c", script]);
    let extra: Vec<&str> = said
        .text()
        .lines()
        .filter(|line| !line.starts_with("pipe:") && !line.starts_with("/dev/null"))
        .collect();
    assert_eq!(extra, [""; 0]);
    // The twin: a descriptor that is there is seen.
    let script = "exec 7</work/a.txt; readlink /proc/self/fd/7";
    assert_eq!(stand.sh("a", script), "/work/a.txt");
}

fn h5i_in_the_box_can_not_act_on_the_box_or_the_host(stand: &Stand) {
    // A copy, because where the test was built may be a place that no box can be granted.
    let tools = stand.path().join("tools");
    std::fs::create_dir(&tools).unwrap();
    // By another process: what this one forks meanwhile would hold it open for writing.
    assert!(stand.program("cp").arg(H5I).arg(&tools).status().unwrap().success());
    let h5i = tools.join("h5i");
    let h5i = h5i.display();
    let granted = format!("fs.read=[\"{}\"]", tools.display());
    stand.ok(&["box", "create", "a", "--set", &granted]);
    // It starts, so that what follows is refused for its own sake.
    assert!(stand.sh("a", &format!("{h5i} --version")).starts_with("h5i "));
    let before = stand.traces();
    let out = stand.path().join("out");
    let out = out.display();
    for words in [
        format!("box export a -o {out}"),
        "box export a".to_owned(),
        "box apply a --bundle /work".to_owned(),
        "box approve a".to_owned(),
        "box allow a example.com".to_owned(),
        "policy trust --yes".to_owned(),
        "box rm --force a".to_owned(),
        "box status a".to_owned(),
        "box run a -- true".to_owned(),
    ] {
        let said = stand.h5i(&["box", "run", "a", "--", "sh", "-c", &format!("{h5i} {words}")]);
        assert!(matches!(said.code, 2..=4 | 125), "{words}: {said:?}");
        assert!(!said.err.is_empty(), "{words}");
        if ["box export", "box apply", "policy"].iter().any(|verb| words.starts_with(verb)) {
            assert!(said.code == 4 && said.err.contains("the inside of a box"), "{said:?}");
        }
        // It is on record that it was tried.
        assert!(stand.ok(&["box", "log", "a"]).text().contains(&words), "{words}");
    }
    let after = stand.traces();
    assert_eq!((after.repo, after.home), (before.repo, before.home));
    assert!(!stand.path().join("out").try_exists().unwrap());
    assert_eq!(stand.box_directories(), ["a"]);
    // A box in the box would need what the box does not have; that is refused and recorded.
    let nested = format!("cd /work && {h5i} run -- true");
    let said = stand.h5i(&["box", "run", "a", "--", "sh", "-c", &nested]);
    assert_eq!(said.code, 125, "{said:?}");
    assert!(
        stand.ok(&["box", "log", "a", "--denied"]).text().contains("refused unshare"),
        "{said:?}"
    );
    // The twin: outside, a person's word removes the box.
    stand.ok(&["box", "rm", "--force", "a"]);
    assert_eq!(stand.box_directories(), [""; 0]);
}
