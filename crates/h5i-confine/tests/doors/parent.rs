//! A harness in some odd condition that starts a box of its own, as a process of its own.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio as HostStdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use h5i_confine::{NoSink, Outcome, Plan, Stdio};
use h5i_testkit::{BoxDirs, Moment};

use crate::call::{A, call};
use crate::world::{layout, policy};

/// Runs as the named harness; what it found is left in `said` in the directory.
pub(crate) fn main(name: &str, dir: &str) -> ExitCode {
    let said = match name {
        "assassin" => assassin(),
        "victim" => victim(),
        _ => odd(name),
    };
    let (text, code) = match said {
        Ok(text) => (text, ExitCode::SUCCESS),
        Err(text) => (text, ExitCode::FAILURE),
    };
    fs::write(Path::new(dir).join("said"), &text).ok();
    if name == "assassin" {
        println!("{text}");
    }
    code
}

fn plan(dirs: &BoxDirs) -> Plan {
    let tools = std::env::var("DOORS_TOOLS").unwrap();
    Plan::for_host(&policy(), &layout(dirs, Path::new(&tools))).unwrap()
}

/// Takes a condition on, then has three boxes do their usual work.
fn odd(name: &str) -> Result<String, String> {
    let dirs = BoxDirs::new().unwrap();
    let plan = plan(&dirs);
    let _kept = condition(name);
    let started = Instant::now();
    for _ in 0..3 {
        let mut command = plan.command("/bin/sh");
        command.args(["-c", "umask; cat /proc/self/status | grep SigIgn; (exit 3)"]);
        let output = command.output().map_err(|e| format!("{e:?}"))?;
        if output.outcome != Outcome::Exited(3) {
            return Err(format!("{:?}", output.outcome));
        }
        let text = String::from_utf8_lossy(&output.stdout).replace('\t', " ");
        if text.trim() != "0022\nSigIgn: 0000000000000000" {
            return Err(text);
        }
        let program = format!("{}/attempt", crate::world::TOOLS);
        let output = plan.command(program).args(["attempt", "descriptors"]).output();
        let output = output.map_err(|e| format!("{e:?}"))?;
        if output.stdout != b"ok 0 1 2\n" {
            return Err(String::from_utf8_lossy(&output.stdout).into_owned());
        }
    }
    if matches!(name, "closed-stdio" | "closed-low") {
        // The caller's own output is not there: that is said, and nothing hangs.
        let seen = plan.command("/bin/echo").arg("lost").stdin(Stdio::Null).status();
        if seen.is_ok() {
            return Err(format!("{seen:?} without an output"));
        }
    }
    Ok(format!("six boxes in {} ms", started.elapsed().as_millis()))
}

/// What is to be kept as long as the condition holds.
type Kept = (Vec<fs::File>, Vec<u8>);

fn condition(name: &str) -> Kept {
    let (mut files, mut heap) = (Vec::new(), Vec::new());
    match name {
        "ignores-children" => {
            // SAFETY: SIG_IGN is no function of this program's.
            unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
        }
        "reaps-all" => {
            std::thread::spawn(|| {
                loop {
                    call(libc::SYS_wait4, &mut [A::N(-1), A::N(0), A::N(0), A::N(0)]).ok();
                    std::thread::yield_now();
                }
            });
        }
        "closed-stdio" => close(0..3),
        "closed-low" => close(0..10),
        "many-files" => {
            files.extend((0..1000).map(|_| fs::File::open("/dev/null").unwrap()));
            for file in &files {
                // Inheritable ones: the stage must not keep them.
                let fd = std::os::fd::AsRawFd::as_raw_fd(file);
                call(libc::SYS_fcntl, &mut [A::N(fd.into()), A::N(2), A::N(0)]).unwrap();
            }
        }
        "few-files" => {
            let bound: Vec<u8> = [64u64, 64].iter().flat_map(|n| n.to_ne_bytes()).collect();
            let args = &mut [A::N(0), A::N(7), A::In(&bound), A::N(0)];
            call(libc::SYS_prlimit64, args).unwrap();
        }
        "blocked-signals" => {
            let args = &mut [A::N(0), A::In(&[0xff; 8]), A::N(0), A::N(8)];
            call(libc::SYS_rt_sigprocmask, args).unwrap();
        }
        "large-heap" => {
            heap = vec![1; 2 << 30];
            for _ in 0..8 {
                std::thread::spawn(std::thread::park);
            }
        }
        "masked" => {
            call(libc::SYS_umask, &mut [A::N(0o077)]).unwrap();
        }
        other => panic!("no parent is named {other}"),
    }
    (files, heap)
}

fn close(fds: std::ops::Range<i64>) {
    for fd in fds {
        call(libc::SYS_close, &mut [A::N(fd)]).ok();
    }
}

/// Starts a session with stubborn runs until it is killed.
fn victim() -> Result<String, String> {
    let dirs = BoxDirs::new().unwrap();
    let plan = plan(&dirs);
    println!("planned");
    let session = plan.start(Arc::new(NoSink)).unwrap();
    loop {
        let line = "trap '' TERM HUP; (setsid sleep 1000 &); while :; do sleep 1000; done";
        let mut command = session.command("/bin/sh");
        let run = command.args(["-c", line]).stdin(Stdio::Null).spawn();
        drop(run.map_err(|e| format!("{e:?}"))?);
    }
}

/// Kills victims at different moments and waits for what they leave to end.
fn assassin() -> Result<String, String> {
    // PR_SET_CHILD_SUBREAPER: what a victim leaves behind becomes this process's child.
    call(libc::SYS_prctl, &mut [A::N(36), A::N(1), A::N(0), A::N(0), A::N(0)]).unwrap();
    let mut longest = Duration::ZERO;
    for moment in 0..30u64 {
        let mut victim = Command::new("/proc/self/exe")
            .args(["parent", "victim", "/nonexistent"])
            .stdout(HostStdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0u8; 8];
        std::io::Read::read_exact(victim.stdout.as_mut().unwrap(), &mut line).unwrap();
        // Not a wait for anything: the moment of death is what is varied.
        std::thread::sleep(Duration::from_micros(moment * moment * 40));
        victim.kill().unwrap();
        victim.wait().unwrap();
        let died = Moment::now();
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            // The stage ends when every process of its box has.
            while call(libc::SYS_wait4, &mut [A::N(-1), A::N(0), A::N(0), A::N(0)]).is_ok() {}
            send.send(()).ok();
        });
        let ended = || receive.recv_timeout(Duration::from_millis(20)).is_ok();
        while !ended() {
            if died.elapsed() < Duration::from_secs(1) {
                continue;
            }
            return Err(format!("a process was left, a second after moment {moment}"));
        }
        longest = longest.max(died.elapsed());
    }
    Ok(format!("30 deaths, the longest end took {} ms", longest.as_millis()))
}
