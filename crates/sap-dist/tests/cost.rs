//! The model of `docs/distributed.md`: the calls, messages and bytes of an update and of a sort,
//! counted on the transport, and the figures that the page calculates from them.

mod common;

use common::random::{Random, uniform_in};
use common::{GATHERED_WORDS, LIMIT, Scene, difference};
use sap::{Aabb, Filter, OverlapRule};
use sap_dist::{
    Config, Distributed, Error, Frame, Reduce, Report, Threads, Traffic, Transport, TransportError,
    sort_keys,
};
use std::sync::Mutex;

/// The bytes of a sample for new cuts.
const SAMPLE_BYTES: u64 = 24;
/// The mean extent of a box of [`uniform_in`].
const EXTENT: f64 = 0.7;

/// The samples for new cuts that the model has a rank give.
fn samples_of_cuts(ranks: u64) -> u64 {
    (65536 / ranks).clamp(64, 512)
}

/// The bytes that a rank gets by the gathers of an update, with new cuts or without.
fn gathered(ranks: u64, new_cuts: bool) -> u64 {
    let cuts = SAMPLE_BYTES * samples_of_cuts(ranks) * u64::from(new_cuts);
    (ranks - 1) * (8 * GATHERED_WORDS + cuts)
}

/// The copies by the model, as a part of the boxes: a cut of a cube meets the boxes that begin less
/// than their extent before it.
fn copies(side: f64, slabs: f64, rows: f64) -> f64 {
    let cells = |count: f64| 1.0 + (count - 1.0) * EXTENT / side;
    cells(slabs) * cells(rows) - 1.0
}

/// Held by a test of 1,024 ranks, which takes 2 GB.
static MANY_RANKS: Mutex<()> = Mutex::new(());

/// What a rank saw of an update whose boxes were all brought by their homes.
struct Steady {
    report: Report,
    /// Of the first update, which made the cuts.
    first: Traffic,
    traffic: Traffic,
    /// Pairs that this rank owns and another found: the home of the point where both begin.
    elsewhere: u64,
}

/// The boxes of a scene at these indices, with what belongs to them.
fn some(scene: &Scene, indices: &[usize]) -> Scene {
    fn of<T: Copy>(list: &[T], indices: &[usize]) -> Vec<T> {
        indices.iter().map(|&i| list[i]).collect()
    }
    Scene {
        boxes: of(&scene.boxes, indices),
        ids: of(&scene.ids, indices),
        filters: scene.filters.as_ref().map(|all| of(all, indices)),
        worlds: scene.worlds.as_ref().map(|all| of(all, indices)),
        ..Scene::default()
    }
}

/// Tells whether there should be few ranks (`RADSWEEP_QUICK=1`).
fn is_quick() -> bool {
    std::env::var("RADSWEEP_QUICK").is_ok_and(|value| value == "1")
}

/// Updates until each rank brings the boxes of its own cell and the cuts stay. The ids of the boxes
/// are their indices.
fn steady(transport: &mut Threads, scene: &Scene) -> Result<Steady, Error> {
    let (rank, size, boxes) = (transport.rank(), transport.size(), &scene.boxes);
    let mut broad_phase = Distributed::new(Config::default())?;
    let mut own = scene.part(rank, size);
    let mut first = None;
    loop {
        let before = transport.traffic();
        broad_phase.update(transport, own.frame())?;
        let traffic = difference(transport.traffic(), before);
        let first = *first.get_or_insert(traffic);
        let is_own = |&i: &usize| broad_phase.home(&boxes[i]) == Some(rank);
        let homes: Vec<usize> = (0..boxes.len()).filter(is_own).collect();
        let ids = homes.iter().map(|&i| i as u64);
        let mut moved = [u64::from(!ids.eq(own.ids.iter().copied()))];
        transport.all_reduce(&mut moved, Reduce::Sum)?;
        own = some(scene, &homes);
        // Ids that differ from those of the last update take two more exchanges.
        if moved == [0] && traffic.exchanges == 2 {
            let elsewhere = broad_phase.pairs().iter().filter(|pair| {
                let (a, b) = (&boxes[pair.a as usize], &boxes[pair.b as usize]);
                let corner = std::array::from_fn(|k| a.min[k].max(b.min[k]));
                broad_phase.home(&Aabb::new(corner, corner)) != Some(rank)
            });
            return Ok(Steady {
                elsewhere: elsewhere.count() as u64,
                report: broad_phase.report().clone(),
                first,
                traffic,
            });
        }
    }
}

