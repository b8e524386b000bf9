//! Tests of the engine on `wgpu`: the edge cases of `common`, the published scenes, and everything
//! against the CPU engine, bit for bit. They run on the best adapter, which may be a software
//! driver. Without one all are skipped, unless `RADSWEEP_WGPU` is set.

mod common;

mod wgpu;

fn main() {
    let arguments = libtest_mimic::Arguments::from_args();
    libtest_mimic::run(&arguments, wgpu::trials()).exit();
}
