// Values that move with the keys of a tile.

@group(0) @binding(5) var<storage, read_write> values: array<u32>;
@group(0) @binding(9) var<storage, read_write> values_out: array<u32>;

var<private> tile_values: array<u32, ITEMS>;

fn load_values(lid: u32) {
    if is_first {
        for (var i = 0u; i < ITEMS; i += 1u) {
            tile_values[i] = value_at(tile_index(lid, i));
        }
    } else {
        for (var i = 0u; i < ITEMS; i += 1u) {
            tile_values[i] = values[from_index + tile_index(lid, i)];
        }
    }
}

fn exchange_values(lid: u32) {
    words = tile_values;
    exchange(lid);
    tile_values = words;
}

fn put_value(value: u32, at: u32) {
    if is_last && params.values_to == TO_OUTPUT {
        values_out[at] = value;
    } else {
        values[to_index + at] = value;
    }
}

// Stores the value of an item of this thread.
fn store_value(i: u32, at: u32) {
    put_value(tile_values[i], at);
}

// Copies the value of a key that is not moved.
fn copy_value(index: u32) {
    put_value(value_at(index), index);
}
