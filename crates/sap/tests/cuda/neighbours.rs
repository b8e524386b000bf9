//! The neighbour list: frames that move little, against the CPU engine, bit for bit.

use super::{Other, cpu, cuda, engine, holds, same_lists, sized, text, uniform};
use crate::common::scenes::Random;
use crate::common::{equal, quick, same};
use libtest_mimic::Failed;
use sap::{
    Aabb, BroadPhase, Config, Filter, FilterFlags, Frame, OnInvalid, OverlapRule, Pair, Strategy,
};

pub const ALL: &[(&str, Other)] = &[
    ("neighbours::walk", || walk(Config::default().rule)),
    ("neighbours::walk_open", || walk(OverlapRule::Open)),
    ("neighbours::odd_numbers", || {
        odd_numbers(Config::default().rule)
    }),
    ("neighbours::odd_numbers_open", || {
        odd_numbers(OverlapRule::Open)
    }),
    ("neighbours::no_candidates", no_candidates),
    ("neighbours::huge_numbers", || {
        huge_numbers(Config::default().rule)
    }),
    ("neighbours::huge_numbers_open", || {
        huge_numbers(OverlapRule::Open)
    }),
    ("neighbours::without_events", without_events),
    ("neighbours::jumps", jumps),
    ("neighbours::shrinks", shrinks),
    ("neighbours::ends_of_tiles", ends_of_tiles),
    ("neighbours::counts", counts),
    ("neighbours::filters_and_worlds", filters_and_worlds),
    ("neighbours::bad_boxes", bad_boxes),
    ("neighbours::more_pairs", more_pairs),
    ("neighbours::too_many_pairs", too_many_pairs),
    ("neighbours::stops_and_goes_on", stops_and_goes_on),
    ("neighbours::fast_boxes_have_none", fast_boxes_have_none),
];

/// An engine with a list from few boxes on, and the one that it must equal.
struct Both {
    ours: BroadPhase,
    theirs: BroadPhase,
    by_list: u32,
    /// The tests of the last update.
    tests: u64,
}

impl Both {
    fn new(config: Config) -> Self {
        let config = Config {
            min_resting: Some(16),
            ..config
        };
        Self {
            ours: engine(&config),
            theirs: engine(&cpu(&config)),
            by_list: 0,
            tests: 0,
        }
    }

    fn update(&mut self, frame: Frame) -> Result<(), Failed> {
        let (n, pairs) = (frame.len(), self.theirs.pairs().len() as u64);
        let ours = self.ours.update(frame).map_err(text)?;
        // A search has no sort, and more tests than any list here.
        self.tests = ours.stats.tests;
        self.by_list += u32::from(self.tests > 0 && self.tests <= 3 * pairs + n as u64);
        let found = (ours.pairs, ours.started, ours.ended, ours.invalid);
        let theirs = self.theirs.update(frame).map_err(text)?;
        let expected = (theirs.pairs, theirs.started, theirs.ended, theirs.invalid);
        equal(found, expected)?;
        same_lists(&self.ours, &self.theirs)
    }

    /// Updates with so many frames, after each of which the boxes walk by up to a share of their
    /// size.
    fn walk(
        &mut self,
        boxes: &mut [Aabb],
        frames: u32,
        share: f32,
        random: &mut Random,
    ) -> Result<(), Failed> {
        for _ in 0..frames {
            self.update(Frame::boxes(boxes))?;
            step(boxes, share, random);
        }
        Ok(())
    }

    fn used_the_list(&self, frames: u32) -> Result<(), Failed> {
        holds(self.by_list >= frames, || {
            format!("{} frames by the list, not {frames}", self.by_list)
        })
    }
}

/// Moves boxes by up to a share of their size.
fn step(boxes: &mut [Aabb], share: f32, random: &mut Random) {
    for b in boxes {
        for k in 0..3 {
            let by = random.between(-share, share) * (b.max[k] - b.min[k]);
            if by.is_finite() {
                b.min[k] += by;
                b.max[k] += by;
            }
        }
    }
}

fn scene(random: &mut Random, density: f32) -> Vec<Aabb> {
    uniform(random, sized(20_000, 700), density)
}

fn walk(rule: OverlapRule) -> Result<(), Failed> {
    let mut random = Random::new(1);
    let mut boxes = scene(&mut random, 1.5);
    // Some have infinite sides, or none, or are not there.
    boxes[3] = Aabb::new([f32::NEG_INFINITY; 3], [f32::INFINITY, f32::INFINITY, 0.5]);
    boxes[4] = Aabb::new(boxes[5].min, boxes[5].min);
    boxes[6] = Aabb::EMPTY;
    let mut both = Both::new(Config {
        rule,
        ..cuda(Strategy::Auto)
    });
    both.walk(&mut boxes, 60, 0.01, &mut random)?;
    both.used_the_list(30)
}

