//! `radsweep completions` and `radsweep man`: what a shell and `man` need, made from the arguments.

use super::args::{Cli, Completions, Man, misuse, names};
use clap::CommandFactory;
use radsweep_common::Result;
use std::io::{self, Write};

pub(super) fn completions(args: &Completions) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "radsweep", &mut script);
    Ok(io::stdout().write_all(&script)?)
}

pub(super) fn man(args: &Man) -> Result<()> {
    let mut program = Cli::command();
    // Options for all commands become part of each.
    program.build();
    let mut command = &program;
    for name in &args.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            misuse(match command.has_subcommands() {
                true => format!("unknown command `{name}`: known are {}", names(command)),
                false => format!("`{}` has no commands", command.get_name()),
            })
        })?;
    }
    let mut page = Vec::new();
    let source = concat!("radsweep ", env!("CARGO_PKG_VERSION"));
    // The usage of the help, which has the values of options and is short.
    let mut command = command.clone();
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let man = clap_mangen::Man::new(command.override_usage(usage)).source(source);
    man.render(&mut page)?;
    Ok(io::stdout().write_all(&page)?)
}
