//! Coordinates as integers: exact whatever the floating-point mode, and one test for both rules.

use crate::OverlapRule;

/// A coordinate as an integer that orders as it does, `-0.0` and `+0.0` alike. Not NaN: at most
/// ±0x7f80_0000.
pub(super) const fn ordered(value: f32) -> i32 {
    let bits = value.to_bits() as i32;
    if bits < 0 {
        i32::MIN.wrapping_sub(bits)
    } else {
        bits
    }
}

/// What is added to the integer of a `min`. Under the open rule `min < max` reads `min + 1 <= max`,
/// so from here on both rules are `min <= max`; a side without thickness becomes one with `min >
/// max`, which is *thin*.
pub(super) const fn lift(rule: OverlapRule) -> i32 {
    match rule {
        OverlapRule::Closed => 0,
        OverlapRule::Open => 1,
    }
}

/// The same order in unsigned numbers, as a sort key. Below `u32::MAX`.
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
