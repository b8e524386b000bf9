//! `radsweep calibrate`: which sort is the fastest here, by size, for `auto`.

use crate::cli::args::Calibrate;
use crate::cli::{Result, backend};

#[cfg(not(cuda))]
pub(crate) fn run(_: &Calibrate) -> Result<()> {
    match backend::device() {
        Ok(device) => match device {},
        Err(why) => Err(nothing(&why)),
    }
}

fn nothing(why: &str) -> Box<dyn std::error::Error> {
    format!("nothing to calibrate: the CPU has one sort, and there is no GPU here ({why})").into()
}

#[cfg(cuda)]
pub(crate) use measured::run;

#[cfg(cuda)]
mod measured {
    use super::super::plot::size;
    use super::super::sort::all;
    use super::super::{Bench, Case, Contender, Distribution, Effort, Load};
    use super::{Calibrate, Result, backend, nothing};
    use crate::cli::{calibration, note, progress};
    use gpusort::cuda::{Calibration, Payload};
    use gpusort::{Algorithm, KeyType};
    use std::io::{self, Write};
    use std::time::Instant;

    const WIDTHS: [(KeyType, Load, Payload); 6] = [
        (KeyType::U32, Load::Keys, Payload::None),
        (KeyType::U32, Load::U32, Payload::U32),
        (KeyType::U32, Load::U64, Payload::U64),
        (KeyType::U64, Load::Keys, Payload::None),
        (KeyType::U64, Load::U32, Payload::U32),
        (KeyType::U64, Load::U64, Payload::U64),
    ];
    /// Results are compared with the CPU's up to so many keys; what is right there is right with more.
    const CHECKED: usize = 1 << 16;
    /// An algorithm that takes so many times as long as the best is not tried with more keys, from [`CHECKED`] on.
    const HOPELESS: f64 = 3.0;
    /// How much faster than Onesweep another must be: less is noise.
    const BETTER_BY: f64 = 0.97;

    /// The fastest of one width at one size.
    struct Winner {
        n: usize,
        width: usize,
        algorithm: Algorithm,
        ms: f64,
    }

    pub(crate) fn run(args: &Calibrate) -> Result<()> {
        let device = backend::device().map_err(|why| nothing(&why))?;
        let sizes = if args.sizes.is_empty() {
            (8..=24).map(|power| 1 << power).collect()
        } else {
            args.sizes.clone()
        };
        let mut sizes: Vec<usize> = sizes;
        sizes.sort_unstable();
        sizes.dedup();
        let path = calibration::path(&device)?;
        let mut bench = Bench::on(&device)?;
        let begun = Instant::now();
        // The limit counts from the second size on: during the first the driver compiles every kernel, which it does once.
        let mut measuring = begun;
        let bar = progress((sizes.len() * WIDTHS.len()) as u64, "sizes and widths");
        let mut hopeless: Vec<(usize, Contender)> = Vec::new();
        let mut winners: Vec<Winner> = Vec::new();
        for &n in &sizes {
            if measuring.elapsed().as_secs_f64() > args.seconds {
                note(&format!(
                    "stopped after {} s before {n} keys: those are sorted as the largest measured",
                    args.seconds
                ));
                break;
            }
            for (width, &(key, load, _)) in WIDTHS.iter().enumerate() {
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
                    if hopeless.contains(&(width, contender)) {
                        continue;
                    }
                    match bench.measure(&case, contender, None, effort)? {
                        Ok(measured) => times.push((contender, measured.median)),
                        Err(missing) => {
                            if !hopeless.iter().any(|known| known.1 == contender) {
                                let name = contender.name();
                                bar.suspend(|| {
                                    note(&format!("{name} of {key} and {load}: {missing}"))
                                });
                            }
                            hopeless.push((width, contender));
                        }
                    }
                }
                let best = times
                    .iter()
                    .map(|time| time.1)
                    .fold(f64::INFINITY, f64::min);
                if n >= CHECKED {
                    let far = times
                        .iter()
                        .filter(|time| time.1 > HOPELESS * best && time.0 != ONESWEEP);
                    hopeless.extend(far.map(|time| (width, time.0)));
                }
                winners.extend(winner(&times).map(|(algorithm, ms)| Winner {
                    n,
                    width,
                    algorithm,
                    ms,
                }));
                bar.inc(1);
            }
            if n == sizes[0] {
                measuring = Instant::now();
            }
        }
        bar.finish_and_clear();
        if winners.is_empty() {
            return Err("no sort ran on this device".into());
        }
        let mut calibration = Calibration::new(device.info());
        for (width, &(key, _, payload)) in WIDTHS.iter().enumerate() {
            for (from, algorithm) in rules(&winners, width) {
                calibration.set(key, payload, from, algorithm);
            }
        }
        path.parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| radsweep::output::write(&path, calibration.to_string().as_bytes()))
            .map_err(|error| {
                format!("cannot keep the calibration in {}: {error}", path.display())
            })?;
        print(&winners)?;
        let seconds = begun.elapsed().as_secs_f64();
        Ok(writeln!(
            io::stdout().lock(),
            "\nmeasured in {seconds:.1} s on {}; kept in {}",
            device.info().name,
            path.display()
        )?)
    }

    const ONESWEEP: Contender = Contender::Algorithm(Algorithm::Onesweep);

    /// The fastest, or Onesweep where it is hardly slower.
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

    /// A size decides from half way to the one below, as the logarithm goes, and the smallest from 0.
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
}
