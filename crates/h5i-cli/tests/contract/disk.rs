//! A state directory that takes nothing: full, or read-only. In a mount namespace of its own, so
//! that nothing of it is left on the host.

use std::process::Command;

use crate::stand::{Said, Stand, is_root};

/// A shell in a mount namespace. A root caller keeps its id; an ordinary user gets its mounts from
/// a user namespace and its own id back for the program, as `$AS`.
pub(crate) fn mounting_shell(stand: &Stand, script: &str) -> Command {
    let mut command = stand.program("unshare");
    if is_root() {
        command.arg("--mount");
    } else {
        command.args(["--user", "--map-root-user", "--mount"]);
        command.env("AS", "unshare --user --map-user=1000 --map-group=1000");
    }
    command.args(["--", "sh", "-euc", script]);
    command
}

/// Mounts a small file system as state directory, asks twice, and lists what is there afterwards.
fn script(options: &str) -> String {
    format!(
        "mkdir -p \"$XDG_STATE_HOME\"
         mount -t tmpfs -o {options} tmpfs \"$XDG_STATE_HOME\"
         set +e
         ${{AS-}} \"$H5I\" box create a --json; echo $?
         ${{AS-}} \"$H5I\" box create a; echo $?
         ${{AS-}} \"$H5I\" run -- true; echo $?
         find \"$XDG_STATE_HOME\" -mindepth 1 -not -type d -not -name .lock \
              -not -name host-ids -not -name overlay-works"
    )
}