/// Boxes of a lattice that come to touch exactly, as their sides move one by one, among boxes far
/// away, where numbers are coarse, tiny ones and infinite ones.
fn odd_numbers(rule: OverlapRule) -> Result<(), Failed> {
    let mut random = Random::new(12);
    let mut boxes = Vec::new();
    let mut cubes = |count: usize, size: f32, origin: f32, step: f32| {
        let side = (count as f32).cbrt().ceil() as usize;
        let places = (0..count).map(|i| [i % side, i / side % side, i / side / side]);
        boxes.extend(places.map(|place| {
            let min = place.map(|k| origin + size * k as f32);
            Aabb::new(min, min.map(|x| x + size + 2.0 * step))
        }));
    };
    let groups = [
        (sized(15_000, 500), 1.0, 0.0, 1.0 / 128.0),
        (sized(1_000, 60), 32.0, 4e6, 0.5),
        (12, 1e-37, 0.0, 1e-39),
    ];
    for (count, size, origin, step) in groups {
        cubes(count, size, origin, step);
    }
    let moving = boxes.len();
    let infinite = [f32::NEG_INFINITY, f32::INFINITY];
    for axis in 0..3 {
        let mut wall = Aabb::new([2.0; 3], [2.5; 3]);
        (wall.min[axis], wall.max[axis]) = (infinite[0], infinite[1]);
        boxes.push(wall);
        wall.min = [infinite[axis % 2]; 3];
        wall.max = [infinite[1]; 3];
        boxes.push(wall);
    }
    let mut both = Both::new(Config {
        rule,
        ..cuda(Strategy::Auto)
    });
    let of_group = |i: usize| {
        let ends = groups.iter().scan(0, |end, group| {
            *end += group.0;
            Some(*end)
        });
        groups[ends.take_while(|&end| end <= i).count()]
    };
    for _ in 0..60 {
        both.update(Frame::boxes(&boxes))?;
        for _ in 0..moving / 10 {
            let i = random.below(moving);
            let (_, size, _, step) = of_group(i);
            let axis = random.below(3);
            let by = if random.below(2) == 0 { step } else { -step };
            let mut moved = boxes[i];
            let sides = if random.below(2) == 0 {
                &mut moved.min
            } else {
                &mut moved.max
            };
            sides[axis] += by;
            let len = moved.max[axis] - moved.min[axis];
            if (0.9 * size..1.1 * size).contains(&len) {
                boxes[i] = moved;
            }
        }
    }
    both.used_the_list(20)
}

/// Boxes too far from each other to be candidates. One comes near others at last.
fn no_candidates() -> Result<(), Failed> {
    let mut random = Random::new(13);
    let places = (0..sized(20_000, 700)).map(|i| [i % 20, i / 20 % 20, i / 400]);
    let mut boxes: Vec<Aabb> = places
        .map(|place| place.map(|k| 10.0 * k as f32))
        .map(|min| Aabb::new(min, min.map(|x| x + 1.0)))
        .collect();
    let mut both = Both::new(cuda(Strategy::Auto));
    both.walk(&mut boxes, 30, 0.01, &mut random)?;
    boxes[7] = boxes[9];
    both.update(Frame::boxes(&boxes))
}

/// Boxes whose sides are near the greatest numbers, so that the depths of many are infinite.
fn huge_numbers(rule: OverlapRule) -> Result<(), Failed> {
    let mut random = Random::new(14);
    let mut boxes: Vec<Aabb> = (0..sized(400, 60))
        .map(|_| {
            let min = [0; 3].map(|_| random.between(-2.4, 0.9) * 1e38);
            Aabb::new(min, min.map(|x| x + random.between(1.2, 1.5) * 1e38))
        })
        .collect();
    let mut both = Both::new(Config {
        rule,
        ..cuda(Strategy::Auto)
    });
    both.walk(&mut boxes, 60, 0.02, &mut random)?;
    both.used_the_list(10)
}

fn without_events() -> Result<(), Failed> {
    let mut random = Random::new(2);
    let mut boxes = scene(&mut random, 1.5);
    let mut both = Both::new(Config {
        events: false,
        ..cuda(Strategy::Auto)
    });
    both.walk(&mut boxes, 30, 0.01, &mut random)?;
    both.used_the_list(10)
}

