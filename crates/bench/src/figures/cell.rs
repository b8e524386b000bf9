//! A figure as a list of measurements, and the functions that make such lists.

use crate::input::Distribution::{self, Uniform};
use crate::measure::{Baseline, Case, Contender, Load};
use crate::plot::size;
use radsweep::sort::{Algorithm, KeyType};

/// One or more figures of a paper that answer the same question.
pub(crate) struct Figure {
    pub name: &'static str,
    /// The paper and its figures.
    pub source: &'static str,
    pub title: &'static str,
    /// What the rows are.
    pub rows: &'static str,
    pub unit: Unit,
    pub cells: fn(Sizes) -> Vec<Cell>,
}

impl Figure {
    /// Tells whether this is the figure's name or that of its paper: `ha`, `satish`, `cederman`
    /// or `dehne`.
    pub fn is(&self, name: &str) -> bool {
        self.name == name || self.name.split('-').next() == Some(name)
    }
}

/// What a figure shows of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Billions of elements per second.
    Rate,
    Milliseconds,
    /// Milliseconds of each stage and in total: a column each.
    Stages,
    /// Milliseconds of an update of the broad phase. Such a figure has no cells.
    Updates,
    /// Each stage's share of an update's time, in percent.
    Shares,
}

impl Unit {
    /// Tells whether the figure measures the broad phase instead of sorts.
    pub fn is_of_updates(self) -> bool {
        matches!(self, Self::Updates | Self::Shares)
    }
}

/// The sizes of the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sizes {
    /// Up to 2^20 elements: takes seconds, even on a CPU
    Small,
    /// The sizes of the papers, up to 2^27
    Full,
}

/// One measurement and its row and column.
pub(crate) struct Cell {
    pub row: String,
    pub column: String,
    pub case: Case,
    pub contender: Contender,
    /// *s* or *maxseq*; `None` for the tuned value of the library.
    pub parameter: Option<u32>,
}

pub(super) const FOUR_WAY: Contender = Contender::Algorithm(Algorithm::FourWayRadix);
pub(super) const EIGHT_WAY: Contender = Contender::Algorithm(Algorithm::EightWayRadix);
pub(super) const RADIX: Contender = Contender::Algorithm(Algorithm::SatishRadix);
pub(super) const MERGE: Contender = Contender::Algorithm(Algorithm::SatishMerge);
pub(super) const QUICKSORT: Contender = Contender::Algorithm(Algorithm::Quicksort);
pub(super) const BUCKET: Contender = Contender::Algorithm(Algorithm::BucketSort);
pub(super) const ONESWEEP: Contender = Contender::Algorithm(Algorithm::Onesweep);
pub(super) const BITONIC: Contender = Contender::Baseline(Baseline::Bitonic);
pub(super) const ONE_BIT: Contender = Contender::Baseline(Baseline::OneBit);
pub(super) const RADIX_16: Contender = Contender::Baseline(Baseline::Radix16);

/// Returns powers of two; those above 2^20 only for full sizes.
pub(super) fn powers(sizes: Sizes, powers: &[u32]) -> Vec<usize> {
    let (last, all) = (if sizes == Sizes::Full { 31 } else { 20 }, powers.iter());
    all.filter(|&&power| power <= last)
        .map(|&power| 1 << power)
        .collect()
}

/// Key, payload and distribution.
pub(super) type What = (KeyType, Load, Distribution);

pub(super) fn cell(
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

/// Returns one size for each contender.
pub(super) fn at_size(
    row: impl ToString,
    n: usize,
    what: What,
    contenders: &[Contender],
) -> Vec<Cell> {
    contenders
        .iter()
        .map(|&contender| cell(row.to_string(), n, what, contender))
        .collect()
}

/// Returns each size for each contender.
pub(super) fn by_size(
    sizes: Sizes,
    exponents: &[u32],
    what: What,
    contenders: &[Contender],
) -> Vec<Cell> {
    let sizes = powers(sizes, exponents).into_iter();
    sizes
        .flat_map(|n| at_size(size(n), n, what, contenders))
        .collect()
}

/// Returns each size and distribution of `u32` keys for each contender.
pub(super) fn by_distribution(
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

/// Returns each parameter, and the tuned one, for each size of uniform `u32` keys.
pub(super) fn by_parameter(
    sizes: Sizes,
    exponents: &[u32],
    all: &[u32],
    contender: Contender,
) -> Vec<Cell> {
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

pub(super) const U32: KeyType = KeyType::U32;
pub(super) const F32: KeyType = KeyType::F32;
