//! The program `radsweep`: `radsweep --help` lists its commands.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
