// A radix sort by digits of 8 bits, the lowest first: what its kernels share.
//
// Each pass counts the digits of every tile, scans the counts of each digit over all tiles, and
// scatters the tiles. No workgroup waits for another one, since no specification promises that it
// runs. Keys and values alternate between the two halves of their scratch memory. Passes whose
// digit is the same in all keys do nothing, which `plan` decides on the device.

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

fn digit_of(key: Key) -> u32 {
    return digit_of_bits(ordered(key), params.begin, params.end);
}
