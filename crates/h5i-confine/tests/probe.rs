//! The probe on this host.
#![allow(clippy::unwrap_used, reason = "tests")]

use h5i_confine::{HostFacts, probe};

#[test]
fn every_mechanism_of_this_host_holds() {
    let facts = HostFacts::read().unwrap();
    let results = probe(&facts, 2_000_000_001);
    assert_eq!(results.len(), 6);
    for result in results {
        assert!(result.result.is_ok(), "{}: {:?}", result.mechanism, result.result);
    }
}
