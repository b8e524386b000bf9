//! Coordinates as integers. Their comparison is exact in any floating-point mode, and one test
//! serves both overlap rules.

use crate::OverlapRule;

/// Returns a coordinate as an integer of the same order, with `-0.0` equal to `+0.0`. It is at most
/// ±0x7f80_0000, since the coordinate is not NaN.
pub const fn ordered(value: f32) -> i32 {
    let bits = value.to_bits() as i32;
    if bits < 0 {
        i32::MIN.wrapping_sub(bits)
    } else {
        bits
    }
}

/// Returns what is added to the integer of a `min`. Under the open rule `min < max` becomes `min +
/// 1 <= max`, so that both rules test `min <= max`. A side of zero thickness then has `min > max`:
/// such a box is *thin* on that axis.
pub(super) const fn lift(rule: OverlapRule) -> i32 {
    match rule {
        OverlapRule::Closed => 0,
        OverlapRule::Open => 1,
    }
}

/// Returns an unsigned sort key of the same order, below `u32::MAX`.
pub(super) const fn biased(ordered: i32) -> u32 {
    ordered as u32 ^ 0x8000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_as_the_numbers_do() {
        let values = [
            f32::NEG_INFINITY,
            f32::MIN,
            -1.0,
            -f32::MIN_POSITIVE,
            -1e-45,
            -0.0,
            0.0,
            1e-45,
            f32::MIN_POSITIVE,
            1.0,
            f32::MAX,
            f32::INFINITY,
        ];
        for a in values {
            for b in values {
                assert_eq!(
                    a.partial_cmp(&b),
                    Some(ordered(a).cmp(&ordered(b))),
                    "{a} {b}"
                );
                assert_eq!(
                    ordered(a).cmp(&ordered(b)),
                    biased(ordered(a)).cmp(&biased(ordered(b)))
                );
                assert_eq!(a < b, ordered(a) + lift(OverlapRule::Open) <= ordered(b));
            }
        }
        assert!(biased(ordered(f32::INFINITY) + 1) < u32::MAX);
    }
}
