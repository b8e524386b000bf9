//! From arguments to exit code. Every failure is one line on stderr: 2 for a command line that makes no sense, 1 for the rest.

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
use radsweep_common::terminal::complain;
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
            complain(text.split("\n\n").next().unwrap_or(text));
            return ExitCode::from(2);
        }
    };
    match done.and_then(|()| Ok(io::stdout().flush()?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => match error.downcast_ref::<io::Error>() {
            // Whoever reads has seen enough.
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
    complain(message);
    ExitCode::FAILURE
}
