#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| radsweep_fuzz::cliffs::target(data));
