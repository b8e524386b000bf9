//! `radsweep completions` and `radsweep man`: what a shell and `man` need, made from the arguments.

use super::args::{Cli, Completions, Man, misuse, names, program, similar};
use clap::{ColorChoice, CommandFactory, value_parser};
use radsweep_common::Result;
use radsweep_scenes::Kind;
use std::io::{self, Write};

pub(super) fn completions(args: &Completions) -> Result<()> {
    let (mut script, mut program) = (Vec::new(), Cli::command());
    // A scene stands for `view SCENE`.
    if let Some(view) = program.find_subcommand("view").cloned() {
        let scenes = Kind::ALL.iter().map(|kind| {
            let view = view.clone().name(kind.name());
            view.about(format!("Shows the scene {kind} in a window"))
                .mut_arg("scene", |scene| scene.value_parser(value_parser!(String)))
        });
        program = program.subcommands(scenes);
    }
    clap_complete::generate(args.shell, &mut program, "radsweep", &mut script);
    Ok(io::stdout().write_all(&script)?)
}

pub(super) fn man(args: &Man) -> Result<()> {
    let program = program(ColorChoice::Never);
    let mut command = &program;
    for name in &args.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            misuse(match command.has_subcommands() {
                true => {
                    let known = names(command);
                    let mut message = format!("unknown command `{name}`: known are {known}");
                    for similar in similar(name, known.split(", ")) {
                        message += &format!("\n\n  tip: a similar name exists: '{similar}'");
                    }
                    message
                }
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
