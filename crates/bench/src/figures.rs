//! The figures and tables of the five papers, as lists of measurements. `docs/papers.md` sets them beside what the papers claim.

use super::input::Distribution;
use super::measure::{Baseline, Case, Contender, Load};
use super::plot::size;
use Distribution::{
    AndEntropy, Bits, Bucket, Distances, Gaussian, Sorted, Staggered, Uniform, Zero, Zipf,
};
use radsweep::sort::{Algorithm, KeyType};

/// One or more figures of a paper that are about the same question.
pub(super) struct Figure {
    pub name: &'static str,
    /// Where it is in the papers.
    pub source: &'static str,
    pub title: &'static str,
    /// What its rows are.
    pub rows: &'static str,
    pub unit: Unit,
    pub cells: fn(Sizes) -> Vec<Cell>,
}

impl Figure {
    /// Whether it goes by this name, or is of the paper that does: `ha`, `satish`, `cederman` or `dehne`.
    pub fn is(&self, name: &str) -> bool {
        self.name == name || self.name.split('-').next() == Some(name)
    }
}

/// What is shown of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Thousand million elements a second.
    Rate,
    Milliseconds,
    /// Milliseconds of each stage, and of all: a column each.
    Stages,
    /// Milliseconds of an update of the broad phase. Such a figure has no sorts.
    Updates,
    /// Percent of an update's time in each stage.
    Shares,
}

impl Unit {
    /// Whether the broad phase is measured, and no sort.
    pub fn is_of_updates(self) -> bool {
        matches!(self, Self::Updates | Self::Shares)
    }
}

/// How large the inputs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sizes {
    /// Up to 2^20 elements: seconds, even on a CPU
    Small,
    /// Those of the papers, up to 2^27
    Full,
}

/// One measurement and where it stands.
pub(super) struct Cell {
    pub row: String,
    pub column: String,
    pub case: Case,
    pub contender: Contender,
    /// *s* or *maxseq*; None: what the library has tuned.
    pub parameter: Option<u32>,
}

const FOUR_WAY: Contender = Contender::Algorithm(Algorithm::FourWayRadix);
const EIGHT_WAY: Contender = Contender::Algorithm(Algorithm::EightWayRadix);
const RADIX: Contender = Contender::Algorithm(Algorithm::SatishRadix);
const MERGE: Contender = Contender::Algorithm(Algorithm::SatishMerge);
const QUICKSORT: Contender = Contender::Algorithm(Algorithm::Quicksort);
const BUCKET: Contender = Contender::Algorithm(Algorithm::BucketSort);
const ONESWEEP: Contender = Contender::Algorithm(Algorithm::Onesweep);
const BITONIC: Contender = Contender::Baseline(Baseline::Bitonic);
const ONE_BIT: Contender = Contender::Baseline(Baseline::OneBit);
const RADIX_16: Contender = Contender::Baseline(Baseline::Radix16);

/// Powers of two, the larger ones only when all are asked for.
fn powers(sizes: Sizes, powers: &[u32]) -> Vec<usize> {
    let (last, all) = (if sizes == Sizes::Full { 31 } else { 20 }, powers.iter());
    all.filter(|&&power| power <= last)
        .map(|&power| 1 << power)
        .collect()
}

/// Key, payload and distribution.
type What = (KeyType, Load, Distribution);

fn cell(
    row: impl ToString,
    n: usize,
    (key, load, distribution): What,
    contender: Contender,
) -> Cell {
    let case = Case {
        key,
        load,
        distribution,
        n,
        window: None,
    };
    let (row, column) = (row.to_string(), contender.name().into());
    Cell {
        row,
        column,
        case,
        contender,
        parameter: None,
    }
}

/// One size by each contender.
fn at_size(row: impl ToString, n: usize, what: What, contenders: &[Contender]) -> Vec<Cell> {
    contenders
        .iter()
        .map(|&contender| cell(row.to_string(), n, what, contender))
        .collect()
}

/// Each size by each contender.
fn by_size(sizes: Sizes, exponents: &[u32], what: What, contenders: &[Contender]) -> Vec<Cell> {
    let sizes = powers(sizes, exponents).into_iter();
    sizes
        .flat_map(|n| at_size(size(n), n, what, contenders))
        .collect()
}

