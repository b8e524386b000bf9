//! Compares the CPU sorts with other sort crates: median times, one table for each kind of sort.
//!
//! `cargo bench -p radsweep-bench --features peers --bench cpu_sorts [-- [pairs] LARGEST_LOG2
//! [RUNS]]`; `pairs` prints that table alone. Every candidate does the whole task: an index sort
//! starts from keys and ends with the index. `Sorter` keeps its scratch memory between runs, as it
//! would between frames; `fresh` is the free function, which allocates it each time. The results of
//! all candidates are compared with each other. Without `--bench` (as `cargo test --benches` runs
//! it), the program does only that, for small sizes.

use radsweep::sort::{Key, SortOptions, cpu};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use rdst::{RadixKey, RadixSort};
use std::fmt::Debug;
use std::time::Instant;
use voracious_radix_sort::RadixSort as Voracious;

/// A number with the key bits above and the index below. No two are equal, so an unstable sort of
/// them sorts the keys stably.
type Composite = u64;

/// The same number for `rdst`, which looks at the key bits only and uses its stable algorithms.
#[derive(Clone, Copy)]
struct HighHalf(u64);

impl RadixKey for HighHalf {
    const LEVELS: usize = 4;

    fn get_level(&self, level: usize) -> u8 {
        (self.0 >> (32 + 8 * level)) as u8
    }
}

/// A pair that `rdst` sorts by its key.
#[derive(Clone, Copy)]
struct ByKey(u32, u32);

impl RadixKey for ByKey {
    const LEVELS: usize = 4;

    fn get_level(&self, level: usize) -> u8 {
        (self.0 >> (8 * level)) as u8
    }
}

/// Selects the stable sorts of `rdst`.
struct StableTuner;

impl rdst::tuner::Tuner for StableTuner {
    fn pick_algorithm(&self, p: &rdst::tuner::TuningParams, _: &[usize]) -> rdst::tuner::Algorithm {
        if p.input_len < 260_000 {
            rdst::tuner::Algorithm::Lsb
        } else {
            rdst::tuner::Algorithm::MtLsb
        }
    }
}

fn composites(keys: &[f32]) -> Vec<Composite> {
    let composite = |(i, key): (usize, &f32)| u64::from(key.to_ordered_bits()) << 32 | i as u64;
    keys.iter().enumerate().map(composite).collect()
}

fn indices(composites: impl IntoIterator<Item = Composite>, index: &mut [u32]) {
    index
        .iter_mut()
        .zip(composites)
        .for_each(|(index, composite)| *index = composite as u32);
}

/// A row of a table: every candidate on the same input.
struct Row<'a, I, O> {
    runs: usize,
    input: &'a I,
    output: O,
    expected: Option<O>,
    cells: Vec<(&'static str, f64)>,
}

