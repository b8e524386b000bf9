//! The figures of Satish, Harris and Garland 2009 and a later paper of Satish et al..

use super::cell::*;
use crate::input::Distribution::*;
use crate::measure::{Contender, Load};
use crate::plot::size;

/// 1 K to 16 M.
const SATISH: &[u32] = &[10, 12, 14, 16, 18, 20, 22, 24];

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "satish-sizes",
        source: "Satish et al. 2009, fig. 3, 4 and 7",
        title: "pairs, uniform u32 keys with u32 values",
        rows: "pairs",
        unit: Unit::Rate,
        cells: |sizes| {
            let contenders = [RADIX, MERGE, BITONIC, RADIX_16, ONE_BIT, ONESWEEP];
            by_size(sizes, SATISH, (U32, Load::U32, Uniform), &contenders)
        },
    },
    Figure {
        name: "satish-key-bits",
        source: "Satish et al. 2009, fig. 5",
        title: "pairs with keys of 8 to 32 bits; the radix sorts know the number of bits",
        rows: "pairs, bits",
        unit: Unit::Rate,
        cells: |sizes| {
            let mut cells = Vec::new();
            for n in powers(sizes, &[16, 20, 24]) {
                for bits in [8, 16, 24, 32] {
                    for contender in [RADIX, MERGE, ONESWEEP] {
                        let row = format!("{} {bits} bits", size(n));
                        let mut one = cell(row, n, (U32, Load::U32, Bits(bits)), contender);
                        one.case.window = (contender != MERGE).then_some(0..bits);
                        cells.push(one);
                    }
                }
            }
            cells
        },
    },
    Figure {
        name: "satish-entropy",
        source: "Satish et al. 2009, fig. 6 and the text on sorted input",
        title: "pairs by entropy of the keys: the AND of 1 to 5 uniform keys, one key everywhere, sorted keys",
        rows: "pairs, keys",
        unit: Unit::Rate,
        cells: |sizes| {
            let all = [
                AndEntropy(1),
                AndEntropy(2),
                AndEntropy(3),
                AndEntropy(4),
                AndEntropy(5),
                Zero,
                Sorted,
            ];
            by_distribution(
                sizes,
                &[16, 20, 24],
                Load::U32,
                &all,
                &[RADIX, MERGE, ONESWEEP],
            )
        },
    },
    Figure {
        name: "satish-cpu-pairs",
        source: "Satish et al. 2009, fig. 8a",
        title: "pairs beside the CPU, uniform u32 keys with u32 values",
        rows: "pairs",
        unit: Unit::Rate,
        cells: |sizes| {
            by_size(
                sizes,
                SATISH,
                (U32, Load::U32, Uniform),
                &[RADIX, MERGE, Contender::Cpu],
            )
        },
    },
    Figure {
        name: "satish-cpu-keys",
        source: "Satish et al. 2009, fig. 8b",
        title: "keys alone beside the CPU, uniform f32",
        rows: "keys",
        unit: Unit::Rate,
        cells: |sizes| {
            by_size(
                sizes,
                &[10, 14, 18, 22, 26],
                (F32, Load::Keys, Uniform),
                &[RADIX, Contender::Cpu],
            )
        },
    },
];
