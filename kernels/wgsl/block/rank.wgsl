// Ranks the digits of a tile without subgroups: the tile is sorted by the low 4 bits of the digits,
// then by the high 4. The counters of a thread, 16 bits for each of 16 digits, lie in the memory
// that a tile is exchanged in.

// Consecutive items belong to one thread.
fn item_index(lid: u32, i: u32) -> u32 {
    return lid * ITEMS + i;
}

var<workgroup> digit_counts: array<atomic<u32>, RADIX>;

var<private> nibbles: array<u32, ITEMS>;

// Sets `ranks` to the stable rank of each nibble among those of all threads.
fn rank_nibbles(lid: u32) {
    for (var word = 0u; word < 8u; word += 1u) {
        tile_words[word * WORKGROUP + lid] = 0u;
    }
    // A word counts nibble `d` in its low half, and `d + 8` in its high half.
    for (var i = 0u; i < ITEMS; i += 1u) {
        let at = (nibbles[i] & 7u) * WORKGROUP + lid;
        let shift = (nibbles[i] >> 3u) * 16u;
        let counted = tile_words[at];
        ranks[i] = (counted >> shift) & 0xffffu;
        tile_words[at] = counted + (1u << shift);
    }
    workgroupBarrier();
    var sum = 0u;
    for (var word = 0u; word < 8u; word += 1u) {
        sum += tile_words[lid * 8u + word];
    }
    let sums = scan_exclusive(lid, sum);
    // All nibbles of low halves come before those of high halves.
    var before = sums.x + (sums.y << 16u);
    for (var word = 0u; word < 8u; word += 1u) {
        let counted = tile_words[lid * 8u + word];
        tile_words[lid * 8u + word] = before;
        before += counted;
    }
    workgroupBarrier();
    for (var i = 0u; i < ITEMS; i += 1u) {
        let before_nibble = tile_words[(nibbles[i] & 7u) * WORKGROUP + lid];
        ranks[i] += (before_nibble >> ((nibbles[i] >> 3u) * 16u)) & 0xffffu;
    }
    workgroupBarrier();
}

// Sets `ranks` to the stable rank of each of `digits` in the tile. Returns the start and the count
// of the digit `lid`.
fn rank_tile(lid: u32) -> vec2<u32> {
    atomicStore(&digit_counts[lid], 0u);
    workgroupBarrier();
    for (var i = 0u; i < ITEMS; i += 1u) {
        atomicAdd(&digit_counts[digits[i]], 1u);
    }
    for (var i = 0u; i < ITEMS; i += 1u) {
        nibbles[i] = digits[i] & 15u;
    }
    rank_nibbles(lid);
    // In the order of the low nibbles: the high nibble, and which item it is of.
    for (var i = 0u; i < ITEMS; i += 1u) {
        tile_words[ranks[i]] = ((digits[i] >> 4u) << 16u) | item_index(lid, i);
    }
    workgroupBarrier();
    for (var i = 0u; i < ITEMS; i += 1u) {
        words[i] = tile_words[item_index(lid, i)];
        nibbles[i] = words[i] >> 16u;
    }
    workgroupBarrier();
    rank_nibbles(lid);
    // The ranks return to the threads whose items they are of.
    for (var i = 0u; i < ITEMS; i += 1u) {
        tile_words[words[i] & 0xffffu] = ranks[i];
    }
    workgroupBarrier();
    for (var i = 0u; i < ITEMS; i += 1u) {
        ranks[i] = tile_words[item_index(lid, i)];
    }
    let total = atomicLoad(&digit_counts[lid]);
    return vec2<u32>(scan_exclusive(lid, total).x, total);
}