/// Couples of boxes that part and meet, as many as end within, with or behind a tile, or fill more
/// than a group of tiles.
fn ends_of_tiles() -> Result<(), Failed> {
    let all = [9, 1023, 1024, 1025, 2048, 2049, 262_144, 262_145, 525_313];
    let few = [9, 1024, 1025, 2049, 262_145];
    let counts = if quick() { &few[..] } else { &all };
    for &couples in counts {
        let places = (0..couples).map(|k| [k % 100, k / 100 % 100, k / 10_000]);
        let of_place = |place: [usize; 3]| {
            let at = place.map(|k| 4.0 * k as f32);
            [at, [at[0] + 1.0, at[1], at[2]]].map(|min| Aabb::new(min, min.map(|x| x + 1.0)))
        };
        let mut boxes: Vec<Aabb> = places.flat_map(of_place).collect();
        let mut both = Both::new(cuda(Strategy::Auto));
        let mut served = 0;
        for frame in 0..7 {
            both.update(Frame::boxes(&boxes))?;
            served += u32::from(both.tests == couples as u64);
            for (k, b) in boxes.iter_mut().skip(1).step_by(2).enumerate() {
                let by = if (k / 3 + frame) % 2 == 0 {
                    0.01
                } else {
                    -0.01
                };
                (b.min[0], b.max[0]) = (b.min[0] + by, b.max[0] + by);
            }
        }
        holds(served >= 3, || {
            format!("{served} of 7 frames of {couples} couples by a list")
        })?;
    }
    Ok(())
}

/// Boxes shrink to their centres: they leave those of smaller index that they overlapped by far,
/// and no loosened one.
fn shrinks() -> Result<(), Failed> {
    let mut random = Random::new(15);
    let mut boxes = scene(&mut random, 4.0);
    let mut both = Both::new(cuda(Strategy::Auto));
    both.walk(&mut boxes, 8, 0.01, &mut random)?;
    for i in 0..12 {
        let at = boxes.len() - 1 - 17 * i;
        let b = &mut boxes[at];
        let centre = std::array::from_fn(|k| (b.min[k] + b.max[k]) / 2.0);
        *b = Aabb::new(centre, centre);
        both.update(Frame::boxes(&boxes))?;
    }
    both.used_the_list(14)
}

/// A box jumps now and then, and others appear and disappear at their indices.
fn jumps() -> Result<(), Failed> {
    let mut random = Random::new(3);
    let mut boxes = scene(&mut random, 1.5);
    let mut both = Both::new(cuda(Strategy::Auto));
    for frame in 0..120 {
        both.update(Frame::boxes(&boxes))?;
        step(&mut boxes, 0.01, &mut random);
        if frame % 25 == 20 {
            let n = boxes.len();
            boxes[random.below(n)] = boxes[random.below(n)];
            let i = random.below(n);
            boxes[i] = if frame % 2 == 0 {
                Aabb::EMPTY
            } else {
                Aabb::new([-1e30; 3], [1e30; 3])
            };
            boxes[random.below(n)] = Aabb::new([1.0; 3], [1.5; 3]);
        }
    }
    both.used_the_list(30)
}

/// The number of boxes grows and shrinks, to nothing too.
fn counts() -> Result<(), Failed> {
    let mut random = Random::new(4);
    let mut boxes = scene(&mut random, 1.5);
    let mut both = Both::new(cuda(Strategy::Auto));
    let all = boxes.len();
    for n in [all, all - 1, 10, all / 2, 0, all] {
        for _ in 0..12 {
            both.update(Frame::boxes(&boxes[..n]))?;
            step(&mut boxes, 0.01, &mut random);
        }
    }
    both.used_the_list(15)
}

/// Filters, worlds and excluded pairs change while the list is in use.
fn filters_and_worlds() -> Result<(), Failed> {
    let mut random = Random::new(5);
    let mut boxes = scene(&mut random, 3.0);
    let n = boxes.len();
    let filter = |random: &mut Random| Filter {
        layers: 1 << random.below(3),
        mask: random.bits() as u32 & 7,
        group: random.below(4) as u32,
        flags: FilterFlags(random.bits() as u32 & 4),
    };
    let mut filters: Vec<Filter> = (0..n).map(|_| filter(&mut random)).collect();
    let mut worlds: Vec<u32> = (0..n).map(|_| random.below(2) as u32).collect();
    let mut excluded: Vec<Pair> = Vec::new();
    let mut both = Both::new(cuda(Strategy::Auto));
    for frame in 0..150 {
        let mut now = Frame::boxes(&boxes).excluded(&excluded);
        if !(40..80).contains(&frame) {
            now = now.filters(&filters);
        }
        if frame >= 40 {
            now = now.worlds(&worlds);
        }
        both.update(now)?;
        step(&mut boxes, 0.005, &mut random);
        match frame % 40 {
            15 => filters[random.below(n)] = filter(&mut random),
            25 => worlds[random.below(n)] ^= 1,
            35 => excluded = both.ours.pairs().iter().step_by(3).copied().collect(),
            _ => {}
        }
    }
    both.used_the_list(50)
}

