//! Sorts boxes into the leaf order of a tree with eight children a node, so that its nodes are
//! small in any scene.
//!
//! 1. A sample of the boxes is bisected repeatedly. Each bisection takes the key (the centre or the
//!    size on an axis, or the world) for which the halves touch the fewest boxes of the sample.
//!    Bisections are at medians and costs are counts of ranks, so a far or huge box has no effect
//!    on the others.
//! 2. Each box goes down these bisections to a part. Each part has a grid of cells in Morton order.
//!    A cell holds about as many boxes side by side on each axis, so flat parts are not cut across.
//! 3. Boxes are sorted by part, then by cell. Where most classes of filters do not pair, they are
//!    sorted by class first.
//! 4. Boxes of a crowded cell, as around a far box, are sorted by the same steps among themselves.

use crate::cpu::tuning::{MAX_TIED, MIN_GROUP, PACKING_SAMPLE, PER_SAMPLED, SERIAL_PACKING};
use crate::stratified::draw;
use crate::threads::Threads;
use crate::try_alloc::{collect, gather};
use crate::{Aabb, Filter, FilterFlags, Result};
use rayon::prelude::*;
use std::ops::Range;

/// Keys of a box, by their definition: three centres, three sizes, the world.
const KEYS: usize = 7;
/// Axes on which boxes overlap: three, and the world.
const AXES: usize = 4;
/// The last cell of a part on an axis: [`CELL_BITS`] has 16 bits for each of three.
const LAST_CELL: f32 = 65535.0;
/// Low bits of a code that are the cell. The part and the class are above them.
const CELL_BITS: usize = 48;
/// Max number of levels of bisections: as many bits of a code hold the part. The bits that the cell
/// and the class leave of 64 fix it.
const MAX_DEPTH: usize = 9;
/// A class or a group is distinguished if at least one in this many boxes of the sample has it, so
/// the class fits into a code, in the bits that are left.
const CLASS_SHARE: usize = 64;

/// The boxes to sort, and what else decides their order.
#[derive(Clone, Copy, Default)]
pub(crate) struct PackingInput<'a> {
    pub(crate) boxes: &'a [Aabb],
    pub(crate) filters: Option<&'a [Filter]>,
    pub(crate) worlds: Option<&'a [u32]>,
    pub(crate) threads: Threads,
}

/// Returns the indices of all boxes in order, and how many boxes overlap something at all. Those
/// come first. O(n log n).
pub(crate) fn order(scene: PackingInput) -> Result<(Vec<u32>, usize)> {
    let n = scene.boxes.len();
    let mut all = collect(0..n as u32)?;
    let mut coded = scene.codes(&all, 0)?;
    let nonempty = coded.partition_point(|&(code, _)| code != EMPTY);
    scene.refine(&mut coded[..nonempty], 1)?;
    all.clear();
    all.extend(coded.iter().map(|&(_, i)| i));
    Ok((all, nonempty))
}

/// The code of a box that overlaps nothing: after all others.
const EMPTY: u64 = u64::MAX;

/// Boxes by code and index.
type Coded = Vec<(u64, u32)>;

impl PackingInput<'_> {
    /// Sorts some boxes by their codes.
    fn codes(&self, some: &[u32], depth: u32) -> Result<Coded> {
        let encoder = Encoder::new(self, some, depth)?;
        let coded = |&i: &u32| (encoder.code(self, i as usize), i);
        if some.len() <= SERIAL_PACKING || self.threads == Threads::One {
            let mut coded = collect(some.iter().map(coded))?;
            coded.sort_unstable_by_key(|&(code, _)| code);
            return Ok(coded);
        }
        let mut coded = gather(some.par_iter().map(coded))?;
        coded.par_sort_unstable_by_key(|&(code, _)| code);
        Ok(coded)
    }

    /// Sorts the boxes of each code that many share. A sample of these boxes alone has other
    /// quantiles, so new codes tell them apart. Boxes that still share one code are sorted by their
    /// keys.
    fn refine(&self, coded: &mut [(u64, u32)], depth: u32) -> Result<()> {
        for tied in coded.chunk_by_mut(|x, y| x.0 == y.0) {
            if tied.len() <= MAX_TIED {
                continue;
            }
            let some = collect(tied.iter().map(|&(_, i)| i))?;
            let mut recoded = self.codes(&some, depth)?;
            if recoded[0].0 == recoded[recoded.len() - 1].0 {
                let keys = |i: u32| keys(self, i as usize).map(f32::to_bits);
                recoded.sort_by_cached_key(|&(_, i)| (keys(i), i));
            } else {
                self.refine(&mut recoded, depth + 1)?;
            }
            for (to, (_, i)) in tied.iter_mut().zip(recoded) {
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
            flags: FilterFlags(filters[i].flags.0 & FilterFlags::EXCLUSIVE.0),
            ..filters[i]
        };
        self.filters.map_or(Filter::default(), of)
    }
}

