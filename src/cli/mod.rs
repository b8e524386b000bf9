//! Parses the command line, runs the command, and returns the exit code.
//!
//! A failure prints one line on stderr and exits with code 1. A bad command line prints what is
//! wrong with it, with clap's suggestions or the usage, and exits with code 2.

mod args;
#[cfg(cuda)]
mod devices;
mod info;
mod pairs;
mod run;
mod shell;
mod sort;
mod table;
mod view;

use args::{Cli, Command, names, similar};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, ColorChoice, FromArgMatches, ValueEnum};
use radsweep_common::{Result, backend, npy, output, terminal};
use radsweep_scenes::Kind;
use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

pub(crate) fn main() -> ExitCode {
    output::remove_on_signals();
    backend::follow_wgpu_variables();
    let args: Vec<OsString> = std::env::args_os().collect();
    let colour = colour(&args);
    match colour {
        ColorChoice::Auto => {}
        ColorChoice::Always => terminal::set_colors(true),
        ColorChoice::Never => terminal::set_colors(false),
    }
    let mut program = args::program(colour);
    let matches = program.try_get_matches_from_mut(with_view(args));
    let parsed = matches.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return explain(error),
    };
    let done = dispatch(cli).and_then(|()| Ok(io::stdout().flush()?));
    match done.map_err(misused) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ok(misuse)) => explain(with_usage(misuse, &mut program, &matches)),
        Err(Err(error)) => fail(error),
    }
}

/// Returns an error of the command line, whether it was seen before the work or in it; any other
/// error as it is.
fn misused(error: Box<dyn Error>) -> std::result::Result<clap::Error, Box<dyn Error>> {
    let error = match error.downcast::<clap::Error>() {
        Ok(misuse) => return Ok(*misuse),
        Err(error) => error,
    };
    let is_of_engine =
        |error: &radsweep::Error| matches!(error, radsweep::Error::Unsupported { .. });
    let is_of_scene = |error: &radsweep_scenes::Error| {
        use radsweep_scenes::Error;
        matches!(error, Error::Bodies { .. } | Error::Density { .. })
    };
    #[cfg(feature = "viewer")]
    let is_of_picture = match error.downcast_ref::<radsweep_viewer::Error>() {
        Some(radsweep_viewer::Error::Size { .. } | radsweep_viewer::Error::Body { .. }) => true,
        Some(radsweep_viewer::Error::Scene(error)) => is_of_scene(error),
        Some(radsweep_viewer::Error::BroadPhase(error)) => is_of_engine(error),
        _ => false,
    };
    #[cfg(not(feature = "viewer"))]
    let is_of_picture = false;
    match is_of_picture
        || error.downcast_ref().is_some_and(is_of_engine)
        || error.downcast_ref().is_some_and(is_of_scene)
    {
        true => Ok(clap::Error::raw(ErrorKind::ValueValidation, error)),
        false => Err(error),
    }
}

fn dispatch(cli: Cli) -> Result<()> {
    if let Some(threads) = cli.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build_global()
            .map_err(|error| format!("cannot start {threads} threads: {error}"))?;
    }
    match cli.command {
        Command::View(args) => {
            args.simulation.check()?;
            view::view(args)
        }
        Command::Run(args) => {
            args.simulation.check()?;
            run::run(&args, 1)
        }
        Command::Pairs(args) => pairs::run(&args),
        Command::Sort(args) => sort::run(&args),
        Command::Bench(args) => radsweep_bench::run(&args),
        Command::Calibrate(args) => radsweep_bench::calibrate(&args),
        Command::Info(args) => info::run(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
    }
}

/// The options that stand before a command, each with a value.
const GLOBAL: [&str; 3] = ["--threads", "--colour", "--color"];

/// Inserts the command `view` where a scene or an option stands in its place, or nothing.
fn with_view(mut args: Vec<OsString>) -> Vec<OsString> {
    let mut at = 1;
    while let Some(text) = args.get(at).and_then(|arg| arg.to_str()) {
        let has_value = |name: &str| {
            let rest = text.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with('='))
        };
        if GLOBAL.contains(&text) {
            at += 2;
        } else if GLOBAL.into_iter().any(has_value) {
            at += 1;
        } else {
            let is_for_all = ["-h", "--help", "-V", "--version"].contains(&text);
            if is_for_all || !text.starts_with('-') && text.parse::<Kind>().is_err() {
                return args;
            }
            break;
        }
    }
    args.insert(at.min(args.len()), "view".into());
    args
}

/// Returns the choice of `--colour`, which is needed before the command line is parsed: its errors
/// are coloured too.
fn colour(args: &[OsString]) -> ColorChoice {
    let texts = args.iter().filter_map(|arg| arg.to_str());
    let nexts = texts.clone().skip(1).chain([""]);
    let values = texts.zip(nexts).filter_map(|(arg, next)| {
        let value = arg.strip_prefix("--colour");
        let value = value.or_else(|| arg.strip_prefix("--color"))?;
        match value.strip_prefix('=') {
            None => value.is_empty().then_some(next),
            same => same,
        }
    });
    let choice = values
        .last()
        .map(|value| ColorChoice::from_str(value, false));
    choice.and_then(std::result::Result::ok).unwrap_or_default()
}

/// Adds the usage of the command that was given.
fn with_usage(error: clap::Error, command: &mut clap::Command, given: &ArgMatches) -> clap::Error {
    match given.subcommand() {
        None => error.format(command),
        Some((name, given)) => match command.find_subcommand_mut(name) {
            Some(command) => with_usage(error, command, given),
            None => error,
        },
    }
}

