#![no_main]
//! See `h5i_broker::fuzzing::requests`.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| h5i_broker::fuzzing::requests(data));
