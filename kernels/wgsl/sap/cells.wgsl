// Finds the pairs of boxes in columns by counting, where the last frame has shown that it is worth
// it: eight launches, where those of two radix sorts are five times as many.
//
// A column has even steps of the sweep axis. A cell is a step of a column, and a box has a copy in
// the cell of its `min` in each column that it touches. `count_cells` counts the copies of each
// cell, `scan_counts` turns the counts into slots, and `place_entries` stores the copies as
// entries there, in no order within a cell. The boxes that begin before an entry ends are all in
// the cells up to that of its `max`: they are its tests, a few more than in the order of `min`, and
// the test has the sweep axis too. `number_tests` and `find_in_cells` share the tests evenly.
//
// `find_in_cells` counts the pairs of each row, which are those of a smaller index, and numbers
// each in its row. `scan_counts` turns these counts into slots, `place_pairs` brings the pairs
// there, and `store_rows` puts each row in order: a pair counts those of its row that come before.
//
// Counts are scanned in blocks of a power of two. At most `MAX_BLOCKS` sums of blocks are left,
// which each workgroup that needs them scans for itself. A sum that 24 bits do not hold, or a row
// of more than `MAX_ROW` pairs, is noted, and the host has the pairs found in another way.
//
// | kernel | bytes an element | bound by |
// |---|---|---|
// | `count_cells` | 24 read a box, an atomic a copy | latency of four searches |
// | `scan_counts` | 4 read and written a counter, and the last in the cache | memory |
// | `place_entries` | 24 read a box, an atomic and 32 written a copy | scattered writes |
// | `number_tests` | 20 read, 4 written a copy | memory |
// | `find_in_cells` | 16 a test from the cache; an atomic and 12 written a pair | cache, issue |
// | `place_pairs` | 16 read, 8 written a pair | scattered writes |
// | `store_rows` | 16 read, 8 written a pair, and a search in the last list | latency |
//
// `place_entries` is no faster where both halves of an entry lie side by side: 223 us for 10^6
// boxes in both cases (H100, Vulkan, 2026-11-25).

const MAX_SUM: u32 = 0xffffffu;
const MAX_ROW: u32 = 1024u;

// What the launches count besides pairs: tests, copies, whether a sum or a row was too large, and
// the pairs that the last list has too.
const TALLY_TESTS: u32 = 2u;
const TALLY_COPIES: u32 = 3u;
const TALLY_OVER: u32 = 4u;
const TALLY_COMMON: u32 = 5u;
const TALLIES: u32 = 6u;

// The counters of the cells: of copies; then where the copies of each begin in its block, then
// where they end.
@group(0) @binding(2) var<storage, read_write> cells: array<atomic<u32>>;
// The sums of blocks that are entered, and those that are made.
@group(0) @binding(7) var<storage, read> block_sums: array<u32>;
@group(0) @binding(6) var<storage, read_write> sums_made: array<u32>;
// The index of the box with the bits of its first column, its `min` with `params.rule` added and
// its `max` on the sweep axis, and the cell of that `max`.
@group(0) @binding(5) var<storage, read_write> names: array<vec4<u32>>;
// The first test of each entry, in its block.
@group(0) @binding(8) var<storage, read_write> starts: array<u32>;

// The number of pairs of each row.
@group(0) @binding(12) var<storage, read_write> rows: array<atomic<u32>>;

var<private> is_over: bool;

fn bounded_sum(a: u32, b: u32) -> u32 {
    let sum = a + b;
    let is_within = sum >= a && sum <= MAX_SUM;
    is_over = is_over || !is_within;
    return select(MAX_SUM, sum, is_within);
}

fn note_over() {
    if is_over {
        atomicStore(&tallies[TALLY_OVER], 1u);
    }
}

// Where each block begins.
var<workgroup> block_starts: array<u32, MAX_BLOCKS>;

// Scans the sums of the blocks, and returns their sum.
fn enter_blocks(lid: u32) -> u32 {
    let first = min(lid * (MAX_BLOCKS / WORKGROUP), params.blocks);
    let end = min(first + MAX_BLOCKS / WORKGROUP, params.blocks);
    var sum = 0u;
    for (var block = first; block < end; block += 1u) {
        sum = bounded_sum(sum, block_sums[block]);
    }
    let sums = scan_exclusive(lid, sum);
    var before = sums.x;
    for (var block = first; block < end; block += 1u) {
        block_starts[block] = before;
        before += block_sums[block];
    }
    workgroupBarrier();
    return sums.y;
}

// The counters that are scanned, four in one: cells or rows.
@group(0) @binding(2) var<storage, read_write> counts: array<vec4<u32>>;

