//! Any policy, for property tests: few values for each field, so that two policies often meet.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

use crate::canaries::Canaries;
use crate::git_use::GitUse;
use crate::grant::{Allowed, Grant, Method, Via};
use crate::grant_headers::GrantHeaders;
use crate::header_template::HeaderTemplate;
use crate::history::History;
use crate::home_path::HomePath;
use crate::host_name::HostName;
use crate::host_path::HostPath;
use crate::net_rule::NetRule;
use crate::pattern::Pattern;
use crate::query_name::QueryName;
use crate::react::{React, Reaction};
use crate::resolved::{
    Combine, Debuggers, EnvPolicy, Executables, ExportPolicy, FsPolicy, GrantOrigin, LandlockMode,
    Limits, Namespaces, NetBudget, NetMode, NetPolicy, ReadGrant, RecordOutput, ResolvedPolicy,
};
use crate::seed::Seed;
use crate::tier::Tier;
use crate::units::{Bytes, Millis};
use crate::word::Word;

fn word<T: Word + std::fmt::Debug>() -> impl Strategy<Value = T> {
    any::<Index>().prop_map(|at| at.get(T::WORDS).1)
}

/// A few of these.
fn few<T: Ord + Clone + std::fmt::Debug + 'static>(
    all: Vec<T>,
) -> impl Strategy<Value = BTreeSet<T>> {
    let most = all.len();
    subsequence(all, 0..=most).prop_map(|few| few.into_iter().collect())
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Debug>>(texts: &[&str]) -> Vec<T> {
    texts.iter().map(|text| text.parse().expect(text)).collect()
}

fn bytes() -> impl Strategy<Value = Bytes> {
    select(vec![0, 1, 1536, 1 << 20, 5 << 30, (1 << 53) + 1, u64::MAX - 1, u64::MAX])
        .prop_map(Bytes::new)
}

fn millis() -> impl Strategy<Value = Millis> {
    select(vec![0, 1, 1500, 60_000, 7_200_000, (1 << 53) + 1, u64::MAX]).prop_map(Millis::new)
}

fn count() -> impl Strategy<Value = Option<u32>> {
    select(vec![None, Some(1), Some(256), Some(u32::MAX)])
}

fn fs() -> impl Strategy<Value = FsPolicy> {
    let paths: Vec<HostPath> = ["/", "/a", "/a/b", "/a/b/c", "/a-b", "/w", "/w/x", "/é \"q"]
        .iter()
        .map(|path| HostPath::new(path).expect(path))
        .collect();
    let masks = vec!["b", "b/c", "m", "x/y", "c\u{202e}d"];
    let masks: Vec<String> = masks.into_iter().map(str::to_owned).collect();
    let read = prop::collection::btree_map(
        select(paths.clone()),
        (word::<GrantOrigin>(), few(masks)).prop_map(|(origin, mask)| ReadGrant { origin, mask }),
        0..4,
    );
    let hide = few(parsed::<Pattern>(&["**/.env", "secrets/**", "*.pem"]));
    (read, few(paths), hide, canaries()).prop_map(|(read, write, hide, canaries)| FsPolicy {
        read,
        write,
        hide,
        canaries,
    })
}

/// Some that can't stand beside each other, and together more than may be.
fn canaries() -> impl Strategy<Value = Canaries> {
    let path = |text: &str| HomePath::new(text).expect(text);
    let named: Vec<HomePath> =
        ["~/.aws", "~/.aws/credentials", "~/.aws-\u{202e}é"].map(path).into();
    let numbered: Vec<HomePath> = (0..20).map(|n| path(&format!("~/.n{n}"))).collect();
    let most = prop_oneof![9 => Just(0), 1 => Just(12)];
    let numbered = most.prop_flat_map(move |most| subsequence(numbered.clone(), 0..=most));
    (few(named), numbered).prop_map(|(mut all, numbered)| {
        all.extend(numbered);
        let is_directory = |path: &HomePath| path.as_str() == "~/.aws";
        Canaries::new(all.clone())
            .or_else(|_nested| {
                Canaries::new(all.into_iter().filter(|p| !is_directory(p)).collect())
            })
            .expect("no directory among them")
    })
}

fn net() -> impl Strategy<Value = NetPolicy> {
    let rules: Vec<NetRule> = parsed(&[
        "a.example.com",
        "b.example.com:80",
        "*.example.com",
        "*.b.example.com",
        "c.b.example.com",
        "0.0.0.0/0",
        "8.0.0.0/6",
        "8.8.8.8",
        "10.0.0.0/8",
        "10.1.2.3",
        "::/0",
        "[2001:db8::/32]:443",
        "8.8.8.8:53/udp",
        "host:5432",
        "a.example.com,sni=any",
        "*.b.example.com,sni=any",
    ]);
    let budget = (prop::option::of(bytes()), count(), count()).prop_map(
        |(bytes, connections, connections_per_second)| NetBudget {
            bytes,
            connections,
            connections_per_second,
        },
    );
    (word::<NetMode>(), few(rules), budget).prop_map(|(mode, allow, budget)| NetPolicy {
        mode,
        allow,
        budget,
    })
}

fn env() -> impl Strategy<Value = EnvPolicy> {
    let names = few(vec!["LANG".to_owned(), "TZ".to_owned()]);
    let set = prop::collection::btree_map(
        select(vec!["CI".to_owned(), "MODE".to_owned()]),
        select(vec!["1".to_owned(), "a \"b\"\n\\é".to_owned()]),
        0..2,
    );
    (names, set).prop_map(|(pass, set)| EnvPolicy { pass, set })
}

fn limits() -> impl Strategy<Value = Limits> {
    let option = prop::option::of::<proptest::strategy::BoxedStrategy<Bytes>>;
    let time = || prop::option::of(millis());
    let size = move || option(bytes().boxed());
    let disk = (size(), size());
    (time(), time(), time(), size(), count(), count(), size(), disk, size()).prop_map(
        |(wall, session, cpu, memory, processes, open_files, file_size, disk, output)| {
            let (disk, keep_free) = disk;
            Limits {
                wall,
                session,
                cpu,
                memory,
                processes,
                open_files,
                file_size,
                disk,
                keep_free,
                output,
            }
        },
    )
}

fn allowed<T: Ord + Clone + std::fmt::Debug + 'static>(
    all: Vec<T>,
) -> impl Strategy<Value = Allowed<T>> {
    prop_oneof![Just(Allowed::Any), few(all).prop_map(Allowed::Only)]
}

