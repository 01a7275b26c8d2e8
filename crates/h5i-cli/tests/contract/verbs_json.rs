//! Every verb answers `--json` with one object of a known shape.

use crate::shapes::{
    Answer, BoxDiff, BoxRun, BoxStatus, Bytes, CheckedPolicies, CollectedRemains, CreatedBox,
    Explained, Exported, Listed, PolicyDifference, PolicyDigest, Probed, RemovedBoxes, ShownPolicy,
    VerifiedBundle,
};
use crate::stand::Stand;

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64)
}

#[test]
fn create_list_explain_and_remove_have_their_shapes() {
    let stand = Stand::new();
    let words =
        ["box", "create", "a", "--purpose", "a reason", "--set", "expires=\"1h\"", "--json"];
    let made: CreatedBox = stand.ok(&words).data();
    assert_eq!(
        (made.name.as_str(), made.tier.as_str(), made.profile.as_str()),
        ("a", "process", "default")
    );
    assert_eq!((made.network.as_str(), made.workspace.as_str()), ("none", "checkout"));
    assert_eq!((made.history.as_str(), made.base.branch.as_str()), (Some("full"), "main"));
    assert_eq!(made.home, serde_json::json!({ "copied": [], "left": [] }));
    assert!(is_digest(&made.policy) && made.id.len() == 16, "{made:?}");
    let listed: Listed = stand.ok(&["box", "ls", "--json"]).data();
    assert!(listed.boxes.iter().all(|one| one.session.is_none()), "nothing runs");
    let [one] = &listed.boxes[..] else { panic!("{listed:?}") };
    assert_eq!((&one.name, &one.id, &one.base), (&made.name, &made.id, &made.base));
    assert_eq!(
        (one.state.as_str(), one.tier.as_str(), one.profile.as_str()),
        ("idle", "process", "default")
    );
    assert_eq!((one.purpose.as_deref(), one.scope.len()), (Some("a reason"), 16));
    assert!(
        one.created.ends_with('Z') && one.expires.as_deref() > Some(one.created.as_str()),
        "{one:?}"
    );
    let told: Explained = stand.ok(&["box", "explain", "a", "--json"]).data();
    assert_eq!((told.name.as_str(), told.answers.len()), ("a", 5));
    assert_eq!(told.workspace.kind, "checkout");
    assert!(told.answers.iter().all(|a| a.question.ends_with('?') && !a.answer.is_empty()));
    assert!(
        told.steps.len() > 10
            && told.steps.iter().all(|s| !s.step.is_empty() && !s.reason.is_empty())
    );
    let gone: RemovedBoxes = stand.ok(&["box", "rm", "a", "--json"]).data();
    assert_eq!((gone.removed.len(), gone.removed[0].name.as_str()), (1, "a"));
    assert!(gone.removed[0].archive.is_some());
    let collected: CollectedRemains = stand.ok(&["box", "gc", "--json"]).data();
    assert!(collected.busy.is_empty() && collected.damaged.is_empty());
    assert_eq!(collected.removed.iter().map(|c| c.kind.as_str()).collect::<Vec<_>>(), ["objects"]);
    assert_eq!(collected.removed[0].what, made.base.commit);
    let listed: Listed = stand.ok(&["box", "ls", "--all", "--json"]).data();
    assert!(listed.boxes.is_empty());
}

#[test]
fn a_run_has_its_shape_and_ok_says_that_h5i_did_its_part() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let script = "echo out; echo err >&2; unshare --user true; exit 7";
    let said = stand.h5i(&["box", "run", "a", "--json", "--", "sh", "-c", script]);
    assert_eq!(said.code, 7);
    let run: BoxRun = said.data();
    assert_eq!((run.name.as_str(), run.run, run.exit_code), ("a", 1, 7));
    assert_eq!((run.outcome.as_str(), run.truncated, run.flows.len()), ("exit 7", false, 0));
    assert_eq!(run.stdout, Bytes::Text("out\n".to_owned()));
    assert!(run.max_rss_bytes > 100_000 && run.wall_ms < 60_000 && run.cpu_ms < 60_000, "{run:?}");
    let [denied] = &run.denied[..] else { panic!("{run:?}") };
    assert_eq!((denied.call.as_str(), denied.count), ("unshare", 1));
    assert_eq!(denied.args.first(), Some(&0x1000_0000));
    assert_eq!(denied.program, Bytes::Text("/usr/bin/unshare".to_owned()));
    assert!(!denied.reason.is_empty() && denied.allowed_by.is_none());
    let ran: Vec<(&Bytes, u64)> =
        run.programs.names.iter().map(|program| (&program.name, program.count)).collect();
    let [sh, unshare] = ["sh", "unshare"].map(|name| Bytes::Text(name.to_owned()));
    assert_eq!((run.programs.total, ran), (2, vec![(&sh, 1), (&unshare, 1)]));
    // The one-shot has what it changed and whether it stays on top.
    let said = stand.h5i(&["run", "--json", "--", "sh", "-c", "exit 7"]);
    assert_eq!(said.code, 7);
    let Answer::<serde_json::Value> { ok, mut data, .. } =
        serde_json::from_value(said.json()).unwrap();
    let object = data.as_object_mut().unwrap();
    assert_eq!((ok, object.remove("kept")), (true, Some(true.into())));
    assert!(object.remove("changed").unwrap().is_array());
    let run: BoxRun = serde_json::from_value(data).unwrap();
    assert_eq!((run.run, run.exit_code), (1, 7));
}