/// Tells whether a box can overlap anything.
fn is_nonempty(b: &Aabb) -> bool {
    (0..3).all(|axis| b.min[axis] <= b.max[axis])
}

/// Returns the keys of a box, all finite.
fn keys(scene: &PackingInput, i: usize) -> [f32; KEYS] {
    let b = &scene.boxes[i];
    let half = |side: [f32; 3], axis: usize| 0.5 * side[axis].clamp(f32::MIN, f32::MAX);
    std::array::from_fn(|key| match key {
        0..3 => half(b.max, key) + half(b.min, key),
        3..6 => half(b.max, key - 3) - half(b.min, key - 3),
        _ => scene.world(i) as f32,
    })
}

/// Computes codes: the class of a box, the part that the bisections lead to, and the cell in that
/// part.
struct Encoder {
    /// An implicit binary tree of `depth` levels.
    bisections: Vec<Bisection>,
    depth: usize,
    parts: Vec<Part>,
    classes: Vec<Filter>,
    /// The groups of filters that classes distinguish.
    filter_groups: Vec<u32>,
}

/// Divides boxes into those whose key is below the threshold, and the others.
#[derive(Clone, Copy)]
struct Bisection {
    key: usize,
    threshold: f32,
}

/// The grid of cells of a part: its low corner, and the number of cells in a unit of length.
struct Part {
    low: [f32; 3],
    scale: [f32; 3],
}

/// Some boxes of the sample, and the bounds that bisections have set to their centres.
struct Group {
    members: Range<usize>,
    low: [f32; 3],
    high: [f32; 3],
}

impl Encoder {
    /// Bisects a sample level by level.
    fn new(scene: &PackingInput, some: &[u32], depth: u32) -> Result<Self> {
        let sample = sample(scene, some, depth);
        let (classes, filter_groups) = classes(scene, &sample);
        let mut members = members(scene, &sample)?;
        let depth = (members.len() / MIN_GROUP).checked_ilog2().unwrap_or(0) as usize;
        let mut bisections = Vec::with_capacity(1 << depth);
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
                let (bisection, count) = bisect(&mut members[all.clone()]);
                let (mut end, mut start) = (high, low);
                if let Some(end) = end.get_mut(bisection.key) {
                    *end = bisection.threshold;
                    start[bisection.key] = bisection.threshold;
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
                bisections.push(bisection);
            }
            groups = halves;
        }
        Ok(Self {
            bisections,
            depth,
            parts: groups.iter().map(|group| group.part(&members)).collect(),
            classes,
            filter_groups,
        })
    }

    /// Returns the code of a box.
    fn code(&self, scene: &PackingInput, i: usize) -> u64 {
        if !is_nonempty(&scene.boxes[i]) {
            return EMPTY;
        }
        let keys = keys(scene, i);
        let part = (0..self.depth).fold(0, |node, level| {
            let Bisection { key, threshold } = self.bisections[(1 << level) - 1 + node];
            2 * node + usize::from(keys[key] >= threshold)
        });
        let Part { low, scale } = &self.parts[part];
        let cell = |axis: usize| {
            // The cast saturates: boxes outside of the part are in its first or last cell.
            let cell = ((keys[axis] - low[axis]) * scale[axis]) as u16;
            spread(cell.into()) << axis
        };
        let class = self.class(&scene.filter(i)) as u64;
        cell(0) | cell(1) | cell(2) | (class << MAX_DEPTH | part as u64) << CELL_BITS
    }

    /// Returns the index of a filter's class plus one, or 0 if it is of no class.
    fn class(&self, filter: &Filter) -> usize {
        if self.classes.is_empty() {
            return 0;
        }
        let class = without_rare_group(filter, &self.filter_groups);
        let index = self.classes.iter().position(|other| *other == class);
        index.map_or(0, |index| index + 1)
    }
}

