//! Shells and the files they make behind one's back.

use crate::table::prints;

const ROWS: [(&str, &str); 8] = [
    ("cat <<X\nhere $((1+1))\nX", "here 2"),
    ("cat <<< word", "word"),
    ("diff <(echo a) <(echo a) && echo same", "same"),
    (
        "f=$(mktemp) && d=$(mktemp -d) && echo x > $d/y && mktemp -p /var/tmp >$f && echo made",
        "made",
    ),
    ("echo x | cat /dev/fd/0; echo y > /dev/stdout; echo z >/dev/stderr", "x\ny"),
    ("echo x > /dev/shm/y && cat /dev/shm/y && rm /dev/shm/y", "x"),
    ("mkfifo /tmp/f; echo through > /tmp/f & cat /tmp/f; wait", "through"),
    ("flock /tmp/l echo locked; ulimit -n 1024 && nice -n 5 echo nice", "locked\nnice"),
];

#[test]
fn bash_has_heredocs_temporary_files_and_descriptors() {
    prints("bash_has_heredocs_temporary_files_and_descriptors", "/bin/bash", &ROWS);
}

#[test]
fn zsh_has_heredocs_temporary_files_and_descriptors() {
    prints("zsh_has_heredocs_temporary_files_and_descriptors", "/usr/bin/zsh", &ROWS);
}
