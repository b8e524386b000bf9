//! The order in which boxes make a tree of eights with small nodes, whatever the scene.
//!
//! 1. A sample of the boxes is divided in halves, again and again, each time by the key (the centre or
//!    the size on an axis, or the world) that makes the halves touch the fewest boxes of the sample.
//!    Medians divide and ranks are counted, so one far or huge box changes nothing for the others.
//! 2. A box goes down these decisions to its part of the sample. Within the part it lies in a cell, by
//!    Morton order, of as many boxes side by side on each axis: flat parts are not cut across.
//! 3. Boxes are sorted by class of filters where most classes do not pair, then part, then cell.
//! 4. Where many are in one cell, as around a far box, they are put in order by themselves.

use crate::draw::draw;
use crate::room::{collect, gather};
use crate::{Aabb, Filter, FilterFlags, Result};
use rayon::prelude::*;
use std::ops::Range;

/// Keys of a box: three centres, three sizes, the world.
const KEYS: usize = 7;
/// Axes on which boxes meet: three, and the world.
const AXES: usize = 4;
/// Cells of a part on an axis.
const CELLS: f32 = 65535.0;
/// Bits of a code that are the cell in a part; above them are the part and the class.
const CELL_BITS: usize = 48;
/// Divisions of the sample at most.
const MAX_DEPTH: usize = 9;
/// Boxes of the sample at most, and the boxes of the frame for each. Choosing the bits takes 0.4 us
/// for a box of the sample, ordering a box 0.1.
const MAX_SAMPLE: usize = 2048;
const PER_SAMPLED: usize = 16;
/// Boxes of the sample in a group that is not divided further.
const MIN_GROUP: usize = 4;
/// Boxes of one code that are left in any order.
const MAX_ALIKE: usize = 32;
/// Boxes up to which the caller's thread does all.
const SERIAL: usize = 4096;
/// The part of the boxes that makes a class or a group worth a number of its own.
const CLASS_SHARE: usize = 64;

/// What decides where boxes go in the order.
#[derive(Clone, Copy, Default)]
pub(crate) struct Scene<'a> {
    pub(crate) boxes: &'a [Aabb],
    pub(crate) filters: Option<&'a [Filter]>,
    pub(crate) worlds: Option<&'a [u32]>,
}

/// The order of all boxes, and how many of them are not empty: those come first. O(n log n), on all
/// threads.
pub(crate) fn order(scene: Scene) -> Result<(Vec<u32>, usize)> {
    let n = scene.boxes.len();
    let mut all = collect(0..n as u32)?;
    let mut coded = scene.codes(&all, 0)?;
    let held = coded.partition_point(|&(code, _)| code != EMPTY);
    scene.refine(&mut coded[..held], 1)?;
    all.clear();
    all.extend(coded.iter().map(|&(_, i)| i));
    Ok((all, held))
}

/// The code of a box that overlaps nothing, after all others.
const EMPTY: u64 = u64::MAX;

type Coded = Vec<(u64, u32)>;

impl Scene<'_> {
    /// Some boxes in the order of their codes.
    fn codes(&self, some: &[u32], depth: u32) -> Result<Coded> {
        let code = Code::new(self, some, depth);
        let coded = |&i: &u32| (code.of(self, i as usize), i);
        if some.len() <= SERIAL {
            let mut coded = collect(some.iter().map(coded))?;
            coded.sort_unstable_by_key(|&(code, _)| code);
            return Ok(coded);
        }
        let mut coded = gather(some.par_iter().map(coded))?;
        coded.par_sort_unstable_by_key(|&(code, _)| code);
        Ok(coded)
    }

    /// Puts boxes of one code in order by themselves. Each step divides them, since a sample of
    /// their own has other quantiles; those that it does not are put in order by comparison.
    fn refine(&self, coded: &mut [(u64, u32)], depth: u32) -> Result<()> {
        for alike in coded.chunk_by_mut(|x, y| x.0 == y.0) {
            if alike.len() <= MAX_ALIKE {
                continue;
            }
            let some = collect(alike.iter().map(|&(_, i)| i))?;
            let mut own = self.codes(&some, depth)?;
            if own[0].0 == own[own.len() - 1].0 {
                let keys = |i: u32| keys(self, i as usize).map(f32::to_bits);
                own.sort_by_cached_key(|&(_, i)| (keys(i), i));
            } else {
                self.refine(&mut own, depth + 1)?;
            }
            for (to, (_, i)) in alike.iter_mut().zip(own) {
                to.1 = i;
            }
        }
        Ok(())
    }

    fn world(&self, i: usize) -> u32 {
        self.worlds.map_or(0, |worlds| worlds[i])
    }

    fn filter(&self, i: usize) -> Filter {
        let of = |filters: &[Filter]| Filter {
            flags: FilterFlags(filters[i].flags.0 & FLAGS),
            ..filters[i]
        };
        self.filters.map_or(Filter::default(), of)
    }
}

