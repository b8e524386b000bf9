//! The program: see `radsweep --help`.

mod bench;
mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
