//! Published scenes and other projects' cases on the CPU: counts, hashes and pairs by each
//! strategy, under both rules.

mod common;

use common::published;
use libtest_mimic::Arguments;
use sap::{Backend, Strategy};

fn main() {
    let trials = published::trials(Backend::Cpu, Strategy::ALL);
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
