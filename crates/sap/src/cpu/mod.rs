//! The CPU engine: all strategies, on the threads of the current rayon pool.
//!
//! An update reads the frame into a [`scene::Scene`] (checked, `f32`, loosened), makes a [`plan::Plan`], puts the boxes
//! in sweep order ([`arrange`]), sweeps ([`sweep`], or [`endpoints`]), sorts the pairs found ([`order`]) and compares them
//! with those of the update before ([`events`]). Nothing that can be seen changes before all of that is done.

mod accept;
mod arrange;
mod chunks;
mod collect;
mod column;
mod columns;
mod endpoints;
mod events;
mod find;
#[cfg(cuda)]
mod follow;
mod key;
mod lanes;
mod memory;
mod order;
mod partition;
mod plan;
mod records;
mod rows;
mod scene;
mod still;
mod sweep;
mod tree;
mod tuning;

use crate::{
    Aabb, Backend, ChunkReport, Config, Error, Frame, Pair, Report, Result, Sorts, Timings,
};
use accept::Accept;
use arrange::MOST_COLUMNS;
use chunks::{Delivery, Rows, by_rounds, is_dense};
use collect::Spare;
use find::{arranged, found, swept};
use plan::plan;
use scene::Scene;
use std::time::Instant;
use still::Still;
use sweep::{Pass, Role, run};
use tuning::{PAIR_BLOCK, ROUND_PAIRS, ROUND_PAIRS_PER_BOX};

/// See the module.
pub(crate) struct Engine {
    scene: Scene,
    pairs: Vec<Pair>,
    started: Vec<Pair>,
    ended: Vec<Pair>,
    last: Option<Report>,
    still: Still,
    /// Memory to use again.
    spare_scene: Scene,
    spare_pairs: Vec<Pair>,
    spare_blocks: Spare,
}

/// Measures stages one after the other, in milliseconds.
struct Clock(Instant);

impl Clock {
    fn lap(&mut self) -> f64 {
        let before = std::mem::replace(&mut self.0, Instant::now());
        (self.0 - before).as_secs_f64() * 1e3
    }
}

impl Engine {
    pub(crate) fn new(config: &Config) -> Self {
        let mut pairs = Vec::new();
        // A wish only: without the memory, room is made when it is needed.
        let _ = pairs.try_reserve(config.initial_pair_capacity.unwrap_or(0));
        Self {
            scene: Scene::default(),
            pairs: Vec::new(),
            started: Vec::new(),
            ended: Vec::new(),
            last: None,
            still: Still::default(),
            spare_scene: Scene::default(),
            spare_pairs: pairs,
            spare_blocks: Spare::default(),
        }
    }

    pub(crate) fn update(&mut self, config: &Config, frame: &Frame) -> Result<Report> {
        let mut scene = std::mem::take(&mut self.spare_scene);
        // On a thread of the pool: every parallel step that begins outside would cost two changes of threads.
        let result = rayon::scope(|_| self.find(config, frame, &mut scene));
        if result.is_ok() {
            std::mem::swap(&mut self.scene, &mut scene);
        }
        self.spare_scene = scene;
        let report = result?;
        self.last = Some(report.clone());
        Ok(report)
    }

    /// Fills the scene and finds its pairs; on success they are in place, and only the scene is left to be.
    fn find(&mut self, config: &Config, frame: &Frame, scene: &mut Scene) -> Result<Report> {
        let start = Instant::now();
        let mut clock = Clock(start);
        check_number(frame)?;
        scene.read(frame, config.on_invalid, config.margin, &self.scene)?;
        if let Some(last) = self.last.as_ref().filter(|_| scene.same_pairs(&self.scene)) {
            self.started.clear();
            self.ended.clear();
            let bounds = clock.lap();
            let timings = Timings {
                bounds,
                total: bounds,
                ..Timings::default()
            };
            return Ok(Report {
                started: 0,
                ended: 0,
                invalid: scene.invalid,
                tests: 0,
                sorts: Sorts::default(),
                timings,
                ..last.clone()
            });
        }
        let mut report = Report {
            n: frame.len(),
            invalid: scene.invalid,
            ..Report::none(Backend::Cpu, config.strategy)
        };
        let limit = memory::pair_limit(config, frame.len());
        let apart = self.still.part(scene, &self.scene, config);
        let (is_apart, swept) = (apart.is_some(), apart.unwrap_or(&*scene));
        let plan = plan(&swept.boxes, swept.worlds.as_deref(), config.strategy);
        report.timings.bounds = clock.lap();
        let (spare, timings) = (&self.spare_blocks, &mut report.timings);
        let mut found = found(config, swept, &plan, limit, spare, timings, &mut clock)?;
        if is_apart {
            let (before, still) = (&self.pairs, &self.still);
            found = still.complete(found, scene, before, limit, config, spare);
            report.resting = still.held();
            report.timings.sweep += clock.lap();
        }
        (report.tests, report.strategy, report.axis) = (found.tests, plan.strategy, plan.axis);
        report.choice = plan.choice;
        report.sorts = found.sorts;
        report.sorts.keys += found.count;
        order::order(
            found.within(limit)?.blocks,
            frame.len(),
            &mut self.spare_pairs,
            &self.spare_blocks,
        )?;
        report.timings.compact = clock.lap();
        if config.events {
            (self.started, self.ended) = events::difference(&self.pairs, &self.spare_pairs);
            report.timings.events = clock.lap();
        }
        // Blocks for twice as many pairs and some for each task may be needed next time; no more are kept.
        let blocks = 2 * self.spare_pairs.len() / PAIR_BLOCK + 8 * rayon::current_num_threads();
        self.spare_blocks.keep(blocks);
        std::mem::swap(&mut self.pairs, &mut self.spare_pairs);
        report.pairs = self.pairs.len() as u64;
        (report.started, report.ended) = (self.started.len() as u64, self.ended.len() as u64);
        report.timings.total = start.elapsed().as_secs_f64() * 1e3;
        Ok(report)
    }

