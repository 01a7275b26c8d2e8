//! What a log of very many records costs who reads it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use h5i_export::{ByteText, Digest, Event, Lane, LogWriter, Timestamp};

use super::{cost, git};

/// Records of the log, three for each program.
const RECORDS: u64 = 1_000_000;

/// Prints the row.
pub(super) fn measure(h5i: &Path, scratch: &Path) -> Result<()> {
    let repository = scratch.join("small");
    fs::create_dir(&repository)?;
    fs::write(repository.join("a"), "a\n")?;
    git(&repository, &["init", "--quiet", "--initial-branch=main"])?;
    git(&repository, &["add", "--all"])?;
    let who = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    git(&repository, &[&who[..], &["commit", "-qm", "base"]].concat())?;
    let state = scratch.join("records");
    let run = |words: &[&str]| {
        let mut command = Command::new(h5i);
        command.current_dir(&repository).env("XDG_STATE_HOME", &state).args(words);
        cost(command)
    };
    run(&["box", "create", "long"])?;
    run(&["box", "run", "long", "--", "true"])?;
    let log = log_of(&state).context("the box has no log")?;
    let bytes = fill(&log)?;
    println!("log of {RECORDS} records, {} MiB; seconds, and MiB at most", bytes >> 20);
    println!(
        "{:<24} {:>8} {:>6} {:>8} {:>6} {:>8} {:>6}",
        "", "log", "", "export", "", "verify", ""
    );
    let out = scratch.join("long.out").display().to_string();
    print!("{:<24}", "1,000,000 records");
    for words in [
        &["box", "log", "long"][..],
        &["box", "export", "long", "-o", &out],
        &["receipt", "verify", &out],
    ] {
        let cost = run(words)?;
        print!(" {:>8.3} {:>6}", cost.time.as_secs_f64(), cost.peak_kib >> 10);
    }
    println!();
    run(&["box", "rm", "long", "--force"])?;
    Ok(())
}

/// Appends to the log what so many programs give; yields its length.
fn fill(log: &Path) -> Result<u64> {
    let manifest = Digest::of(&fs::read(log.with_file_name("manifest.json"))?);
    let (mut writer, _) = LogWriter::open(log, manifest, Timestamp::now())?;
    let first = writer.head().records;
    for number in first..RECORDS {
        let proc = 1000 + number / 3;
        let pid = u32::try_from(proc % 30_000)? + 2;
        let event = match number % 3 {
            0 => Event::ExecAttempt {
                proc,
                pid,
                parent: 1,
                ppid: 2,
                path: ByteText::new("/usr/bin/cc"),
                argv: ["cc", "-O2", "-c", "src/a.c"].map(ByteText::new).into(),
                argv_cut: 0,
                cwd: ByteText::new("/work"),
                unread: Vec::new(),
                unwatched: false,
            },
            1 => Event::Exec { proc, pid, exe: ByteText::new("/usr/bin/gcc-12"), failed: 0 },
            _ => Event::ProcessEnd {
                proc,
                pid,
                exit_code: Some(0),
                signal: None,
                wall_ms: 12,
                cpu_ms: None,
                max_rss_bytes: None,
                unseen: false,
            },
        };
        writer.append(Timestamp::now(), Lane::Kernel, Some(1), event)?;
    }
    Ok(fs::metadata(log)?.len())
}

/// The one log below a state directory.
fn log_of(state: &Path) -> Option<PathBuf> {
    let scope = fs::read_dir(state.join("h5i/repos")).ok()?.next()?.ok()?.path();
    let log = scope.join("boxes/long/host/receipt.jsonl");
    log.is_file().then_some(log)
}
