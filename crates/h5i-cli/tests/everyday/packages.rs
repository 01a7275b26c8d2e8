//! H4: what a package's own script starts is in the receipt, whatever the script does about it.

use std::collections::BTreeMap;

use h5i_testkit::{Need, have};
use serde_json::Value;

use crate::stand::Stand;
use crate::table::with_box;

/// What a package may do so that nobody sees what it did: it speaks for itself in the spool, leaves
/// orphans, runs from a file that is gone and from memory, under other names, and removes itself.
const QUIET: &str = r#"
set -e
printf 'h5i-note 1\nnothing happened here' > /run/h5i/spool/a
printf 'h5i-command 1\nstatus 0\nprogram ls\n\nls only' > /run/h5i/spool/b
printf '{"v":1,"seq":1,"lane":"host","kind":"session-end"}' > /run/h5i/spool/c
mkfifo /tmp/done
(setsid sh -c 'exec 3>/tmp/done; sh -c "exit 41"; exit 0' &)
cat /tmp/done
cp /bin/sleep /tmp/gone; exec 8</tmp/gone; rm /tmp/gone; /proc/self/fd/8 0.001; exec 8<&-
python3 -c 'import os; f = os.memfd_create("x"); os.write(f, open("/bin/true", "rb").read()); os.execve(f, ["in-memory"], {})'
python3 -c 'import ctypes, os; ctypes.CDLL(None).prctl(15, b"kworker/0:1"); os.execv("/bin/true", ["kthreadd"])'
rm -rf "$0" /tmp/done ~/.bash_history
"#;

/// The quiet ones among the programs: their arguments, what the kernel showed, and the exit code.
const SEEN: [(&str, &str, i64); 6] = [
    ("sh -c exec 3>/tmp/done; sh -c \"exit 41\"; exit 0", "/usr/bin/dash", 0),
    ("sh -c exit 41", "/usr/bin/dash", 41),
    ("/proc/self/fd/8 0.001", "/tmp/gone (deleted)", 0),
    ("in-memory", "/memfd:x (deleted)", 0),
    ("kthreadd", "/usr/bin/true", 0),
    ("cat /tmp/done", "/usr/bin/cat", 0),
];

/// A program: its arguments at its last attempt, its executables, its exit code.
#[derive(Debug, Default)]
struct Program {
    argv: String,
    exe: Vec<String>,
    code: Option<i64>,
}

/// The programs in a receipt, by their numbers.
fn programs(receipt: &Value) -> BTreeMap<u64, Program> {
    let mut all: BTreeMap<u64, Program> = BTreeMap::new();
    for record in receipt["records"].as_array().unwrap() {
        let Some(proc) = record["proc"].as_u64() else { continue };
        let program = all.entry(proc).or_default();
        match record["kind"].as_str() {
            Some("exec-attempt") => {
                let words = record["argv"].as_array().unwrap().iter();
                program.argv = words.filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
            }
            Some("exec") => program.exe.push(record["exe"].as_str().unwrap().to_owned()),
            _ => program.code = record["exit_code"].as_i64(),
        }
    }
    all
}

/// Runs a script in the box, exports it, and looks for what must be there.
fn is_in_the_receipt(stand: &Stand, script: &str, expected: &[(&str, i64)]) {
    let said = stand.h5i(&["box", "run", "a", "--", "bash", "-ec", script]);
    assert_eq!(said.code, 0, "{}\n{}", said.text(), said.err);
    let text = stand.ok(&["box", "export", "a", "-o", "out", "--force", "--json"]);
    drop(text);
    let receipt = std::fs::read(stand.repo().join("out/receipt.json")).unwrap();
    let receipt: Value = serde_json::from_slice(&receipt).unwrap();
    let all = programs(&receipt);
    let told = || {
        all.values().map(|p| format!("{} {:?} {:?}\n", p.argv, p.exe, p.code)).collect::<String>()
    };
    for (argv, code) in expected {
        let found = all.values().any(|p| p.argv == *argv && p.code == Some(*code));
        assert!(found, "{argv}: {code} is not among\n{}", told());
    }
    for (argv, exe, code) in SEEN {
        let found = |p: &&Program| p.argv == argv && p.exe.iter().any(|found| found == exe);
        let program = all.values().find(found);
        assert_eq!(
            program.and_then(|p| p.code),
            Some(code),
            "{argv} {exe} is not among\n{}",
            told()
        );
    }
    // What it said of itself is there, and is its own word.
    let kinds = |kind: &str| -> Vec<&Value> {
        let records = receipt["records"].as_array().unwrap().iter();
        records.filter(|record| record["kind"] == kind).collect()
    };
    assert_eq!(kinds("note").last().unwrap()["lane"], "box");
    assert_eq!(kinds("reported-command").len(), 1);
    assert_eq!(kinds("spool-refused").len(), 1);
    assert_eq!(kinds("session-end").len(), 0);
    assert_eq!(kinds("gap").len(), 1, "nobody ran ls");
    stand.ok(&["receipt", "verify", "out"]);
}

