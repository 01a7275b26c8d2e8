//! `h5i box probe`

use std::error::Error as _;

use h5i_confine::Probe;
use h5i_policy::Tier;
use serde_json::{Value, json};

use super::Answer;
use crate::args::ProbeArgs;
use crate::box_plan;
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::network_trial::{self, Tried};
use crate::store::HostId;
use crate::workspace::OverlaySupport;

pub(super) fn probe(caller: &Caller, args: &ProbeArgs) -> Result<Answer, Failure> {
    match args.tier {
        None | Some(Tier::Process | Tier::Supervised) => {}
        Some(Tier::Workspace) => {
            let data = json!({ "tier": "workspace", "mechanisms": [] });
            return Answer::new(data, "workspace  needs nothing and holds nothing\n");
        }
        Some(tier) => {
            return Err(Failure::told(
                Kind::Unavailable,
                format!("the tier {tier} is not part of this version, so there is nothing to try"),
            )
            .hint("h5i box probe --tier process"));
        }
    }
    let facts = box_plan::host_facts()?;
    let (major, minor) = facts.kernel;
    let mut text =
        format!("host       Linux {major}.{minor}, Landlock ABI {}\n", facts.landlock_abi);
    if let Some(setting) = box_plan::namespace_setting(&facts) {
        text.push_str(&format!("setting    {setting} forbids user namespaces\n"));
    }
    let probes = h5i_confine::probe(&facts, HostId::first().number());
    let mut failed = probes.iter().any(|probe| probe.result.is_err());
    let mut rows: Vec<Value> = probes.iter().map(|probe| row(probe, "FAILS", &mut text)).collect();
    // A box does without it: then its workspace is a checkout.
    let overlay = OverlaySupport::probe(&caller.store, &facts, HostId::first())?;
    rows.push(row(&overlay, "without", &mut text));
    let tier = args.tier.unwrap_or(Tier::Process);
    if tier == Tier::Supervised {
        for tried in network_trial::attempt(&facts)? {
            failed |= tried.problem.is_some();
            let Tried { mechanism, attempts, problem } = tried;
            rows.push(told((mechanism, attempts), problem, "FAILS", &mut text));
        }
    }
    let data = json!({
        "tier": tier,
        "kernel": format!("{major}.{minor}"),
        "landlock_abi": facts.landlock_abi,
        "mechanisms": rows,
    });
    let answer = Answer::new(data, text)?.code(u8::from(failed));
    Ok(if failed {
        answer.note(format!("this host can't run the {tier} tier as it is"))
    } else {
        answer.note(format!("this host can run the {tier} tier"))
    })
}

/// Says what a trial showed, for a person and for programs.
fn row(probe: &Probe, failed: &str, text: &mut String) -> Value {
    let problem = probe.result.as_ref().err().map(|error| {
        let cause = error.source().map(|source| format!(": {source}")).unwrap_or_default();
        format!("{error}{cause}")
    });
    told((probe.mechanism, probe.attempts), problem, failed, text)
}

fn told(
    (mechanism, attempts): (&str, &str),
    problem: Option<String>,
    failed: &str,
    text: &mut String,
) -> Value {
    let (word, detail) = match &problem {
        None => ("holds", attempts),
        Some(problem) => (failed, problem.as_str()),
    };
    text.push_str(&format!("{word:<10} {mechanism:<20} {detail}\n"));
    json!({
        "mechanism": mechanism,
        "holds": problem.is_none(),
        "attempts": attempts,
        "problem": problem,
    })
}
