//! `h5i receipt ls`, `show` and `purge`

use std::fmt::Write as _;
use std::path::Path;

use h5i_export::{Digest, Event, Record, verify_chain};
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::log::sentence;
use super::{Answer, Reader};
use crate::archive::{Archived, archived};
use crate::args::{PurgeArgs, ShowArgs};
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::path_error::{Action, PathError};
use crate::receipt_log::{LOG, records};
use crate::shown::Shown;
use crate::store::{Manifest, remove_tree};
use crate::workspace::nearest;

pub(super) fn list(caller: &Caller) -> Result<Answer, Failure> {
    let mut text = String::new();
    let mut rows = Vec::new();
    for found in archived(&caller.store)? {
        let told = Told::of(&found);
        // Writing to a String can't fail.
        writeln!(text, "{:<40} {}", Shown::text(&found.key).to_string(), told.line(&found)).ok();
        rows.push(told.data(&found));
    }
    let answer = Answer::new(json!({ "receipts": rows }), text)?;
    Ok(if rows.is_empty() { answer.note("no receipts of removed boxes") } else { answer })
}

pub(super) fn show(caller: &Caller, args: &ShowArgs) -> Result<Answer, Failure> {
    let found = choose(&archived(&caller.store)?, &args.receipt)?;
    let told = Told::of(&found);
    let whole = whole(&found);
    // A broken chain is a finding.
    let answer = Answer::new(Value::Null, String::new())?.code(u8::from(whole.is_err()));
    // Of a long log nothing but one record is in memory.
    if args.output.json {
        let manifest = found.manifest.as_ref();
        let log = Log(&found.dir);
        super::print_data(&Full { told: told.data(&found), whole: whole.is_ok(), manifest, log })?;
        return Ok(answer);
    }
    let mut reader = super::print_line(&head(&found, &told, whole.err().as_ref()))?;
    let mut lines = records(&found.dir)?.map_while(Result::ok);
    while let (Reader::There, Some(line)) = (reader, lines.next()) {
        reader = super::print_line(&sentence(&line.record))?;
    }
    Ok(answer)
}

/// What is told of a receipt before its records, without the last line's end.
fn head(found: &Archived, told: &Told, broken: Option<&Failure>) -> String {
    let mut text = format!("{}  {}\n", Shown::text(&found.key), told.line(found));
    if let Some(manifest) = &found.manifest {
        // Writing to a String can't fail.
        writeln!(
            text,
            "base      {} ({})",
            manifest.base.commit,
            Shown::text(&manifest.base.described)
        )
        .ok();
        writeln!(text, "policy    {}, {}", Shown::text(&manifest.profile), manifest.policy_digest)
            .ok();
        if let Some(purpose) = &manifest.purpose {
            writeln!(text, "purpose   {}", Shown::text(purpose)).ok();
        }
    }
    match broken {
        None => text.push_str("chain     whole"),
        Some(failure) => {
            write!(text, "chain     BROKEN: {}", failure.message).ok();
        }
    }
    text
}

/// A receipt with all its records, as programs get it.
#[derive(Serialize)]
struct Full<'a> {
    #[serde(flatten)]
    told: Value,
    whole: bool,
    manifest: Option<&'a Manifest>,
    log: Log<'a>,
}

/// The records of the log in a directory, read while they are written.
struct Log<'a>(&'a Path);

impl Serialize for Log<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let lines = records(self.0).map_err(|failure| S::Error::custom(&failure.message))?;
        serializer.collect_seq(lines.map_while(Result::ok).map(|line| line.record))
    }
}

