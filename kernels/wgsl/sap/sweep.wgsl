// Sort and sweep: what its kernels share.
//
// `make_keys` maps the `min` of each box on the sweep axis to an integer, or `make_copies` does so
// for each column that the box touches, and a radix sort puts the keys in order, those of unused
// copies last. `arrange` stores the boxes in that order as entries, and finds how many entries
// after each begin before it ends: its tests. `scan_sums` and `place_starts` number all tests, with
// two words each. `find` takes equal shares of the tests, whatever the boxes are, tests the two
// other axes and all that is exact, and stores the pairs; a radix sort puts these in order.
//
// | kernel | bytes an element | instructions an element | bound by |
// |---|---|---|---|
// | `make_keys` | 24 + 4 a box | 10 | memory |
// | `arrange` | 28 read, 32 written, 2 log2 r keys read an entry | 20 + 16 log2 r | latency |
// | `place_starts` | 4 read, 8 written an entry | 60 | barriers of the scan |
// | `find` | 16 a test from cache, 32 more and 8 written a pair | 20 a test | cache, issue |
//
// r is the number of tests of an entry. Tests of one entry are neighbours, so the lanes of a wave
// read consecutive entries. Where entries have few tests each, the search for the entry of a test
// adds up to 11 steps of 8 instructions.

struct Params {
    // The number of entries.
    entries: u32,
    axis: u32,
    // What is added to each `min`: 1 if boxes that touch do not overlap, else 0.
    rule: u32,
    // The number of boxes of the first of two sets; 0 for one set.
    first_set: u32,
    // The first test of a piece, and the number of tests in it, unless all tests end before.
    first_test: vec2<u32>,
    tests: u32,
    // The number of pairs that are stored; the others are counted.
    capacity: u32,
    // Pairs have their smaller index in this range.
    rows: vec2<u32>,
    // Where each list of `tags` begins; `ABSENT` without it.
    filters_at: u32,
    worlds_at: u32,
    exact_at: u32,
    excluded_at: u32,
    // The number of excluded pairs.
    excluded: u32,
    // What is set in the name of each entry: both bits of a first column where there is only one.
    first_columns: u32,
    // The two other axes, and where `tags` has their cuts.
    others: vec2<u32>,
    cuts_at: vec2<u32>,
    cut_counts: vec2<u32>,
    // The number of copies that there is memory for.
    copy_capacity: u32,
    // The bits of the index of a box, at most 31.
    index_bits: u32,
    // The steps of a column, and how bounds are mapped to them: `step_of`.
    steps: u32,
    step_shift: u32,
    first_step: i32,
    last_step: i32,
    exponent: i32,
    // The counters that a launch scans, and the bits of the number of them in a block; those of
    // cells, of entries and of rows.
    scanned: u32,
    scan_bits: u32,
    cell_bits: u32,
    entry_bits: u32,
    row_bits: u32,
    // The number of blocks that a launch enters.
    blocks: u32,
    // The number of pairs of the list that is searched for the new ones.
    last_pairs: u32,
    // The tests of a thread, at most `ITEMS`.
    thread_tests: u32,
    unused: u32,
}

const ABSENT: u32 = 0xffffffffu;
// Bits of a name: the column of the entry is the first of its box on an axis.
const FIRST_IN_U: u32 = 0x40000000u;
const FIRST_IN_V: u32 = 0x80000000u;
const FIRST_COLUMNS: u32 = 0xc0000000u;
// Flags that the boxes of a pair do not share.
const EXCLUSIVE_FLAGS: u32 = 3u;

// Where `scan_sums` leaves the number of all tests, in two words: behind that of pairs.
const TESTS: u32 = 2u;

@group(0) @binding(0) var<uniform> params: Params;
// Six floats a box, `min` before `max`.
@group(0) @binding(1) var<storage, read> boxes: array<u32>;
// The `min` and `max` on the other two axes, the `min` with `params.rule` added.
@group(0) @binding(4) var<storage, read_write> entries: array<vec4<u32>>;
// The filter (4 words), the world and the `f64` bounds (12 words) of each box; the excluded pairs;
// the cuts of both axes.
@group(0) @binding(9) var<storage, read> tags: array<u32>;

// Returns the entry of a box.
fn entry_of_box(index: u32) -> vec4<u32> {
    let u = params.others.x;
    let v = params.others.y;
    return vec4<u32>(
        bound(index, u) + params.rule,
        bound(index, u + 3u),
        bound(index, v) + params.rule,
        bound(index, v + 3u),
    );
}

// Returns a bound of a box: 0, 1, 2 for `min` and 3, 4, 5 for `max`.
fn bound(index: u32, of_axis: u32) -> u32 {
    return ordered_f32(boxes[6u * index + of_axis]);
}