impl Group {
    /// Returns the grid of cells. It spans the bounds set by bisections, or else the members'
    /// centres.
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
            let median = sizes.get(sizes.len() / 2).copied().unwrap_or_default();
            side_by_side[axis] = (extent[axis] / (2.0 * median)).clamp(1.0 / LAST_CELL, LAST_CELL);
        }
        let max = side_by_side.into_iter().fold(1.0 / LAST_CELL, f32::max);
        let scale = |axis: usize| LAST_CELL * side_by_side[axis] / max / extent[axis];
        Part {
            low,
            scale: std::array::from_fn(scale),
        }
    }
}

/// Moves bit `i` of 21 to bit `3 i`.
pub(crate) const fn spread(bits: u64) -> u64 {
    let bits = (bits | bits << 32) & 0x001f_0000_0000_ffff;
    let bits = (bits | bits << 16) & 0x001f_0000_ff00_00ff;
    let bits = (bits | bits << 8) & 0x100f_00f0_0f00_f00f;
    let bits = (bits | bits << 4) & 0x10c3_0c30_c30c_30c3;
    (bits | bits << 2) & 0x1249_2492_4924_9249
}

/// Draws a sample of some boxes, without the empty ones.
fn sample(scene: &PackingInput, some: &[u32], depth: u32) -> Vec<usize> {
    let size = (some.len() / PER_SAMPLED)
        .clamp(64, PACKING_SAMPLE)
        .min(some.len());
    draw(some.len(), size, depth.wrapping_mul(0x85eb_ca6b))
        .map(|k| some[k] as usize)
        .filter(|&i| is_nonempty(&scene.boxes[i]))
        .collect()
}

/// The reach of a box: for each axis, how many boxes of the sample begin before a box ends, and how
/// many end before it begins. The difference is how many it touches. The union of boxes has the max
/// of the first counts and the min of the second.
type Reach = [[u16; AXES]; 2];