pub(super) fn purge(caller: &Caller, args: &PurgeArgs) -> Result<Answer, Failure> {
    crate::inside::refuse_verb("receipt purge")?;
    let all = archived(&caller.store)?;
    // All are looked up first: a slip in the last name removes nothing.
    let chosen = if args.all {
        all
    } else {
        let each = args.receipts.iter().map(|name| choose(&all, name));
        each.collect::<Result<Vec<_>, _>>()?
    };
    let mut purged = Vec::new();
    for found in chosen {
        remove_tree(&found.dir)?;
        purged.push(found.key);
    }
    let lines = purged.iter().map(|key| format!("purged   {}\n", Shown::text(key)));
    let text: String = lines.collect();
    Answer::new(json!({ "purged": purged }), text)
}

/// The one receipt that the words mean.
fn choose(all: &[Archived], words: &str) -> Result<Archived, Failure> {
    let exact = all.iter().find(|found| found.key == words);
    let named: Vec<&Archived> =
        all.iter().filter(|found| found.name().is_some_and(|name| name == words)).collect();
    match (exact, &named[..]) {
        (Some(found), _) => Ok(found.clone()),
        (None, [found]) => Ok((*found).clone()),
        (None, []) => {
            let message = format!("no receipt of a removed box `{words}`");
            let keys = all.iter().map(|found| found.key.as_str());
            let names = all.iter().filter_map(Archived::name);
            let hint = match nearest(words, names.chain(keys)) {
                Some(near) => format!("did you mean {near}? h5i receipt ls shows all"),
                None => "h5i receipt ls".to_owned(),
            };
            Err(Failure::told(Kind::NotFound, message).hint(hint))
        }
        (None, many) => {
            let keys: Vec<&str> = many.iter().map(|found| found.key.as_str()).collect();
            let message = format!("{} removed boxes were called `{words}`", many.len());
            Err(Failure::told(Kind::Usage, message)
                .hint(format!("one of {}", keys.join(", ")))
                .detail("receipts", json!(keys)))
        }
    }
}

/// Whether the log is whole from the manifest on.
fn whole(found: &Archived) -> Result<(), Failure> {
    let path = found.dir.join("manifest.json");
    let manifest = Digest::of(&std::fs::read(&path).map_err(PathError::at(Action::Read, &path))?);
    let path = found.dir.join(LOG);
    let file = std::fs::File::open(&path).map_err(PathError::at(Action::Open, &path))?;
    verify_chain(std::io::BufReader::new(file), manifest, None, |_| ())
        .map(drop)
        .map_err(|e| Failure::new(Kind::Corrupt, &e))
}

/// What a log tells in sum.
#[derive(Default)]
struct Told {
    runs: u64,
    refused: u64,
    records: u64,
    bundles: Vec<String>,
    last: Option<Record>,
}

impl Told {
    fn of(found: &Archived) -> Self {
        let mut told = Self::default();
        let Ok(lines) = records(&found.dir) else { return told };
        for line in lines.map_while(Result::ok) {
            told.records += 1;
            match &line.record.event {
                Event::RunStart { .. } => told.runs += 1,
                Event::RefusedCall { count, .. } => told.refused += count,
                Event::Export { bundle, .. } => told.bundles.push(bundle.to_string()),
                _ => {}
            }
            told.last = Some(line.record);
        }
        told
    }

    fn line(&self, found: &Archived) -> String {
        let Some(manifest) = &found.manifest else { return "damaged".to_owned() };
        format!(
            "{:<10} {} {} {} · {} refused · {} exported",
            manifest.tier.name(),
            manifest.created,
            self.runs,
            if self.runs == 1 { "run" } else { "runs" },
            self.refused,
            self.bundles.len()
        )
    }

    fn data(&self, found: &Archived) -> Value {
        let manifest = found.manifest.as_ref();
        json!({
            "receipt": found.key,
            "name": found.name(),
            "created": manifest.map(|manifest| manifest.created),
            "last": self.last.as_ref().map(|record| record.at),
            "tier": manifest.map(|manifest| manifest.tier),
            "purpose": manifest.and_then(|manifest| manifest.purpose.as_deref()),
            "runs": self.runs,
            "refused": self.refused,
            "records": self.records,
            "bundles": self.bundles,
        })
    }
}
