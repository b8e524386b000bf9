// A radix sort by digits of 8 bits, the lowest first: what its kernels share.
//
// A workgroup takes several consecutive tiles. Each pass counts the digits of every workgroup,
// scans the counts of each digit over all workgroups, and scatters the tiles of each in turn. No
// workgroup waits for another one, since no specification promises that it runs. Keys and values
// alternate between the two halves of their scratch memory. Passes whose digit is the same in all
// keys do nothing, which `plan` decides on the device.
//
// Bytes of a key of 32 bits: 12 a pass, 8 to inspect it and 8 to emit it, so 64 in four passes; the
// counts of a workgroup add 4 KiB a pass. On an H200 (2026-11-23) a pass over 2^24 keys takes 0.205
// ms, four times what its bytes take: it is bound by instructions and barriers. A launch takes 8
// us.

const RADIX: u32 = 256u;
const TILE: u32 = WORKGROUP * ITEMS;

struct Params {
    n: u32,
    tiles: u32,
    // `ordered` flips these bits in all keys, and these besides in negative floats; the key `zero`
    // counts as 0.
    flip: vec2<u32>,
    fold: vec2<u32>,
    zero: vec2<u32>,
    // The ordered bits that are compared.
    window: vec2<u32>,
    // The bits of the digit of a pass, or of the window.
    begin: u32,
    end: u32,
    pass_index: u32,
    passes: u32,
    // The workgroups of a pass, and the tiles of each but the last.
    workgroups: u32,
    tiles_each: u32,
}

@group(0) @binding(0) var<uniform> params: Params;

// `State` of the host: the outcome, what `inspect` found, and the passes.
const N: u32 = 0u;
const PASSES: u32 = 1u;
const PASSES_RUN: u32 = 2u;
const UNSORTED: u32 = 3u;
const VARYING: u32 = 4u;
const SORTED_HALF: u32 = 6u;
// For each pass: how often it runs, 0 or 1, and the half of scratch memory that it reads.
const FIRST_PASS: u32 = 8u;

@group(0) @binding(1) var<storage, read> state: array<u32>;
@group(0) @binding(4) var<storage, read_write> keys: array<Key>;

fn runs() -> u32 {
    return state[FIRST_PASS + 2u * params.pass_index];
}

fn half_read() -> u32 {
    return state[FIRST_PASS + 2u * params.pass_index + 1u];
}

// Returns the number of tiles that a workgroup takes in this pass, from this tile on.
fn tiles_to_take(first: u32) -> u32 {
    return runs() * (min(first + params.tiles_each, params.tiles) - first);
}

fn digit_of(key: Key) -> u32 {
    return digit_of_bits(ordered(key), params.begin, params.end);
}