/// A number of boxes in a cube, each with a volume of 1 to itself.
fn cube(boxes: usize) -> Scene {
    let side = (boxes as f32).cbrt();
    Scene::dealt(uniform_in(boxes, [side; 3], boxes as u64))
}

/// A square of so many cells on a side, all with the same boxes, so that ranks have the same work
/// and need no other cuts. On each axis three of the four boxes of a cell reach the next one.
fn pattern(side: usize) -> Scene {
    let mut boxes = Vec::new();
    for i in 0..4 * side * side {
        let (cell, number) = (i / 4, i % 4);
        let at = [cell / side, cell % side].map(|x| x as f32);
        let extent = [0.4, 0.6, 0.8, 1.0][number];
        let min = [
            at[0] + [0.75, 0.0, 0.5, 0.25][number],
            at[1] + [0.5, 0.75, 0.25, 0.0][number],
            0.25 * number as f32,
        ];
        boxes.push(Aabb::new(min, min.map(|x| x + extent)));
    }
    Scene::dealt(boxes)
}

/// Runs a scene until it is steady, and checks that its calls and bytes are exactly those of the
/// model, with this many bytes for a copy.
fn run_steady(ranks: usize, scene: &Scene, copy_bytes: u64) -> Vec<Steady> {
    // A rank may wait until all others have computed the cuts, on few cores.
    let run = Threads::run(ranks, 10 * LIMIT, |transport| steady(transport, scene));
    let run = run.expect("threads start").into_iter();
    let run: Vec<Steady> = run.map(|r| r.expect("updates succeed")).collect();
    let report = &run[0].report;
    let sum = |of: fn(&Steady) -> u64| run.iter().map(of).sum::<u64>();
    assert_eq!(
        sum(|rank| rank.traffic.bytes),
        copy_bytes * copies_of(report) + 16 * sum(|rank| rank.elsewhere),
        "{report}"
    );
    for rank in &run {
        let ranks = ranks as u64;
        assert_eq!((rank.first.gathers, rank.first.exchanges), (3, 2));
        assert_eq!(rank.first.gathered_bytes, gathered(ranks, true));
        // Samples are also gathered for cuts that are no better, and then not taken.
        let new_cuts = rank.traffic.gathers == 3;
        assert!(new_cuts || rank.traffic.gathers == 2 && !report.new_cuts);
        assert_eq!(rank.traffic.gathered_bytes, gathered(ranks, new_cuts));
    }
    run
}

fn copies_of(report: &Report) -> u64 {
    report.ranks.iter().map(|rank| rank.copies).sum()
}

/// Compares what was counted with what the model only estimates: copies, pairs and messages.
fn compare(run: &[Steady], side: f32) {
    let (report, ranks) = (&run[0].report, run.len() as f64);
    let slabs = report.slabs as f64;
    let model = report.boxes as f64 * copies(side.into(), slabs, ranks / slabs);
    let copies = copies_of(report) as f64;
    assert!(
        (0.8..1.2).contains(&(copies / model)),
        "{copies} copies, {model:.0} by the model\n{report}"
    );
    // Neighbours only: copies go to the next slab, pairs come back.
    let messages: u64 = run.iter().map(|rank| rank.traffic.messages).sum();
    let bound = if report.axes.len() == 1 { 2 } else { 12 } * run.len() as u64;
    assert!(messages <= bound, "{messages} messages\n{report}");
    println!(
        "{ranks} ranks, {slabs} slabs: {copies} copies, {model:.0} by the model, {messages} messages"
    );
}

