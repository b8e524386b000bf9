//! Refuses the first, second, third… large allocation of an update, each in a process of its own.
//!
//! Either the call fails and the last result is unchanged, or the process ends with the message of
//! Rust's allocator.

#![allow(clippy::unwrap_used, missing_docs)]

#[allow(dead_code)] // only some of it is needed here
#[path = "../../sap/tests/common/refusing.rs"]
mod refusing;

use radsweep_capi::RadsweepStatus as Status;
use radsweep_capi::*;
use refusing::{Refuse, Refusing};
use std::process::{Command, ExitCode, Output};
use std::ptr::{null, null_mut};
use std::{env, thread};

/// The variable with the number of the allocation that a child process is refused.
const CHILD: &str = "RADSWEEP_TEST_ALLOCATION";

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

fn main() -> ExitCode {
    if let Ok(which) = env::var(CHILD) {
        let [strategy, allocation] = which.split('/').collect::<Vec<_>>()[..] else {
            panic!("{which}");
        };
        child(strategy.parse().unwrap(), allocation.parse().unwrap());
        return ExitCode::SUCCESS;
    }
    if env::args().any(|argument| argument == "--list") {
        println!("allocation: test"); // a harness of one test
        return ExitCode::SUCCESS;
    }
    let strategies = [
        ("sweep", RADSWEEP_STRATEGY_SWEEP),
        ("subdivided", RADSWEEP_STRATEGY_SUBDIVIDED),
    ];
    // A child uses one thread.
    let threads = strategies.map(|(name, strategy)| thread::spawn(move || run(name, strategy)));
    let results = threads.map(|thread| thread.join().unwrap());
    for error in results.iter().filter_map(|result| result.as_ref().err()) {
        eprintln!("{error}");
    }
    ExitCode::from(u8::from(results.iter().any(Result::is_err)))
}

/// Refuses one allocation after the other, and prints what came of it.
fn run(name: &str, strategy: u32) -> Result<(), String> {
    let (mut typed, mut absorbed, mut aborted) = (0, 0, 0);
    for allocation in 1_u64.. {
        let output = refuse(strategy, allocation);
        let said = String::from_utf8_lossy(&output.stderr);
        match String::from_utf8_lossy(&output.stdout).trim() {
            "never came to it" => break,
            "typed" => typed += 1,
            "absorbed" => absorbed += 1,
            _ if !output.status.success()
                && said.contains("memory allocation of")
                && !said.contains("panicked") =>
            {
                aborted += 1
            }
            other => {
                let status = output.status;
                return Err(format!(
                    "{name}, allocation {allocation}: {other} {status} {said}"
                ));
            }
        }
    }
    println!(
        "{name}: of the large allocations of an update {typed} are an error, {aborted} end the process, {absorbed} are not needed"
    );
    if typed == 0 {
        return Err(format!("{name}: no refused allocation was an error"));
    }
    Ok(())
}

fn refuse(strategy: u32, allocation: u64) -> Output {
    let mut command = Command::new(env::current_exe().unwrap());
    // With one thread the same allocation is refused each time.
    command
        .env(CHILD, format!("{strategy}/{allocation}"))
        .env("RAYON_NUM_THREADS", "1")
        .output()
        .unwrap()
}

fn boxes(n: usize) -> Vec<RadsweepAabb> {
    let at = |index: usize| {
        let min = [index % 40, index / 40 % 40, index / 1600].map(|cell| cell as f32 * 0.9);
        RadsweepAabb {
            min,
            max: min.map(|side| side + 1.0),
        }
    };
    (0..n).map(at).collect()
}

fn pairs(handle: *mut RadsweepBroadPhase) -> Vec<RadsweepPair> {
    let (mut list, mut count) = (null(), 0);
    // SAFETY: memory for the result, which is read before the next call.
    unsafe {
        assert_eq!(
            radsweep_pairs(handle, RADSWEEP_PAIRS_ALL, &mut list, &mut count),
            Status::Ok
        );
        std::slice::from_raw_parts(list, count).to_vec()
    }
}

fn child(strategy: u32, allocation: u64) {
    // SAFETY: zeros are a configuration, which is then filled.
    let mut config: RadsweepConfig = unsafe { std::mem::zeroed() };
    // SAFETY: it is one, of that size.
    let status = unsafe { radsweep_config_default(&mut config, size_of::<RadsweepConfig>()) };
    assert_eq!(status, Status::Ok);
    config.backend = RADSWEEP_BACKEND_CPU;
    config.strategy = strategy;
    let mut handle = null_mut();
    // SAFETY: both point at what they should.
    assert_eq!(unsafe { radsweep_create(&config, &mut handle) }, Status::Ok);
    let (small, large) = (boxes(2_000), boxes(30_000));
    // SAFETY: as many boxes as are said.
    let update =
        |boxes: &[RadsweepAabb]| unsafe { radsweep_update(handle, boxes.as_ptr(), boxes.len()) };
    assert_eq!(update(&small), Status::Ok);
    let before = pairs(handle);

    refusing::refuse(allocation, Refuse::One);
    let status = update(&large);
    let refused = refusing::stop();
    match (status, refused.any) {
        (Status::Ok, false) => println!("never came to it"),
        (Status::Ok, true) => println!("absorbed"),
        (Status::OutOfMemory, true) => {
            assert_eq!(pairs(handle), before, "the last result changed");
            assert_eq!(update(&large), Status::Ok, "the update after");
            assert!(pairs(handle).len() > before.len());
            println!("typed");
        }
        (status, _) => println!("{status:?}"),
    }
}
