// Moves the keys and values of a tile to where their digits belong.

@group(0) @binding(6) var<storage, read> tile_starts: array<u32>;
@group(0) @binding(7) var<storage, read> digit_totals: array<u32>;

// Where the keys of each digit go in memory, and where they start in the sorted tile.
var<workgroup> digit_targets: array<u32, RADIX>;
var<workgroup> digit_starts: array<u32, RADIX>;

var<private> tile_keys: array<Key, ITEMS>;
var<private> digits: array<u32, ITEMS>;
var<private> tile: u32;

// Returns the index of an item of this thread, or of the last key.
fn tile_index(lid: u32, i: u32) -> u32 {
    return min(tile * TILE + item_index(lid, i), params.n - 1u);
}

fn scatter_tile(lid: u32) {
    let from_index = half_read() * params.n;
    let to_index = params.n - from_index;
    let length = min(TILE, params.n - tile * TILE);
    for (var i = 0u; i < ITEMS; i += 1u) {
        tile_keys[i] = keys[from_index + tile_index(lid, i)];
        // What lies beyond the last key comes last.
        digits[i] = select(RADIX - 1u, digit_of(tile_keys[i]), item_index(lid, i) < length);
    }
    load_values(lid, from_index);
    let before = scan_exclusive(lid, digit_totals[lid]).x;
    digit_targets[lid] = before + tile_starts[lid * params.tiles + tile];
    rank_tile(lid);
    // Not `exchange`, because the digit before each is needed too.
    for (var i = 0u; i < ITEMS; i += 1u) {
        tile_words[ranks[i]] = digits[i];
    }
    workgroupBarrier();
    for (var i = 0u; i < ITEMS; i += 1u) {
        let at = i * WORKGROUP + lid;
        digits[i] = tile_words[at];
        if at == 0u || tile_words[max(at, 1u) - 1u] != digits[i] {
            digit_starts[digits[i]] = at;
        }
    }
    workgroupBarrier();
    exchange_keys(lid);
    exchange_values(lid);
    for (var i = 0u; i < ITEMS; i += 1u) {
        let at = i * WORKGROUP + lid;
        if at < length {
            let target_index = to_index + digit_targets[digits[i]] + at - digit_starts[digits[i]];
            keys[target_index] = tile_keys[i];
            store_value(i, target_index);
        }
    }
}