#[test]
fn an_update_sends_what_the_model_says() {
    for ranks in [2, 4, 8, 16, 64] {
        let n = 400 * ranks;
        let run = run_steady(ranks, &cube(n), 32);
        compare(&run, (n as f32).cbrt());
        // Half a pair for each copy.
        let elsewhere: u64 = run.iter().map(|rank| rank.elsewhere).sum();
        let of_copies = elsewhere as f64 / copies_of(&run[0].report) as f64;
        assert!((0.3..0.6).contains(&of_copies), "{of_copies}");
    }
}

/// Each of 1,024 ranks computes the cuts of all: half a minute of processor time.
#[test]
fn an_update_of_many_ranks_sends_what_the_model_says() {
    let _alone = MANY_RANKS.lock();
    for root in [16, 32].into_iter().take(if is_quick() { 1 } else { 2 }) {
        let run = run_steady(root * root, &pattern(root), 32);
        assert_eq!(run[0].report.slabs, root, "{}", run[0].report);
        compare(&run, root as f32);
    }
}

#[test]
fn filters_and_worlds_take_what_the_model_says() {
    let plain = cube(1600);
    let filters = Some(vec![Filter::default(); 1600]);
    let worlds = Some(vec![0; 1600]);
    let all = [
        (None, None, 32),
        (filters.clone(), None, 32 + 16),
        (None, worlds.clone(), 32 + 4),
        (filters, worlds, 32 + 16 + 4),
    ];
    for (filters, worlds, copy_bytes) in all {
        let scene = Scene {
            filters,
            worlds,
            ..plain.clone()
        };
        let run = run_steady(4, &scene, copy_bytes);
        assert!(copies_of(&run[0].report) > 100, "{}", run[0].report);
    }
}

#[test]
fn a_box_that_another_rank_brings_takes_what_the_model_says() {
    // No box reaches the next.
    let at = |i: u64| Aabb::new([i as f32, 0.0, 0.0], [i as f32 + 0.5, 1.0, 1.0]);
    let run = Threads::run(2, LIMIT, |transport| {
        let rank = transport.rank() as u64;
        let mut broad_phase = Distributed::new(Config::default())?;
        let mut bytes = Vec::new();
        // At last the boxes 498 and 499 have crossed the cut, but are brought as before.
        for crossed in [0, 2] {
            let boxes: Vec<Aabb> = (500 * rank..500 * (rank + 1))
                .map(|i| {
                    at(if rank == 0 && i >= 500 - crossed {
                        i + 500
                    } else {
                        i
                    })
                })
                .collect();
            let before = transport.traffic();
            broad_phase.update(transport, Frame::from_id(500 * rank, &boxes))?;
            bytes.push(difference(transport.traffic(), before).bytes);
        }
        Ok::<_, Error>(bytes)
    });
    // They lie where the boxes 998 and 999 are: pairs that rank 0 owns and rank 1 finds.
    let bytes: Result<Vec<_>, _> = run.expect("threads start").into_iter().collect();
    assert_eq!(bytes, Ok(vec![vec![0, 2 * 32], vec![0, 2 * 16]]));
}

/// The samples that the model has a rank give if all have as many keys.
fn samples_of_sort(keys: u64, ranks: u64) -> u64 {
    keys / (keys * ranks / (ranks * ranks)).max(1)
}

/// Checks what a rank counted in a sort.
fn check_sort(traffic: &Traffic, keys: u64, ranks: u64) {
    let words = 6 + samples_of_sort(keys, ranks) + 5;
    assert_eq!(traffic.gathered_bytes, (ranks - 1) * 8 * words);
    assert_eq!((traffic.gathers, traffic.exchanges), (3, 1));
    assert!(traffic.messages < ranks);
}

