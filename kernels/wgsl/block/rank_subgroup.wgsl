// Ranks the digits of a tile with subgroups: the lanes of a subgroup that have the same digit find
// each other by ballots, and the first of them counts for all.

// Consecutive items belong to one subgroup, and each subgroup has two counters of 16 bits in a
// word: of digit `d` and of `d + 128`.
var<workgroup> counters: array<atomic<u32>, SUBGROUPS * 128u>;
// The number of lanes of each subgroup.
var<workgroup> subgroup_lanes: array<u32, SUBGROUPS>;

// The subgroup of this thread, the lanes of it and of all before it, and which lane this is.
var<private> subgroup: u32;
var<private> lanes: u32;
var<private> lanes_earlier: u32;
var<private> lane: u32;
// The rank of this thread among the active lanes of its subgroup.
var<private> active_rank: u32;

// Finds out where this thread stands. Neither the size of a subgroup nor the threads in it are
// assumed.
fn place(subgroup_id: u32, subgroup_lane: u32) {
    subgroup = subgroup_id;
    lane = subgroup_lane;
    lanes = subgroupAdd(1u);
    active_rank = subgroupExclusiveAdd(1u);
    subgroup_lanes[subgroup_id] = lanes;
    workgroupBarrier();
    lanes_earlier = 0u;
    for (var s = 0u; s < SUBGROUPS; s += 1u) {
        lanes_earlier += select(0u, subgroup_lanes[s], s < subgroup_id);
    }
}

fn item_index(lid: u32, i: u32) -> u32 {
    return lanes_earlier * ITEMS + i * lanes + active_rank;
}

// Sets `ranks` to the stable rank of each of `digits` in the tile.
fn rank_tile(lid: u32) {
    for (var at = lid; at < SUBGROUPS * 128u; at += WORKGROUP) {
        atomicStore(&counters[at], 0u);
    }
    workgroupBarrier();
    let before_lane = lanes_before(lane);
    for (var i = 0u; i < ITEMS; i += 1u) {
        let digit = digits[i];
        var peers = ballot(true);
        for (var bit = 0u; bit < 8u; bit += 1u) {
            let is_set = ((digit >> bit) & 1u) == 1u;
            let votes = ballot(is_set);
            peers &= select(~votes, votes, is_set);
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
    // Counts become sums over the subgroups before, and then over the digits before.
    var both = 0u;
    for (var s = 0u; s < SUBGROUPS; s += 1u) {
        both += atomicLoad(&counters[s * 128u + (lid & 127u)]);
    }
    workgroupBarrier();
    if lid < 128u {
        var before = 0u;
        for (var s = 0u; s < SUBGROUPS; s += 1u) {
            let counted = atomicLoad(&counters[s * 128u + lid]);
            atomicStore(&counters[s * 128u + lid], before);
            before += counted;
        }
    }
    let total = (both >> ((lid >> 7u) * 16u)) & 0xffffu;
    tile_words[lid] = scan_exclusive(lid, total).x;
    workgroupBarrier();
    for (var i = 0u; i < ITEMS; i += 1u) {
        let digit = digits[i];
        let earlier = atomicLoad(&counters[subgroup * 128u + (digit & 127u)]);
        ranks[i] += tile_words[digit] + ((earlier >> ((digit >> 7u) * 16u)) & 0xffffu);
    }
    workgroupBarrier();
}
