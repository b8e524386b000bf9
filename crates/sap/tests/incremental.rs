//! Incremental updates over many frames: every strategy of the CPU engine against a rebuild of
//! each frame.

mod common;

use common::{RULES, Setup, incremental, rule_name};
use libtest_mimic::{Arguments, Trial};
use sap::{Backend, Strategy};

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for &strategy in Strategy::ALL {
        for rule in RULES {
            let setup = Setup {
                backend: Backend::Cpu,
                strategy,
                rule,
            };
            trials.extend(incremental::ALL.iter().map(|&(case, check)| {
                let name = format!("{case}::{strategy}::{}", rule_name(rule));
                Trial::test(name, move || check(&setup))
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}
