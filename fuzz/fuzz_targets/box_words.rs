#![no_main]
//! See `h5i_net::fuzzing::box_words`.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| h5i_net::fuzzing::box_words(data));