/// Returns the error of an unknown command, with what is similar and what there is. Clap lists no
/// commands and knows no scenes.
fn unknown(error: &clap::Error) -> clap::Error {
    let text = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let given = text(ContextKind::InvalidSubcommand);
    let is_of_bench = text(ContextKind::Usage).contains("radsweep bench");
    let args: Vec<OsString> = std::env::args_os().collect();
    // `help` takes no scene.
    let has_scenes = !is_of_bench && !args.iter().any(|arg| arg == "help");
    let mut program = args::program(colour(&args));
    let command = match program.find_subcommand_mut("bench").filter(|_| is_of_bench) {
        Some(bench) => bench,
        None => &mut program,
    };
    let scenes = Kind::ALL
        .iter()
        .map(|kind| kind.name())
        .filter(|_| has_scenes);
    let scenes: Vec<&str> = scenes.collect();
    let commands = names(command);
    let known = commands.split(", ").chain(scenes.iter().copied());
    let mut message = match has_scenes {
        true => format!("`{given}` is neither a command nor a scene\n"),
        false => format!("`{given}` is not a command\n"),
    };
    for similar in similar(&given, known) {
        message += &format!("\n  tip: a similar name exists: '{similar}'");
    }
    if has_scenes && given.ends_with(".npy") {
        message += &format!("\n  tip: `radsweep pairs {given}` finds the pairs in a file of boxes");
    }
    message += &format!("\n  tip: the commands are {commands}");
    if has_scenes {
        message += &format!("\n  tip: the scenes are {}", scenes.join(", "));
    }
    clap::Error::raw(ErrorKind::InvalidSubcommand, message).format(command)
}

/// Prints the help, the version, or what is wrong with the command line.
fn explain(mut error: clap::Error) -> ExitCode {
    if error.kind() == ErrorKind::InvalidSubcommand {
        error = unknown(&error);
    }
    let has = |kind, part: &str| {
        let found = error.get(kind);
        found.is_some_and(|found| found.to_string().contains(part))
    };
    let of_run = [
        ("--json", "`radsweep run` prints JSON"),
        (
            "--devices",
            "`radsweep run` finds pairs on several devices, without a window",
        ),
    ];
    let tip = of_run.iter().find(|(option, _)| {
        has(ContextKind::InvalidArg, option) && has(ContextKind::Usage, "radsweep view")
    });
    if let Some((_, tip)) = tip {
        error.remove(ContextKind::SuggestedArg);
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![(*tip).to_owned().into()]),
        );
    }
    match (error.print(), error.use_stderr()) {
        (_, true) => ExitCode::from(2),
        (Err(error), false) => fail(error.into()),
        (Ok(()), false) => ExitCode::SUCCESS,
    }
}

/// Prints why a command failed.
fn fail(error: Box<dyn Error>) -> ExitCode {
    let stdout = match (error.downcast_ref(), error.downcast_ref()) {
        (Some(error), _) => Some(error),
        (_, Some(npy::Error::Write { path, source })) if path.as_os_str() == "stdout" => {
            Some(source)
        }
        _ => to_stdout(&*error),
    };
    match stdout {
        // The reader closed the pipe: that is no failure.
        Some(error) if io::Error::kind(error) == io::ErrorKind::BrokenPipe => {
            return ExitCode::SUCCESS;
        }
        Some(error) => terminal::error(&format!("cannot write to stdout: {error}")),
        None => terminal::error(&error.to_string()),
    }
    ExitCode::FAILURE
}

/// Returns why a picture was not written to stdout, if so.
#[cfg(feature = "viewer")]
fn to_stdout<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    match error.downcast_ref()? {
        radsweep_viewer::Error::Save { path, source } if path.as_os_str() == "stdout" => {
            Some(source)
        }
        _ => None,
    }
}
#[cfg(not(feature = "viewer"))]
fn to_stdout<'a>(_: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(line: &str) -> Vec<OsString> {
        line.split(' ').map(Into::into).collect()
    }

    #[test]
    fn a_scene_or_an_option_stands_for_the_command_view() {
        for (given, expected) in [
            ("radsweep", "radsweep view"),
            ("radsweep stack", "radsweep view stack"),
            ("radsweep --bodies 100", "radsweep view --bodies 100"),
            ("radsweep --threads 2", "radsweep --threads 2 view"),
            (
                "radsweep --threads 2 --color=never stack",
                "radsweep --threads 2 --color=never view stack",
            ),
            ("radsweep --threads", "radsweep --threads view"),
            (
                "radsweep --threads 2 run stack",
                "radsweep --threads 2 run stack",
            ),
            ("radsweep run stack", "radsweep run stack"),
            ("radsweep dance", "radsweep dance"),
            ("radsweep --help", "radsweep --help"),
            ("radsweep -V", "radsweep -V"),
        ] {
            assert_eq!(with_view(strings(given)), strings(expected), "{given}");
        }
    }

    #[test]
    fn the_last_choice_of_colours_counts() {
        assert_eq!(
            colour(&strings("radsweep --color=always run --colour never")),
            ColorChoice::Never
        );
        assert_eq!(
            colour(&strings("radsweep run --colour=always")),
            ColorChoice::Always
        );
        assert_eq!(colour(&strings("radsweep --color=loud")), ColorChoice::Auto);
        assert_eq!(
            colour(&strings("radsweep --colour-by speed")),
            ColorChoice::Auto
        );
    }
}