/// Counts the reach of each box of a sample.
fn reaches(scene: &PackingInput, sample: &[usize]) -> Vec<Reach> {
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
        let (begins, ends) = (mins.clone(), maxs.clone());
        mins.sort_unstable_by(f32::total_cmp);
        maxs.sort_unstable_by(f32::total_cmp);
        for (k, reach) in reaches.iter_mut().enumerate() {
            // The counts are at most the size of a sample, so they fit into a u16.
            reach[0][axis] = mins.partition_point(|&min| min <= ends[k]) as u16;
            reach[1][axis] = maxs.partition_point(|&max| max < begins[k]) as u16;
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

/// Returns the boxes of a sample with their keys and reaches.
fn members(scene: &PackingInput, sample: &[usize]) -> Result<Vec<Member>> {
    let member = |(&i, reach)| Member {
        keys: keys(scene, i),
        reach,
    };
    collect(sample.iter().zip(reaches(scene, sample)).map(member))
}

/// Returns the cost of a bisection: for each half, its size times the number of boxes of the sample
/// that its union touches, as if the axes were independent.
fn cost(group: &[Member], Bisection { key, threshold }: Bisection) -> f64 {
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

/// Bisects a group near the median of the key of min cost. Returns the bisection and how many boxes
/// are below it: all of them if their keys are all equal.
fn bisect(group: &mut [Member]) -> (Bisection, usize) {
    let mut best = (
        f64::INFINITY,
        Bisection {
            key: 0,
            threshold: f32::INFINITY,
        },
    );
    let mut values = Vec::with_capacity(group.len());
    for key in 0..KEYS {
        values.clear();
        values.extend(group.iter().map(|member| member.keys[key]));
        if let Some(threshold) = near_median(&mut values) {
            let bisection = Bisection { key, threshold };
            let cost = cost(group, bisection);
            if cost < best.0 {
                best = (cost, bisection);
            }
        }
    }
    let (_, bisection) = best;
    let is_above = |member: &Member| member.keys[bisection.key] >= bisection.threshold;
    group.sort_unstable_by_key(is_above);
    (bisection, group.partition_point(|member| !is_above(member)))
}

/// Returns the value that divides `values` most evenly into those below it and the others, neither
/// of which may be empty. None if all values are equal.
fn near_median(values: &mut [f32]) -> Option<f32> {
    let middle = values.len() / 2;
    let (_, &mut median, above) =
        (values.len() > 1).then(|| values.select_nth_unstable_by(middle, f32::total_cmp))?;
    // Compared as numbers, so that -0.0 and 0.0 are not divided.
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

/// Returns the filter without its group, unless that is one of `groups`.
fn without_rare_group(filter: &Filter, groups: &[u32]) -> Filter {
    let group = if groups.contains(&filter.group) {
        filter.group
    } else {
        0
    };
    Filter { group, ..*filter }
}

/// Returns the frequent classes of filters of a sample, and the groups that they distinguish. There
/// are none where filters let more pairs of the sample through than they drop.
fn classes(scene: &PackingInput, sample: &[usize]) -> (Vec<Filter>, Vec<u32>) {
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
        } = without_rare_group(filter, &groups);
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
    let dropped: usize = classes
        .iter()
        .flat_map(|x| classes.iter().map(move |y| (x, y)))
        .filter(|((x, _), (y, _))| !x.allows(y))
        .map(|((_, x), (_, y))| x * y)
        .sum();
    if 2 * dropped < sample.len() * sample.len() {
        return (Vec::new(), Vec::new());
    }
    (
        classes.into_iter().map(|(filter, _)| filter).collect(),
        groups,
    )
}

/// Returns the values that occur at least `min` times, each with its count.
fn frequent<T: Ord + Copy>(values: impl Iterator<Item = T>, min: usize) -> Vec<(T, usize)> {
    let mut sorted: Vec<T> = values.collect();
    sorted.sort_unstable();
    sorted
        .chunk_by(|x, y| x == y)
        .filter(|equal| equal.len() >= min)
        .map(|equal| (equal[0], equal.len()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(boxes: &[Aabb]) -> (Vec<u32>, usize) {
        let scene = PackingInput {
            boxes,
            ..PackingInput::default()
        };
        let Ok(order) = order(scene) else {
            panic!("no memory")
        };
        order
    }

    #[test]
    fn each_box_is_there_once_and_the_empty_ones_last() {
        for n in [0, 1, 2, 31, 33, 64, 1000, 5000] {
            let one = |i: usize| match i % 5 {
                0 => Aabb::EMPTY,
                1 => Aabb::new([0.0; 3], [0.0; 3]),
                2 => Aabb::new([f32::NEG_INFINITY; 3], [f32::INFINITY; 3]),
                3 => Aabb::new([-0.0, 1e-45, f32::MIN], [0.0, 2e-45, f32::MAX]),
                _ => Aabb::new([i as f32; 3], [i as f32 + 1.0; 3]),
            };
            let boxes: Vec<Aabb> = (0..n).map(one).collect();
            let (mut order, nonempty) = ordered(&boxes);
            assert_eq!(nonempty, n - n.div_ceil(5));
            assert!(order[nonempty..].iter().all(|i| i % 5 == 0));
            order.sort_unstable();
            assert!(order.into_iter().eq(0..n as u32));
        }
    }

    #[test]
    fn boxes_that_a_sample_misses_are_put_in_order() {
        // Nearly all boxes are equal. A sample of 1 in 16 has few of the 300 that lie on a line.
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
        let extent = f64::from(boxes[19_973].min[0]) - 1.0;
        let steps: f64 = steps.sum();
        assert!(steps < 40.0 * extent, "{steps} for {extent}");
    }
}
