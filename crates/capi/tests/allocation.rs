//! Refuses the first, second, third… large allocation of an update, each in a process of its own.
//!
//! Either the call fails and the last result is unchanged, or the process ends with the message of
//! Rust's allocator.

#![allow(clippy::unwrap_used, missing_docs)]

use radsweep_capi::RadsweepStatus as Status;
use radsweep_capi::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::process::{Command, ExitCode, Output};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{env, thread};

/// The variable with the number of the allocation that a child process is refused.
const CHILD: &str = "RADSWEEP_TEST_ALLOCATION";
/// Bytes from which an allocation counts as large.
const LARGE: usize = 64 << 10;

struct Failing;

#[global_allocator]
static ALLOCATOR: Failing = Failing;
/// Large allocations until the refused one; 0 for none.
static LEFT: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicBool = AtomicBool::new(false);

fn refuses(bytes: usize) -> bool {
    if bytes < LARGE {
        return false;
    }
    let count = |left: u64| left.checked_sub(1);
    let fails = LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count) == Ok(1);
    if fails {
        FAILED.store(true, Ordering::Relaxed);
    }
    fails
}

// SAFETY: the system's allocator, or null, which every caller must expect.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refuses(layout.size()) {
            return null_mut();
        }
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if refuses(layout.size()) {
            return null_mut();
        }
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if refuses(bytes) {
            return null_mut();
        }
        // SAFETY: guaranteed by the caller.
        unsafe { System.realloc(ptr, layout, bytes) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(ptr, layout) }
    }
}

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

    LEFT.store(allocation, Ordering::Relaxed);
    let status = update(&large);
    LEFT.store(0, Ordering::Relaxed);
    match (status, FAILED.load(Ordering::Relaxed)) {
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