#[test]
fn the_log_is_json_lines_and_its_filters_choose_among_them() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    stand.h5i(&["box", "run", "a", "--", "unshare", "--user", "true"]);
    let kinds = |words: &[&str]| -> Vec<String> {
        let said = stand.ok(&[&["box", "log", "a", "--json"], words].concat());
        let lines = said.text().lines().map(|line| {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            for field in ["v", "seq", "at", "lane", "kind", "prev"] {
                assert!(record.get(field).is_some(), "{field}: {line}");
            }
            record["kind"].as_str().unwrap().to_owned()
        });
        lines.collect()
    };
    let kernel = ["exec-attempt", "exec", "refused-call", "process-end"];
    assert_eq!(kinds(&["--lane", "kernel"]), kernel);
    assert_eq!(kinds(&[]), [&["create", "run-start"], &kernel[..], &["run-end"]].concat());
    assert_eq!(kinds(&["--denied"]), ["refused-call"]);
    assert_eq!(kinds(&["--lane", "host"]), ["create", "run-start", "run-end"]);
    assert_eq!(kinds(&["--lane", "net"]), [""; 0]);
    // A failure of the verb itself is an object as everywhere.
    let told = stand.h5i(&["box", "log", "zz", "--json"]).failure();
    assert_eq!((told.kind.as_str(), &told.details["name"]), ("not-found", &"zz".into()));
}

#[test]
fn a_log_that_is_followed_ends_with_the_run() {
    let stand = Stand::new();
    stand.ok(&["box", "create", "a"]);
    let mut run = stand.command();
    run.args(["box", "run", "a", "--", "cat"]).stdin(std::process::Stdio::piped());
    let mut run = run.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = run.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"x").unwrap();
    std::io::Read::read_exact(&mut run.stdout.take().unwrap(), &mut [0]).unwrap();
    let mut follow = stand.command();
    follow.args(["box", "log", "a", "--follow"]).stdout(std::process::Stdio::piped());
    let mut follow = follow.spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(follow.stdout.take().unwrap()));
    assert!(lines.next().unwrap().unwrap().contains("created"));
    assert!(lines.next().unwrap().unwrap().contains("started cat"));
    drop(stdin);
    run.wait().unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(rest.last().unwrap().contains(" ended: "), "{rest:?}");
    assert!(
        rest.iter().any(|line| line.contains("asks for /usr/bin/cat in /work: cat")),
        "{rest:?}"
    );
    assert_eq!(follow.wait().unwrap().code(), Some(0));
}