fn grant() -> impl Strategy<Value = Grant> {
    (
        select(vec!["a.example.com", "b.example.com"]),
        secret(),
        allowed(vec![Method::Get, Method::Post]),
        allowed(parsed::<Pattern>(&["/v1/**", "/v2/*"])),
        word::<Via>(),
        select(vec![None, Some(1), Some(u64::from(u32::MAX) + 1)]),
        (prop::option::of(bytes()), prop::option::of(bytes())),
        prop::option::of(millis()),
        (allowed(parsed::<Pattern>(&["/usr/bin/git", "/usr/bin/*"])), git_use()),
    )
        .prop_map(
            |(host, secret, methods, paths, via, requests, bytes, lasts, (programs, git))| {
                let (bytes_up, bytes_down) = bytes;
                let mut grant = Grant::to(HostName::new(host).expect(host));
                if let Some((reference, (header, query))) = secret {
                    grant.secret = Some(reference.parse().expect(reference));
                    (grant.header, grant.query) = (header, query);
                }
                if via == Via::Reverse {
                    grant.variables.base_url.insert("A_URL".into());
                    grant.variables.base_path = "/v1".into();
                }
                Grant {
                    methods,
                    paths,
                    git,
                    programs,
                    via,
                    requests,
                    bytes_up,
                    bytes_down,
                    lasts,
                    ..grant
                }
            },
        )
}

/// A secret, and where it goes: into a header at least, or into the query.
fn secret() -> impl Strategy<Value = Option<(&'static str, (GrantHeaders, Option<QueryName>))>> {
    let headers =
        few(parsed::<HeaderTemplate>(&["a-version: 1", "x-key: {}", "x-pair: Basic {basic:u}"]));
    let headers = headers.prop_map(|few: BTreeSet<HeaderTemplate>| {
        let mut headers = GrantHeaders::default();
        for header in few {
            headers.add(header).expect("another name");
        }
        headers
    });
    let place =
        (headers, select(vec![None, Some("key"), Some("KEY")])).prop_map(|(headers, query)| {
            match query {
                None if !headers.hold_secret() => (
                    GrantHeaders::from("x-key: {}".parse::<HeaderTemplate>().expect("header")),
                    None,
                ),
                _ => (headers, query.map(|name| name.parse().expect(name))),
            }
        });
    prop::option::of((select(vec!["env:TOKEN", "command:pass show x"]), place))
}

fn git_use() -> impl Strategy<Value = GitUse> {
    let references = parsed::<Pattern>(&["refs/heads/agent/**", "refs/heads/x", "refs/tags/*"]);
    prop_oneof![Just(GitUse::Any), Just(GitUse::Fetch), few(references).prop_map(GitUse::Push)]
}

fn export() -> impl Strategy<Value = ExportPolicy> {
    let binaries = few(parsed::<Pattern>(&["*.wasm", "/bin/x"]));
    (bytes(), bytes(), any::<u32>(), word::<Executables>(), binaries).prop_map(
        |(max_file, max_total, max_files, executables, binaries)| ExportPolicy {
            max_file,
            max_total,
            max_files,
            executables,
            binaries,
        },
    )
}

fn react() -> impl Strategy<Value = React> {
    let one = word::<Reaction>;
    (one(), one(), one(), one(), one()).prop_map(
        |(refused_connect, refused_call, budget, canary_read, gap)| React {
            refused_connect,
            refused_call,
            budget,
            canary_read,
            gap,
        },
    )
}

/// Any policy in canonical form.
pub(crate) fn policy() -> impl Strategy<Value = ResolvedPolicy> {
    let history = select(vec![
        History::None,
        History::Depth(1),
        History::Depth(u32::MAX),
        History::Full,
        History::Borrow,
    ]);
    let grants =
        prop::collection::btree_map(select(vec!["g".to_owned(), "h.1".to_owned()]), grant(), 0..3);
    let words = (
        word::<Tier>(),
        word::<Namespaces>(),
        word::<LandlockMode>(),
        word::<Debuggers>(),
        word::<Combine>(),
        word::<RecordOutput>(),
    );
    let seed = prop::collection::btree_set(word::<Seed>(), 0..3);
    let parts = (fs(), net(), env(), limits(), grants, export(), (react(), seed));
    (words, history, parts, prop::option::of(millis())).prop_map(
        |(
            (tier, namespaces, landlock, debuggers, combine, record_output),
            history,
            parts,
            expires,
        )| {
            let (fs, net, env, limits, grants, export, (react, seed)): (
                _,
                _,
                _,
                _,
                BTreeMap<_, _>,
                _,
                _,
            ) = parts;
            ResolvedPolicy {
                tier,
                namespaces,
                landlock,
                debuggers,
                combine,
                fs,
                history,
                net,
                env,
                limits,
                grants,
                export,
                react,
                record_output,
                seed,
                expires,
            }
            .canonical()
        },
    )
}