// Replaces each count by the sum of those before it in its block.
@compute @workgroup_size(WORKGROUP)
fn scan_counts(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let first = group.x << (params.scan_bits - 2u);
    let end = first + (1u << (params.scan_bits - 2u));
    var before = 0u;
    for (var start = first; start < end; start += WORKGROUP) {
        let at = start + lid;
        var count = vec4<u32>(0u);
        if 4u * at < params.scanned {
            count = counts[at];
        }
        let pairs = count.xz + count.yw;
        let sums = scan_exclusive(lid, bounded_sum(pairs.x, pairs.y));
        if 4u * at < params.scanned {
            let own = vec4<u32>(0u, count.x, pairs.x, pairs.x + count.z);
            counts[at] = before + sums.x + own;
        }
        before = bounded_sum(before, sums.y);
    }
    if lid == 0u {
        sums_made[group.x] = before;
    }
    note_over();
}

// Returns the step of a bound. Only the order of bounds matters, so the digits of a float are
// shifted to one exponent, which cuts off those of small numbers; what is beyond the first or the
// last step counts as there.
fn step_of(bound: u32) -> u32 {
    let is_negative = bound < 0x80000000u;
    let size = select(bound, ~bound, is_negative) & 0x7fffffffu;
    let digits = (size & 0x7fffffu) | 0x800000u;
    let shift = i32(size >> 23u) - params.exponent;
    let grown = select(digits << u32(clamp(shift, 0, 6)), 0x3fffffffu, shift > 6);
    let shifted = i32(select(grown, digits >> u32(clamp(-shift, 0, 31)), shift < 0));
    let signed = select(shifted, -shifted, is_negative);
    let beyond = clamp(signed, params.first_step, params.last_step) - params.first_step;
    return u32(beyond) >> params.step_shift;
}

fn cell_of(u: u32, v: u32, step: u32) -> u32 {
    return (u * (params.cut_counts[1] + 1u) + v) * params.steps + step;
}

@compute @workgroup_size(WORKGROUP)
fn count_cells(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let index = index_of(lid, group, groups);
    if index < TALLIES {
        atomicStore(&tallies[index], 0u);
    }
    if index >= params.entries || is_inverted(index) {
        return;
    }
    let step = step_of(bound(index, params.axis));
    let u = parts_of(index, 0u);
    let v = parts_of(index, 1u);
    for (var i = u.x; i <= u.y; i += 1u) {
        for (var j = v.x; j <= v.y; j += 1u) {
            atomicAdd(&cells[cell_of(i, j, step)], 1u);
        }
    }
}

@compute @workgroup_size(WORKGROUP)
fn place_entries(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let copies = enter_blocks(lid);
    let index = index_of(lid, group, groups);
    if index < params.entries {
        atomicStore(&rows[index], 0u);
    }
    if index == 0u {
        atomicStore(&tallies[TALLY_COPIES], copies);
    }
    note_over();
    if index >= params.entries || is_inverted(index) {
        return;
    }
    let low = bound(index, params.axis);
    let high = bound(index, params.axis + 3u);
    let step = step_of(low);
    let reach = step_of(high) - step;
    let entry = entry_of_box(index);
    let u = parts_of(index, 0u);
    let v = parts_of(index, 1u);
    for (var i = u.x; i <= u.y; i += 1u) {
        for (var j = v.x; j <= v.y; j += 1u) {
            let cell = cell_of(i, j, step);
            let at = block_starts[cell >> params.cell_bits] + atomicAdd(&cells[cell], 1u);
            if at < params.copy_capacity {
                let is_first = select(0u, FIRST_IN_U, i == u.x) | select(0u, FIRST_IN_V, j == v.x);
                entries[at] = entry;
                names[at] = vec4<u32>(index | is_first, low + params.rule, high, cell + reach);
            }
        }
    }
}

fn entry_count() -> u32 {
    return min(atomicLoad(&tallies[TALLY_COPIES]), params.copy_capacity);
}

// Returns the number of tests of an entry: of the entries behind it, to the end of its last cell.
fn run_of(entry: u32, count: u32) -> u32 {
    // A sum that was too large leaves entries unwritten.
    let cell = min(names[entry].w, params.scanned - 1u);
    let end = block_starts[cell >> params.cell_bits] + atomicLoad(&cells[cell]);
    return max(min(end, count), entry + 1u) - (entry + 1u);
}

@compute @workgroup_size(WORKGROUP)
fn number_tests(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    enter_blocks(lid);
    let count = entry_count();
    let first = group.x << params.entry_bits;
    let end = first + (1u << params.entry_bits);
    var before = 0u;
    for (var start = first; start < end; start += WORKGROUP) {
        let entry = start + lid;
        var run = 0u;
        if entry < count {
            run = min(run_of(entry, count), MAX_SUM);
        }
        let sums = scan_exclusive(lid, run);
        if entry < count {
            starts[entry] = before + sums.x;
        }
        before = bounded_sum(before, sums.y);
    }
    if lid == 0u {
        sums_made[group.x] = before;
    }
    note_over();
}
