//! Prints notes, warnings and progress on stderr; stdout is for results.

use console::style;
pub use indicatif::ProgressBar;
use indicatif::{ProgressFinish, ProgressStyle};
use std::io::{self, Write};
use std::time::Duration;

/// Prints a note: something that the user should know and that does not affect the result.
pub fn note(message: &str) {
    // A closed stderr does not end the command.
    let _ = writeln!(io::stderr(), "{}: {message}", label("note"));
}

/// Prints a warning on one line: something went wrong, though there is a result.
pub fn warn(message: &str) {
    say("warning", message);
}

/// Prints an error on one line: why there is no result.
pub fn error(message: &str) {
    say("error", message);
}

/// Prints one line, even where a file name contains line breaks.
fn say(kind: &str, message: &str) {
    let words: Vec<&str> = message.split_whitespace().collect();
    // A closed stderr does not end the command.
    let _ = writeln!(io::stderr(), "{}: {}", label(kind), words.join(" "));
}

/// Colours the first word of a message where stderr takes colours.
fn label(kind: &str) -> console::StyledObject<&str> {
    let label = style(kind).for_stderr().bold();
    match kind {
        "error" => label.red(),
        "warning" => label.yellow(),
        _ => label.cyan(),
    }
}

/// Turns the colours of messages on or off, whatever stderr is.
pub fn set_colors(on: bool) {
    console::set_colors_enabled_stderr(on);
}

/// Shows a spinner where stderr is a terminal.
pub fn spinner(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new_spinner()
        .with_message(what)
        .with_finish(ProgressFinish::AndClear);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Shows a progress bar up to `total` with the time left, for steps that take equally long, where
/// stderr is a terminal.
pub fn progress(total: u64, unit: &str) -> ProgressBar {
    bar(total, unit, "{eta} left")
}

/// Shows a progress bar up to `total` with the time so far, for steps of any length, where stderr
/// is a terminal.
pub fn steps(total: u64, unit: &str) -> ProgressBar {
    let bar = bar(total, unit, "{elapsed} so far");
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}

fn bar(total: u64, unit: &str, time: &str) -> ProgressBar {
    let template = format!("{{wide_bar}} {{pos}}/{{len}} {unit}, {time}");
    let style =
        ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total)
        .with_style(style)
        .with_finish(ProgressFinish::AndClear)
}