#[test]
fn a_full_disk_is_told_with_a_way_out_and_leaves_nothing() {
    let stand = Stand::new();
    let noise: Vec<u8> =
        (0..600_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    stand.ground.write("large", &noise);
    stand.ground.commit("large");
    let said = Said::of(mounting_shell(&stand, &script("size=400k,mode=777")).output().unwrap());
    let lines: Vec<&str> = said.text().lines().collect();
    assert_eq!(lines.len(), 4, "{said:?}");
    let told: crate::shapes::Failed = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(told.error.kind, "io", "{told:?}");
    assert!(told.error.hint.unwrap().contains("XDG_STATE_HOME"), "{said:?}");
    assert_eq!(lines[1..], ["70", "70", "125"], "{said:?}");
    assert!(
        said.err.contains("o space left on device") || said.err.contains("no storage space"),
        "{said:?}"
    );
    // The twin: the same box with room.
    let roomy = script("size=64m,mode=777").replace(" a --json", " b --json");
    let said = Said::of(mounting_shell(&stand, &roomy).output().unwrap());
    let codes: Vec<&str> = said.text().lines().filter(|line| line.len() == 1).collect();
    assert_eq!(codes, ["0"; 3], "{said:?}");
}

/// Nothing is kept free.
const FULL: &str = "--set 'limits.keep_free=\"none\"'";

/// A box that fills the disk, or stays below that with so many files of 1 MiB, and then each verb
/// that looks.
fn filling(files: u32) -> String {
    format!(
        "mkdir -p \"$XDG_STATE_HOME\"
         mount -t tmpfs -o size=12m,mode=777 tmpfs \"$XDG_STATE_HOME\"
         set +e
         fill='for i in $(seq {files}); do
                   dd if=/dev/urandom of=/work/z$i bs=1M count=1 2>&1 || break
               done; echo said; exit 7'
         ${{AS-}} \"$H5I\" run --json --workspace checkout {FULL} -- sh -c \"$fill\"; echo $?
         name=$(${{AS-}} \"$H5I\" box ls | cut -d' ' -f1)
         ${{AS-}} \"$H5I\" box status --json $name; echo $?
         ${{AS-}} \"$H5I\" box diff --json $name; echo $?
         ${{AS-}} \"$H5I\" box export --json -o \"$HOME/out\" $name; echo $?
         ${{AS-}} \"$H5I\" run --workspace checkout -- true; echo $?"
    )
}

#[test]
fn a_box_leaves_the_disk_what_it_is_to_keep() {
    // 1 MiB at a time, until something ends it.
    const FILL: &str = "while head -c 1048576 /dev/zero >> z; do :; done; exit 9";
    let run = |kept: &str, script: &str| {
        let stand = Stand::new();
        let script = format!(
            "mkdir -p \"$XDG_STATE_HOME\"
             mount -t tmpfs -o size=64m,mode=777 tmpfs \"$XDG_STATE_HOME\"
             set +e
             ${{AS-}} \"$H5I\" box create a --empty --set 'limits.keep_free=\"{kept}\"'
             ${{AS-}} \"$H5I\" box run a -- sh -c '{script}'; echo $?
             df -m --output=avail \"$XDG_STATE_HOME\" | tail -n 1
             ${{AS-}} \"$H5I\" box log a
             ${{AS-}} \"$H5I\" box run a -- rm z; echo $?"
        );
        Said::of(mounting_shell(&stand, &script).output().unwrap())
    };
    let full = run("32MiB", FILL);
    let lines: Vec<&str> = full.text().lines().collect();
    assert_eq!((lines[0], lines.last()), ("123", Some(&"0")), "{full:?}");
    let left: u64 = lines[1].trim().parse().unwrap();
    assert!((16..=32).contains(&left), "{full:?}");
    assert!(full.err.contains("stopped by limits.keep_free: "), "{full:?}");
    assert!(full.err.contains(" free, 32 MiB to be kept"), "{full:?}");
    assert!(full.text().contains("limits.keep_free spent: "), "{full:?}");
    // What is taken in one call is seen when the run ends, at the latest.
    let at_once = run("32MiB", "fallocate -l 40M z");
    assert_eq!(at_once.text().lines().next(), Some("123"), "{at_once:?}");
    // The twins: a box that leaves so much, and a policy that keeps nothing.
    let little = run("32MiB", "head -c 10000000 /dev/zero > z");
    assert_eq!(little.text().lines().next(), Some("0"), "{little:?}");
    // It leaves the log its room, which is not to be kept from it here.
    let nothing = run("none", "head -c 55000000 /dev/zero > z; exit 9");
    assert_eq!(nothing.text().lines().next(), Some("9"), "{nothing:?}");
}

#[test]
fn a_box_is_not_stopped_for_what_another_one_takes() {
    let stand = Stand::new();
    let script = "mkdir -p \"$XDG_STATE_HOME\"
         mount -t tmpfs -o size=64m,mode=777 tmpfs \"$XDG_STATE_HOME\"
         set +e
         for name in idle taker; do
             ${AS-} \"$H5I\" box create $name --empty --set 'limits.keep_free=\"32MiB\"'
         done
         mkfifo go; chmod 666 go
         ${AS-} \"$H5I\" box run idle -- sh -c 'echo in; read line; echo out' < go > idle.txt &
         exec 3> go
         until grep -q in idle.txt; do :; done
         ${AS-} \"$H5I\" box run taker -- sh -c 'while head -c 1048576 /dev/zero >> z; do :; done'
         echo $?
         sleep 0.6
         echo line >&3
         wait $!
         echo $?
         cat idle.txt";
    let said = Said::of(mounting_shell(&stand, script).output().unwrap());
    assert_eq!(said.text(), "123\n0\nin\nout\n", "{said:?}");
    assert_eq!(said.err.matches("stopped by limits.keep_free").count(), 1, "{said:?}");
}

#[test]
fn a_disk_that_a_box_fills_is_told_as_full_and_takes_nothing_from_the_commands_end() {
    let stand = Stand::new();
    let said = Said::of(mounting_shell(&stand, &filling(30)).output().unwrap());
    let lines: Vec<&str> = said.text().lines().collect();
    assert_eq!(lines.len(), 9, "{said:?}");
    let answer: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
    let data = &answer["data"];
    assert_eq!((lines[1], &answer["ok"], &data["kept"]), ("7", &true.into(), &true.into()));
    assert!(data["stdout"].to_string().contains("said"), "{data}");
    assert_eq!(data["changed"]["unknown"]["kind"], "io", "{data}");
    for (at, verb) in [(2, "status"), (4, "diff"), (6, "export")] {
        let told: crate::shapes::Failed = serde_json::from_str(lines[at]).unwrap();
        assert_eq!((told.error.kind.as_str(), lines[at + 1]), ("io", "70"), "{verb}: {told:?}");
        assert!(told.error.hint.unwrap().contains("make room"), "{verb}: {said:?}");
    }
    // The twin: with room the same words succeed, and the end is the command's as well.
    let stand = Stand::new();
    let said = Said::of(mounting_shell(&stand, &filling(1)).output().unwrap());
    let lines: Vec<&str> = said.text().lines().collect();
    let codes: Vec<&str> = lines.iter().copied().filter(|line| line.len() == 1).collect();
    assert_eq!(codes, ["7", "0", "0", "0", "0"], "{said:?}");
    let answer: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(answer["data"]["changed"][0]["bytes"], 1 << 20, "{answer}");
}

#[test]
fn a_read_only_state_directory_is_told_with_a_way_out() {
    let stand = Stand::new();
    let said = Said::of(mounting_shell(&stand, &script("ro,mode=777")).output().unwrap());
    let lines: Vec<&str> = said.text().lines().collect();
    assert_eq!(lines.len(), 4, "{said:?}");
    let told: crate::shapes::Failed = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(told.error.kind, "io", "{told:?}");
    assert!(told.error.message.contains("cannot create the directory"), "{told:?}");
    assert!(told.error.hint.unwrap().contains("make it writable"), "{said:?}");
    assert_eq!(lines[1..], ["70", "70", "125"], "{said:?}");
}

#[test]
fn a_session_whose_log_finds_no_room_says_that_it_broke_of_it() {
    let run = |size: &str| {
        let stand = Stand::new();
        let script = format!(
            "mkdir -p \"$XDG_STATE_HOME\"
             mount -t tmpfs -o size=3m,mode=777 tmpfs \"$XDG_STATE_HOME\"
             set +e
             ${{AS-}} \"$H5I\" box create a --empty {FULL}
             ${{AS-}} \"$H5I\" box run a -- sh -c \
                 'dd if=/dev/zero of=z bs=4k {size} 2> /dev/null; \
                  for n in $(seq 200); do /bin/true; done; echo through'
             echo $?"
        );
        Said::of(mounting_shell(&stand, &script).output().unwrap())
    };
    let full = run("");
    assert_eq!(full.text(), "125\n", "{full:?}");
    let cause = "cut off: can't append to the log: No space left on device";
    assert!(full.err.contains(cause), "{full:?}");
    // The twin leaves room for the log.
    let roomy = run("count=1");
    assert_eq!(roomy.text(), "through\n0\n", "{roomy:?}");
}
