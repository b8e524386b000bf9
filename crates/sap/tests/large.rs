//! Large scenes: pair counts beyond 32 bits, and a million boxes on a plane.

mod common;

use common::allocated::{self, Counting};
use common::process::isolated;
use common::scenes::{at, uniform_in};
use common::{RULES, Setup, equal, rule_name, same};
use libtest_mimic::{Arguments, Failed, Trial};
use sap::{Backend, BroadPhase, Config, Error, OverlapRule, Pair, Strategy};

#[global_allocator]
static COUNTING: Counting = Counting;

/// Max bytes allocated for any number of pairs: rounds of 32 MiB of pairs, and the memory of their
/// sort.
const MAX_MEMORY: u64 = 128 << 20;

fn main() {
    let mut trials = Vec::new();
    let mut add = |name: &str, setup: Setup, check: fn(&Setup) -> Result<(), Failed>| {
        let name = format!("{name}::{}::{}", setup.strategy, rule_name(setup.rule));
        trials.push(Trial::test(name, move || check(&setup)));
    };
    let setup = |strategy, rule| Setup {
        backend: Backend::Cpu,
        strategy,
        rule,
    };
    let auto = setup(Strategy::Auto, OverlapRule::Closed);
    // The one that takes longest comes first, so that others run beside it.
    add("everything_overlaps_in_chunks_beyond_u32", auto, |setup| {
        in_chunks(setup, 92_683, 4_295_022_903)
    });
    // The strategies take turns with the rules, which differ in the keys only.
    for (turn, &strategy) in Strategy::ALL.iter().enumerate() {
        add(
            "everything_overlaps_beyond_i32",
            setup(strategy, RULES[turn % 2]),
            |setup| too_many(setup, 65_537, 2_147_516_416),
        );
        if strategy != Strategy::Endpoints {
            let setup = setup(strategy, OverlapRule::Closed);
            add("a_million_boxes_on_a_plane", setup, plane);
        }
    }
    for strategy in [Strategy::Sweep, Strategy::Auto] {
        add(
            "everything_overlaps_beyond_u32",
            setup(strategy, OverlapRule::Open),
            |setup| too_many(setup, 92_683, 4_295_022_903),
        );
    }
    add("sparse_scene_in_chunks", auto, sparse_in_chunks);
    libtest_mimic::run(&Arguments::from_args(), isolated(trials)).exit();
}

fn too_many(setup: &Setup, n: usize, pairs: u64) -> Result<(), Failed> {
    let mut broad_phase = BroadPhase::new(Config {
        pair_memory: Some(8 << 20),
        ..setup.config()
    })?;
    broad_phase.update(&[at(0.0, 0.0, 0.0); 2])?;
    let boxes = vec![at(0.0, 0.0, 0.0); n];
    match bounded(|| broad_phase.update(&boxes).map(|report| report.pairs))? {
        Err(Error::TooManyPairs { count, limit }) => equal((count, limit), (pairs, 1 << 20))?,
        other => return Err(format!("{other:?}").into()),
    }
    same(broad_phase.pairs(), &[Pair { a: 0, b: 1 }])
}

/// Runs `work` and fails if it allocated more than any number of pairs may take.
fn bounded<T>(work: impl FnOnce() -> T) -> Result<T, Failed> {
    let before = allocated::bytes();
    allocated::reset_peak();
    let result = work();
    let peak = allocated::peak() - before;
    if peak > MAX_MEMORY {
        return Err(format!("{peak} bytes were allocated").into());
    }
    Ok(result)
}

/// Checks that every pair comes once and in order. All pairs are known, so each one determines the
/// next.
fn in_chunks(setup: &Setup, n: u32, pairs: u64) -> Result<(), Failed> {
    let mut next = Pair { a: 0, b: 1 };
    let mut right = true;
    let boxes = vec![at(0.0, 0.0, 0.0); n as usize];
    let mut broad_phase = setup.broad_phase();
    let check = |mut chunk: &[Pair]| {
        while !chunk.is_empty() {
            let (row, rest) =
                chunk.split_at(chunk.len().min(n.saturating_sub(next.b).max(1) as usize));
            let numbered = (next.b..).zip(row);
            right &= numbered.fold(true, |right, (b, pair)| {
                right & (*pair == Pair { a: next.a, b })
            });
            next.b += row.len() as u32;
            if next.b == n {
                next = Pair {
                    a: next.a + 1,
                    b: next.a + 2,
                };
            }
            chunk = rest;
        }
    };
    let report = bounded(|| broad_phase.for_each_pair_chunk(&boxes, 1 << 16, check))??;
    equal((report.pairs, right), (pairs, true))?;
    equal(next, Pair { a: n - 1, b: n })
}

/// More pairs than a round holds, but few of all possible ones.
fn sparse_in_chunks(setup: &Setup) -> Result<(), Failed> {
    let boxes = uniform_in(100_000, [14.0; 3], 1);
    let expected = setup.pairs(&boxes);
    equal(expected.len() > 4 << 20, true)?;
    let mut all = Vec::new();
    setup
        .broad_phase()
        .for_each_pair_chunk(&boxes, 1 << 16, |pairs| all.extend_from_slice(pairs))?;
    same(&all, &expected)
}

/// A box has about a thousand candidates on the best axis, not a million.
fn plane(setup: &Setup) -> Result<(), Failed> {
    let boxes = uniform_in(1_000_000, [1000.0, 0.0, 1000.0], 2);
    let mut broad_phase = setup.broad_phase();
    let report = broad_phase.update(&boxes)?;
    equal(report.stats.tests < 1_500_000_000, true)?;
    let pairs = report.pairs;
    // The oracle sweeps one axis in another order. All boxes overlap on y.
    let mut order: Vec<u32> = (0..boxes.len() as u32).collect();
    order.sort_by(|&i, &j| boxes[i as usize].min[0].total_cmp(&boxes[j as usize].min[0]));
    let sorted: Vec<_> = order.iter().map(|&i| boxes[i as usize]).collect();
    let mut count = 0;
    for (i, a) in sorted.iter().enumerate().step_by(50) {
        let after = sorted[i + 1..].iter().take_while(|b| b.min[0] <= a.max[0]);
        count += after
            .filter(|b| a.min[2] <= b.max[2] && b.min[2] <= a.max[2])
            .count() as u64;
    }
    // A sample of one in fifty must agree. Other tests compare all pairs for every strategy.
    let ratio = count as f64 * 50.0 / pairs as f64;
    equal((0.97..1.03).contains(&ratio), true)?;
    let ordered = broad_phase.pairs().windows(2).all(|pair| pair[0] < pair[1]);
    equal(ordered, true)
}
