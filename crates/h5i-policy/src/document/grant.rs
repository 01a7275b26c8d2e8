//! Reading `[profile.X.grant.NAME]`.

use std::collections::BTreeSet;
use std::net::IpAddr;

use toml::de::DeValue;

use super::error::{DocumentErrorKind, ValueError};
use super::read::{Item, MOST_ENTRIES, Read, ReadError, did_you_mean};
use super::{entries, unknown_key};
use crate::env_name::{is_env_name, steers_programs};
use crate::git_use::GitUse;
use crate::grant::{Allowed, Grant, Method, Via};
use crate::grant_headers::{GrantHeaders, GrantHeadersError};
use crate::header_template::HeaderTemplate;
use crate::host_name::HostName;
use crate::pattern::Pattern;
use crate::request_path::request_path;
use crate::secret_ref::SecretRef;

pub(super) const KEYS: &[&str] = &[
    "host",
    "port",
    "secret",
    "header",
    "query",
    "methods",
    "paths",
    "git",
    "programs",
    "via",
    "base_url",
    "base_path",
    "token",
    "requests",
    "bytes_up",
    "bytes_down",
    "lasts",
];

/// Reads one grant. What may pass, and which way, must be written out; budgets may be left out.
pub(super) fn grant(section: &str, item: &Item<'_>) -> Read<Grant> {
    let table = item.table()?;
    let field = |key: &'static str| {
        table.get(key).map(|value| Item {
            key: format!("{}.{key}", item.key),
            span: value.span(),
            value: value.get_ref(),
        })
    };
    let required = |key: &'static str| {
        field(key).ok_or_else(|| {
            item.error(DocumentErrorKind::MissingKey { key, section: section.to_owned() })
        })
    };
    for (key, span, _) in entries(table) {
        if !KEYS.contains(&key) {
            let suggestion = did_you_mean(key, KEYS.iter().copied());
            return Err(unknown_key(span, key, section).suggesting(suggestion));
        }
    }
    let mut grant = Grant::to(host(&required("host")?)?);
    grant.via = required("via")?.word()?;
    if let Some(git) = field("git") {
        grant.git = git_use(&git)?;
    }
    grant.methods = match field("methods") {
        // Those that git has.
        None if grant.git != GitUse::Any => Allowed::Only([Method::Get, Method::Post].into()),
        _ => allowed(&required("methods")?, Item::word)?,
    };
    grant.paths = allowed(&required("paths")?, |path| {
        request_path(path.text()?).map_err(|error| path.refused(error))
    })?;
    if let Some(port) = field("port") {
        grant.port = port.count(1, u16::MAX)?;
    }
    if let Some(secret) = field("secret") {
        grant.secret = Some(secret.parsed()?);
    }
    if let Some(header) = field("header") {
        grant.header = headers(&header)?;
    }
    if let Some(query) = field("query") {
        grant.query = Some(query.parsed()?);
    }
    if let Some(programs) = field("programs") {
        grant.programs = allowed(&programs, Item::parsed)?;
    }
    if let Some(base_url) = field("base_url") {
        grant.variables.base_url = names(&base_url)?;
    }
    if let Some(path) = field("base_path") {
        grant.variables.base_path = base_path(&path)?;
    }
    if let Some(token) = field("token") {
        grant.variables.token = names(&token)?;
        let both = grant.variables.base_url.intersection(&grant.variables.token).next();
        if let Some(name) = both {
            return Err(token.refused(ValueError::VariableTwice { name: name.clone() }));
        }
    }
    if let Some(requests) = field("requests") {
        grant.requests = requests.count_budget(u64::MAX)?;
    }
    if let Some(bytes_up) = field("bytes_up") {
        grant.bytes_up = bytes_up.budget()?;
    }
    if let Some(bytes_down) = field("bytes_down") {
        grant.bytes_down = bytes_down.budget()?;
    }
    if let Some(lasts) = field("lasts") {
        grant.lasts = lasts.budget()?;
    }
    // What belongs together.
    match &grant.secret {
        None => {
            if let Some(key) = ["header", "query"].into_iter().find(|key| field(key).is_some()) {
                return Err(idle(section, item, key, "without `secret`"));
            }
        }
        // It knows its headers.
        Some(SecretRef::Login(_)) => {}
        Some(_) if grant.header.hold_secret() || grant.query.is_some() => {}
        Some(_) => {
            let or = "or name the parameter of the query that carries the secret with `query`";
            let header = required("header").map_err(|error| error.suggesting(Some(or.into())))?;
            return Err(header.refused(GrantHeadersError::NoPlace));
        }
    }
    match grant.via {
        Via::Reverse => required("base_url").map(|_| grant),
        Via::Intercept if field("base_url").is_some() => {
            Err(idle(section, item, "base_url", "with via = \"intercept\""))
        }
        Via::Intercept if field("base_path").is_some() => {
            Err(idle(section, item, "base_path", "with via = \"intercept\""))
        }
        Via::Intercept if field("token").is_some() => {
            Err(idle(section, item, "token", "with via = \"intercept\""))
        }
        Via::Intercept if grant.host.is_localhost() => {
            let instead = "write via = \"reverse\", by which the host reaches its own service";
            let refused = required("host")?.refused(ValueError::GrantLocalhost);
            Err(refused.suggesting(Some(instead.to_owned())))
        }
        Via::Intercept => Ok(grant),
    }
}

