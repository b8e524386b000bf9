//! The figures of Ha, Krüger and Silva 2009.

use super::cell::*;
use crate::input::Distribution::*;
use crate::measure::{Contender, Load};
use crate::plot::size;

/// 0.5 M to 16 M.
const HA: &[u32] = &[19, 20, 21, 22, 23, 24];
const HA_VALUE: &[Contender] = &[FOUR_WAY, EIGHT_WAY, ONE_BIT, RADIX_16, ONESWEEP];
const HA_INDEX: &[Contender] = &[FOUR_WAY, EIGHT_WAY, ONESWEEP];

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "ha-collision",
        source: "Ha et al. 2009, fig. 6",
        title: "broad phase of uniform boxes, on the GPU and on the CPU",
        rows: "boxes",
        unit: Unit::Updates,
        cells: |_| Vec::new(),
    },
    Figure {
        name: "ha-collision-stages",
        source: "Ha et al. 2009, fig. 6",
        title: "broad phase of uniform boxes, share of each stage",
        rows: "boxes",
        unit: Unit::Shares,
        cells: |_| Vec::new(),
    },
    Figure {
        name: "ha-value-uniform",
        source: "Ha et al. 2009, fig. 4 and 5",
        title: "value sort, uniform u32 keys",
        rows: "keys",
        unit: Unit::Rate,
        cells: |sizes| {
            by_size(
                sizes,
                HA,
                (U32, Load::Keys, Uniform),
                &[HA_VALUE, &[Contender::Cpu]].concat(),
            )
        },
    },
    Figure {
        name: "ha-value-gaussian",
        source: "Ha et al. 2009, fig. 4",
        title: "value sort, Gaussian u32 keys",
        rows: "keys",
        unit: Unit::Rate,
        cells: |sizes| by_size(sizes, HA, (U32, Load::Keys, Gaussian), HA_VALUE),
    },
    Figure {
        name: "ha-index-uniform",
        source: "Ha et al. 2009, fig. 4 and 5",
        title: "index sort, uniform u32 keys",
        rows: "keys",
        unit: Unit::Rate,
        cells: |sizes| by_size(sizes, HA, (U32, Load::Index, Uniform), HA_INDEX),
    },
    Figure {
        name: "ha-index-gaussian",
        source: "Ha et al. 2009, fig. 4",
        title: "index sort, Gaussian u32 keys",
        rows: "keys",
        unit: Unit::Rate,
        cells: |sizes| by_size(sizes, HA, (U32, Load::Index, Gaussian), HA_INDEX),
    },
    Figure {
        name: "ha-order-check",
        source: "Ha et al. 2009, §3 and §4.2",
        title: "keys that need no pass or half of them, u32",
        rows: "keys",
        unit: Unit::Rate,
        cells: |sizes| {
            let all = [Uniform, Sorted, Bits(16), NearlySorted];
            by_distribution(
                sizes,
                &[20, 24],
                Load::Keys,
                &all,
                &[FOUR_WAY, EIGHT_WAY, RADIX, ONESWEEP],
            )
        },
    },
    Figure {
        name: "ha-records",
        source: "Ha et al. 2009, fig. 3 and §4.7",
        title: "records moved once by the index, and values moved in each pass",
        rows: "elements",
        unit: Unit::Rate,
        cells: |sizes| {
            let moved = [Load::Index, Load::U32, Load::U64];
            let loads: Vec<Load> = moved
                .into_iter()
                .chain(Load::RECORDS.map(Load::Records))
                .collect();
            let row = |n, load| {
                at_size(
                    format!("{} {load}", size(n)),
                    n,
                    (U32, load, Uniform),
                    &[FOUR_WAY, ONESWEEP],
                )
            };
            let rows = |n| loads.iter().flat_map(move |&load| row(n, load));
            powers(sizes, &[20, 22, 24])
                .into_iter()
                .flat_map(rows)
                .collect()
        },
    },
    Figure {
        name: "ha-gather",
        source: "Ha et al. 2009, fig. 3",
        title: "stages of a record sort by four-way radix, 2^22 records (small: 2^20)",
        rows: "records",
        unit: Unit::Stages,
        cells: |sizes| {
            let n = 1 << if sizes == Sizes::Full { 22 } else { 20 };
            let what = |bytes| (U32, Load::Records(bytes), Uniform);
            Load::RECORDS
                .map(|bytes| cell(format!("{bytes} bytes"), n, what(bytes), FOUR_WAY))
                .into()
        },
    },
];