/// Each size and distribution of `u32` keys by each contender.
fn by_distribution(
    sizes: Sizes,
    exponents: &[u32],
    load: Load,
    all: &[Distribution],
    contenders: &[Contender],
) -> Vec<Cell> {
    let sizes = powers(sizes, exponents).into_iter();
    let pairs = sizes.flat_map(|n| all.iter().map(move |&one| (n, one)));
    pairs
        .flat_map(|(n, one)| {
            at_size(
                format!("{} {one}", size(n)),
                n,
                (U32, load, one),
                contenders,
            )
        })
        .collect()
}

/// Each parameter, and that of the library, for each size of uniform `u32` keys.
fn by_parameter(sizes: Sizes, exponents: &[u32], all: &[u32], contender: Contender) -> Vec<Cell> {
    let all = all.iter().copied().map(Some).chain([None]);
    let row =
        |parameter: Option<u32>| parameter.map_or("tuned".into(), |number| number.to_string());
    let one = |n, parameter| Cell {
        column: size(n),
        parameter,
        ..cell(row(parameter), n, (U32, Load::Keys, Uniform), contender)
    };
    let sizes = powers(sizes, exponents).into_iter();
    sizes
        .flat_map(|n| all.clone().map(move |parameter| one(n, parameter)))
        .collect()
}

const U32: KeyType = KeyType::U32;
const F32: KeyType = KeyType::F32;
/// 0.5 M to 16 M.
const HA: &[u32] = &[19, 20, 21, 22, 23, 24];
/// 1 K to 16 M.
const SATISH: &[u32] = &[10, 12, 14, 16, 18, 20, 22, 24];
const HA_VALUE: &[Contender] = &[FOUR_WAY, EIGHT_WAY, ONE_BIT, RADIX_16, ONESWEEP];
const HA_INDEX: &[Contender] = &[FOUR_WAY, EIGHT_WAY, ONESWEEP];
const QUICKSORT_CONTENDERS: &[Contender] = &[QUICKSORT, BITONIC, ONE_BIT, RADIX, ONESWEEP];

/// Vertices of the models of the Stanford repository: Dragon, Happy Buddha, Manuscript, RGB Dragon, Thai Statuette.
const MODELS: [(&str, usize); 5] = [
    ("Dragon", 566_098),
    ("Happy", 543_652),
    ("Manuscript", 2_155_617),
    ("RGB Dragon", 3_609_600),
    ("Statuette", 4_999_996),
];

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
            let all = [Uniform, Sorted, Bits(16), Distribution::NearlySorted];
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
        title: "pairs with keys of 8 to 32 bits; the radix sorts are told how many",
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

/// Names for the command line.
pub(crate) fn parse_figure(name: &str) -> std::result::Result<String, String> {
    if FIGURES.iter().any(|figure| figure.is(name)) {
        return Ok(name.into());
    }
    let known: Vec<_> = FIGURES.iter().map(|figure| figure.name).collect();
    Err(format!(
        "unknown figure `{name}`: known are ha, satish, cederman, dehne, {}",
        known.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_cells_and_no_two_in_one_place() {
        for sizes in [Sizes::Small, Sizes::Full] {
            for figure in FIGURES {
                let cells = (figure.cells)(sizes);
                assert_eq!(
                    cells.is_empty(),
                    figure.unit.is_of_updates(),
                    "{}",
                    figure.name
                );
                let mut places: Vec<_> =
                    cells.iter().map(|cell| (&cell.row, &cell.column)).collect();
                places.sort();
                places.dedup();
                assert_eq!(places.len(), cells.len(), "{}", figure.name);
            }
        }
        let mut names: Vec<_> = FIGURES.iter().map(|figure| figure.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FIGURES.len());
    }

    #[test]
    fn every_figure_has_its_place_in_the_page() {
        let page = include_str!("../../../docs/papers.md");
        for figure in FIGURES {
            let marker = format!("<!-- today: {} -->\n", figure.name);
            assert_eq!(page.matches(&marker).count(), 1, "{}", figure.name);
        }
        assert_eq!(page.matches("<!-- today: ").count(), FIGURES.len() + 1); // and the device
    }

    #[test]
    fn small_figures_are_small() {
        let largest = FIGURES
            .iter()
            .flat_map(|figure| (figure.cells)(Sizes::Small));
        assert!(largest.map(|cell| cell.case.n).max() <= Some(1 << 20));
    }
}
