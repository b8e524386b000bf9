//! Tells when the machine did other work during a bench, so that its times are not to be trusted.

use crate::measure::Times;
use radsweep_common::terminal::warn;

/// Max load per processor before a bench. Half a processor of other work delays a sort on all of
/// them.
const MAX_LOAD: f64 = 0.5;
/// Max spread of a measurement: the distance of its quartiles relative to the median. On a quiet
/// machine most sorts and updates have less than 0.1.
const MAX_SPREAD: f64 = 0.3;
/// Max share of the measurements that may have a larger spread. Those of some microseconds always
/// vary.
const MAX_SHARE: f64 = 0.25;

/// The state of the machine before a bench.
pub(crate) struct Busy {
    /// The load average of the last minute, and the number of processors; `None` where the system
    /// does not tell.
    load: Option<(f64, usize)>,
}

impl Busy {
    pub fn before() -> Self {
        Self { load: load() }
    }

    /// Returns why these times are not to be trusted, if so.
    pub fn after<'a>(self, times: impl Iterator<Item = &'a Times>) -> Option<String> {
        let load = self
            .load
            .filter(|&(load, all)| load > MAX_LOAD * all as f64);
        let load = load.map(|(load, all)| {
            format!("the load average was {load:.1} on {all} processors when the bench began")
        });
        let spreads: Vec<f64> = times.map(Times::spread).collect();
        let wide = spreads
            .iter()
            .filter(|&&spread| spread > MAX_SPREAD)
            .count();
        let is_wide = wide as f64 > MAX_SHARE * spreads.len() as f64;
        let wide = is_wide.then(|| {
            let (all, percent) = (spreads.len(), 100.0 * MAX_SPREAD);
            format!("{wide} of {all} measurements have a spread above {percent:.0} %")
        });
        let reasons: Vec<String> = load.into_iter().chain(wide).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

/// Warns of a busy machine.
pub(crate) fn report(busy: Option<String>) {
    if let Some(why) = busy {
        warn(&format!(
            "the machine was too busy to trust these times: {why}"
        ));
    }
}

/// Returns the load average of the last minute, and the processors of the machine, which it counts.
#[cfg(target_os = "linux")]
fn load() -> Option<(f64, usize)> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let load = text.split_whitespace().next()?.parse().ok()?;
    // A process may be allowed fewer processors than the machine has.
    let all = std::fs::read_to_string("/proc/stat").ok()?;
    let is_one = |line: &&str| {
        let number = line.strip_prefix("cpu");
        number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    Some((load, all.lines().filter(is_one).count()))
}
#[cfg(not(target_os = "linux"))]
fn load() -> Option<(f64, usize)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_or_wide_spreads_are_reasons() {
        let (quiet, wide) = (
            Times::new(vec![1.0; 9]),
            Times::new(vec![1.0, 2.0, 3.0, 4.0]),
        );
        let why = |load, times: &[&Times]| Busy { load }.after(times.iter().copied());
        assert_eq!(why(Some((1.0, 2)), &[&quiet]), None);
        assert_eq!(why(None, &[&quiet, &quiet, &quiet, &wide]), None);
        assert_eq!(why(None, &[]), None);
        let load = why(Some((1.1, 2)), &[&quiet]).expect("a load");
        assert!(load.contains("1.1 on 2 processors"), "{load}");
        let spread = why(Some((0.1, 2)), &[&quiet, &wide]).expect("a spread");
        assert!(spread.starts_with("1 of 2 measurements"), "{spread}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_tells_its_load() {
        let (load, processors) = load().expect("Linux tells");
        assert!(load >= 0.0 && processors > 0);
    }
}
