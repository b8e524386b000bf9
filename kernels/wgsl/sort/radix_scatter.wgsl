// Moves the keys and values of the tiles of a workgroup to where their digits belong.

// The counts, as `scan` has left them.
@group(0) @binding(6) var<storage, read_write> counted: array<atomic<u32>>;
@group(0) @binding(8) var<storage, read_write> keys_out: array<Key>;

// For each digit, where its keys of this tile go, less where they start in the sorted tile.
var<workgroup> digit_offsets: array<u32, RADIX>;

var<private> tile_keys: array<Key, ITEMS>;
var<private> digits: array<u32, ITEMS>;
var<private> tile: u32;
var<private> n: u32;
// Where the next key of the digit of this thread goes.
var<private> next_target: u32;
// Whether this is the first, and the last, pass that runs; and the halves of scratch memory.
var<private> is_first: bool;
var<private> is_last: bool;
var<private> from_index: u32;
var<private> to_index: u32;
// The next pass that runs, where this one counts for it.
var<private> next_pass: u32;

// Returns the index of an item of this thread, or of the last key.
fn tile_index(lid: u32, i: u32) -> u32 {
    return min(tile * TILE + item_index(lid, i), n - 1u);
}

fn load_keys(lid: u32) {
    if is_first {
        for (var i = 0u; i < ITEMS; i += 1u) {
            tile_keys[i] = keys_in[tile_index(lid, i)];
        }
    } else {
        for (var i = 0u; i < ITEMS; i += 1u) {
            tile_keys[i] = keys[from_index + tile_index(lid, i)];
        }
    }
}

fn store_key(key: Key, at: u32) {
    if !is_last || params.keys_to == TO_SCRATCH {
        keys[to_index + at] = key;
    } else if params.keys_to == TO_OUTPUT {
        keys_out[at] = key;
    }
}

fn scatter_tile(lid: u32) {
    let length = min(TILE, n - tile * TILE);
    load_keys(lid);
    load_values(lid);
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
            store_key(tile_keys[i], target_index);
            store_value(i, target_index);
            if next_pass < params.passes {
                count_next(tile_keys[i], target_index);
            }
        }
    }
}

// Counts a key for the next pass, in which it belongs to another workgroup.
fn count_next(key: Key, target_index: u32) {
    let group = target_index / (TILE * params.tiles_each);
    let digit = digit_in_pass(ordered(key), next_pass);
    atomicAdd(&counted[table_of(params.passes + next_pass) + count_index(digit, group)], 1u);
}

// Returns the sum before the count of a digit of a workgroup, and the sum of all counts of it.
fn sums_of(digit: u32, group: u32) -> vec2<u32> {
    if !is_few() {
        let total = atomicLoad(&counted[RADIX * params.workgroups + digit]);
        return vec2<u32>(atomicLoad(&counted[count_index(digit, group)]), total);
    }
    let start = table_of(select(params.passes, 0u, is_first) + params.pass_index);
    var sums = vec2<u32>(0u);
    for (var other = 0u; other < params.workgroups; other += 1u) {
        let count = atomicLoad(&counted[start + count_index(digit, other)]);
        sums += vec2<u32>(select(0u, count, other < group), count);
    }
    return sums;
}

// Copies the tiles of a sort of which no pass runs.
fn copy_tiles(lid: u32, rounds: u32) {
    is_first = true;
    is_last = true;
    to_index = 0u;
    for (var at = tile * TILE + lid; at < min((tile + rounds) * TILE, n); at += WORKGROUP) {
        store_key(keys_in[at], at);
        copy_value(at);
    }
}

fn scatter_tiles(lid: u32, group: u32) {
    n = key_count();
    let plan = planned();
    tile = group * params.tiles_each;
    let rounds = tiles_from(tile, key_count());
    if plan.z == 0u && params.pass_index + 1u == params.passes {
        copy_tiles(lid, rounds);
    }
    is_first = plan.x == 0u;
    is_last = plan.x + 1u == plan.z;
    from_index = half_read(plan) * params.capacity;
    to_index = (plan.x & 1u) * params.capacity;
    next_pass = params.passes;
    if is_few() {
        for (var at = params.passes; at > params.pass_index + 1u; at -= 1u) {
            next_pass = select(next_pass, at - 1u, runs(at - 1u) != 0u);
        }
    }
    let sums = sums_of(lid, group);
    next_target = scan_exclusive(lid, sums.y).x + sums.x;
    for (var round = 0u; round < plan.y * rounds; round += 1u) {
        scatter_tile(lid);
        tile += 1u;
    }
}