/// The flags that keep boxes apart.
const FLAGS: u32 = FilterFlags::STATIC.0 | FilterFlags::ASLEEP.0;

fn is_held(b: &Aabb) -> bool {
    (0..3).all(|axis| b.min[axis] <= b.max[axis])
}

/// The keys of a box, all finite.
fn keys(scene: &Scene, i: usize) -> [f32; KEYS] {
    let b = &scene.boxes[i];
    let half = |side: [f32; 3], axis: usize| 0.5 * side[axis].clamp(f32::MIN, f32::MAX);
    std::array::from_fn(|key| match key {
        0..3 => half(b.max, key) + half(b.min, key),
        3..6 => half(b.max, key - 3) - half(b.min, key - 3),
        _ => scene.world(i) as f32,
    })
}

/// How codes are made: a part of the sample by decisions, then a cell of that part.
struct Code {
    /// An implicit binary tree of `depth` levels.
    decisions: Vec<Decision>,
    depth: usize,
    parts: Vec<Part>,
    classes: Vec<Filter>,
    groups: Vec<u32>,
}

/// Boxes whose key is below the threshold go one way, the others the other.
#[derive(Clone, Copy)]
struct Decision {
    key: usize,
    threshold: f32,
}

/// Where the cells of a part begin, and how many there are to a unit of length: as many boxes lie side
/// by side in a cell on each axis.
struct Part {
    low: [f32; 3],
    scale: [f32; 3],
}

/// Some of the sample, and between which centres they lie.
struct Group {
    members: Range<usize>,
    low: [f32; 3],
    high: [f32; 3],
}

impl Code {
    /// Divides a sample level by level, each group by the key that makes its halves touch the fewest
    /// boxes.
    fn new(scene: &Scene, some: &[u32], depth: u32) -> Self {
        let sample = sample(scene, some, depth);
        let (classes, groups_of_filters) = classes(scene, &sample);
        let mut members = members(scene, &sample);
        let depth = (members.len() / MIN_GROUP).checked_ilog2().unwrap_or(0) as usize;
        let mut decisions = Vec::with_capacity(1 << depth);
        let mut groups = vec![Group {
            members: 0..members.len(),
            low: [f32::NEG_INFINITY; 3],
            high: [f32::INFINITY; 3],
        }];
        for _ in 0..depth {
            let mut halves = Vec::with_capacity(2 * groups.len());
            for Group {
                members: all,
                low,
                high,
            } in groups
            {
                let (decision, count) = divide(&mut members[all.clone()]);
                let (mut end, mut start) = (high, low);
                if let Some(end) = end.get_mut(decision.key) {
                    *end = decision.threshold;
                    start[decision.key] = decision.threshold;
                }
                let middle = all.start + count;
                halves.extend([
                    Group {
                        members: all.start..middle,
                        low,
                        high: end,
                    },
                    Group {
                        members: middle..all.end,
                        low: start,
                        high,
                    },
                ]);
                decisions.push(decision);
            }
            groups = halves;
        }
        Self {
            decisions,
            depth,
            parts: groups.iter().map(|group| group.part(&members)).collect(),
            classes,
            groups: groups_of_filters,
        }
    }

