//! The kernels' image, and the launch shapes that several parts of the engine use.
//!
//! Each part of the engine loads the kernels that it launches, from the one module.

use gpu::{Device, Launch, Module, Result, blocks};

/// Positions of a tile, and the max boxes that a warp tests it against at a time.
pub(crate) const TILE: usize = 128;
pub(crate) const CHUNK: usize = 32;
/// Threads of most blocks.
pub(crate) const THREADS: u32 = 256;
pub(crate) const WARP: u32 = 32;
/// Candidates of a tile of a neighbour list, which a block tests: `KEEP_ITEMS` of the kernels.
pub(crate) const KEEP_ITEMS: u32 = 1024;
/// Tiles of a group, whose sums are added up: `KEEP_GROUP` of the kernels.
pub(crate) const KEEP_GROUP: usize = 256;
/// Tiles whose pairs a block writes: `PUT_TILES` of the kernels.
pub(crate) const PUT_TILES: u32 = 2;
/// Threads of the blocks whose warps take a tile each.
const TILE_THREADS: u32 = 128;

/// Returns the kernels' image on a device. It is loaded once, whatever the number of calls.
pub(crate) fn module(device: &Device) -> Result<Module> {
    if !device.launches_early() {
        let image = &radsweep_kernels::SAP;
        return device.load(image.name, image.ptx());
    }
    let image = &radsweep_kernels::SAP_90;
    let module = device.load(image.name, image.ptx())?;
    // SAFETY: all threads of its kernels call `wait_for_stream`. Only `sap_keep` and
    // `sap_put` read before it, what the launch directly ahead leaves alone.
    Ok(unsafe { module.launched_early() })
}

/// Returns the launch of one thread for each item.
pub(crate) fn linear(items: usize) -> Launch {
    Launch::linear(blocks(items, THREADS), THREADS)
}

/// Returns the launch of one warp for each item.
pub(crate) fn warps(items: usize) -> Launch {
    Launch::linear(blocks(items, THREADS / WARP), THREADS)
}

/// Returns the launch of one warp for each tile.
pub(crate) fn tile_warps(tiles: usize) -> Launch {
    Launch::linear(blocks(tiles, TILE_THREADS / WARP), TILE_THREADS)
}