impl<I, O: Clone + PartialEq + Debug> Row<'_, I, O> {
    /// Times `sort`, which writes its result to the output; `reset` is not timed.
    fn run(
        &mut self,
        name: &'static str,
        reset: impl Fn(&I, &mut O),
        mut sort: impl FnMut(&I, &mut O),
    ) {
        let mut times: Vec<f64> = (0..self.runs)
            .map(|_| {
                reset(self.input, &mut self.output);
                let start = Instant::now();
                sort(self.input, &mut self.output);
                start.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        let expected = self.expected.get_or_insert_with(|| self.output.clone());
        assert!(self.output == *expected, "{name} gives another result");
        times.sort_by(f64::total_cmp);
        self.cells.push((name, times[times.len() / 2]));
    }

    fn print(self, log2: u32, heading: bool) {
        if heading {
            let names: Vec<_> = self.cells.iter().map(|cell| cell.0).collect();
            println!(
                "| n | {} |\n|---|{}",
                names.join(" | "),
                "---|".repeat(names.len())
            );
        }
        let cells: Vec<_> = self
            .cells
            .iter()
            .map(|cell| format!("{:.1}", cell.1))
            .collect();
        println!("| 2^{log2} | {} |", cells.join(" | "));
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<usize> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    let measured = args.iter().any(|arg| arg == "--bench") || !numbers.is_empty();
    let largest = numbers
        .first()
        .copied()
        .unwrap_or(if measured { 24 } else { 13 }) as u32;
    let sizes: Vec<u32> = [8, 10, 12, 13, 14, 16, 17, 18, 20, 22, 24]
        .into_iter()
        .filter(|&k| k <= largest)
        .collect();
    let runs = |log2: u32| match numbers.get(1) {
        Some(&runs) => runs,
        None if measured => ((1 << 23) >> log2).clamp(7, 501),
        None => 1,
    };
    println!(
        "median microseconds, {} threads",
        rayon::current_num_threads()
    );

    if args.iter().any(|arg| arg == "pairs") {
        return pairs_table(&sizes, runs);
    }

    let draw = |rng: &mut SmallRng| rng.random_range(-500.0..500.0);
    index_table("f32", &sizes, runs, draw, narrow_index_sorts);
    let draw = |rng: &mut SmallRng| rng.random_range(-500.0..500.0);
    index_table("f64", &sizes, runs, draw, wide_index_sorts);

    keys_table(
        "u32 keys, uniform",
        &sizes,
        runs,
        |rng| rng.random::<u32>(),
        |all| all.voracious_sort(),
        |all| {
            all.voracious_mt_sort(rayon::current_num_threads());
        },
    );
    keys_table(
        "u64 keys, uniform",
        &sizes,
        runs,
        |rng| rng.random::<u64>(),
        |all| all.voracious_sort(),
        |all| {
            all.voracious_mt_sort(rayon::current_num_threads());
        },
    );

    pairs_table(&sizes, runs);
}

fn pairs_table(sizes: &[u32], runs: impl Fn(u32) -> usize) {
    let options = SortOptions::default();
    let rng = || SmallRng::seed_from_u64(1);
    println!("\nPairs, u32 key and u32 value, uniform keys");
    for &log2 in sizes {
        let mut rng = rng();
        let pairs: Vec<(u32, u32)> = (0..1 << log2).map(|i| (rng.random(), i)).collect();
        let input: (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
        let mut sorter = cpu::Sorter::new();
        let mut row = Row {
            runs: runs(log2),
            input: &input,
            output: input.clone(),
            expected: None,
            cells: vec![],
        };
        let reset = |input: &(Vec<u32>, Vec<u32>), output: &mut (Vec<u32>, Vec<u32>)| {
            output.clone_from(input)
        };
        row.run("Sorter", reset, |_, (keys, values)| {
            sorter
                .sort_pairs(keys, values, &options)
                .expect("valid call");
        });
        row.run("fresh", reset, |_, (keys, values)| {
            cpu::sort_pairs(keys, values, &options).expect("valid call");
        });
        let mut by = |name, sort: fn(&mut Vec<(u32, u32)>)| {
            row.run(name, reset, |_, (keys, values)| {
                let mut all: Vec<_> = keys.iter().copied().zip(values.iter().copied()).collect();
                sort(&mut all);
                for (i, (key, value)) in all.into_iter().enumerate() {
                    (keys[i], values[i]) = (key, value);
                }
            });
        };
        by("std stable", |all| all.sort_by_key(|pair| pair.0));
        by("rayon", |all| all.par_sort_by_key(|pair| pair.0));
        by("radsort", |all| radsort::sort_by_key(all, |pair| pair.0));
        by("glidesort", |all| {
            glidesort::sort_by_key(all, |pair| pair.0)
        });
        let mut by_rdst = |name, sort: fn(&mut Vec<ByKey>)| {
            row.run(name, reset, |_, (keys, values)| {
                let all = keys.iter().copied().zip(values.iter().copied());
                let mut all: Vec<ByKey> = all.map(|(key, value)| ByKey(key, value)).collect();
                sort(&mut all);
                for (i, ByKey(key, value)) in all.into_iter().enumerate() {
                    (keys[i], values[i]) = (key, value);
                }
            });
        };
        by_rdst("rdst stable", |all| {
            all.radix_sort_builder().with_tuner(&StableTuner).sort();
        });
        row.print(log2, log2 == sizes[0]);
    }
}

type IndexRow<'a, K> = Row<'a, Vec<K>, Vec<u32>>;

/// Prints a table of index sorts of keys uniform in -500..500: those of a sorter, and then the
/// `others`.
fn index_table<K: Key>(
    key: &str,
    sizes: &[u32],
    runs: impl Fn(u32) -> usize,
    draw: impl Fn(&mut SmallRng) -> K,
    others: impl Fn(&mut IndexRow<K>),
) {
    println!("\nIndex sort, {key} keys uniform in -500..500");
    for &log2 in sizes {
        let mut rng = SmallRng::seed_from_u64(1);
        let keys: Vec<K> = (0..1 << log2).map(|_| draw(&mut rng)).collect();
        let (mut sorter, options) = (cpu::Sorter::new(), SortOptions::default());
        let mut row = Row {
            runs: runs(log2),
            input: &keys,
            output: vec![0_u32; keys.len()],
            expected: None,
            cells: vec![],
        };
        row.run("Sorter", no_reset, |keys, index| {
            sorter
                .sort_index(keys, index, &options)
                .expect("valid call");
        });
        others(&mut row);
        row.print(log2, log2 == sizes[0]);
    }
}

/// An index sort writes the whole index.
fn no_reset<K>(_: &Vec<K>, _: &mut Vec<u32>) {}

/// Measures the index sorts of 32-bit keys.
fn narrow_index_sorts(row: &mut IndexRow<f32>) {
    let options = SortOptions::default();
    row.run("fresh", no_reset, |keys, index| {
        cpu::sort_index(keys, index, &options).expect("valid call");
    });
    let mut by = |name, sort: fn(&mut Vec<Composite>)| {
        row.run(name, no_reset, |keys, index| {
            let mut all = composites(keys);
            sort(&mut all);
            indices(all, index);
        });
    };
    by("std", |all| all.sort_unstable());
    by("std stable", |all| all.sort());
    by("rayon", |all| all.par_sort_unstable());
    by("radsort", |all| {
        radsort::sort_by_key(all, |c| (c >> 32) as u32)
    });
    by("voracious", |all| all.voracious_sort());
    by("voracious mt", |all| {
        all.voracious_mt_sort(rayon::current_num_threads())
    });
    by("rdst", |all| all.radix_sort_unstable());
    by("glidesort", |all| glidesort::sort(all));
    row.run("rdst by key", no_reset, |keys, index| {
        let mut all: Vec<_> = composites(keys).into_iter().map(HighHalf).collect();
        all.radix_sort_builder().with_tuner(&StableTuner).sort();
        indices(all.into_iter().map(|c| c.0), index);
    });
}

/// Measures the index sorts of 64-bit keys. `voracious_radix_sort` cannot sort such composites.
fn wide_index_sorts(row: &mut IndexRow<f64>) {
    let mut by = |name, sort: fn(&mut Vec<u128>)| {
        row.run(name, no_reset, |keys, index| {
            let numbered = keys.iter().zip(0_u32..);
            let mut all: Vec<_> = numbered
                .map(|(key, i)| u128::from(key.to_ordered_bits()) << 64 | u128::from(i))
                .collect();
            sort(&mut all);
            let indices = index.iter_mut().zip(all);
            indices.for_each(|(index, composite)| *index = composite as u32);
        });
    };
    by("std", |all| all.sort_unstable());
    by("rayon", |all| all.par_sort_unstable());
    by("radsort", |all| {
        radsort::sort_by_key(all, |c| (c >> 64) as u64)
    });
    by("rdst", |all| all.radix_sort_unstable());
    by("glidesort", |all| glidesort::sort(all));
}

/// Prints a table of keys alone. `voracious_radix_sort` has its calls on traits that differ by
/// type, so they are passed in.
fn keys_table<K: Key + Ord + RadixKey + radsort::Key>(
    title: &str,
    sizes: &[u32],
    runs: impl Fn(u32) -> usize,
    draw: impl Fn(&mut SmallRng) -> K,
    voracious: fn(&mut Vec<K>),
    voracious_mt: fn(&mut Vec<K>),
) {
    println!("\n{title}");
    for &log2 in sizes {
        let mut rng = SmallRng::seed_from_u64(1);
        let keys: Vec<K> = (0..1 << log2).map(|_| draw(&mut rng)).collect();
        let mut sorter = cpu::Sorter::new();
        let options = SortOptions::default();
        let mut row = Row {
            runs: runs(log2),
            input: &keys,
            output: keys.clone(),
            expected: None,
            cells: vec![],
        };
        let reset = |input: &Vec<K>, output: &mut Vec<K>| output.clone_from(input);
        row.run("Sorter", reset, |_, all| {
            sorter.sort_keys(all, &options).expect("valid call");
        });
        row.run("fresh", reset, |_, all| {
            cpu::sort_keys(all, &options).expect("valid call");
        });
        let mut by = |name, sort: fn(&mut Vec<K>)| row.run(name, reset, |_, all| sort(all));
        by("std", |all| all.sort_unstable());
        by("std stable", |all| all.sort());
        by("rayon", |all| all.par_sort_unstable());
        by("radsort", |all| radsort::sort(all));
        by("voracious", voracious);
        by("voracious mt", voracious_mt);
        by("rdst", |all| all.radix_sort_unstable());
        by("rdst MtLsb", |all| {
            all.radix_sort_builder().with_tuner(&StableTuner).sort()
        });
        by("glidesort", |all| glidesort::sort(all));
        row.print(log2, log2 == sizes[0]);
    }
}