    pub(crate) fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    pub(crate) fn started(&self) -> &[Pair] {
        &self.started
    }

    pub(crate) fn ended(&self) -> &[Pair] {
        &self.ended
    }

    /// The boxes of the last update as they were given: swept ones merged, `f64` ones rounded, bad ones empty.
    pub(crate) fn boxes(&self) -> &[Aabb] {
        self.scene.given()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self {
            spare_scene: std::mem::take(&mut self.spare_scene),
            spare_pairs: std::mem::take(&mut self.pairs),
            spare_blocks: std::mem::take(&mut self.spare_blocks),
            ..Self::new(&Config::default())
        };
    }

    pub(crate) fn overlaps_between(
        &mut self,
        config: &Config,
        a: &Frame,
        b: &Frame,
    ) -> Result<Vec<Pair>> {
        let [mut first, mut second] = [a, b].map(|frame| (frame, Scene::default()));
        for (frame, scene) in [&mut first, &mut second] {
            check_number(frame)?;
            scene.read(frame, config.on_invalid, 0.0, &Scene::default())?;
        }
        let (mut first, mut second) = (first.1, second.1);
        if first.exact.is_some() || second.exact.is_some() {
            first.make_exact();
            second.make_exact();
        }
        let both = [first.boxes.as_slice(), &second.boxes].concat();
        let ids = |scene: &Scene| {
            scene
                .worlds
                .clone()
                .unwrap_or_else(|| vec![0; scene.boxes.len()])
        };
        let ids = [ids(&first), ids(&second)].concat();
        let plan = plan(&both, Some(&ids), swept(config.strategy));
        let arranged = arranged(config, &[&first, &second], &plan)?;
        let accept = Accept::new(&first, &second, config.rule, false);
        let [of_first, of_second] = &arranged[..] else {
            return Ok(Vec::new());
        };
        let passes = [
            (of_first, of_second, Role::Forth),
            (of_second, of_first, Role::Back),
        ];
        let passes = passes.map(|(from, into, role)| Pass {
            from,
            into,
            role,
            accept: &accept,
        });
        let limit = memory::pair_limit(config, both.len());
        let mut pairs = Vec::new();
        order::order(
            run(&passes, limit, &self.spare_blocks)
                .within(limit)?
                .blocks,
            first.boxes.len(),
            &mut pairs,
            &self.spare_blocks,
        )?;
        Ok(pairs)
    }

    pub(crate) fn for_each_pair_chunk(
        &mut self,
        config: &Config,
        frame: &Frame,
        chunk: usize,
        f: &mut dyn FnMut(&[Pair]),
    ) -> Result<ChunkReport> {
        let start = Instant::now();
        check_number(frame)?;
        let mut scene = Scene::default();
        scene.read(frame, config.on_invalid, 0.0, &Scene::default())?;
        let n = frame.len() as u64;
        let limit = ROUND_PAIRS.max(ROUND_PAIRS_PER_BOX * n);
        let mut delivery = Delivery {
            chunk,
            f,
            pairs: 0,
            chunks: 0,
        };
        let plan = plan(&scene.boxes, scene.worlds.as_deref(), config.strategy);
        let found = found(
            config,
            &scene,
            &plan,
            limit,
            &self.spare_blocks,
            &mut Timings::default(),
            &mut Clock(start),
        )?;
        let mut tests = found.tests;
        let accept = |worlds| Accept::new(&scene, &scene, config.rule, worlds);
        if found.count <= limit {
            let mut pairs = Vec::new();
            order::order(found.blocks, frame.len(), &mut pairs, &self.spare_blocks)?;
            delivery.hand(&pairs);
        } else if is_dense(found.count, n) {
            tests += Rows::new(&scene.boxes, config.rule).deliver(&accept(true), &mut delivery);
        } else {
            let plan = plan::plan(&scene.boxes, scene.worlds.as_deref(), swept(plan.strategy));
            for all in arranged(config, &[&scene], &plan)? {
                tests += by_rounds(
                    &all,
                    frame.len(),
                    found.count,
                    limit,
                    &accept(false),
                    &mut delivery,
                )?;
            }
        }
        let Delivery { pairs, chunks, .. } = delivery;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        Ok(ChunkReport {
            pairs,
            chunks,
            invalid: scene.invalid,
            tests,
            ms,
        })
    }
}

/// Indices have 31 bits beside the bit of an endpoint, and each of two sets may have a world for each of its boxes.
fn check_number(frame: &Frame) -> Result<()> {
    let boxes = frame.len() as u64;
    let limit = if frame.worlds.is_some() {
        MOST_COLUMNS / 4
    } else {
        i32::MAX as u64
    };
    if boxes > limit {
        Err(Error::TooManyBoxes { boxes, limit })
    } else {
        Ok(())
    }
}
