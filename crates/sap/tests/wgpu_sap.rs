//! Tests of the engine on `wgpu`: the edge cases of `common`, the published scenes, and everything
//! against the CPU engine, bit for bit. They run on the best adapter, which may be a software
//! driver. Without one all are skipped, unless `RADSWEEP_WGPU` is set.

mod common;

mod wgpu;

fn main() {
    let arguments = libtest_mimic::Arguments::from_args();
    let conclusion = libtest_mimic::run(&arguments, wgpu::trials());
    // As in `wgpu_sort` of `gpusort`: no exit handler of a software driver runs.
    #[cfg(unix)]
    // SAFETY: the call takes any number, and does not return. Each line printed was flushed.
    unsafe {
        libc::_exit(if conclusion.has_failed() { 101 } else { 0 })
    }
    #[cfg(not(unix))]
    conclusion.exit();
}
