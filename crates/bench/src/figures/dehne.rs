//! The figures of Dehne and Zaboli 2010 and 2017.

use super::cell::*;
use crate::input::Distribution::*;
use crate::measure::Load;

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "dehne-sizes",
        source: "Dehne and Zaboli 2010, fig. 4, 6 and 7; 2017, fig. 3 and 4",
        title: "bucket sort and merge sort by size, uniform u32 keys",
        rows: "keys",
        unit: Unit::Rate,
        cells: |sizes| {
            by_size(
                sizes,
                &[20, 22, 24, 25, 26, 27],
                (U32, Load::Keys, Uniform),
                &[BUCKET, MERGE, ONESWEEP],
            )
        },
    },
    Figure {
        name: "dehne-samples",
        source: "Dehne and Zaboli 2010, fig. 3",
        title: "bucket sort by samples s of a sublist and so many buckets, uniform u32 keys",
        rows: "s",
        unit: Unit::Milliseconds,
        cells: |sizes| {
            by_parameter(
                sizes,
                &[20, 25, 26, 27],
                &[16, 64, 256, 512, 1024, 2048],
                BUCKET,
            )
        },
    },
    Figure {
        name: "dehne-steps",
        source: "Dehne and Zaboli 2010, fig. 5; 2017, fig. 2",
        title: "steps of bucket sort, uniform u32 keys",
        rows: "keys",
        unit: Unit::Stages,
        cells: |sizes| {
            by_size(
                sizes,
                &[20, 22, 24, 25, 26, 27],
                (U32, Load::Keys, Uniform),
                &[BUCKET],
            )
        },
    },
    Figure {
        name: "dehne-distributions",
        source: "Dehne and Zaboli 2017, fig. 5",
        title: "bucket sort by distribution, u32 keys",
        rows: "keys",
        unit: Unit::Rate,
        cells: |sizes| {
            by_distribution(
                sizes,
                &[20, 24, 26],
                Load::Keys,
                &[Uniform, Gaussian, Zipf],
                &[BUCKET],
            )
        },
    },
];
