//! Parses counts as people write them: `1000`, `1_000`, `10k`, `1e6`, `2.5M`, `2^20`.

use std::ops::RangeInclusive;

/// Parses a count in this range.
///
/// # Errors
///
/// A message for the user: the text is no count, or it is out of the range.
///
/// ```
/// use radsweep_common::numbers::count;
///
/// assert_eq!(count("1e6", 1..=1_000_000), Ok(1_000_000));
/// assert_eq!(count("-3", 1..=9), Err("`-3` is not between 1 and 9".into()));
/// assert!(count("many", 1..=9).is_err());
/// ```
pub fn count(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let (first, last) = (range.start(), range.end());
    let number = value(text.strip_prefix('-').unwrap_or(text))
        .ok_or_else(|| format!("`{text}` is not a count such as 1000, 10k, 1e6 or 2^20"))?;
    let fits = u64::try_from(number).ok().filter(|n| range.contains(n));
    fits.filter(|&n| n == 0 || !text.starts_with('-'))
        .ok_or_else(|| format!("`{text}` is not between {first} and {last}"))
}

/// Returns a number with the word for one or for many.
#[must_use]
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Formats a number with commas.
///
/// ```
/// use radsweep_common::numbers::grouped;
///
/// let numbers = [0, 999, 1000, 1_234_567].map(grouped);
/// assert_eq!(numbers, ["0", "999", "1,000", "1,234,567"]);
/// ```
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let threes: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8_lossy(&threes.join(&b',')).into_owned()
}

/// Returns the value of a whole number; the largest value for anything beyond.
fn value(text: &str) -> Option<u128> {
    if let Some((base, power)) = text.split_once('^') {
        let power = u32::try_from(digits(power)?).unwrap_or(u32::MAX);
        return Some(digits(base)?.saturating_pow(power));
    }
    let letter = text.find(|c: char| c.is_ascii_alphabetic());
    let (mantissa, suffix) = text.split_at(letter.unwrap_or(text.len()));
    let power = match suffix {
        "" => 0,
        "k" | "K" => 3,
        "m" | "M" => 6,
        "g" | "G" => 9,
        _ => {
            let power = suffix.strip_prefix(['e', 'E'])?;
            digits(power.strip_prefix('+').unwrap_or(power))?.min(99) as usize
        }
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    // 2.5k is 25 * 10^2.
    let power = power.checked_sub(fraction.len())?;
    let scale = 10_u128.saturating_pow(power as u32);
    Some(digits(&format!("{whole}{fraction}"))?.saturating_mul(scale))
}

/// Parses digits, among which `_` may stand.
fn digits(text: &str) -> Option<u128> {
    let ends_well = !text.starts_with('_') && !text.ends_with('_');
    let plain = text.replace('_', "");
    let is_number = !plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_digit());
    // Only a number that does not fit fails to parse then.
    (ends_well && is_number).then(|| plain.parse().unwrap_or(u128::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_people_write_them() {
        for (text, number) in [
            ("0", 0),
            ("-0", 0),
            ("1000", 1000),
            ("1_000", 1000),
            ("10k", 10_000),
            ("10K", 10_000),
            ("2.5M", 2_500_000),
            (".5k", 500),
            ("1G", 1_000_000_000),
            ("1e6", 1_000_000),
            ("1E+6", 1_000_000),
            ("1.50e2", 150),
            ("3.0", 3),
            ("10^6", 1_000_000),
            ("2^63", 1 << 63),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(count(text, 0..=u64::MAX), Ok(number), "{text}");
        }
    }

    #[test]
    fn what_is_beyond_the_range_is_told_from_what_is_no_count() {
        for text in [
            "0",
            "-1",
            "-10k",
            "11",
            "2^400",
            "1e99",
            "1e9999",
            "9999999999999999999999999999999999999999",
        ] {
            let message = format!("`{text}` is not between 1 and 10");
            assert_eq!(count(text, 1..=10), Err(message));
        }
        for text in [
            "", "-", "x", "k", "1.5", "1.2345k", "2^", "^3", "2^-1", "1e-3", "_1", "1_", "1 000",
            "0x10", "10kk", "1e", "--1",
        ] {
            let error = count(text, 1..=10).expect_err(text);
            assert!(error.contains("is not a count such as"), "{error}");
        }
    }
}
