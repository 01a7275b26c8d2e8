//! J1: two boxes do not see each other.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use crate::stand::{Said, Stand};

on_both_back_ends!(
    Stand:
    neither_box_sees_files_processes_or_sockets_of_the_other,
    a_box_has_no_path_to_another_one_or_to_the_state_directory,
);

/// Leaves a canary in every place where a program can leave something, and serves on a port and on
/// an abstract socket.
const LEAVE: &str = r#"
for f in /work/canary ~/canary ~/.cache/canary /tmp/canary /run/canary /dev/shm/canary; do
    mkdir -p "$(dirname $f)"; echo canary > $f
done
perl -MSocket -e '
    socket(T, PF_INET, SOCK_STREAM, 0) && bind(T, sockaddr_in(8123, INADDR_LOOPBACK)) && listen(T, 9) or die;
    socket(U, PF_UNIX, SOCK_STREAM, 0) && bind(U, pack_sockaddr_un("\0canary")) && listen(U, 9) or die;
    $^F = 99;
    pipe(R, W);
    # The parent ends when its child is another program; the sockets stay open in it.
    if (fork) { close W; <R>; exit 0 }
    use Fcntl;
    fcntl(T, F_SETFD, 0); fcntl(U, F_SETFD, 0); fcntl(W, F_SETFD, FD_CLOEXEC);
    close STDOUT;
    exec "sleep", "1000";
'
# It has its new name a moment after it closed what it must.
n=0; until grep -qsx sleep /proc/[0-9]*/comm || [ $n -ge 1000 ]; do n=$((n + 1)); done
"#;

/// Prints a line for each canary that is found.
const LOOK: &str = r#"
for f in /work/canary ~/canary ~/.cache/canary /tmp/canary /run/canary /dev/shm/canary; do
    test -e $f && echo $f
done
perl -MSocket -e '
    socket(T, PF_INET, SOCK_STREAM, 0) && connect(T, sockaddr_in(8123, INADDR_LOOPBACK)) and print "tcp\n";
    socket(U, PF_UNIX, SOCK_STREAM, 0) && connect(U, pack_sockaddr_un("\0canary")) and print "abstract\n";
'
grep -q @canary /proc/net/unix && echo listed
grep -qx sleep /proc/[0-9]*/comm && echo process
true
"#;

fn neither_box_sees_files_processes_or_sockets_of_the_other(stand: &Stand) {
    stand.ok(&["box", "create", "a"]);
    stand.ok(&["box", "create", "b"]);
    let script = format!("{LEAVE}{LOOK}echo there; read line");
    let mut first = stand.command();
    first.args(["box", "run", "a", "--", "sh", "-c", &script]);
    first.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut first = first.spawn().unwrap();
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines().map(Result::unwrap);
    // The twin: in the box itself every canary is found.
    let found: Vec<String> = lines.by_ref().take_while(|line| line != "there").collect();
    let own = [
        "/work/canary",
        "/home/box/canary",
        "/home/box/.cache/canary",
        "/tmp/canary",
        "/run/canary",
        "/dev/shm/canary",
        "tcp",
        "abstract",
        "listed",
        "process",
    ];
    assert_eq!(found, own);
    assert_eq!(stand.sh("b", LOOK), "");
    first.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(Said::of(first.wait_with_output().unwrap()).code, 0);
}

fn a_box_has_no_path_to_another_one_or_to_the_state_directory(stand: &Stand) {
    stand.ok(&["box", "create", "a"]);
    stand.ok(&["box", "create", "b"]);
    let other = stand.box_dir("b");
    let look = |path: &std::path::Path| {
        let script = format!("cd '{}' && ls box host", path.display());
        stand.h5i(&["box", "run", "a", "--", "sh", "-c", &script])
    };
    assert_ne!(look(&other).code, 0);
    assert_ne!(look(&stand.state()).code, 0);
    // The twin: outside, the same path is there.
    assert!(other.join("host").is_dir() && other.join("box").is_dir());
    let granted = format!("fs.read=[\"{}\"]", stand.repo().display());
    stand.ok(&["box", "create", "c", "--set", &granted]);
    assert_eq!(stand.sh("c", &format!("ls {}", stand.repo().display())), "a.txt\ndir");
}