/// One header, or a list of them.
fn headers(item: &Item<'_>) -> Read<GrantHeaders> {
    let header = |item: &Item<'_>| -> Read<HeaderTemplate> {
        item.text()?.parse().map_err(|error| item.refused(GrantHeadersError::Template(error)))
    };
    let mut headers = GrantHeaders::default();
    for item in one_or_more(item, "a header or a list of headers")? {
        headers.add(header(&item)?).map_err(|error| item.refused(error))?;
    }
    Ok(headers)
}

/// The entries of a list, or the one value that stands in its place.
fn one_or_more<'a>(item: &Item<'a>, expected: &'static str) -> Read<Vec<Item<'a>>> {
    match item.value {
        DeValue::String(_) => Ok(vec![item.clone()]),
        DeValue::Array(entries) if entries.len() > MOST_ENTRIES => Err(item.too_many()),
        DeValue::Array(entries) => Ok(entries
            .iter()
            .map(|entry| Item { key: item.key.clone(), span: entry.span(), value: entry.get_ref() })
            .collect()),
        _ => Err(item.wrong_type(expected)),
    }
}

fn idle(
    section: &str,
    item: &Item<'_>,
    key: &'static str,
    because: &'static str,
) -> Box<ReadError> {
    item.error(DocumentErrorKind::IdleKey { key, section: section.to_owned(), because })
}

/// The name of the service.
fn host(item: &Item<'_>) -> Read<HostName> {
    let text = item.text()?;
    let Ok(address) = text.trim_matches(['[', ']']).parse::<IpAddr>() else { return item.parsed() };
    let instead = if address.is_loopback() || address.is_unspecified() {
        "write \"localhost\" with via = \"reverse\", if the service speaks TLS; otherwise let the box \
         reach it without a grant: net.allow = [\"host:PORT\"]"
    } else {
        "write the name in the service's certificate; the host finds its address, in /etc/hosts too"
    };
    Err(item.refused(ValueError::GrantAddress).suggesting(Some(instead.to_owned())))
}

/// `"any"`, or a list.
fn allowed<'a, T: Ord>(item: &Item<'a>, read: impl Fn(&Item<'a>) -> Read<T>) -> Read<Allowed<T>> {
    match item.value {
        DeValue::String(word) if word == "any" => Ok(Allowed::Any),
        DeValue::Array(_) => item.list(read).map(Allowed::Only),
        _ => Err(item.wrong_type("a list or \"any\"")),
    }
}

/// A path without query that a client's own path can be put behind.
fn base_path(item: &Item<'_>) -> Read<String> {
    let path = item.text()?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/".contains(&b);
    let segment = |segment: &str| !matches!(segment, "" | "." | "..");
    let whole = path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(segment));
    if path.is_empty() || whole && path.bytes().all(plain) {
        return Ok(path.to_owned());
    }
    Err(item.refused(ValueError::BasePath))
}

/// `"any"`, `"fetch"`, or `{ push = ["refs/heads/agent/**"] }`.
fn git_use(item: &Item<'_>) -> Read<GitUse> {
    const EXPECTED: &str = "\"fetch\" or a table with `push`";
    match item.value {
        DeValue::String(word) => match word.as_ref() {
            "any" => Ok(GitUse::Any),
            "fetch" => Ok(GitUse::Fetch),
            found => Err(item.error(DocumentErrorKind::UnknownWord {
                key: item.key.clone(),
                found: found.to_owned(),
                allowed: vec!["any", "fetch"],
            })),
        },
        DeValue::Table(_) => {
            let mut push = None;
            for (key, span, value) in entries(item.table()?) {
                if key != "push" {
                    let suggestion = did_you_mean(key, ["push"]);
                    let section = format!("`{}`", item.key);
                    return Err(unknown_key(span, key, &section).suggesting(suggestion));
                }
                let key = format!("{}.push", item.key);
                push = Some(Item { key, ..value }.list(reference)?);
            }
            push.map(GitUse::Push).ok_or_else(|| item.wrong_type(EXPECTED))
        }
        _ => Err(item.wrong_type(EXPECTED)),
    }
}

/// A pattern of references. One that is not anchored would match in places that nobody has in mind.
fn reference(item: &Item<'_>) -> Read<Pattern> {
    let pattern: Pattern = item.parsed()?;
    let named = pattern.as_str().strip_prefix("refs/").is_some_and(|rest| !rest.is_empty());
    if named { Ok(pattern) } else { Err(item.refused(ValueError::Reference)) }
}

/// One name of a variable, or a list of them, that a run is given an address or a token in.
fn names(item: &Item<'_>) -> Read<BTreeSet<String>> {
    let name = |item: &Item<'_>| {
        let name = item.text()?;
        if !is_env_name(name) {
            return Err(item.refused(ValueError::EnvName));
        }
        if steers_programs(name) {
            return Err(item.refused(ValueError::Steering { name: name.to_owned() }));
        }
        Ok(name.to_owned())
    };
    let mut read = BTreeSet::new();
    for entry in one_or_more(item, "a name or a list of names")? {
        let name = name(&entry)?;
        if !read.insert(name.clone()) {
            return Err(entry.refused(ValueError::VariableTwice { name }));
        }
    }
    Ok(read)
}
