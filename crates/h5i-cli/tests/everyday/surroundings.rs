//! Language, time, identity, certificates: what programs ask the system for.

use crate::table::{PYTHON, prints, with_box};

#[test]
fn language_time_zones_and_tables_are_there() {
    let rows = [
        ("LC_ALL=C.UTF-8 locale charmap", "UTF-8"),
        ("TZ=Asia/Tokyo date +%Z", "JST"),
        ("tput -T xterm-256color colors", "256"),
        (
            "getent passwd box | cut -d: -f1,6; getent hosts localhost | grep -c localhost",
            "box:/home/box\n1",
        ),
        ("test $(nproc) -ge 1 && df -h /work >/dev/null && ps aux >/dev/null && echo told", "told"),
    ];
    prints("language_time_zones_and_tables_are_there", "/bin/bash", &rows);
}

#[test]
fn certificates_can_be_read_and_private_keys_can_not() {
    let rows = [
        ("head -1 /etc/ssl/certs/ca-certificates.crt", "-----BEGIN CERTIFICATE-----"),
        ("ls -A /etc/ssl/private 2>/dev/null | wc -l", "0"),
    ];
    prints("certificates_can_be_read_and_private_keys_can_not", "/bin/bash", &rows);
}

#[test]
fn python_finds_its_encodings_zones_and_certificates() {
    let rows = [
        ("import sys; print(sys.getfilesystemencoding())", "utf-8"),
        ("import zoneinfo; print(zoneinfo.ZoneInfo('Europe/Paris'))", "Europe/Paris"),
        ("import ssl; print(len(ssl.create_default_context().get_ca_certs()) > 50)", "True"),
        ("import getpass, os; print(getpass.getuser(), os.path.expanduser('~'))", "box /home/box"),
    ];
    prints("python_finds_its_encodings_zones_and_certificates", PYTHON, &rows);
}

#[test]
fn git_knows_its_author_and_ssh_has_no_key() {
    let stand = crate::stand::Stand::new();
    stand.ground.git(&["config", "user.name", "Bob Builder"]);
    stand.ground.git(&["config", "user.email", "bob@example.com"]);
    stand.ok(&["box", "create", "a"]);
    let script = "git commit -q --allow-empty -m x && git log -1 --format='%an <%ae>'; \
                  ssh -G example.com | grep ^hostname; ls -A ~/.ssh 2>/dev/null | wc -l; echo ${SSH_AUTH_SOCK-none}";
    assert_eq!(
        stand.sh("a", script),
        "Bob Builder <bob@example.com>\nhostname example.com\n0\nnone"
    );
}

#[test]
fn home_is_kept_from_run_to_run_and_memory_is_not() {
    let stand = with_box();
    stand.sh("a", "echo kept > ~/x; echo gone > /tmp/x; echo gone > /dev/shm/x");
    assert_eq!(stand.sh("a", "cat ~/x; cat /tmp/x /dev/shm/x 2>/dev/null; true"), "kept");
}
