//! Debuggers on one's own children, by the switch of the profile.

use h5i_testkit::{Need, have};

use crate::stand::Stand;

const SOURCE: &str = "int f(int x){return x+1;} int main(void){return f(41);}";

fn with(switch: &str) -> Stand {
    let stand = Stand::new();
    stand.ground.write("x.c", SOURCE.as_bytes());
    stand.ground.commit("program");
    stand.ok(&["box", "create", "a", "--set", &format!("debuggers=\"{switch}\"")]);
    stand
}

#[test]
fn gdb_stops_in_a_function_with_the_switch_and_not_without() {
    if !have("gdb_stops_in_a_function", Need::Program("/usr/bin/gdb")) {
        return;
    }
    let script = "cc -g x.c -o /tmp/x && gdb -q -batch -ex 'break f' -ex run -ex 'print x' /tmp/x 2>&1; true";
    assert!(with("allowed").sh("a", script).contains("$1 = 41"));
    let stand = with("refused");
    let said = stand.sh("a", script);
    assert!(!said.contains("$1 = 41"), "{said}");
    assert!(stand.ok(&["box", "log", "a", "--denied"]).text().contains("refused ptrace"));
}

#[test]
fn strace_follows_children_with_the_switch_and_not_without() {
    if !have("strace_follows_children", Need::Program("/usr/bin/strace")) {
        return;
    }
    let script = "strace -f -e trace=execve -o /tmp/t sh -c '/bin/true; /bin/true' 2>/tmp/e; \
                  grep -c 'execve(\"/bin/true\"' /tmp/t; cat /tmp/e";
    assert_eq!(with("allowed").sh("a", script), "2");
    assert!(with("refused").sh("a", script).contains("Operation not permitted"));
}