    fn of(&self, scene: &Scene, i: usize) -> u64 {
        if !is_held(&scene.boxes[i]) {
            return EMPTY;
        }
        let keys = keys(scene, i);
        let number = (0..self.depth).fold(0, |number, level| {
            let Decision { key, threshold } = self.decisions[(1 << level) - 1 + number];
            2 * number + usize::from(keys[key] >= threshold)
        });
        let Part { low, scale } = &self.parts[number];
        let cell = |axis: usize| {
            // The cast saturates; what lies outside of the part is in its first or last cell.
            let cell = ((keys[axis] - low[axis]) * scale[axis]) as u16;
            spread(cell) << axis
        };
        let class = self.class(&scene.filter(i)) as u64;
        cell(0) | cell(1) | cell(2) | (class << MAX_DEPTH | number as u64) << CELL_BITS
    }

    fn class(&self, filter: &Filter) -> usize {
        if self.classes.is_empty() {
            return 0;
        }
        let class = named(filter, &self.groups);
        let number = self.classes.iter().position(|other| *other == class);
        number.map_or(0, |number| number + 1)
    }
}

impl Group {
    /// The cells: between the decisions, or the members where none bounds the group.
    fn part(&self, members: &[Member]) -> Part {
        let members = &members[self.members.clone()];
        let key = |key: usize| members.iter().map(move |member| member.keys[key]);
        let (mut low, mut extent, mut side_by_side) = ([0.0; 3], [0.0; 3], [0.0; 3]);
        for axis in 0..3 {
            low[axis] = self.low[axis].max(key(axis).fold(f32::MAX, f32::min));
            let high = self.high[axis].min(key(axis).fold(f32::MIN, f32::max));
            extent[axis] = (high - low[axis]).clamp(f32::MIN_POSITIVE, f32::MAX);
            let mut sizes: Vec<f32> = key(3 + axis).collect();
            sizes.sort_unstable_by(f32::total_cmp);
            let usual = sizes.get(sizes.len() / 2).copied().unwrap_or_default();
            side_by_side[axis] = (extent[axis] / (2.0 * usual)).clamp(1.0 / CELLS, CELLS);
        }
        let most = side_by_side.into_iter().fold(1.0 / CELLS, f32::max);
        let scale = |axis: usize| CELLS * side_by_side[axis] / most / extent[axis];
        Part {
            low,
            scale: std::array::from_fn(scale),
        }
    }
}

/// Bit `i` to bit `3 i`.
fn spread(value: u16) -> u64 {
    let mut x = u64::from(value);
    x = (x | x << 16) & 0x001f_0000_ff00_00ff;
    x = (x | x << 8) & 0x100f_00f0_0f00_f00f;
    x = (x | x << 4) & 0x10c3_0c30_c30c_30c3;
    (x | x << 2) & 0x1249_2492_4924_9249
}

/// Boxes from all parts of some, the empty ones left out.
fn sample(scene: &Scene, some: &[u32], depth: u32) -> Vec<usize> {
    let size = (some.len() / PER_SAMPLED)
        .clamp(64, MAX_SAMPLE)
        .min(some.len());
    draw(some.len(), size, depth.wrapping_mul(0x85eb_ca6b))
        .map(|k| some[k] as usize)
        .filter(|&i| is_held(&scene.boxes[i]))
        .collect()
}

/// For each box and axis, how many of the sample begin before it ends, and how many end before it
/// begins: between the two are those that it touches. The union of boxes has the greatest of the one
/// and the least of the other.
type Reach = [[u16; AXES]; 2];

