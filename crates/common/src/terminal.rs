//! Prints notes, warnings and progress on stderr; stdout is for results.

pub use indicatif::ProgressBar;
use indicatif::{ProgressFinish, ProgressStyle};
use std::io::{self, Write};
use std::time::Duration;

/// Prints a note: something that the user should know and that does not affect the result.
pub fn note(message: &str) {
    let _ = writeln!(io::stderr(), "note: {message}");
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
    let _ = writeln!(io::stderr(), "{kind}: {}", words.join(" "));
}

/// Shows a spinner where stderr is a terminal.
pub fn spinner(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new_spinner()
        .with_message(what)
        .with_finish(ProgressFinish::AndClear);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Shows a progress bar up to `total` where stderr is a terminal.
pub fn progress(total: u64, unit: &str) -> ProgressBar {
    let template = format!("{{wide_bar}} {{pos}}/{{len}} {unit}, {{eta}} left");
    let style =
        ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total)
        .with_style(style)
        .with_finish(ProgressFinish::AndClear)
}
