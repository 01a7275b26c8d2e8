#![no_main]
//! See `h5i_export::fuzzing::patch_apply`.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| h5i_export::fuzzing::patch_apply(data));
