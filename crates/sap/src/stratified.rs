//! Stratified sampling.

/// Draws `size` indices below `n`, where `size <= n`. Each comes from one of `size` equal
/// stretches, at a pseudo-random offset, because scenes often repeat with some period. `salt`
/// varies the offsets.
pub(crate) fn draw(n: usize, size: usize, salt: u32) -> impl Iterator<Item = usize> {
    let start = move |k: usize| k * n / size;
    (0..size).map(move |k| {
        let mixed = (k as u32 ^ salt).wrapping_mul(0x9e37_79b9);
        start(k) + (mixed as usize >> 7) % (start(k + 1) - start(k))
    })
}

#[cfg(test)]
mod tests {
    use super::draw;

    #[test]
    fn one_of_each_stretch_is_drawn() {
        for (n, size) in [(0, 0), (5, 0), (1, 1), (7, 7), (1000, 64), (100_003, 2048)] {
            for salt in [0, 1, 0x85eb_ca6b] {
                let drawn: Vec<usize> = draw(n, size, salt).collect();
                assert_eq!(drawn.len(), size);
                for (k, &i) in drawn.iter().enumerate() {
                    assert!((k * n / size..(k + 1) * n / size).contains(&i));
                }
            }
        }
    }
}
