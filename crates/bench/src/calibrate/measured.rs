//! Measures the sorts on a device and derives the rules of the calibration.

use crate::args::Calibrate;
use crate::bench::Bench;
use crate::input::Distribution;
use crate::measure::{Case, Contender, Effort, Load};
use crate::plot::size;
use crate::sort::all;
use radsweep::sort::cuda::{Calibration, Payload};
use radsweep::sort::{Algorithm, KeyType};
use radsweep_common::backend::Device;
use radsweep_common::terminal::{ProgressBar, note, steps};
use radsweep_common::{Result, calibration, output};
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

const WIDTHS: [(KeyType, Load, Payload); 6] = [
    (KeyType::U32, Load::Keys, Payload::None),
    (KeyType::U32, Load::U32, Payload::U32),
    (KeyType::U32, Load::U64, Payload::U64),
    (KeyType::U64, Load::Keys, Payload::None),
    (KeyType::U64, Load::U32, Payload::U32),
    (KeyType::U64, Load::U64, Payload::U64),
];
/// Max keys for which results are compared with the CPU's. A sort that is right up to here is right
/// beyond.
const CHECKED: usize = 1 << 16;
/// From [`CHECKED`] keys on, an algorithm that takes this many times as long as the best is
/// dropped.
const HOPELESS: f64 = 3.0;
/// Another sort must take at most this share of Onesweep's time to replace it. A smaller gain is
/// noise.
const BETTER_BY: f64 = 0.97;

/// The fastest sort for one key width at one size.
struct Winner {
    n: usize,
    width: usize,
    algorithm: Algorithm,
    ms: f64,
}

pub(super) fn run(args: &Calibrate, device: &Device) -> Result<()> {
    let sizes = sizes(args);
    let path = calibration::path(device)?;
    let begun = Instant::now();
    let winners = winners(args, &sizes, Bench::on(device)?)?;
    if winners.is_empty() {
        return Err("no sort ran on this device".into());
    }
    save(&path, device, &winners)?;
    print(&winners)?;
    let seconds = begun.elapsed().as_secs_f64();
    Ok(writeln!(
        io::stdout().lock(),
        "\nmeasured in {seconds:.1} s on {}; saved in {}",
        device.info().name,
        path.display()
    )?)
}

/// Returns the numbers of keys to measure, ascending and without duplicates.
fn sizes(args: &Calibrate) -> Vec<usize> {
    let mut sizes = if args.sizes.is_empty() {
        (8..=24).map(|power| 1 << power).collect()
    } else {
        args.sizes.clone()
    };
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Measures all widths at each size until the time limit.
fn winners(args: &Calibrate, sizes: &[usize], bench: Bench) -> Result<Vec<Winner>> {
    let bar = steps((sizes.len() * WIDTHS.len()) as u64, "sizes and widths");
    let mut race = Race {
        bench,
        bar,
        hopeless: Vec::new(),
    };
    let mut winners: Vec<Winner> = Vec::new();
    // The limit counts from the second size on. During the first the driver compiles every kernel,
    // once.
    let mut measuring = Instant::now();
    for &n in sizes {
        if measuring.elapsed().as_secs_f64() > args.seconds {
            note(&format!(
                "time limit of {} s reached before {n} keys: larger sizes use the rule of the largest measured",
                args.seconds
            ));
            break;
        }
        for width in 0..WIDTHS.len() {
            let times = race.times(n, width)?;
            winners.extend(winner(&times).map(|(algorithm, ms)| Winner {
                n,
                width,
                algorithm,
                ms,
            }));
            race.bar.inc(1);
        }
        if n == sizes[0] {
            measuring = Instant::now();
        }
    }
    race.bar.finish_and_clear();
    Ok(winners)
}

/// The contenders that are still in the race.
struct Race {
    bench: Bench,
    bar: ProgressBar,
    /// Dropped contenders, with the key width.
    hopeless: Vec<(usize, Contender)>,
}

impl Race {
    /// Measures the remaining contenders with `n` keys of this width, in milliseconds.
    fn times(&mut self, n: usize, width: usize) -> Result<Vec<(Contender, f64)>> {
        let (key, load, _) = WIDTHS[width];
        let case = Case {
            key,
            load,
            distribution: Distribution::Uniform,
            n,
            window: None,
        };
        let effort = Effort {
            warm_up: 2,
            runs: 9,
            seconds: 0.01,
            check: n <= CHECKED,
            stages: false,
        };
        let mut times = Vec::new();
        for contender in all() {
            if self.hopeless.contains(&(width, contender)) {
                continue;
            }
            match self.bench.measure(&case, contender, None, effort)? {
                Ok(measured) => times.push((contender, measured.median)),
                Err(missing) => {
                    if !self.hopeless.iter().any(|known| known.1 == contender) {
                        let name = contender.name();
                        self.bar
                            .suspend(|| note(&format!("{name} of {key} and {load}: {missing}")));
                    }
                    self.hopeless.push((width, contender));
                }
            }
        }
        if n >= CHECKED {
            let best = times.iter().map(|time| time.1);
            let best = best.fold(f64::INFINITY, f64::min);
            let far = times
                .iter()
                .filter(|time| time.1 > HOPELESS * best && time.0 != ONESWEEP);
            self.hopeless.extend(far.map(|time| (width, time.0)));
        }
        Ok(times)
    }
}

/// Writes the rules that follow from the winners.
fn save(path: &Path, device: &Device, winners: &[Winner]) -> Result<()> {
    let mut calibration = Calibration::new(device.info());
    for (width, &(key, _, payload)) in WIDTHS.iter().enumerate() {
        for (from, algorithm) in rules(winners, width) {
            calibration.set(key, payload, from, algorithm);
        }
    }
    let written = path
        .parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| output::write(path, calibration.to_string().as_bytes()));
    Ok(written
        .map_err(|error| format!("cannot save the calibration in {}: {error}", path.display()))?)
}

