//! The shape of a block that holds a tile of keys on chip.
//!
//! A kernel's name contains its shape. A table that differs from the image's therefore finds no
//! kernel.

/// The shape of a block: its tile has `threads * items` keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tile {
    pub threads: u32,
    pub items: u32,
}

/// Tile shapes by bytes of a key (4, 8), then by bytes of a value (0, 4, 8).
pub(super) type Tiles = [[Tile; 3]; 2];

pub(super) const fn tile(threads: u32, items: u32) -> Tile {
    Tile { threads, items }
}

impl Tile {
    /// Returns the shape for keys and values of that many bytes.
    pub fn of(tiles: &Tiles, key_bytes: usize, value_bytes: usize) -> Self {
        tiles[key_bytes / 8][value_bytes / 4]
    }

    pub fn keys(self) -> u64 {
        u64::from(self.threads * self.items)
    }
}
