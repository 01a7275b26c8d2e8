//! Hosts that lack a mechanism: the plan is given their facts.

use h5i::box_plan::plan_failure;
use h5i::failure::{Failure, Kind};
use h5i_confine::{HostFacts, Layout, Plan, UserNamespaces};
use h5i_policy::{LandlockMode, NetMode, ResolvedPolicy, Tier};

fn refused(change: impl FnOnce(&mut HostFacts, &mut ResolvedPolicy)) -> Failure {
    match plan(change) {
        Ok(_) => panic!("planned"),
        Err(failure) => failure,
    }
}

fn plan(change: impl FnOnce(&mut HostFacts, &mut ResolvedPolicy)) -> Result<Plan, Failure> {
    let mut facts = HostFacts::read().unwrap();
    (facts.kernel, facts.landlock_abi) = ((6, 18), 7);
    facts.user_namespaces = UserNamespaces::Allowed;
    let mut policy = ResolvedPolicy::default();
    change(&mut facts, &mut policy);
    let mut layout = Layout::new("/", "/");
    if facts.is_root() {
        layout = layout.host_id(2_000_000_001);
    }
    Plan::new(&policy, &layout, &facts).map_err(plan_failure)
}

#[test]
fn what_a_host_lacks_is_named_with_what_to_do() {
    plan(|_, _| {}).unwrap();
    let forbidden = |setting, value: &str| {
        let value = value.to_owned();
        refused(|facts, _| facts.user_namespaces = UserNamespaces::Forbidden { setting, value })
    };
    for (failure, says, hint) in [
        (
            forbidden("kernel.apparmor_restrict_unprivileged_userns", "1"),
            "kernel.apparmor_restrict_unprivileged_userns = 1",
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        (
            forbidden("kernel.unprivileged_userns_clone", "0"),
            "forbids user namespaces to ordinary users",
            "sudo sysctl -w kernel.unprivileged_userns_clone=1",
        ),
        (
            forbidden("user.max_user_namespaces", "0"),
            "user.max_user_namespaces = 0",
            "sudo sysctl -w user.max_user_namespaces=15000",
        ),
        (refused(|facts, _| facts.kernel = (5, 12)), "kernel is 5.12", "a newer kernel"),
        (
            refused(|facts, _| facts.landlock_abi = 0),
            "Landlock ABI 0",
            "landlock = \"best-effort\"",
        ),
        (refused(|facts, _| facts.landlock_abi = 2), "Landlock ABI 2", "a newer kernel"),
        (
            refused(|facts, policy| {
                (facts.landlock_abi, policy.net.mode) = (5, NetMode::Host);
            }),
            "abstract sockets",
            "a newer kernel",
        ),
    ] {
        assert_eq!(failure.kind, Kind::Unavailable, "{failure:?}");
        assert_eq!(failure.kind.exit_code(), 4);
        assert!(failure.message.contains(says), "{failure:?}");
        assert!(failure.hint.as_deref().unwrap().contains(hint), "{failure:?}");
        assert!(failure.to_string().starts_with("refused: "), "{failure}");
    }
}

#[test]
fn an_old_landlock_is_enough_where_best_effort_was_chosen() {
    let plan = plan(|facts, policy| {
        facts.landlock_abi = 0;
        policy.landlock = LandlockMode::BestEffort;
    });
    let missing: Vec<_> = plan.unwrap().enforcement().missing().map(|m| m.name).collect();
    assert!(missing.contains(&"landlock"), "{missing:?}");
}

#[test]
fn a_tier_that_is_not_served_is_refused_before_the_host_is_asked() {
    for tier in [Tier::Container, Tier::Microvm] {
        let failure = refused(|facts, policy| {
            (facts.landlock_abi, policy.tier) = (0, tier);
        });
        assert_eq!(failure.kind, Kind::Refused);
        assert!(failure.message.contains(tier.name()), "{failure:?}");
    }
}
