//! `h5i box allow`, `revoke`, `cut`

use h5i_policy::NetRule;
use serde_json::json;

use super::{Answer, find};
use crate::args::{RuleArgs, SessionArgs};
use crate::box_network::Wish;
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::session::change_network;
use crate::store::BoxName;

pub(super) fn allow(caller: &Caller, args: &RuleArgs) -> Result<Answer, Failure> {
    crate::inside::refuse("allow")?;
    change(caller, &args.name, Wish::Allow { rule: rule(args)? })
}

pub(super) fn revoke(caller: &Caller, args: &RuleArgs) -> Result<Answer, Failure> {
    crate::inside::refuse("revoke")?;
    change(caller, &args.name, Wish::Revoke { rule: rule(args)? })
}

pub(super) fn cut(caller: &Caller, args: &SessionArgs) -> Result<Answer, Failure> {
    crate::inside::refuse("cut")?;
    change(caller, &args.name, Wish::Cut)
}

fn rule(args: &RuleArgs) -> Result<NetRule, Failure> {
    NetRule::new(&args.rule).map_err(|e| {
        Failure::new(Kind::Refused, &e).hint("HOST[:PORT], *.DOMAIN, CIDR:PORT or host:PORT")
    })
}

fn change(caller: &Caller, name: &BoxName, wish: Wish) -> Result<Answer, Failure> {
    let stored = find(caller, name)?;
    let policy = change_network(&stored, wish)?;
    Ok(Answer::new(json!({ "name": name, "policy": policy }), String::new())?
        .note(format!("policy   {policy}, until the session ends")))
}