#[test]
fn probe_and_policies_have_their_shapes() {
    let stand = Stand::new();
    let probed: Probed = stand.ok(&["box", "probe", "--json"]).data();
    assert_eq!(probed.tier, "process");
    assert!(probed.landlock_abi >= 3 && probed.kernel.contains('.'), "{probed:?}");
    assert!(probed.mechanisms.len() >= 6);
    for mechanism in &probed.mechanisms {
        assert!(mechanism.holds && mechanism.problem.is_none(), "{mechanism:?}");
        assert!(!mechanism.mechanism.is_empty() && !mechanism.attempts.is_empty());
    }
    let said = stand.h5i(&["box", "probe", "--tier", "microvm", "--json"]);
    assert_eq!((said.code, said.failure().kind.as_str()), (4, "unavailable"));
    let shown: ShownPolicy = stand.ok(&["policy", "show", "--json"]).data();
    let digest: PolicyDigest = stand.ok(&["policy", "digest", "--json"]).data();
    assert_eq!((shown.profile.as_str(), &shown.digest), ("default", &digest.digest));
    assert_eq!((digest.profile.as_str(), is_digest(&digest.digest)), ("default", true));
    assert!(shown.policy.contains_key("tier") && shown.policy.contains_key("net"));
    assert!(
        shown
            .explained
            .iter()
            .any(|line| line.field == "tier" && !line.text.is_empty() && !line.from.is_empty())
    );
    let made: CreatedBox = stand.ok(&["box", "create", "a", "--json"]).data();
    assert_eq!(made.policy, digest.digest);
    let same: PolicyDifference = stand.ok(&["policy", "diff", "a", "--json"]).data();
    assert_eq!(
        (same.frozen, same.now, same.changes.len()),
        (digest.digest.clone(), digest.digest, 0)
    );
    stand.user_policy("version = 1\n[profile.default.limits]\nwall = \"5m\"\n");
    let said = stand.h5i(&["policy", "diff", "a", "--json"]);
    let differs: PolicyDifference = said.data();
    assert_eq!((said.code, differs.changes.len()), (1, 1));
    let change = &differs.changes[0];
    assert_eq!(change.field, "limits.wall");
    assert!(
        change.frozen.as_deref().unwrap().contains("2h")
            && change.now.as_deref().unwrap().contains("5m"),
        "{change:?}"
    );
    let checked: CheckedPolicies = stand.ok(&["policy", "check", "--json"]).data();
    assert_eq!(checked.checked.len(), 1);
}

#[test]
fn verbs_without_json_refuse_it_and_help_needs_no_host() {
    let stand = Stand::without_repository();
    let said = stand.h5i(&["completions", "bash", "--json"]);
    assert_eq!((said.code, said.failure().kind.as_str()), (2, "usage"));
    for words in
        [&["--help"][..], &["--version"], &["box", "create", "--help"], &["completions", "zsh"]]
    {
        // No home, no path, no state: help asks nothing of the host.
        let output = stand.command().env_clear().args(words).output().unwrap();
        assert!(output.status.success() && !output.stdout.is_empty(), "{words:?}: {output:?}");
    }
    assert!(!stand.state().try_exists().unwrap());
}

#[test]
fn status_diff_and_export_have_their_shapes() {
    let stand = Stand::new();
    let made: CreatedBox = stand.ok(&["box", "create", "a", "--json"]).data();
    stand.sh("a", "echo new > new; unshare --user true; true");
    let told: BoxStatus = stand.ok(&["box", "status", "a", "--json"]).data();
    assert_eq!((told.name.as_str(), told.id, told.base), ("a", made.id, made.base));
    assert_eq!((told.policy, told.network.as_str(), told.in_use), (made.policy, "none", false));
    assert_eq!((told.export_held_by, told.artifact), (None, None));
    assert!(told.session.is_none(), "{:?}", told.session);
    assert_eq!((told.tier.as_str(), told.profile.as_str(), told.runs), ("process", "default", 1));
    assert_eq!((told.expires, told.purpose), (None, None));
    assert_eq!(told.workspace.kind, "checkout");
    assert_eq!(told.workspace.reason, "the base is small");
    assert!(told.created.ends_with('Z'), "{}", told.created);
    let [refused] = &told.refused[..] else { panic!("{:?}", told.refused) };
    assert_eq!((refused.call.as_str(), refused.count), ("unshare", 1));
    assert_eq!(refused.program, "/usr/bin/unshare");
    let [changed] = &told.changed[..] else { panic!("{:?}", told.changed) };
    assert_eq!((changed.kind.as_str(), &changed.path), ("added", &Bytes::Text("new".to_owned())));
    assert_eq!((changed.added, changed.removed, changed.bytes), (Some(1), Some(0), 4));
    assert_eq!(changed.old_path, None);
    let enforced = told.enforcement.unwrap();
    assert!(enforced.iter().any(|m| m.mechanism == "landlock" && m.state == "on"), "{enforced:?}");
    assert!(enforced.iter().any(|m| !m.detail.is_empty()));
    let diff: BoxDiff = stand.ok(&["box", "diff", "a", "--json"]).data();
    assert_eq!((diff.name.as_str(), diff.files.len()), ("a", 1));
    assert_eq!(diff.base, stand.ground.git(&["rev-parse", "HEAD"]));
    assert!(matches!(diff.patch, Bytes::Text(text) if text.contains("+new\n")));
    let out = stand.path().join("out");
    let words = ["box", "export", "a", "--json", "-o", out.to_str().unwrap()];
    let exported: Exported = stand.ok(&words).data();
    assert_eq!((exported.name.as_str(), exported.changed.len()), ("a", 1));
    assert_eq!((exported.tree, is_digest(&exported.bundle)), (diff.tree.clone(), true));
    assert_eq!(exported.directory, Bytes::Text(out.to_str().unwrap().to_owned()));
    assert!(out.join("patch.diff").is_file() && out.join("report.md").is_file());
    let verify = ["receipt", "verify", out.to_str().unwrap(), "--json"];
    let verified: VerifiedBundle = stand.ok(&verify).data();
    assert_eq!((verified.name.as_str(), verified.applied), ("a", true));
    assert_eq!((verified.bundle, verified.tree), (exported.bundle, diff.tree));
    assert!(verified.records >= 4, "{}", verified.records);
    // The twin: a bundle that is not what was reviewed is a finding.
    std::fs::write(out.join("patch.diff"), "").unwrap();
    assert_eq!(stand.h5i(&verify).code, 1);
}

