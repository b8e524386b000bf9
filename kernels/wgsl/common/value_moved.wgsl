// Values that move with the keys of a tile.

@group(0) @binding(5) var<storage, read_write> values: array<u32>;

var<private> tile_values: array<u32, ITEMS>;

fn load_values(lid: u32, from_index: u32) {
    for (var i = 0u; i < ITEMS; i += 1u) {
        tile_values[i] = values[from_index + tile_index(lid, i)];
    }
}

fn exchange_values(lid: u32) {
    words = tile_values;
    exchange(lid);
    tile_values = words;
}

fn store_value(i: u32, to_index: u32) {
    values[to_index] = tile_values[i];
}
