//! Shared by the tests: frames of many boxes, the ranks that bring them, and what one engine finds.
#![allow(dead_code)]

pub mod churn;
#[path = "../../../sap/tests/common/data.rs"]
pub mod data;
#[path = "../../../sap/tests/common/random.rs"]
pub mod random;

use sap::{Aabb, Backend, BroadPhase, Filter, OverlapRule};
use sap_dist::{Config, Distributed, Error, Frame, Pair, Report, Threads, Traffic, Transport};
use std::time::Duration;

pub const RULES: [OverlapRule; 2] = [OverlapRule::Closed, OverlapRule::Open];
pub const LIMIT: Duration = Duration::from_secs(60);
/// The words of the two gathers of an update that ranks on CPUs and on devices make: state before
/// and after.
pub const GATHERED_WORDS: u64 = 18 + 20;

/// What was sent between two counts.
pub fn difference(after: Traffic, before: Traffic) -> Traffic {
    let mut traffic = after;
    traffic.gathers -= before.gathers;
    traffic.gathered_bytes -= before.gathered_bytes;
    traffic.exchanges -= before.exchanges;
    traffic.messages -= before.messages;
    traffic.bytes -= before.bytes;
    traffic
}

/// A frame of all boxes, each with its id and the rank that brings it.
#[derive(Clone, Default)]
pub struct Scene {
    pub boxes: Vec<Aabb>,
    pub ids: Vec<u64>,
    /// The bringing rank, modulo the number of ranks.
    pub origins: Vec<usize>,
    pub filters: Option<Vec<Filter>>,
    pub worlds: Option<Vec<u32>>,
    pub excluded: Vec<Pair>,
}

impl Scene {
    /// Boxes with their indices as ids, dealt out like cards.
    pub fn dealt(boxes: Vec<Aabb>) -> Self {
        Self {
            ids: (0..boxes.len() as u64).collect(),
            origins: (0..boxes.len()).collect(),
            boxes,
            ..Self::default()
        }
    }

    /// What a rank brings.
    pub fn part(&self, rank: usize, ranks: usize) -> Self {
        let own: Vec<usize> = (0..self.boxes.len())
            .filter(|&i| self.origins[i] % ranks == rank)
            .collect();
        let ids: Vec<u64> = own.iter().map(|&i| self.ids[i]).collect();
        let excluded = self
            .excluded
            .iter()
            .filter(|pair| ids.contains(&pair.a))
            .copied();
        Self {
            boxes: own.iter().map(|&i| self.boxes[i]).collect(),
            origins: vec![rank; own.len()],
            filters: self
                .filters
                .as_ref()
                .map(|all| own.iter().map(|&i| all[i]).collect()),
            worlds: self
                .worlds
                .as_ref()
                .map(|all| own.iter().map(|&i| all[i]).collect()),
            excluded: excluded.collect(),
            ids,
        }
    }

    /// The same with its boxes by their ids.
    pub fn ascending(&self) -> Self {
        fn ordered<T: Copy>(list: &[T], order: &[usize]) -> Vec<T> {
            order.iter().map(|&i| list[i]).collect()
        }
        let mut order: Vec<usize> = (0..self.ids.len()).collect();
        order.sort_by_key(|&i| self.ids[i]);
        Self {
            boxes: ordered(&self.boxes, &order),
            ids: ordered(&self.ids, &order),
            origins: ordered(&self.origins, &order),
            filters: self.filters.as_ref().map(|all| ordered(all, &order)),
            worlds: self.worlds.as_ref().map(|all| ordered(all, &order)),
            excluded: self.excluded.clone(),
        }
    }

