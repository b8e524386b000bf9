//! Boxes at rest, apart from the others.
//!
//! A box is *still* when it is marked static or asleep, and *steady* when it is also as it was in the update before. Once many have been
//! steady for some frames they are *held*: put into a tree, where the *awake* boxes, all others, look for them. The awake ones
//! are swept among themselves as a frame of their own. A pair of two held boxes (a static one and one asleep) was there in
//! the update before, or is not there now. So what is held is neither sorted nor tested against what is held.
//!
//! A held box that changes in any way is taken out of the tree and awake from then on. This needs no success of the update:
//! awake boxes are always treated in full, and the held ones are as they were in the last update that succeeded. When
//! steady boxes that are awake have cost as much as a new tree would, it is made.

use super::accept::Accept;
use super::collect::{Collector, Found, Spare, Task};
use super::lanes::run_best;
use super::scene::Scene;
use super::tree::{Meet, Tree};
use super::tuning::{FEWEST_HELD, HELD_PARTS, MEET_TASK, MOST_PATIENCE, PATIENCE, STREAM_TASK};
use crate::query::morton_order;
use crate::{Config, Pair};
use rayon::prelude::*;

/// A place of a box that is awake.
const AWAKE: u32 = u32::MAX;
/// A place of a held box that overlaps nothing and is in no tree.
const NOWHERE: u32 = u32::MAX - 1;

/// See the module.
pub(super) struct Still {
    tree: Tree,
    /// The place of each box of the last frame in the tree; all awake where nothing is held.
    places: Vec<u32>,
    held: u64,
    /// Boxes that were held when the tree was made.
    made_for: u64,
    /// Steady boxes that were awake, and boxes that were held, summed over frames.
    missed: u64,
    saved: u64,
    /// Frames that a steady box must have been awake before a tree is made for it: more where trees did not last.
    patience: u64,
    awake: Vec<u32>,
    /// The same, neighbours near each other: in the Morton order in which they were when the tree was made.
    walk: Vec<u32>,
    /// The awake boxes alone.
    scene: Scene,
}

impl Default for Still {
    fn default() -> Self {
        Self {
            tree: Tree::default(),
            places: Vec::new(),
            held: 0,
            made_for: 0,
            missed: 0,
            saved: 0,
            patience: PATIENCE,
            awake: Vec::new(),
            walk: Vec::new(),
            scene: Scene::default(),
        }
    }
}

/// What a look at some boxes tells.
#[derive(Default)]
struct Look {
    awake: Vec<u32>,
    /// Boxes that are not held any more, and their places.
    released: Vec<u32>,
    left: Vec<u32>,
    steady: u64,
}

impl Still {
    /// Takes note of a frame and of what has changed since the last. Where boxes are held, the others as a scene of their own.
    pub(super) fn part(&mut self, scene: &Scene, last: &Scene, config: &Config) -> Option<&Scene> {
        if scene.filters.is_none() {
            self.forget();
            return None;
        }
        let n = scene.boxes.len();
        let fewest = config.hold_from.map_or(FEWEST_HELD, |boxes| boxes as u64);
        let [least, fewer] = HELD_PARTS.map(|part| fewest.max((n as f64 * part) as u64));
        let steady = if self.held > 0 {
            let steady = self.look(scene, last);
            if self.held < fewer {
                self.forget();
            }
            steady
        } else {
            estimate(scene, last)
        };
        self.missed = if self.held + steady < least {
            0
        } else {
            self.missed + steady
        };
        if self.missed > 0 && self.missed >= self.patience * (self.held + steady) {
            self.hold(scene, last, config, least);
        }
        // Pairs excluded until now are not among those of the last update.
        if self.held == 0 || scene.excluded != last.excluded {
            return None;
        }
        self.saved += self.held;
        self.gather(scene);
        Some(&self.scene)
    }

    /// Number of boxes held.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// Lets go of the tree. One that did not last makes the next wait longer.
    fn forget(&mut self) {
        let paid = self.saved > self.patience * self.made_for;
        let patience = match self.held {
            0 => self.patience,
            _ if paid => PATIENCE,
            _ => (2 * self.patience).min(MOST_PATIENCE),
        };
        *self = Self {
            patience,
            ..Self::default()
        };
    }

    /// Releases the held boxes that have changed, and lists those awake. Gives the number of the steady ones among them.
    fn look(&mut self, scene: &Scene, last: &Scene) -> u64 {
        let n = scene.boxes.len();
        let mut gone = self.places.split_off(n.min(self.places.len()));
        gone.retain(|&place| place != AWAKE);
        self.walk.retain(|&i| (i as usize) < n);
        self.walk.extend(self.places.len() as u32..n as u32);
        self.places.resize(n, AWAKE);
        let of_task = |(task, places): (usize, &mut [u32])| {
            let mut look = Look::default();
            for (i, place) in (task * STREAM_TASK..).zip(places) {
                if *place != AWAKE {
                    if scene.same_box(last, i) {
                        continue;
                    }
                    look.left.push(std::mem::replace(place, AWAKE));
                    look.released.push(i as u32);
                } else if scene.is_still(i) && scene.same_box(last, i) {
                    look.steady += 1;
                }
                look.awake.push(i as u32);
            }
            look
        };
        let tasks = self.places.par_chunks_mut(STREAM_TASK).enumerate();
        let looks: Vec<Look> = tasks.map(of_task).collect();
        self.awake.clear();
        let mut steady = 0;
        for look in looks {
            self.awake.extend(look.awake);
            gone.extend(look.left);
            self.walk.extend(look.released);
            steady += look.steady;
        }
        self.held -= gone.len() as u64;
        for place in gone.into_iter().filter(|&place| place != NOWHERE) {
            self.tree.remove(place as usize);
        }
        steady
    }