#[test]
fn what_a_package_of_npm_starts_is_in_the_receipt() {
    let test = "what_a_package_of_npm_starts_is_in_the_receipt";
    if !have(test, Need::Program("/usr/bin/npm")) || !have(test, Need::Program("/usr/bin/python3"))
    {
        return;
    }
    let stand = with_box();
    let script = format!(
        "mkdir -p /tmp/p/package /tmp/app; cd /tmp/p
         cat > package/post.sh <<'END'\n{QUIET}END
         echo '{{\"name\":\"dep\",\"version\":\"1.0.0\",\"scripts\":{{\"postinstall\":\"sh ./post.sh\"}}}}' > package/package.json
         tar czf dep.tgz package; cd /tmp/app; echo '{{\"name\":\"app\",\"version\":\"1.0.0\"}}' > package.json
         npm install --offline --no-audit --no-fund --no-update-notifier /tmp/p/dep.tgz"
    );
    is_in_the_receipt(&stand, &script, &[("sh ./post.sh", 0), ("sh -c sh ./post.sh", 0)]);
}

#[test]
fn what_a_package_of_python_starts_is_in_the_receipt() {
    let test = "what_a_package_of_python_starts_is_in_the_receipt";
    if !have(test, Need::Program("/usr/bin/pip3")) {
        return;
    }
    let stand = with_box();
    let script = format!(
        "mkdir -p /tmp/p; cd /tmp/p
         cat > post.sh <<'END'\n{QUIET}END
         printf 'import os, subprocess\\nfrom setuptools import setup\\nif os.path.exists(\"post.sh\"): subprocess.check_call([\"sh\", \"post.sh\"])\\nsetup(name=\"dep\", version=\"1\")\\n' > setup.py
         pip3 install --no-index --no-deps --no-build-isolation --no-cache-dir --target /tmp/t /tmp/p"
    );
    is_in_the_receipt(&stand, &script, &[("sh post.sh", 0)]);
}

#[test]
fn what_a_build_script_of_rust_starts_is_in_the_receipt() {
    let test = "what_a_build_script_of_rust_starts_is_in_the_receipt";
    // An ordinary user need not reach the toolchain that built the tests.
    if !have(test, Need::SecondUid) {
        return;
    }
    let toolchain = std::path::Path::new(env!("CARGO")).ancestors().nth(2).unwrap().display();
    let stand = Stand::new();
    stand.ok(&["box", "create", "a", "--set", &format!("fs.read=[\"{toolchain}\"]")]);
    let script = format!(
        "export PATH={toolchain}/bin:$PATH; mkdir -p /tmp/p/src; cd /tmp/p
         cat > post.sh <<'END'\n{QUIET}END
         printf '[package]\\nname = \"dep\"\\nversion = \"1.0.0\"\\nedition = \"2021\"\\n' > Cargo.toml
         echo 'fn main() {{ assert!(std::process::Command::new(\"sh\").arg(\"post.sh\").status().unwrap().success()); }}' > build.rs
         echo 'fn main() {{}}' > src/main.rs
         cargo build --offline"
    );
    is_in_the_receipt(&stand, &script, &[("sh post.sh", 0)]);
}