#[test]
fn what_a_supervised_box_does_on_the_network_is_in_run_and_status() {
    let stand = Stand::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let rule = format!("host:{port}");
    stand.ok(&["box", "create", "a", "--tier", "supervised", "--allow", &rule]);
    let connect = |to: &str| {
        format!(r#"perl -MIO::Socket::INET -e 'IO::Socket::INET->new(PeerAddr => "{to}")'; "#)
    };
    let script = [connect(&rule), connect("192.0.2.9:443"), "true".to_owned()].concat();
    let run: BoxRun = stand.ok(&["box", "run", "a", "--json", "--", "sh", "-c", &script]).data();
    let [flow] = &run.flows[..] else { panic!("{:?}", run.flows) };
    assert_eq!((flow.flow, flow.protocol.as_str(), flow.port), (1, "tcp", port));
    assert_eq!((flow.address.as_str(), &flow.names[..]), ("192.0.0.1", &["host".to_owned()][..]));
    assert_eq!((&flow.rules[..], &flow.named), (&[rule.clone()][..], &None));
    assert_eq!((flow.sent, flow.received, flow.reason.as_deref()), (0, 0, None));
    // Of a program that ends at once it may not be known.
    let program = flow.program.as_deref();
    assert!(program.is_none_or(|program| program.ends_with("perl")), "{flow:?}");
    assert!(program.is_none() || flow.pid.is_some(), "{flow:?}");
    // The server never closes its side, so the session's end is the flow's.
    assert_eq!(flow.verdict, "ended");
    assert!(flow.duration_ms <= run.wall_ms + 10_000, "{flow:?}");
    let [denied] = &run.denied_network[..] else { panic!("{:?}", run.denied_network) };
    assert_eq!((denied.kind.as_str(), denied.count), ("connection", 1));
    assert_eq!(
        (denied.what.as_str(), denied.reason.as_str()),
        ("192.0.2.9:443", "no rule lists it")
    );
    assert_eq!(denied.allowed_by.as_deref(), Some("192.0.2.9:443"));
    let [program] = &denied.programs[..] else { panic!("{denied:?}") };
    assert!(program.ends_with("/perl"), "{denied:?}");
    assert_eq!((run.network_untold, run.stopped), (0, None));
    assert!(run.grants.is_empty() && run.denied_grants.is_empty());
    assert!(run.canaries.is_empty());

    let told: Explained = stand.ok(&["box", "explain", "a", "--json"]).data();
    assert_eq!(told.home["copied"], serde_json::json!([]));
    let [reach] = &told.reach[..] else { panic!("{:?}", told.reach) };
    assert_eq!((&reach.rule, reach.from.as_deref()), (&rule, Some("command line")));
    let status: BoxStatus = stand.ok(&["box", "status", "a", "--json"]).data();
    assert_eq!((status.tier.as_str(), status.network.as_str()), ("supervised", "allow"));
    assert_eq!(status.allow, [rule]);
    assert_eq!(status.grants, serde_json::json!({}));
    assert!(status.canaries.is_empty());
    let refused: Vec<_> = status
        .refused_network
        .iter()
        .map(|one| (one.what.as_str(), one.count, &one.programs))
        .collect();
    assert!(status.refused_grants.is_empty(), "{status:?}");
    assert_eq!(refused, [("192.0.2.9:443", 1, &denied.programs)]);
    let gate = status.enforcement.unwrap().into_iter().find(|one| one.mechanism == "network gate");
    assert_eq!(gate.unwrap().state, "on");
}
