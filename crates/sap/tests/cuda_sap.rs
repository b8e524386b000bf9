//! Tests of the CUDA engine: the edge cases of `common`, and everything against the CPU engine, bit
//! for bit.

mod common;

#[cfg(cuda)]
mod cuda;

fn main() {
    let mut arguments = libtest_mimic::Arguments::from_args();
    // One at a time, because some tests measure the memory of the device.
    arguments.test_threads.get_or_insert(1);
    #[cfg(cuda)]
    let trials = cuda::trials();
    #[cfg(not(cuda))]
    let trials = vec![
        libtest_mimic::Trial::test("this build has no feature `cuda`", || Ok(()))
            .with_ignored_flag(true),
    ];
    libtest_mimic::run(&arguments, trials).exit()
}