    pub fn frame(&self) -> Frame<'_> {
        let mut frame = Frame::with_ids(&self.ids, &self.boxes).excluded(&self.excluded);
        if let Some(filters) = &self.filters {
            frame = frame.filters(filters);
        }
        if let Some(worlds) = &self.worlds {
            frame = frame.worlds(worlds);
        }
        frame
    }

    /// The pairs that one engine finds, by id.
    pub fn expected(&self, config: &Config) -> Vec<Pair> {
        let mut frame = sap::Frame::boxes(&self.boxes);
        if let Some(filters) = &self.filters {
            frame = frame.filters(filters);
        }
        if let Some(worlds) = &self.worlds {
            frame = frame.worlds(worlds);
        }
        let engine = sap::Config {
            backend: Backend::Cpu,
            rule: config.rule,
            on_invalid: config.on_invalid,
            ..sap::Config::default()
        };
        let mut engine = BroadPhase::new(engine).expect("the CPU is there");
        engine.update(frame).expect("the frame is valid");
        let named = |pair: &sap::Pair| {
            let (i, j) = (self.ids[pair.a as usize], self.ids[pair.b as usize]);
            Pair {
                a: i.min(j),
                b: i.max(j),
            }
        };
        let mut pairs: Vec<Pair> = engine.pairs().iter().map(named).collect();
        pairs.sort_unstable();
        pairs.retain(|pair| self.excluded.binary_search(pair).is_err());
        pairs
    }
}

/// What a rank found in a frame.
pub struct Part {
    pub lists: [Vec<Pair>; 3],
    pub report: Report,
}

/// Runs the frames on some ranks; the parts come by rank, then by frame.
pub fn run(scenes: &[Scene], ranks: usize, config: &Config) -> Vec<Vec<Part>> {
    let one = |transport: &mut Threads| {
        let mut broad_phase = Distributed::new(config.clone())?;
        let mut parts = Vec::new();
        for scene in scenes {
            let part = scene.part(transport.rank(), ranks);
            let report = broad_phase.update(transport, part.frame())?.clone();
            let lists = [
                broad_phase.pairs(),
                broad_phase.started(),
                broad_phase.ended(),
            ];
            for pair in lists.iter().take(2).flat_map(|list| list.iter()) {
                assert!(
                    part.ids.contains(&pair.a),
                    "{pair:?} belongs to another rank"
                );
            }
            let lists = lists.map(<[Pair]>::to_vec);
            parts.push(Part { lists, report });
        }
        Ok::<_, Error>(parts)
    };
    let parts = Threads::run(ranks, LIMIT, one).expect("threads start");
    parts
        .into_iter()
        .map(|parts| parts.expect("all updates succeed"))
        .collect()
}

/// Joins a list of all ranks.
pub fn union(parts: &[Vec<Part>], frame: usize, list: usize) -> Vec<Pair> {
    for part in parts {
        assert!(part[frame].lists[list].is_sorted());
    }
    let mut all: Vec<Pair> = parts
        .iter()
        .flat_map(|part| part[frame].lists[list].iter().copied())
        .collect();
    all.sort_unstable();
    all
}

/// Checks the pairs and events of all frames against one engine.
pub fn check(scenes: &[Scene], ranks: usize, config: &Config) -> Vec<Report> {
    compare(&run(scenes, ranks, config), scenes, config)
}

/// Compares what ranks found in all frames with one engine.
pub fn compare(parts: &[Vec<Part>], scenes: &[Scene], config: &Config) -> Vec<Report> {
    let ranks = parts.len();
    let mut before: Vec<Pair> = Vec::new();
    let mut reports = Vec::new();
    for (number, scene) in scenes.iter().enumerate() {
        let pairs = scene.expected(config);
        let without = |these: &[Pair], those: &[Pair]| {
            let missing = |pair: &&Pair| those.binary_search(pair).is_err();
            these.iter().filter(missing).copied().collect::<Vec<Pair>>()
        };
        let expected = [
            pairs.clone(),
            without(&pairs, &before),
            without(&before, &pairs),
        ];
        for (list, expected) in expected.iter().enumerate() {
            let found = union(parts, number, list);
            assert_eq!(
                found.len(),
                expected.len(),
                "{ranks} ranks, frame {number}, list {list}"
            );
            assert!(
                found == *expected,
                "{ranks} ranks, frame {number}, list {list}"
            );
        }
        let report = &parts[0][number].report;
        let counts = [report.pairs, report.started, report.ended];
        assert_eq!(counts, expected.map(|list| list.len() as u64));
        reports.push(report.clone());
        before = pairs;
    }
    reports
}
