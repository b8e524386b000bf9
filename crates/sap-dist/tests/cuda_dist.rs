//! Ranks on CUDA devices: their pairs and events are those of one engine on the CPU, bit for bit.
//! Ranks share the devices that there are.

#[cfg(cuda)]
mod common;

#[cfg(cuda)]
mod cuda;

fn main() {
    #[cfg(cuda)]
    if cuda::nccl::run_case() {
        return;
    }
    let mut arguments = libtest_mimic::Arguments::from_args();
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
