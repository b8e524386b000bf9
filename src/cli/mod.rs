//! From arguments to exit code. Every failure is one line on stderr: 2 for a command line that makes no sense, 1 for the rest.

pub(crate) mod args;
pub(crate) mod backend;
#[cfg(cuda)]
pub(crate) mod calibration;
mod info;
mod pairs;
pub(crate) mod run;
mod sort;
mod table;
mod view;

use crate::bench;
use args::{Bench, Cli, Command};
use clap::Parser;
use clap::error::ErrorKind;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Any [`io::Error`] that is not wrapped comes from writing to stdout: files name themselves in [`radsweep::npy::Error`].
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

pub(crate) fn main() -> ExitCode {
    radsweep::output::remove_on_signals();
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
        Some(Command::Bench(Bench::Sort(args))) => bench::sort(&args),
        Some(Command::Bench(Bench::Sap(args))) => bench::sap(&args),
        Some(Command::Bench(Bench::Paper(args))) => bench::paper(&args),
        Some(Command::Calibrate(args)) => bench::calibrate(&args),
        Some(Command::Info(args)) => info::run(&args),
        None => dispatch(Cli::parse_from(["radsweep", "view", "falling-chairs"])),
    }
}

fn fail(message: &str) -> ExitCode {
    complain(message);
    ExitCode::FAILURE
}

/// One line, whatever is in a file name.
fn complain(message: &str) {
    let words: Vec<&str> = message.split_whitespace().collect();
    let _ = writeln!(io::stderr(), "error: {}", words.join(" "));
}

/// Something that the user should know and that is not in the way of the result.
pub(crate) fn note(message: &str) {
    let _ = writeln!(io::stderr(), "note: {message}");
}

/// Something that is not as it should be, though there is a result.
fn warn(message: &str) {
    let words: Vec<&str> = message.split_whitespace().collect();
    let _ = writeln!(io::stderr(), "warning: {}", words.join(" "));
}

/// Shown on stderr where that is a terminal.
pub(crate) fn spinner(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new_spinner()
        .with_message(what)
        .with_finish(ProgressFinish::AndClear);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Shown on stderr where that is a terminal.
pub(crate) fn progress(total: u64, unit: &str) -> ProgressBar {
    let template = format!("{{wide_bar}} {{pos}}/{{len}} {unit}, {{eta}} left");
    let style =
        ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total)
        .with_style(style)
        .with_finish(ProgressFinish::AndClear)
}
