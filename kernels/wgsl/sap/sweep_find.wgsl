// Makes all tests of a piece, and stores the pairs or counts them by row.

const SHARE: u32 = WORKGROUP * ITEMS;

// Pairs as numbers of twice the bits of an index, the smaller index in the high ones.
@group(0) @binding(11) var<storage, read_write> pairs: array<vec2<u32>>;
// The number of pairs of each smaller index.
@group(0) @binding(12) var<storage, read_write> rows: array<atomic<u32>>;

// Tells whether an entry and one of its run are a pair.
fn is_pair(entry: u32, other: u32) -> bool {
    let a = entries[entry];
    let b = entries[other];
    if a.x > b.y || b.x > a.y || a.z > b.w || b.z > a.w {
        return false;
    }
    let own = names[entry].x;
    let name = names[other];
    if ((own | name.x) & FIRST_COLUMNS) != FIRST_COLUMNS {
        return false;
    }
    // The sort has `entry.min <= other.min`, so this fails for a flat box under the open rule only.
    if low_of(keys[entry]) + params.rule > name.y {
        return false;
    }
    return accepts(own & ~FIRST_COLUMNS, name.x & ~FIRST_COLUMNS);
}

// The entries of the first and the last test of a share.
var<workgroup> share_entries: array<atomic<u32>, 2>;
var<workgroup> share_slot: u32;

// Returns the entry of a test, which is in `[first, last]`.
fn entry_of(test: vec2<u32>, first: u32, last: u32) -> u32 {
    var low = first;
    var high = last;
    for (var left = last - first; left > 0u; left >>= 1u) {
        let middle = low + (high - low + 1u) / 2u;
        if is_below(test, starts[middle]) {
            high = max(middle, 1u) - 1u;
        } else {
            low = middle;
        }
    }
    return low;
}

fn test_number(share: u32, offset: u32) -> vec2<u32> {
    return plus(params.first_test, vec2<u32>(share * SHARE + offset, 0u));
}

// Returns the number of tests of a share. Some workgroups have none.
fn test_count(share: u32) -> u32 {
    let all = vec2<u32>(atomicLoad(&tallies[TESTS]), atomicLoad(&tallies[TESTS + 1u]));
    var tests = params.tests;
    if is_below(all, plus(params.first_test, vec2<u32>(tests, 0u))) {
        tests = select(0u, all.x - params.first_test.x, is_below(params.first_test, all));
    }
    let first = min(share * SHARE, tests);
    return min(SHARE, tests - first);
}

// Notes an entry that begins at a test or before it.
fn look_for(which: u32, test: vec2<u32>, entry: u32) {
    let begin = starts[min(entry, params.entries - 1u)];
    if entry < params.entries && !is_below(test, begin) {
        atomicMax(&share_entries[which], entry);
    }
}

// Finds the entries of the first and the last test. All threads look at once, so that there are
// three rounds for 2^24 entries, where a search by halves waits for memory 24 times.
fn enter_share(lid: u32, share: u32) {
    let end = max(test_count(share), 1u) - 1u;
    atomicStore(&share_entries[lid & 1u], 0u);
    workgroupBarrier();
    // Both are at most so many entries after what was found.
    for (var span = params.entries; span > 1u; span = (span + WORKGROUP - 1u) / WORKGROUP) {
        let step = (span + WORKGROUP - 1u) / WORKGROUP;
        let first = vec2<u32>(atomicLoad(&share_entries[0]), atomicLoad(&share_entries[1]));
        workgroupBarrier();
        look_for(0u, test_number(share, 0u), first.x + lid * step);
        look_for(1u, test_number(share, end), first.y + lid * step);
        workgroupBarrier();
    }
}

// The two entries of a test. `entry` is one at or before the first of them.
fn entries_of(share: u32, offset: u32, entry: u32) -> vec2<u32> {
    let test = test_number(share, offset);
    let one = entry_of(test, entry, atomicLoad(&share_entries[1]));
    return vec2<u32>(one, one + 1u + (test.x - starts[one].x));
}

// Makes the tests of this thread, and returns a bit for each that found a pair.
fn found_pairs(lid: u32, share: u32) -> u32 {
    let count = test_count(share);
    var entry = atomicLoad(&share_entries[0]);
    var found = 0u;
    for (var i = 0u; i < ITEMS; i += 1u) {
        let offset = i * WORKGROUP + lid;
        if offset < count {
            let both = entries_of(share, offset, entry);
            entry = both.x;
            found |= select(0u, 1u << i, is_pair(both.x, both.y));
        }
    }
    return found;
}

// Returns the pair that a test found.
fn found_pair(lid: u32, share: u32, i: u32) -> vec2<u32> {
    let both = entries_of(share, i * WORKGROUP + lid, atomicLoad(&share_entries[0]));
    return pair_of(names[both.x].x & ~FIRST_COLUMNS, names[both.y].x & ~FIRST_COLUMNS);
}

// Returns the number of a pair.
fn packed(pair: vec2<u32>) -> vec2<u32> {
    let bits = params.index_bits;
    return vec2<u32>(pair.x | (pair.y << bits), pair.y >> (32u - bits));
}

@compute @workgroup_size(WORKGROUP)
fn find(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let share = group_index(group, groups);
    enter_share(lid, share);
    let found = found_pairs(lid, share);
    let sums = scan_exclusive(lid, countOneBits(found));
    if lid == 0u && sums.y > 0u {
        share_slot = reserve_slots(sums.y);
    }
    workgroupBarrier();
    var slot = share_slot + sums.x;
    for (var left = found; left != 0u; left &= left - 1u) {
        if slot < params.capacity {
            pairs[slot] = packed(found_pair(lid, share, firstTrailingBit(left)));
        }
        slot += 1u;
    }
}

@compute @workgroup_size(WORKGROUP)
fn count_rows(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let share = group_index(group, groups);
    enter_share(lid, share);
    let found = found_pairs(lid, share);
    for (var left = found; left != 0u; left &= left - 1u) {
        atomicAdd(&rows[found_pair(lid, share, firstTrailingBit(left)).y], 1u);
    }
}
