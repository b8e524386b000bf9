//! Measures sorts on the CPU.

use super::input::BenchKey;
use super::input::with_key;
use super::measure::{
    Case, Contender, Effort, Load, Measured, Missing, Times, milliseconds, repeat, value_word,
};
use bytemuck::Pod;
use radsweep::sort::{SortOptions, SortReport, cpu};
use radsweep_common::Result;
use rayon::prelude::*;
use std::sync::OnceLock;

/// Bytes copied to measure the copy rate.
const COPIED: usize = 256 << 20;

#[derive(Default)]
pub(crate) struct Bench {
    sorter: cpu::Sorter,
    copy_rate: OnceLock<f64>,
}

impl Bench {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn copy_rate(&self) -> f64 {
        *self.copy_rate.get_or_init(|| {
            let from = vec![1_u64; COPIED / 8];
            let mut to = vec![0_u64; COPIED / 8];
            let mut times: Vec<f64> = (0..5)
                .map(|_| {
                    let pieces = to.par_chunks_mut(1 << 16).zip(from.par_chunks(1 << 16));
                    milliseconds(|| pieces.for_each(|(to, from)| to.copy_from_slice(from))).0
                })
                .collect();
            times.sort_by(f64::total_cmp);
            2.0 * COPIED as f64 / times[2] / 1e6
        })
    }

    pub fn measure(
        &mut self,
        case: &Case,
        contender: Contender,
        effort: Effort,
    ) -> Result<Measured> {
        if matches!(contender, Contender::Baseline(_)) {
            return Ok(Err(Missing::Unsupported("it runs on a GPU only".into())));
        }
        let times = with_key!(case.key, K => self.sort::<K>(case, effort));
        match times {
            Ok(times) => Ok(times),
            Err(error) => Ok(Err(Missing::Unsupported(error.to_string()))),
        }
    }

    fn sort<K: BenchKey>(&mut self, case: &Case, effort: Effort) -> Result<Measured> {
        let ordered = case.distribution.generate(case.n, K::BITS, 1);
        let keys: Vec<K> = ordered.into_par_iter().map(K::from_ordered).collect();
        match case.load {
            Load::Keys => self.keys(case, &keys, effort),
            Load::Index => self.index(case, &keys, effort),
            Load::U32 => self.pairs::<K, [u32; 1]>(case, &keys, effort),
            Load::U64 => self.pairs::<K, [u32; 2]>(case, &keys, effort),
            Load::Records(4) => self.records::<K, [u32; 1]>(case, &keys, effort),
            Load::Records(8) => self.records::<K, [u32; 2]>(case, &keys, effort),
            Load::Records(16) => self.records::<K, [u32; 4]>(case, &keys, effort),
            Load::Records(32) => self.records::<K, [u32; 8]>(case, &keys, effort),
            Load::Records(64) => self.records::<K, [u32; 16]>(case, &keys, effort),
            Load::Records(_) => self.records::<K, [u32; 32]>(case, &keys, effort),
        }
    }

    fn keys<K: BenchKey>(&mut self, case: &Case, keys: &[K], effort: Effort) -> Result<Measured> {
        let mut work = vec![K::zeroed(); keys.len()];
        let (times, report) = timed(effort, || {
            work.copy_from_slice(keys);
            milliseconds(|| self.sorter.sort_keys(&mut work, &options(case)))
        })?;
        let sum = |keys: &[K]| {
            keys.iter().fold(0_u64, |sum, key| {
                sum.wrapping_add(key.to_ordered_bits().into())
            })
        };
        let right =
            || work.is_sorted_by_key(|key| key.to_ordered_bits()) && sum(&work) == sum(keys);
        let wrong = effort.check && !right();
        Ok(verdict(times, &report, wrong))
    }

    fn index<K: BenchKey>(&mut self, case: &Case, keys: &[K], effort: Effort) -> Result<Measured> {
        let mut index = vec![0; keys.len()];
        let (times, report) = timed(effort, || {
            index.fill(u32::MAX);
            milliseconds(|| self.sorter.sort_index(keys, &mut index, &options(case)))
        })?;
        let wrong = effort.check && !is_stable_order(keys, &index);
        Ok(verdict(times, &report, wrong))
    }

    fn pairs<K: BenchKey, V: Pod + Send + Sync>(
        &mut self,
        case: &Case,
        keys: &[K],
        effort: Effort,
    ) -> Result<Measured> {
        moved::<K, V>(keys, effort, |keys, values| {
            self.sorter.sort_pairs(keys, values, &options(case))
        })
    }

    fn records<K: BenchKey, V: Pod + Send + Sync>(
        &mut self,
        case: &Case,
        keys: &[K],
        effort: Effort,
    ) -> Result<Measured> {
        moved::<K, V>(keys, effort, |keys, values| {
            self.sorter.sort_records(keys, values, &options(case))
        })
    }
}

/// Measures a sort that moves values with their keys. The first word of each value is its index.
fn moved<K: BenchKey, V: Pod + Send + Sync>(
    keys: &[K],
    effort: Effort,
    mut sort: impl FnMut(&mut [K], &mut [V]) -> radsweep::sort::Result<SortReport>,
) -> Result<Measured> {
    let words = size_of::<V>() / 4;
    let values: Vec<u32> = (0..keys.len() * words)
        .into_par_iter()
        .map(|at| value_word((at / words) as u32, at % words))
        .collect();
    let mut work = (vec![K::zeroed(); keys.len()], vec![V::zeroed(); keys.len()]);
    let (times, report) = timed(effort, || {
        work.0.copy_from_slice(keys);
        work.1.copy_from_slice(bytemuck::cast_slice(&values));
        let (keys, values) = (&mut work.0, &mut work.1);
        milliseconds(|| sort(keys, values))
    })?;
    let index: Vec<u32> = work
        .1
        .iter()
        .map(|value| bytemuck::bytes_of(value))
        .map(first_word)
        .collect();
    let wrong = effort.check && !is_stable_order(keys, &index);
    Ok(verdict(times, &report, wrong))
}
fn first_word(bytes: &[u8]) -> u32 {
    bytemuck::pod_read_unaligned(&bytes[..4])
}

fn options(case: &Case) -> SortOptions {
    let mut options = SortOptions::new();
    options.bits.clone_from(&case.window);
    options
}

fn is_stable_order<K: BenchKey>(keys: &[K], index: &[u32]) -> bool {
    let rank = |&i: &u32| (keys[i as usize].to_ordered_bits(), i);
    index.is_sorted_by(|a, b| rank(a) < rank(b))
}

fn verdict(times: Vec<f64>, report: &SortReport, wrong: bool) -> Measured {
    if wrong {
        return Err(Missing::Wrong(format!(
            "{} keys are not in order",
            report.n
        )));
    }
    Ok(Times {
        ran: report.algorithm,
        ..Times::new(times)
    })
}

fn timed(
    effort: Effort,
    mut once: impl FnMut() -> (f64, radsweep::sort::Result<SortReport>),
) -> Result<(Vec<f64>, SortReport)> {
    let mut last = SortReport::default();
    let times = repeat(effort, |_| {
        let (ms, report) = once();
        last = report?;
        Ok(ms)
    })?;
    Ok((times, last))
}
