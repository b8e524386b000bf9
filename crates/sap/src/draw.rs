//! Draws a sample from all parts of a list.

/// Returns `size` indices below `n`, `size` being at most that: one from each of as many stretches,
/// at no fixed offset in it, as scenes often repeat with some period. Another `salt` gives other
/// offsets.
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