/// Bad boxes are an error that leaves the last result, or in no pair.
fn bad_boxes() -> Result<(), Failed> {
    let mut random = Random::new(6);
    let mut boxes = scene(&mut random, 1.5);
    let bad = Aabb {
        min: [2.0; 3],
        max: [1.0; 3],
    };
    let mut skips = Both::new(Config {
        on_invalid: OnInvalid::Skip,
        ..cuda(Strategy::Auto)
    });
    let mut fails = Both::new(cuda(Strategy::Auto));
    for frame in 0..60 {
        fails.update(Frame::boxes(&boxes))?;
        let good = boxes[7];
        boxes[7] = if frame % 2 == 0 {
            bad
        } else {
            Aabb::new([f32::NAN; 3], [1.0; 3])
        };
        if frame % 10 == 9 {
            let last = fails.ours.pairs().to_vec();
            holds(fails.ours.update(&boxes).is_err(), || "no error".to_owned())?;
            same(fails.ours.pairs(), &last)?;
        }
        skips.update(Frame::boxes(&boxes))?;
        boxes[7] = good;
        step(&mut boxes, 0.01, &mut random);
    }
    skips.used_the_list(20)?;
    fails.used_the_list(20)
}

/// Boxes grow within their margins until there are more pairs than at first.
fn more_pairs() -> Result<(), Failed> {
    let mut random = Random::new(7);
    let mut boxes = scene(&mut random, 1.0);
    let mut both = Both::new(Config {
        initial_pair_capacity: Some(1),
        ..cuda(Strategy::Auto)
    });
    for frame in 0..120 {
        both.update(Frame::boxes(&boxes))?;
        let by = if frame % 60 < 30 { 0.004 } else { -0.004 };
        for b in &mut boxes {
            *b = Aabb::new(b.min.map(|x| x - by), b.max.map(|x| x + by));
        }
    }
    both.used_the_list(40)
}

/// Pairs beyond the limit are the same error by the list, and it leaves the last result.
fn too_many_pairs() -> Result<(), Failed> {
    let mut random = Random::new(8);
    let mut boxes = scene(&mut random, 1.0);
    let mut free = engine(&cpu(&cuda(Strategy::Auto)));
    let limit = free.update(&boxes).map_err(text)?.pairs;
    let mut ours = engine(&Config {
        pair_memory: Some(8 * limit),
        min_resting: Some(16),
        ..cuda(Strategy::Auto)
    });
    let (mut fitted, mut failed) = (0, 0);
    for frame in 0..60 {
        let pairs = free.update(&boxes).map_err(text)?.pairs;
        let last = ours.pairs().to_vec();
        match ours.update(&boxes) {
            Ok(report) => {
                equal(report.pairs, pairs)?;
                same(ours.pairs(), free.pairs())?;
                fitted += 1;
            }
            Err(error) => {
                let error = format!("{error:?}");
                let expected = format!("TooManyPairs {{ count: {pairs}, limit: {limit} }}");
                equal(error, expected)?;
                same(ours.pairs(), &last)?;
                failed += 1;
            }
        }
        let shrinks = frame % 20 < 5 || frame % 20 >= 15;
        let by = if shrinks { -0.001 } else { 0.001 };
        for b in &mut boxes {
            *b = Aabb::new(b.min.map(|x| x - by), b.max.map(|x| x + by));
        }
    }
    holds(fitted > 10 && failed > 10, || {
        format!("{fitted} fitted, {failed} failed")
    })
}

/// Frames without any change come between.
fn stops_and_goes_on() -> Result<(), Failed> {
    let mut random = Random::new(9);
    let mut boxes = scene(&mut random, 1.5);
    let mut both = Both::new(cuda(Strategy::Auto));
    for frame in 0..60 {
        both.update(Frame::boxes(&boxes))?;
        if frame % 12 < 8 {
            step(&mut boxes, 0.01, &mut random);
        }
    }
    both.used_the_list(15)
}

fn fast_boxes_have_none() -> Result<(), Failed> {
    let mut random = Random::new(10);
    let mut boxes = scene(&mut random, 1.5);
    let mut both = Both::new(cuda(Strategy::Auto));
    both.walk(&mut boxes, 40, 0.3, &mut random)?;
    equal(both.by_list, 0)
}