#[test]
fn a_sort_sends_what_the_model_says() {
    let _alone = MANY_RANKS.lock();
    // Few keys on many ranks, since each holds the samples of all.
    let sizes = [
        (2, 20_000),
        (8, 20_000),
        (32, 20_000),
        (64, 8000),
        (256, 512),
        (1024, 64),
    ];
    for (ranks, count) in sizes.into_iter().take(if is_quick() { 5 } else { 6 }) {
        let run = Threads::run(ranks, 10 * LIMIT, |transport| {
            let mut random = Random::new(transport.rank() as u64);
            let keys: Vec<u32> = (0..count).map(|_| random.bits() as u32).collect();
            sort_keys(transport, keys)?;
            Ok::<Traffic, Error>(transport.traffic())
        });
        let (ranks, keys) = (ranks as u64, count as u64);
        for traffic in run.expect("threads start") {
            let traffic = traffic.expect("the sort succeeds");
            check_sort(&traffic, keys, ranks);
            if keys >= 100 * ranks {
                assert_eq!(traffic.messages, ranks - 1);
            }
            // All keys but those that stay: one in this many ranks.
            let expected = (4 * keys * (ranks - 1) / ranks) as f64;
            assert!(
                (0.9..1.1).contains(&(traffic.bytes as f64 / expected)),
                "{traffic:?}"
            );
        }
    }
}

/// The rank in the middle of many that all say and send what it does. It stands for runs of so many
/// ranks that their threads would not fit in the memory of a machine: what this rank is given
/// has the size of theirs, and it counts what it would send.
struct Alike {
    size: usize,
    traffic: Traffic,
}

impl Alike {
    fn new(size: usize) -> Self {
        let traffic = Traffic::default();
        Self { size, traffic }
    }
}

