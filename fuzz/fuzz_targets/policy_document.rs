#![no_main]
//! See `h5i_policy::fuzzing::policy_document`.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| h5i_policy::fuzzing::policy_document(data));
