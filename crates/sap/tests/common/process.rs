//! Trials in processes of their own.

use libtest_mimic::{Failed, Trial};
use std::process::Command;

/// Tells a child to run its trial itself.
const CHILD: &str = "RADSWEEP_TEST_OWN_PROCESS";

/// Returns trials that each run in a process of their own: those that count the allocations of the
/// whole process can then run at the same time.
pub fn isolated(trials: Vec<Trial>) -> Vec<Trial> {
    if std::env::var_os(CHILD).is_some() {
        return trials;
    }
    let isolate = |trial: Trial| {
        let name = trial.name().to_owned();
        Trial::test(name.clone(), move || child(&name))
    };
    trials.into_iter().map(isolate).collect()
}

fn child(name: &str) -> Result<(), Failed> {
    let mut command = Command::new(std::env::current_exe()?);
    let done = command.args(["--exact", name]).env(CHILD, "1").output()?;
    let said = String::from_utf8_lossy(&done.stdout);
    if done.status.success() && said.contains("1 passed") {
        return Ok(());
    }
    let cause = String::from_utf8_lossy(&done.stderr);
    Err(format!("{}: {said}{cause}", done.status).into())
}
