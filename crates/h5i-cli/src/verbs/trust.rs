//! `h5i policy trust`

use h5i_policy::{Layer, NetRule, Origin, Overrides, Trust};
use serde_json::{Value, json};

use super::Answer;
use crate::args::TrustArgs;
use crate::caller::Caller;
use crate::failure::{Failure, Kind};
use crate::person::{self, Consent};
use crate::policy_source::{DEFAULT_PROFILE, Grounds, REPOSITORY_DOCUMENT};
use crate::second_look::second_look;
use crate::shown::Shown;
use crate::trust::TrustList;
use crate::workspace::HostRepository;

pub(super) fn trust(caller: &Caller, args: &TrustArgs) -> Result<Answer, Failure> {
    crate::inside::refuse_verb("policy trust")?;
    let repository = caller.repository()?;
    if args.withdraw {
        return withdraw(caller, &repository);
    }
    let base = repository.pin(&args.spec())?;
    let grounds = Grounds::of(caller, Some((&repository, &base)))?;
    let described = Shown::text(&base.described).to_string();
    let Some(own) = &grounds.of_repository else {
        let message = format!("{described} has no {REPOSITORY_DOCUMENT}");
        return Err(Failure::told(Kind::NotFound, message)
            .hint("--base REV or --dirty, where another one has it"));
    };
    let digest = own.digest;
    let loosened = loosened(&grounds);
    let told: Vec<Value> = loosened
        .iter()
        .map(|one| {
            let Loosened { place, field, text, look } = one;
            json!({ "where": place, "field": field, "text": text, "look": look })
        })
        .collect();
    let data = |trusted: bool| json!({ "document": digest, "loosens": told, "trusted": trusted });
    if loosened.is_empty() {
        let note =
            format!("{REPOSITORY_DOCUMENT} of {described} loosens nothing, and needs no trust");
        return Ok(Answer::new(data(false), String::new())?.note(note));
    }
    let mut list = TrustList::read(&caller.surroundings.config_dir)?;
    if list.has(&repository, &digest) {
        let note = format!("{REPOSITORY_DOCUMENT} of {described} is trusted already: {digest}");
        return Ok(Answer::new(data(true), String::new())?.note(note));
    }
    if !args.output.json {
        super::say(&format!("{REPOSITORY_DOCUMENT} of {described}, {digest}, would loosen"));
        for one in &loosened {
            super::say(&format!("  {}: {}", one.place, one.text));
        }
        for look in loosened.iter().flat_map(|one| &one.look) {
            super::say(&format!("look     {look}"));
        }
    }
    consent(args).map_err(|failure| failure.detail("loosens", told.clone()))?;
    list.add(&repository, digest);
    let path = list.write(&caller.surroundings.config_dir)?;
    let note =
        format!("trusted  {digest}, in {}; a document that changes is not", Shown::path(&path));
    Ok(Answer::new(data(true), String::new())?.note(note))
}

fn consent(args: &TrustArgs) -> Result<(), Failure> {
    if args.yes {
        return Ok(());
    }
    if args.output.json || !person::is_present() {
        let message = "trusting needs a person's consent, and there is no terminal to ask on";
        return Err(Failure::told(Kind::Refused, message).hint("read what it loosens, then --yes"));
    }
    match person::ask("trust exactly this document, for this repository?")? {
        Consent::Given => Ok(()),
        Consent::Withheld => {
            let message = "the document was not trusted: nobody said yes";
            Err(Failure::told(Kind::Refused, message).hint("read what it loosens, then answer y"))
        }
    }
}

fn withdraw(caller: &Caller, repository: &HostRepository) -> Result<Answer, Failure> {
    let config = &caller.surroundings.config_dir;
    let mut list = TrustList::read(config)?;
    let gone = list.withdraw(repository);
    if gone > 0 {
        list.write(config)?;
    }
    let note = match gone {
        0 => "no document of this repository was trusted".to_owned(),
        1 => "withdrawn: the document of this repository may only tighten".to_owned(),
        n => format!("withdrawn: {n} documents of this repository may only tighten"),
    };
    Ok(Answer::new(json!({ "withdrawn": gone }), String::new())?.note(note))
}

/// One thing that a document would loosen.
struct Loosened {
    /// `profile NAME`, `group @NAME`.
    place: String,
    field: String,
    text: String,
    /// Rules of it to look at twice, with the reason.
    look: Vec<String>,
}

fn look_at<'a>(rules: impl IntoIterator<Item = &'a NetRule>) -> Vec<String> {
    let look = |rule| second_look(rule).map(|why| format!("{rule}: {why}"));
    rules.into_iter().filter_map(look).collect()
}

/// What the repository's document would loosen if it were trusted: each of its profiles beside what a
/// box has without it, and the groups that it defines.
fn loosened(grounds: &Grounds) -> Vec<Loosened> {
    let Some(own) = &grounds.of_repository else { return Vec::new() };
    let is_own = |layer: &&Layer| matches!(layer.origin, Origin::Repository(_));
    let without: Vec<Layer> = grounds.layers.iter().filter(|l| !is_own(l)).cloned().collect();
    let mut with = without.clone();
    with.push(Layer::repository(own.document.clone(), Trust::Trusted));
    let resolve = |layers: &[Layer], name: &str| grounds.resolve(layers, name, Overrides::new());
    let mut found = Vec::new();
    for profile in own.document.profile_names() {
        let place = format!("profile {profile}");
        let mut add = |field: String, text: String, look: Vec<String>| {
            let (place, text) = (place.clone(), Shown::text(&text).to_string());
            found.push(Loosened { place, field, text, look });
        };
        let trusted = match resolve(&with, profile) {
            Ok(trusted) => trusted.policy,
            // It is told what create would say to it.
            Err(failure) => {
                let text = format!("refused at create: {}", failure.message);
                add("profile".to_owned(), text, Vec::new());
                continue;
            }
        };
        // A profile that only the repository has stands beside the one that a person has read.
        let known = without.iter().any(|l| l.document.profile_names().any(|name| name == profile));
        let before = resolve(&without, if known { profile } else { DEFAULT_PROFILE });
        match before.map(|before| trusted.is_within(&before.policy)) {
            Ok(Ok(())) => {}
            Ok(Err(loosenings)) => {
                for loosening in loosenings {
                    let text = loosening.to_string();
                    let rule =
                        (loosening.field == "net.allow").then(|| NetRule::new(&loosening.asked));
                    let look = look_at(rule.and_then(Result::ok).as_ref());
                    add(loosening.field, text, look);
                }
            }
            Err(failure) => add("profile".to_owned(), failure.message, Vec::new()),
        }
    }
    for (name, rules) in own.document.groups() {
        let look = look_at(rules);
        let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
        let (place, field) = (format!("group @{name}"), format!("group.{name}"));
        let text = format!("is {} where you ask for @{name}", rules.join(" "));
        found.push(Loosened { place, field, text, look });
    }
    found
}