const ONESWEEP: Contender = Contender::Algorithm(Algorithm::Onesweep);

/// Returns the fastest sort, or Onesweep where it is hardly slower.
fn winner(times: &[(Contender, f64)]) -> Option<(Algorithm, f64)> {
    let fastest = times.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let onesweep = times
        .iter()
        .find(|time| time.0 == ONESWEEP)
        .filter(|time| fastest.1 > BETTER_BY * time.1);
    match onesweep.unwrap_or(fastest) {
        (Contender::Algorithm(algorithm), ms) => Some((*algorithm, *ms)),
        _ => None,
    }
}

/// Returns from how many keys on each winner applies: from half way, on a logarithmic scale,
/// between the next smaller size and its own; the smallest from 0.
fn rules(winners: &[Winner], width: usize) -> Vec<(u64, Algorithm)> {
    let mut rules: Vec<(u64, Algorithm)> = Vec::new();
    let mut below = 0;
    for winner in winners.iter().filter(|winner| winner.width == width) {
        if rules.last().is_none_or(|rule| rule.1 != winner.algorithm) {
            rules.push((
                (below as f64 * winner.n as f64).sqrt() as u64,
                winner.algorithm,
            ));
        }
        below = winner.n;
    }
    rules
}

fn print(winners: &[Winner]) -> Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{:>8}", "keys")?;
    for (key, load, _) in WIDTHS {
        let name = if load == Load::Keys {
            key.to_string()
        } else {
            format!("{key} + {load}")
        };
        write!(out, "  {name:<23}")?;
    }
    for (at, winner) in winners.iter().enumerate() {
        if at == 0 || winners[at - 1].n != winner.n {
            write!(out, "\n{:>8}", size(winner.n))?;
        }
        write!(
            out,
            "  {:<13}{:>7.3} ms",
            winner.algorithm.name(),
            winner.ms
        )?;
    }
    Ok(writeln!(out)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn onesweep_wins_unless_another_is_clearly_faster() {
        let merge = Contender::Algorithm(Algorithm::SatishMerge);
        let wins = |merge_ms| {
            winner(&[(merge, merge_ms), (ONESWEEP, 1.0)])
                .expect("a winner")
                .0
        };
        assert_eq!(wins(0.9), Algorithm::SatishMerge);
        assert_eq!(wins(0.98), Algorithm::Onesweep);
        assert_eq!(wins(2.0), Algorithm::Onesweep);
        assert_eq!(winner(&[(merge, 5.0)]), Some((Algorithm::SatishMerge, 5.0)));
        assert_eq!(winner(&[]), None);
    }

    #[test]
    fn a_rule_begins_half_way_between_two_sizes() {
        let at = |n, algorithm| Winner {
            n,
            width: 1,
            algorithm,
            ms: 1.0,
        };
        let other = Winner {
            n: 256,
            width: 0,
            algorithm: Algorithm::BucketSort,
            ms: 1.0,
        };
        let winners = [
            other,
            at(256, Algorithm::SatishMerge),
            at(1024, Algorithm::SatishMerge),
            at(4096, Algorithm::Onesweep),
        ];
        assert_eq!(
            rules(&winners, 1),
            [(0, Algorithm::SatishMerge), (2048, Algorithm::Onesweep)]
        );
    }
}
