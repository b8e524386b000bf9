//! Parses the command line, runs the command, and returns the exit code.
//!
//! Every failure prints one line on stderr. The exit code is 2 for a bad command line and 1 for any
//! other failure.

mod args;
mod info;
mod pairs;
mod run;
mod sort;
mod table;
mod view;

use args::{Cli, Command};
use clap::Parser;
use clap::error::ErrorKind;
use radsweep_common::Result;
use radsweep_common::terminal;
use std::io::{self, Write};
use std::process::ExitCode;

pub(crate) fn main() -> ExitCode {
    radsweep_common::output::remove_on_signals();
    let done = match Cli::try_parse() {
        Ok(cli) => dispatch(cli),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            ) =>
        {
            write!(io::stdout(), "{}", error.render()).map_err(Into::into)
        }
        Err(error) => {
            // The first paragraph says what is wrong; usage and tips follow.
            let text = error.render().to_string();
            let text = text.trim_start_matches("error: ");
            terminal::error(text.split("\n\n").next().unwrap_or(text));
            return ExitCode::from(2);
        }
    };
    match done.and_then(|()| Ok(io::stdout().flush()?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => match error.downcast_ref::<io::Error>() {
            // The reader closed the pipe: that is no failure.
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Some(error) => fail(&format!("cannot write to stdout: {error}")),
            None => fail(&error.to_string()),
        },
    }
}

fn dispatch(cli: Cli) -> Result<()> {
    if let Some(threads) = cli.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.into());
        pool.build_global()
            .map_err(|error| format!("cannot start {threads} threads: {error}"))?;
    }
    match cli.command {
        Some(Command::View(args)) => view::view(args),
        Some(Command::Run(args)) => run::run(&args, 1),
        Some(Command::Pairs(args)) => pairs::run(&args),
        Some(Command::Sort(args)) => sort::run(&args),
        Some(Command::Bench(args)) => radsweep_bench::run(&args),
        Some(Command::Calibrate(args)) => radsweep_bench::calibrate(&args),
        Some(Command::Info(args)) => info::run(&args),
        None => dispatch(Cli::parse_from(["radsweep", "view", "falling-chairs"])),
    }
}

fn fail(message: &str) -> ExitCode {
    terminal::error(message);
    ExitCode::FAILURE
}
