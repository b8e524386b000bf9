//! Fuzzes on any toolchain, without coverage: random inputs, and mutations of valid ones.
//!
//! `cargo run --release -- TARGET [SECONDS] [SEED]`, or `cargo run --release -- TARGET FILE` to run
//! a finding again.

use radsweep_fuzz::random::Random;
use radsweep_fuzz::{capi, cliffs, events, npy};
use std::time::{Duration, Instant};
use std::{env, fs, panic, process};

fn main() {
    let mut arguments = env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let (target, seeds): (fn(&[u8]), Vec<Vec<u8>>) = match name.as_str() {
        "npy" => (npy::target, npy::seeds()),
        "capi" => (capi::target, Vec::new()),
        "events" => (events::target, Vec::new()),
        "cliffs" => (cliffs::target, Vec::new()),
        _ => {
            eprintln!("usage: radsweep-fuzz npy|capi|events|cliffs [SECONDS [SEED] | FILE]");
            process::exit(2);
        }
    };
    let given = arguments.next();
    if let Some(file) = given.as_ref().filter(|given| given.parse::<u64>().is_err()) {
        return target(&fs::read(file).expect("the input"));
    }
    let seconds = given.map_or(10, |given| given.parse().expect("a number"));
    let seed = arguments
        .next()
        .map_or(1, |seed| seed.parse::<u64>().expect("a number"));
    let mut random = Random::new(seed);
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut count, mut bytes) = (0_u64, 0);
    while Instant::now() < end {
        let input = input(&mut random, &seeds);
        if panic::catch_unwind(|| target(&input)).is_err() {
            let path = format!("found-{name}-{seed}-{count}");
            fs::write(&path, &input).expect("a place for the input");
            eprintln!("input {count} of seed {seed} is a finding: {path}");
            process::exit(1);
        }
        count += 1;
        bytes += input.len();
    }
    println!("{name}: {count} inputs, {bytes} bytes in {seconds} s, nothing found (seed {seed})");
}

fn input(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    if seeds.is_empty() || random.below(8) == 0 {
        let len = 1 << random.below(13);
        return (0..random.below(len) + 1)
            .map(|_| random.bits() as u8)
            .collect();
    }
    let mut input = seeds[random.below(seeds.len())].clone();
    for _ in 0..random.below(6) {
        let at = random.below(input.len());
        match random.below(5) {
            0 => input[at] ^= 1 << random.below(8),
            1 => input[at] = random.bits() as u8,
            2 => input.truncate(at.max(1)),
            3 => input.insert(at, b"0123456789(),'{} "[random.below(17)]),
            _ => input.extend((0..random.below(64)).map(|_| random.bits() as u8)),
        }
    }
    input
}