impl Transport for Alike {
    fn rank(&self) -> usize {
        self.size / 2
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_gather(&mut self, words: &[u64]) -> Result<Vec<u64>, TransportError> {
        self.traffic.gather(words.len(), self.size);
        Ok(words.repeat(self.size))
    }

    fn exchange(&mut self, outgoing: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, TransportError> {
        self.traffic.exchange(self.rank(), &outgoing);
        Ok(outgoing)
    }

    fn traffic(&self) -> Traffic {
        self.traffic
    }
}

#[test]
fn one_rank_of_many_gathers_what_the_model_says() {
    for (ranks, count) in [(256, 8000), (1024, 20_480)] {
        let mut transport = Alike::new(ranks);
        let mut random = Random::new(1);
        let keys: Vec<u32> = (0..count).map(|_| random.bits() as u32).collect();
        sort_keys(&mut transport, keys).expect("the sort succeeds");
        check_sort(&transport.traffic, count as u64, ranks as u64);
    }
    let boxes = uniform_in(4, [4.0; 3], 1);
    for ranks in [64, 128, 256, 1024, 16_384] {
        let mut transport = Alike::new(ranks);
        let mut broad_phase = Distributed::new(Config::default()).expect("the CPU is there");
        let frame = Frame::with_ids(&[1, 2, 3, 4], &boxes);
        broad_phase
            .update(&mut transport, frame)
            .expect("the frame is good");
        let traffic = transport.traffic;
        assert_eq!((traffic.gathers, traffic.exchanges), (3, 2));
        assert_eq!(traffic.gathered_bytes, gathered(ranks as u64, true));
    }
}

#[test]
fn a_rank_with_all_keys_gives_as_many_samples_as_the_model_says() {
    let run = Threads::run(8, LIMIT, |transport| {
        let keys = if transport.rank() == 3 { 16_000 } else { 0 };
        sort_keys(transport, (0..keys).collect::<Vec<u32>>())?;
        Ok::<Traffic, Error>(transport.traffic())
    });
    for traffic in run.expect("threads start") {
        let traffic = traffic.expect("the sort succeeds");
        assert_eq!(traffic.gathered_bytes, 7 * 8 * (6 + 8 * 8 + 5));
    }
}

const PAGE: &str = include_str!("../../../docs/distributed.md");

/// Returns a number as the page has it: with two digits or all before the point.
fn figure(x: f64) -> String {
    if x < 9.95 {
        format!("{x:.1}")
    } else {
        format!("{x:.0}")
    }
}

fn bytes(x: f64) -> String {
    match x {
        ..1e6 => figure(x / 1e3) + " kB",
        ..1e9 => figure(x / 1e6) + " MB",
        _ => figure(x / 1e9) + " GB",
    }
}

fn percent(part: f64) -> String {
    figure(100.0 * part) + " %"
}

/// Returns a row of the table: the figures of each number of ranks, by ranks, slabs and rows.
fn row(name: &str, of: impl Fn(u64, f64, f64) -> String) -> String {
    let of_1024 = [of(1024, 1024.0, 1.0), of(1024, 32.0, 32.0)];
    let of_1024 = if of_1024[0] == of_1024[1] {
        of_1024[0].clone()
    } else {
        of_1024.join(", or ")
    };
    let (of_4, of_64) = (of(4, 4.0, 1.0), of(64, 64.0, 1.0));
    format!("| {name} | {of_4} | {of_64} | {of_1024} |")
}

/// The copies of 10 million boxes on each rank, as a part of the boxes.
fn copies_of_10_million(ranks: u64, slabs: f64, rows: f64) -> f64 {
    copies((1e7 * ranks as f64).cbrt(), slabs, rows)
}

/// The bytes that a rank sends so that each knows how long the messages of two exchanges are: two
/// words for each rank, in `log2 s` messages with half of them.
fn lengths(ranks: u64) -> f64 {
    (2 * 16 * ranks / 2 * u64::from(ranks.ilog2())) as f64
}

/// The table of the page but for its head, for a network with 2 microseconds for each message and
/// 10 GB/s for each rank.
fn table() -> Vec<String> {
    const BYTES_OF_A_MICROSECOND: f64 = 10e3;
    // Half a pair for each copy travels back.
    let sent = |ranks, slabs, rows| copies_of_10_million(ranks, slabs, rows) * 1e7 * (32.0 + 8.0);
    // `calls` are gathers and lengths; each of the two exchanges has two messages more.
    let latency = |ranks: u64, calls: u32, bytes: f64| {
        let messages = f64::from(calls * ranks.ilog2() + 4);
        figure(messages * 2.0 + bytes / BYTES_OF_A_MICROSECOND) + " µs"
    };
    let state = |ranks| gathered(ranks, false) as f64;
    vec![
        row("copies, of the boxes", |ranks, slabs, rows| {
            percent(copies_of_10_million(ranks, slabs, rows))
        }),
        row("bytes of a rank: copies and pairs", |ranks, slabs, rows| {
            bytes(sent(ranks, slabs, rows))
        }),
        row("time of these", |ranks, slabs, rows| {
            figure(sent(ranks, slabs, rows) / BYTES_OF_A_MICROSECOND / 1e3) + " ms"
        }),
        row("two gathers: bytes of a rank", |ranks, _, _| {
            bytes(state(ranks))
        }),
        row(
            "lengths of two exchanges over MPI: bytes of a rank",
            |ranks, _, _| bytes(lengths(ranks)),
        ),
        row("latency, gathers and lengths", |ranks, _, _| {
            latency(ranks, 4, state(ranks) + lengths(ranks))
        }),
        row("the same without lengths", |ranks, _, _| {
            latency(ranks, 2, state(ranks))
        }),
        row("new cuts: bytes of a rank", |ranks, _, _| {
            bytes(gathered(ranks, true) as f64 - state(ranks))
        }),
    ]
}

/// What the page says in sentences.
fn sentences() -> Vec<String> {
    let side = 1e7_f64.cbrt();
    let cuts = gathered(16_384, true) - gathered(16_384, false);
    // From `s^2` to `2 s^2` samples of 8 bytes.
    let samples = |ranks: f64| {
        let [low, high] = [8.0, 16.0].map(|of_rank| bytes(of_rank * ranks * ranks));
        let (number, _) = low.split_once(' ').expect("a number and a unit");
        format!("{number} to {high} at")
    };
    vec![
        format!(
            "64 slabs have {} of copies",
            percent(copies(side, 64.0, 1.0))
        ),
        format!("8 x 8 cells {}", percent(copies(side, 8.0, 8.0))),
        format!(
            "16,384 ranks that is {}",
            bytes(gathered(16_384, false) as f64)
        ),
        format!("new cuts read {}", bytes(cuts as f64)),
        format!("{} 64 ranks", samples(64.0)),
        format!("{} 1,024", samples(1024.0)),
        format!("{} 16,384", samples(16_384.0)),
        format!("{} from each other rank", 8 * GATHERED_WORDS),
        format!("{SAMPLE_BYTES} a sample; {} samples", samples_of_cuts(4)),
        format!(
            "{} at 1,024 ranks",
            bytes((1023 * 8 * (5 * 1024 + 12)) as f64)
        ),
    ]
}

#[test]
fn the_page_has_the_figures_of_the_model() {
    for figures in table().iter().chain(&sentences()) {
        assert!(
            PAGE.contains(figures),
            "docs/distributed.md lacks {figures}"
        );
    }
}

/// The example of the page, letter by letter. There `radsweep` has the broad phase.
#[rustfmt::skip]
mod example {
    use sap as radsweep;

use radsweep::Aabb;
use sap_dist::{Config, Distributed, Frame, Threads, Transport};
use std::time::Duration;

pub fn main() -> sap_dist::Result<()> {
    let results = Threads::run(4, Duration::from_secs(10), |transport| {
        let first = 1000 * transport.rank() as u64;
        let boxes: Vec<Aabb> = (first..first + 1000).map(|i| Aabb::new([i as f32, 0.0, 0.0], [i as f32 + 1.0, 1.0, 1.0])).collect();
        let mut broad_phase = Distributed::new(Config::default())?;
        let report = broad_phase.update(transport, Frame::from_id(first, &boxes))?;
        Ok::<u64, sap_dist::Error>(report.pairs)
    })?;
    assert!(results.into_iter().all(|pairs| pairs == Ok(3999)));
    Ok(())
}
}

#[test]
fn the_example_of_the_page_runs() {
    let (_, after) = PAGE.split_once("```rust\n").expect("an example");
    let (on_page, after) = after.split_once("```").expect("its end");
    assert!(
        !after.contains("```rust\n"),
        "another example is not tested"
    );
    let (_, here) = include_str!("cost.rs")
        .split_once("use sap as radsweep;\n\n")
        .expect("the example in this file");
    assert!(here.replace("pub fn main", "fn main").starts_with(on_page));
    assert_eq!(example::main(), Ok(()));
}

#[test]
fn balance_holds_on_clusters_after_the_first_cuts() {
    // Half of the boxes in a heap: by boxes alone its ranks would have most of the tests.
    let mut boxes = uniform_in(6000, [60.0, 20.0, 20.0], 1);
    boxes.extend(uniform_in(6000, [6.0, 20.0, 20.0], 2));
    let config = Config {
        rule: OverlapRule::Open,
        ..Config::default()
    };
    let run = Threads::run(4, LIMIT, |transport| {
        let mut broad_phase = Distributed::new(config.clone())?;
        let part = 3000 * transport.rank();
        let mut balances = Vec::new();
        for frame in 0..3 {
            let moved = boxes[part..part + 3000].iter();
            let moved: Vec<Aabb> = moved.map(|b| b.loosened(frame as f32 * 0.05)).collect();
            broad_phase.update(transport, Frame::from_id(part as u64, &moved))?;
            balances.push(broad_phase.report().balance());
        }
        Ok::<_, Error>((balances, broad_phase.report().clone()))
    });
    for result in run.expect("threads start") {
        let (balances, report) = result.expect("updates succeed");
        assert!(
            balances[1].min(balances[2]) < 1.35,
            "{balances:?}\n{report}"
        );
    }
}
