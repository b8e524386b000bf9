//! Tests of the engine on `wgpu`: the edge cases of `common`, the published scenes, and everything
//! against the CPU engine, bit for bit. They run on the best adapter, which may be a software
//! driver. Without one all are skipped, unless `RADSWEEP_WGPU` is set.

mod common;

#[path = "../../wgpu-device/tests/validation/mod.rs"]
mod validation;

mod wgpu;

fn main() {
    validation::watch();
    let arguments = libtest_mimic::Arguments::from_args();
    let conclusion = libtest_mimic::run(&arguments, wgpu::trials());
    validation::exit(conclusion.has_failed())
}
