//! The program: see `radsweep --help`.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