fn reaches(scene: &Scene, sample: &[usize]) -> Vec<Reach> {
    let mut reaches = vec![[[0; AXES]; 2]; sample.len()];
    for axis in 0..AXES {
        let side = |i: usize, of: fn(&Aabb) -> [f32; 3]| match axis {
            0..3 => of(&scene.boxes[i])[axis],
            _ => scene.world(i) as f32,
        };
        let [mut mins, mut maxs] = [|b: &Aabb| b.min, |b: &Aabb| b.max].map(|of| {
            let sides = sample.iter().map(|&i| side(i, of));
            sides.collect::<Vec<f32>>()
        });
        let own = mins.clone();
        let ends = maxs.clone();
        mins.sort_unstable_by(f32::total_cmp);
        maxs.sort_unstable_by(f32::total_cmp);
        for (k, reach) in reaches.iter_mut().enumerate() {
            // A sample has fewer boxes than a u16 counts.
            reach[0][axis] = mins.partition_point(|&min| min <= ends[k]) as u16;
            reach[1][axis] = maxs.partition_point(|&max| max < own[k]) as u16;
        }
    }
    reaches
}

/// A box of the sample.
#[derive(Clone, Copy)]
struct Member {
    keys: [f32; KEYS],
    reach: Reach,
}

/// Boxes of the sample with what decides where they go.
fn members(scene: &Scene, sample: &[usize]) -> Vec<Member> {
    let member = |(&i, reach)| Member {
        keys: keys(scene, i),
        reach,
    };
    sample
        .iter()
        .zip(reaches(scene, sample))
        .map(member)
        .collect()
}

/// How many of the sample's boxes two groups touch, were the axes independent, times how many they are:
/// those on the one side of a decision and those on the other.
fn cost(group: &[Member], Decision { key, threshold }: Decision) -> f64 {
    let mut sides = [(0.0, [0; AXES], [u16::MAX; AXES]); 2];
    for Member { keys, reach } in group {
        let (count, begun, over) = &mut sides[usize::from(keys[key] >= threshold)];
        *count += 1.0;
        for axis in 0..AXES {
            begun[axis] = begun[axis].max(reach[0][axis]);
            over[axis] = over[axis].min(reach[1][axis]);
        }
    }
    let mut cost = 0.0;
    for (count, begun, over) in sides {
        let touched = |axis: usize| f64::from(begun[axis].saturating_sub(over[axis]));
        cost += (0..AXES)
            .map(touched)
            .fold(count, |all, touched| all * touched);
    }
    cost
}

/// Divides a group by the best key, near its median: gives the decision, and how many are below it.
/// Boxes that are alike are not divided.
fn divide(group: &mut [Member]) -> (Decision, usize) {
    let mut best = (
        f64::INFINITY,
        Decision {
            key: 0,
            threshold: f32::INFINITY,
        },
    );
    let mut values = Vec::with_capacity(group.len());
    for key in 0..KEYS {
        values.clear();
        values.extend(group.iter().map(|member| member.keys[key]));
        if let Some(threshold) = near_median(&mut values) {
            let decision = Decision { key, threshold };
            let cost = cost(group, decision);
            if cost < best.0 {
                best = (cost, decision);
            }
        }
    }
    let (_, decision) = best;
    let is_above = |member: &Member| member.keys[decision.key] >= decision.threshold;
    group.sort_unstable_by_key(is_above);
    (decision, group.partition_point(|member| !is_above(member)))
}

/// What divides values best in halves: of those from it on, and those below, there are some.
fn near_median(values: &mut [f32]) -> Option<f32> {
    let middle = values.len() / 2;
    let (_, &mut median, above) =
        (values.len() > 1).then(|| values.select_nth_unstable_by(middle, f32::total_cmp))?;
    // Values that differ by the sign of a zero alone are one.
    let next = above.iter().copied().filter(|&value| value > median);
    let next = next.reduce(f32::min);
    let below = values.iter().filter(|&&value| value < median).count();
    let up_to = values.iter().filter(|&&value| value <= median).count();
    match next {
        Some(next) if below == 0 || up_to - middle < middle - below => Some(next),
        _ if below > 0 => Some(median),
        _ => None,
    }
}

/// The filter of a class: groups that are not worth a number are none.
fn named(filter: &Filter, groups: &[u32]) -> Filter {
    let group = if groups.contains(&filter.group) {
        filter.group
    } else {
        0
    };
    Filter { group, ..*filter }
}

