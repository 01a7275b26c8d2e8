//! What a policy writes in clear although it looks like a credential.

use std::fmt;

use h5i_export::find_secrets;
use h5i_policy::ResolvedPolicy;
use serde::Serialize;

use crate::shown::Shown;

/// A value of a policy that has the shape of a credential. The value itself is in no field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct WrittenSecret {
    /// The key below the profile: `env.set.TOKEN`, `grant.git.header`.
    place: String,
    /// What it looks like.
    shape: &'static str,
    /// Whether programs in the box can read it.
    in_box: bool,
}

impl fmt::Display for WrittenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, shape, in_box } = self;
        write!(f, "{} holds what looks like a {shape}", Shown::text(place))?;
        f.write_str(match in_box {
            true => ", which every program in the box can read: a grant would keep it on the host",
            false => ", in clear in the policy: `secret` of the grant keeps it where it is",
        })
    }
}

/// Every such value, in the order of its keys; at most one a key. A credential without a known shape
/// is not among them.
pub(crate) fn written_secrets(policy: &ResolvedPolicy) -> Vec<WrittenSecret> {
    let set = written_variables(policy).map(|(name, shape)| WrittenSecret {
        place: format!("env.set.{name}"),
        shape,
        in_box: true,
    });
    let headers = policy.grants.iter().filter_map(|(name, grant)| {
        let place = format!("grant.{name}.header");
        let shape = grant.header.iter().find_map(|header| shape_of(&header.to_string()))?;
        Some(WrittenSecret { place, shape, in_box: false })
    });
    set.chain(headers).collect()
}

/// The variables of a box among them, each with what its value looks like.
pub(crate) fn written_variables(
    policy: &ResolvedPolicy,
) -> impl Iterator<Item = (&str, &'static str)> {
    policy.env.set.iter().filter_map(|(name, value)| Some((name.as_str(), shape_of(value)?)))
}

fn shape_of(value: &str) -> Option<&'static str> {
    find_secrets(value.as_bytes()).next().map(|found| found.shape)
}

#[cfg(test)]
mod tests {
    use h5i_policy::{HostFacts, Layer, PolicyDocument, ResolveRequest, resolve};

    use super::written_secrets;

    const TOKEN: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";

    fn written(lines: &str) -> Vec<String> {
        let text = format!("version = 1\n[profile.default]\ntier = \"supervised\"\n{lines}");
        let document = PolicyDocument::parse("policy.toml", text.as_bytes()).unwrap();
        let layers = [Layer::built_in(), Layer::user(document)];
        let request = ResolveRequest::new("default");
        let resolved = resolve(&layers, &request, &HostFacts::new()).unwrap();
        let found = written_secrets(&resolved.policy);
        let told: Vec<String> = found.iter().map(ToString::to_string).collect();
        let data = serde_json::to_string(&found).unwrap();
        assert!(!data.contains(TOKEN) && !told.concat().contains(TOKEN));
        told
    }

    fn grant(header: &str) -> String {
        format!(
            "[profile.default.grant.host]\nhost = \"code.example.com\"\nvia = \"intercept\"\nmethods = [\"GET\"]\npaths = [\"/**\"]\n\
             secret = \"env:T\"\nheader = [\"authorization: Bearer {{}}\", \"{header}\"]\n"
        )
    }

    #[test]
    fn a_credential_in_clear_is_told_by_its_place_and_shape() {
        let told = written(&format!("env.set.MINE = \"{TOKEN}\"\n"));
        let [told] = told.as_slice() else { panic!("{told:?}") };
        assert!(told.starts_with("env.set.MINE holds what looks like a code host token"), "{told}");
        let told = written(&grant(&format!("x-more: {TOKEN}")));
        let [told] = told.as_slice() else { panic!("{told:?}") };
        assert!(told.starts_with("grant.host.header holds what looks like a code host"), "{told}");
        // The twins: what is no credential, and what names one.
        assert_eq!(written("env.set.MINE = \"ghp_\"\n"), [""; 0]);
        assert_eq!(written(&grant("x-more: 2024-01")), [""; 0]);
    }
}
