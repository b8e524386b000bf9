// A radix sort by digits of 8 bits, the lowest first: what its kernels share.
//
// A workgroup takes several consecutive tiles. Each pass counts the digits of every workgroup,
// scans the counts of each digit over all workgroups, and scatters the tiles of each in turn. No
// workgroup waits for another one, since no specification promises that it runs. `inspect` finds
// the bits in which keys differ, and passes whose digit is the same in all keys do nothing. The
// first pass that runs reads the caller's buffers and the last writes them. Between these, keys
// and values alternate between the two halves of their scratch memory.
//
// Where there are few workgroups, each pass is one launch, since a launch with its barrier takes as
// long as its work: it counts the digits of the next pass for the workgroups that its keys go to.
//
// Bytes of a key of 32 bits: 12 a pass and 4 to inspect it, less the 4 of the first count, which
// `inspect` makes: 48 in four passes. The counts of a workgroup add 4 KiB a pass.
//
// On an H200 (Vulkan, 2026-11-26) 2^24 keys are sorted at 21 G keys/s, and with values at 16.5. A
// pass takes 31 us to count, 13 to scan and 158 to scatter, where memory alone would take 14, 1 and
// 32. 2^16 keys take 60 us, all of it launches.

const RADIX: u32 = 256u;
const TILE: u32 = WORKGROUP * ITEMS;

struct Params {
    // The max number of keys, and the distance between the halves of scratch memory.
    capacity: u32,
    // The workgroups of a pass, and the tiles of each but the last.
    workgroups: u32,
    tiles_each: u32,
    pass_index: u32,
    // The bits that are compared, and the passes over them.
    begin: u32,
    end: u32,
    passes: u32,
    // Where the last pass that runs writes keys and values: `TO_SCRATCH`, `TO_OUTPUT` or nowhere.
    keys_to: u32,
    values_to: u32,
    // Where the number of keys is, if the device has counted them.
    count_at: u32,
    // `ordered` flips these bits in all keys, and these besides in negative floats; the key `zero`
    // counts as 0.
    flip: vec2<u32>,
    fold: vec2<u32>,
    zero: vec2<u32>,
    // The ordered bits that are compared.
    window: vec2<u32>,
}

const TO_SCRATCH: u32 = 0u;
const TO_OUTPUT: u32 = 1u;

@group(0) @binding(0) var<uniform> params: Params;

// `State` of the host: the number of keys, and what `inspect` has found.
const N: u32 = 0u;
const UNSORTED: u32 = 3u;
const DIFFERING: u32 = 4u;

@group(0) @binding(1) var<storage, read> state: array<u32>;
@group(0) @binding(2) var<storage, read> keys_in: array<Key>;
@group(0) @binding(4) var<storage, read_write> keys: array<Key>;

fn digit_in_pass(bits: Key, at: u32) -> u32 {
    let begin = params.begin + 8u * at;
    return digit_of_bits(bits, begin, min(begin + 8u, params.end));
}

fn digit_of(key: Key) -> u32 {
    return digit_in_pass(ordered(key), params.pass_index);
}

// Returns how often a pass runs, 0 or 1.
fn runs(at: u32) -> u32 {
    let differing = from_words(vec2<u32>(state[DIFFERING], state[DIFFERING + 1u]));
    return select(0u, state[UNSORTED], digit_in_pass(differing, at) != 0u);
}

// Returns how many passes run before this one, in this one, and in all.
fn planned() -> vec3<u32> {
    var counts = vec3<u32>(0u);
    for (var at = 0u; at < params.passes; at += 1u) {
        counts += runs(at) * vec3<u32>(
            select(0u, 1u, at < params.pass_index),
            select(0u, 1u, at == params.pass_index),
            1u,
        );
    }
    return counts;
}

// Tells whether there are so few workgroups that each sums the counts of all.
fn is_few() -> bool {
    return params.workgroups <= FEW;
}

// Returns where the table of counts of a pass begins.
fn table_of(at: u32) -> u32 {
    return select(0u, at * RADIX * params.workgroups, is_few());
}

// Returns where a table has the count of a digit of a workgroup: threads of neighbouring digits sum
// those of few workgroups.
fn count_index(digit: u32, group: u32) -> u32 {
    return select(digit * params.workgroups + group, group * RADIX + digit, is_few());
}

fn key_count() -> u32 {
    return min(state[N], params.capacity);
}

// Returns the number of tiles that a workgroup has, from this tile on, of this many keys.
fn tiles_from(first: u32, n: u32) -> u32 {
    let tiles = (n + TILE - 1u) / TILE;
    return min(first + params.tiles_each, tiles) - min(first, tiles);
}