/// The classes of filters that a good part of the sample has, where filters keep more pairs apart
/// than they let through; and the groups among them.
fn classes(scene: &Scene, sample: &[usize]) -> (Vec<Filter>, Vec<u32>) {
    if scene.filters.is_none() || sample.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let filters: Vec<Filter> = sample.iter().map(|&i| scene.filter(i)).collect();
    let share = sample.len().div_ceil(CLASS_SHARE);
    let groups = frequent(filters.iter().map(|filter| filter.group), share);
    let groups: Vec<u32> = groups.into_iter().map(|(group, _)| group).collect();
    let by_word = |filter: &Filter| {
        let Filter {
            layers,
            mask,
            group,
            flags,
        } = named(filter, &groups);
        [layers, mask, group, flags.0]
    };
    let classes = frequent(filters.iter().map(by_word), share);
    let classes: Vec<(Filter, usize)> = classes
        .into_iter()
        .map(|([layers, mask, group, flags], count)| {
            let flags = FilterFlags(flags);
            (
                Filter {
                    layers,
                    mask,
                    group,
                    flags,
                },
                count,
            )
        })
        .collect();
    let apart: usize = classes
        .iter()
        .flat_map(|x| classes.iter().map(move |y| (x, y)))
        .filter(|((x, _), (y, _))| !x.allows(y))
        .map(|((_, x), (_, y))| x * y)
        .sum();
    if 2 * apart < sample.len() * sample.len() {
        return (Vec::new(), Vec::new());
    }
    (
        classes.into_iter().map(|(filter, _)| filter).collect(),
        groups,
    )
}

/// The values that are there at least so many times, with how many they are.
fn frequent<T: Ord + Copy>(values: impl Iterator<Item = T>, least: usize) -> Vec<(T, usize)> {
    let mut sorted: Vec<T> = values.collect();
    sorted.sort_unstable();
    sorted
        .chunk_by(|x, y| x == y)
        .filter(|alike| alike.len() >= least)
        .map(|alike| (alike[0], alike.len()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(boxes: &[Aabb]) -> (Vec<u32>, usize) {
        let scene = Scene {
            boxes,
            ..Scene::default()
        };
        let Ok(order) = order(scene) else {
            panic!("no memory")
        };
        order
    }

    #[test]
    fn each_box_is_there_once_and_the_empty_ones_last() {
        for n in [0, 1, 2, 31, 33, 64, 1000, 5000] {
            let place = |i: usize| match i % 5 {
                0 => Aabb::EMPTY,
                1 => Aabb::new([0.0; 3], [0.0; 3]),
                2 => Aabb::new([f32::NEG_INFINITY; 3], [f32::INFINITY; 3]),
                3 => Aabb::new([-0.0, 1e-45, f32::MIN], [0.0, 2e-45, f32::MAX]),
                _ => Aabb::new([i as f32; 3], [i as f32 + 1.0; 3]),
            };
            let boxes: Vec<Aabb> = (0..n).map(place).collect();
            let (mut order, held) = ordered(&boxes);
            assert_eq!(held, n - n.div_ceil(5));
            assert!(order[held..].iter().all(|i| i % 5 == 0));
            order.sort_unstable();
            assert!(order.into_iter().eq(0..n as u32));
        }
    }

    #[test]
    fn boxes_that_a_sample_misses_are_put_in_order() {
        // Nearly all are in one place; 300 on a line are in no sample of 1 in 16 together.
        let boxes: Vec<Aabb> = (0..20_000)
            .map(|i| {
                let x = if i % 64 == 5 {
                    1.0 + i as f32 * 1e-7
                } else {
                    1.0
                };
                Aabb::new([x; 3], [x; 3])
            })
            .collect();
        let (order, _) = ordered(&boxes);
        let steps = order.windows(2).map(|pair| {
            let [p, q] = [pair[0], pair[1]].map(|i| f64::from(boxes[i as usize].min[0]));
            (q - p).abs()
        });
        let whole = f64::from(boxes[19_973].min[0]) - 1.0;
        let steps: f64 = steps.sum();
        assert!(steps < 40.0 * whole, "{steps} for {whole}");
    }
}
