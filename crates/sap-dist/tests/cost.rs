//! The model of `docs/distributed.md`: the calls, messages and bytes of an update and of a sort,
//! counted on the transport.

mod common;

use common::LIMIT;
use common::random::{Random, uniform_in};
use sap::{Aabb, OverlapRule};
use sap_dist::{Config, Distributed, Error, Frame, Report, Threads, Traffic, Transport, sort_keys};

/// Boxes for each rank.
const PER_RANK: usize = 400;
/// The words of the two gathers of an update.
const GATHERED_WORDS: u64 = 18 + 20;

/// What a rank saw of an update whose boxes were all brought by their homes.
struct Steady {
    report: Report,
    traffic: Traffic,
    /// Pairs that this rank owns and another found: the home of the point where both begin.
    elsewhere: u64,
}

fn difference(after: Traffic, before: Traffic) -> Traffic {
    let mut traffic = after;
    traffic.gathers -= before.gathers;
    traffic.gathered_bytes -= before.gathered_bytes;
    traffic.exchanges -= before.exchanges;
    traffic.messages -= before.messages;
    traffic.bytes -= before.bytes;
    traffic
}

/// Updates until each rank brings the boxes of its own cell and the cuts stay.
fn steady(transport: &mut Threads, boxes: &[Aabb]) -> Result<Steady, Error> {
    let (rank, size) = (transport.rank(), transport.size());
    let mut broad_phase = Distributed::new(Config::default())?;
    let mut ids: Vec<u64> = (0..boxes.len() as u64)
        .filter(|&i| i as usize % size == rank)
        .collect();
    loop {
        let own: Vec<Aabb> = ids.iter().map(|&i| boxes[i as usize]).collect();
        let before = transport.traffic();
        broad_phase.update(transport, Frame::with_ids(&ids, &own))?;
        let traffic = difference(transport.traffic(), before);
        let is_own = |&i: &u64| broad_phase.home(&boxes[i as usize]) == Some(rank);
        let homes: Vec<u64> = (0..boxes.len() as u64).filter(is_own).collect();
        let mut moved = [u64::from(homes != ids)];
        transport.all_reduce(&mut moved, sap_dist::Reduce::Sum)?;
        ids = homes;
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
                traffic,
            });
        }
    }
}

#[test]
fn an_update_sends_what_the_model_says() {
    for ranks in [2, 4, 8, 16, 64] {
        let n = PER_RANK * ranks;
        let side = (n as f32).cbrt();
        let boxes = uniform_in(n, [side; 3], ranks as u64);
        let run = Threads::run(ranks, LIMIT, |transport| steady(transport, &boxes));
        let run: Vec<Steady> = run
            .expect("threads start")
            .into_iter()
            .map(|r| r.expect("updates succeed"))
            .collect();
        let report = &run[0].report;
        let copies: u64 = report.ranks.iter().map(|rank| rank.copies).sum();
        let sum = |of: fn(&Steady) -> u64| run.iter().map(of).sum::<u64>();

        // Exactly: 32 bytes for a copy, 16 for a pair that its owner did not find.
        assert_eq!(
            sum(|rank| rank.traffic.bytes),
            32 * copies + 16 * sum(|rank| rank.elsewhere),
            "{report}"
        );
        for rank in &run {
            let others = ranks as u64 - 1;
            let new_cuts = if report.new_cuts { 512 * 3 } else { 0 };
            assert_eq!(rank.traffic.gathers, 2 + u64::from(report.new_cuts));
            assert_eq!(
                rank.traffic.gathered_bytes,
                others * 8 * (GATHERED_WORDS + new_cuts)
            );
        }

        // By the model: a cut of a cube meets the boxes within half an extent, 0.7 on average.
        let slabs = report.slabs as f64;
        let rows = ranks as f64 / slabs;
        let crossing = |cells: f64| 1.0 + (cells - 1.0) * 0.7 / f64::from(side);
        let model = n as f64 * (crossing(slabs) * crossing(rows) - 1.0);
        let ratio = copies as f64 / model;
        assert!(
            (0.8..1.2).contains(&ratio),
            "{copies} copies, {model:.0} by the model\n{report}"
        );
        // Neighbours only: copies go to the next slab, pairs come back.
        let messages = sum(|rank| rank.traffic.messages);
        let bound = if report.axes.len() == 1 { 2 } else { 12 } * ranks as u64;
        assert!(messages <= bound, "{messages} messages\n{report}");
        println!("{ranks} ranks: {copies} copies, {model:.0} by the model, {messages} messages");
    }
}

#[test]
fn a_sort_sends_what_the_model_says() {
    for ranks in [2, 8, 32] {
        let run = Threads::run(ranks, LIMIT, |transport| {
            let mut random = Random::new(transport.rank() as u64);
            let keys: Vec<u32> = (0..20_000).map(|_| random.bits() as u32).collect();
            sort_keys(transport, keys)?;
            Ok::<Traffic, Error>(transport.traffic())
        });
        let n = 20_000 * ranks as u64;
        for traffic in run.expect("threads start") {
            let traffic = traffic.expect("the sort succeeds");
            let (ranks, others) = (ranks as u64, ranks as u64 - 1);
            let samples = 20_000 / (n / (ranks * ranks));
            assert_eq!(traffic.gathered_bytes, others * 8 * (6 + samples + 5));
            assert_eq!(
                (traffic.gathers, traffic.exchanges, traffic.messages),
                (3, 1, others)
            );
            // All keys but those that stay: one in this many ranks.
            let expected = (4 * 20_000 * others / ranks) as f64;
            assert!(
                (0.9..1.1).contains(&(traffic.bytes as f64 / expected)),
                "{traffic:?}"
            );
        }
    }
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
