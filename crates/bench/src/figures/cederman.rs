//! The figures of Cederman and Tsigas 2009.

use super::cell::*;
use crate::input::Distribution::*;
use crate::measure::{Contender, Load};

const QUICKSORT_CONTENDERS: &[Contender] = &[QUICKSORT, BITONIC, ONE_BIT, RADIX, ONESWEEP];

/// Vertices of the models of the Stanford repository: Dragon, Happy Buddha, Manuscript, RGB Dragon,
/// Thai Statuette.
const MODELS: [(&str, usize); 5] = [
    ("Dragon", 566_098),
    ("Happy", 543_652),
    ("Manuscript", 2_155_617),
    ("RGB Dragon", 3_609_600),
    ("Statuette", 4_999_996),
];

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "cederman-distributions",
        source: "Cederman and Tsigas 2009, fig. 4 and 5",
        title: "keys alone by distribution, u32",
        rows: "keys",
        unit: Unit::Rate,
        cells: |sizes| {
            let all = [Uniform, Sorted, Zero, Bucket, Gaussian, Staggered];
            by_distribution(sizes, &[20, 22, 24], Load::Keys, &all, QUICKSORT_CONTENDERS)
        },
    },
    Figure {
        name: "cederman-cpu",
        source: "Cederman and Tsigas 2009, fig. 4 and 5",
        title: "quicksort beside the CPU, u32 keys",
        rows: "keys",
        unit: Unit::Rate,
        cells: |sizes| {
            let all = [Uniform, Sorted, Zero];
            by_distribution(
                sizes,
                &[20, 24],
                Load::Keys,
                &all,
                &[QUICKSORT, Contender::Cpu],
            )
        },
    },
    Figure {
        name: "cederman-visibility",
        source: "Cederman and Tsigas 2009, fig. 7",
        title: "visibility ordering: f32 distances of the vertices of a mesh from the eye",
        rows: "model, vertices",
        unit: Unit::Milliseconds,
        cells: |sizes| {
            let few = if sizes == Sizes::Full { 5 } else { 2 };
            // The baselines sort no floats: the same distances as ordered bits.
            let key = |contender| {
                if matches!(contender, Contender::Baseline(_)) {
                    U32
                } else {
                    F32
                }
            };
            let all = QUICKSORT_CONTENDERS.iter();
            let model = |(name, n)| {
                let row = format!("{name} {n}");
                all.clone()
                    .map(move |&one| cell(&row, n, (key(one), Load::Keys, Distances), one))
            };
            MODELS.into_iter().take(few).flat_map(model).collect()
        },
    },
    Figure {
        name: "cederman-parameters",
        source: "Cederman and Tsigas 2009, fig. 9 to 11 and table II",
        title: "quicksort by the sequences that end phase one, uniform u32 keys",
        rows: "maxseq",
        unit: Unit::Milliseconds,
        cells: |sizes| {
            by_parameter(
                sizes,
                &[18, 20, 22, 24],
                &[8, 32, 128, 512, 2048, 8192],
                QUICKSORT,
            )
        },
    },
];