    /// Holds all steady boxes, if they are many.
    fn hold(&mut self, scene: &Scene, last: &Scene, config: &Config, least: u64) {
        let steady = |i: usize| scene.is_still(i) && scene.same_box(last, i);
        let n = scene.boxes.len();
        let place = |i| if steady(i) { NOWHERE } else { AWAKE };
        (0..n)
            .into_par_iter()
            .with_min_len(STREAM_TASK)
            .map(place)
            .collect_into_vec(&mut self.places);
        self.awake = (0..n as u32)
            .into_par_iter()
            .filter(|&i| self.places[i as usize] == AWAKE)
            .collect();
        self.held = (n - self.awake.len()) as u64;
        (self.made_for, self.missed, self.saved) = (self.held, 0, 0);
        if self.held < least {
            self.held = 0;
            return self.places.clear();
        }
        self.walk = morton_order(&scene.boxes, |i| self.places[i] == AWAKE);
        let in_tree = |i: usize| self.places[i] != AWAKE && !scene.boxes[i].is_empty();
        self.tree = Tree::new(&scene.boxes, config.rule, in_tree);
        for (place, &i) in (0..).zip(self.tree.boxes()) {
            self.places[i as usize] = place;
        }
    }

    /// Makes the scene of the boxes awake. Their order stays.
    fn gather(&mut self, scene: &Scene) {
        let ids = &self.awake;
        let at = |i: u32| ids.binary_search(&i).ok().map(|at| at as u32);
        let kept = |pair: &Pair| {
            Some(Pair {
                a: at(pair.a)?,
                b: at(pair.b)?,
            })
        };
        let own = &mut self.scene;
        pick(&mut own.boxes, &scene.boxes, ids);
        pick_some(&mut own.filters, &scene.filters, ids);
        pick_some(&mut own.worlds, &scene.worlds, ids);
        pick_some(&mut own.exact, &scene.exact, ids);
        own.excluded = scene.excluded.par_iter().filter_map(kept).collect();
    }

    /// Adds to the pairs of the boxes awake, found in their scene, those with held boxes, `before` being all pairs of the last
    /// update.
    pub(super) fn complete(
        &self,
        mut found: Found,
        scene: &Scene,
        before: &[Pair],
        limit: u64,
        config: &Config,
        spare: &Spare,
    ) -> Found {
        let awake = &self.awake;
        found.blocks.par_iter_mut().for_each(|block| {
            for pair in block {
                *pair = Pair {
                    a: awake[pair.a as usize],
                    b: awake[pair.b as usize],
                };
            }
        });
        let collector = Collector::new(limit.saturating_sub(found.count), spare);
        let accept = &Accept::new(scene, scene, config.rule, true);
        let meet = |mut task, some| {
            run_best(Meet {
                tree: &self.tree,
                boxes: &scene.boxes,
                some,
                rule: config.rule,
                accept,
                task: &mut task,
            });
            task
        };
        let met = self
            .walk
            .par_chunks(MEET_TASK)
            .fold(|| collector.task(), meet);
        let is_held = |i: u32| {
            self.places
                .get(i as usize)
                .is_some_and(|&place| place != AWAKE)
        };
        let kept = before.par_chunks(STREAM_TASK).fold(
            || collector.task(),
            |mut task, pairs| {
                let storing = task.storing();
                for &pair in pairs
                    .iter()
                    .filter(|pair| is_held(pair.a) && is_held(pair.b))
                {
                    if storing {
                        task.push(pair);
                    } else {
                        task.count(1);
                    }
                }
                task
            },
        );
        let rest = met.chain(kept).map(Task::finish);
        found.merge(rest.reduce(Found::default, Found::merge))
    }
}

/// The elements of some numbers.
fn pick<T: Copy + Send + Sync>(to: &mut Vec<T>, all: &[T], ids: &[u32]) {
    let ids = ids.par_iter().with_min_len(STREAM_TASK);
    ids.map(|&i| all[i as usize]).collect_into_vec(to);
}

fn pick_some<T: Copy + Send + Sync>(to: &mut Option<Vec<T>>, all: &Option<Vec<T>>, ids: &[u32]) {
    match all {
        Some(all) => pick(to.get_or_insert_default(), all, ids),
        None => *to = None,
    }
}

/// How many boxes are steady, from every few of them.
fn estimate(scene: &Scene, last: &Scene) -> u64 {
    let n = scene.boxes.len();
    let step = (n / 1024).max(1);
    let steady = |&i: &usize| scene.is_still(i) && scene.same_box(last, i);
    ((0..n).step_by(step).filter(steady).count() * step) as u64
}
