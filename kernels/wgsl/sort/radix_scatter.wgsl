// Moves the keys and values of the tiles of a workgroup to where their digits belong.

// The sums before the counts of each digit of each workgroup, and the count of each digit.
@group(0) @binding(6) var<storage, read> digits_before: array<u32>;
@group(0) @binding(7) var<storage, read> digit_totals: array<u32>;

// For each digit, where in memory its keys of this tile go, less where they start in the sorted
// tile.
var<workgroup> digit_offsets: array<u32, RADIX>;

var<private> tile_keys: array<Key, ITEMS>;
var<private> digits: array<u32, ITEMS>;
var<private> tile: u32;
// Where the next key of the digit of this thread goes.
var<private> next_target: u32;

// Returns the index of an item of this thread, or of the last key.
fn tile_index(lid: u32, i: u32) -> u32 {
    return min(tile * TILE + item_index(lid, i), params.n - 1u);
}

fn scatter_tile(lid: u32) {
    let from_index = half_read() * params.n;
    let length = min(TILE, params.n - tile * TILE);
    for (var i = 0u; i < ITEMS; i += 1u) {
        tile_keys[i] = keys[from_index + tile_index(lid, i)];
    }
    load_values(lid, from_index);
    for (var i = 0u; i < ITEMS; i += 1u) {
        // What lies beyond the last key comes last.
        digits[i] = select(RADIX - 1u, digit_of(tile_keys[i]), item_index(lid, i) < length);
    }
    let own = rank_tile(lid);
    digit_offsets[lid] = next_target - own.x;
    next_target += own.y;
    exchange_keys(lid);
    exchange_values(lid);
    for (var i = 0u; i < ITEMS; i += 1u) {
        let at = i * WORKGROUP + lid;
        if at < length {
            let target_index = digit_offsets[digit_of(tile_keys[i])] + at;
            keys[target_index] = tile_keys[i];
            store_value(i, target_index);
        }
    }
}

fn scatter_tiles(lid: u32, group: u32) {
    let to_index = params.n - half_read() * params.n;
    let before = scan_exclusive(lid, digit_totals[lid]).x;
    next_target = to_index + before + digits_before[lid * params.workgroups + group];
    tile = group * params.tiles_each;
    let rounds = tiles_to_take(tile);
    for (var round = 0u; round < rounds; round += 1u) {
        scatter_tile(lid);
        tile += 1u;
    }
}
