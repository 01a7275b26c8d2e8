//! `h5i box approve`

use std::fmt::Write as _;

use h5i_export::{ByteText, Event, verify_bundle};
use serde_json::json;

use super::Answer;
use super::apply::{refuse_incomplete, show};
use super::receipt::mismatch;
use super::status::rough;
use crate::approvals::{Approval, Approvals};
use crate::args::{ApproveArgs, ApproveWish};
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::origin::{Origin, changed};
use crate::person::{self, Consent};
use crate::timestamp::Timestamp;

pub(super) fn approve(caller: &Caller, args: &ApproveArgs) -> Result<Answer, Failure> {
    crate::inside::refuse("approve")?;
    let (name, bundle, span) = match args.wish() {
        ApproveWish::Approve { name, bundle, span } => (name, bundle, span),
        ApproveWish::List => return list(caller),
        ApproveWish::Revoke(id) => return revoke(caller, id),
    };
    let asks = !args.yes && !args.output.json && person::is_present();
    if !asks && !args.yes {
        let message = "approving needs a person's consent, and there is no terminal to ask on";
        return Err(Failure::told(Kind::Refused, message).hint("read the report, then --yes"));
    }
    let directory = caller.directory.join(bundle);
    let verified = verify_bundle(&directory, &caller.scratch(), None).map_err(|e| mismatch(&e))?;
    if args.digest.is_some_and(|asked| asked != verified.bundle) {
        return Err(changed(&format!("the bundle is {}, not the one named", verified.bundle)));
    }
    let origin = Origin::find(caller, name, &verified)?;
    refuse_incomplete(args.incomplete, &verified)?;
    if asks {
        show(&verified);
        let question = format!("approve {} for {span}, for one box?", verified.bundle);
        if person::ask(&question)? == Consent::Withheld {
            let message = "the bundle was not approved: nobody said yes";
            return Err(Failure::told(Kind::Refused, message)
                .hint("read the report, then answer y, or --yes"));
        }
    }
    let manifest = origin.manifest();
    let root = caller.store.root();
    let approval =
        Approvals::add(root, (&manifest.name, &manifest.id), verified.bundle, span.count())?;
    let (id, until) = (&approval.id, approval.until);
    let text = format!("approved bundle {} until {until}, id {id}", approval.bundle);
    // An approval that is not on record is none.
    if let Err(failure) = origin.record(Event::Note { text: ByteText::new(text.as_bytes()) }) {
        Approvals::revoke(root, id)?;
        return Err(failure);
    }
    let bundle = crate::shown::Shown::path(bundle);
    Ok(Answer::new(&approval, format!("{id}\n"))?
        .note(format!("approved {}, until {until}", approval.bundle))
        .note(format!(
            "use      h5i box create NAME --profile deploy --artifact {bundle} --grant {id}"
        ))
        .note(format!("revoke   h5i box approve --revoke {id}")))
}

fn list(caller: &Caller) -> Result<Answer, Failure> {
    let list = Approvals::read(caller.store.root())?;
    let now = Timestamp::now();
    let mut text = String::new();
    for approval in list.all() {
        let Approval { id, name, bundle, .. } = approval;
        // Writing to a String can't fail.
        writeln!(text, "{id}  {bundle} of box {name}, {}", state(approval, now)).ok();
    }
    let answer = Answer::new(json!({ "approvals": list.all() }), text)?;
    Ok(if list.all().is_empty() { answer.note("nothing is approved") } else { answer })
}

/// `9 m left`, `used for box b`, `over`
fn state(approval: &Approval, now: Timestamp) -> String {
    match &approval.spent {
        Some(spent) => format!("used for box {}", spent.by),
        None if approval.check(&approval.bundle, now).is_err() => "over".to_owned(),
        None => format!("{} left", rough(approval.until.millis().saturating_sub(now.millis()))),
    }
}

fn revoke(caller: &Caller, id: &str) -> Result<Answer, Failure> {
    let approval = Approvals::revoke(caller.store.root(), id)?;
    let note = match &approval.spent {
        Some(spent) => {
            let by = &spent.by;
            format!("revoked  {id}, which was used: box {by} stays as it is; h5i box kill {by}")
        }
        None => format!("revoked  {id}"),
    };
    Ok(Answer::new(&approval, String::new())?.note(note))
}
