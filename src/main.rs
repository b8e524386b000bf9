//! The program: see `radsweep --help`.

mod bench;
mod cli;
#[cfg(feature = "viewer")]
mod viewer;

fn main() -> std::process::ExitCode {
    cli::main()
}
