// Ranks the digits of a tile with subgroups: the lanes of a subgroup that have the same digit find
// each other by ballots, and the first of them counts for all.

// Consecutive items belong to one subgroup, and each subgroup has two counters of 16 bits in a
// word: of digit `d` and of `d + 128`.
var<workgroup> counters: array<atomic<u32>, SUBGROUPS * 128u>;
// Where each digit starts in the sorted tile.
var<workgroup> digit_starts: array<u32, RADIX>;

fn item_index(lid: u32, i: u32) -> u32 {
    return lanes_earlier * ITEMS + i * lanes + active_rank;
}

// Sets `ranks` to the stable rank of each of `digits` in the tile. Returns the start and the count
// of the digit `lid`.
fn rank_tile(lid: u32) -> vec2<u32> {
    for (var at = lid; at < SUBGROUPS * 128u; at += WORKGROUP) {
        atomicStore(&counters[at], 0u);
    }
    workgroupBarrier();
    let before_lane = lanes_before(lane);
    let all = ballot(true);
    for (var i = 0u; i < ITEMS; i += 1u) {
        let digit = digits[i];
        var peers = all;
        for (var bit = 0u; bit < 8u; bit += 1u) {
            let is_set = (digit & (1u << bit)) != 0u;
            peers = agreeing(peers, ballot(is_set), is_set);
        }
        let shift = (digit >> 7u) * 16u;
        let rank = lane_count(peers & before_lane);
        var counted = 0u;
        if rank == 0u {
            counted = atomicAdd(&counters[subgroup * 128u + (digit & 127u)], lane_count(peers) << shift);
        }
        counted = subgroupShuffle(counted, first_lane(peers));
        ranks[i] = rank + ((counted >> shift) & 0xffffu);
    }
    workgroupBarrier();
    var total = 0u;
    for (var s = 0u; s < SUBGROUPS; s += 1u) {
        total += (atomicLoad(&counters[s * 128u + (lid & 127u)]) >> ((lid >> 7u) * 16u)) & 0xffffu;
    }
    let start = scan_exclusive(lid, total).x;
    digit_starts[lid] = start;
    workgroupBarrier();
    // Counts become the start of their digit, and the sums over the subgroups before.
    if lid < 128u {
        var before = digit_starts[lid] | (digit_starts[lid + 128u] << 16u);
        for (var s = 0u; s < SUBGROUPS; s += 1u) {
            let counted = atomicLoad(&counters[s * 128u + lid]);
            atomicStore(&counters[s * 128u + lid], before);
            before += counted;
        }
    }
    workgroupBarrier();
    for (var i = 0u; i < ITEMS; i += 1u) {
        let before = atomicLoad(&counters[subgroup * 128u + (digits[i] & 127u)]);
        ranks[i] += (before >> ((digits[i] >> 7u) * 16u)) & 0xffffu;
    }
    return vec2<u32>(start, total);
}
