// Where a thread stands among the subgroups of its workgroup. Neither the size of a subgroup nor
// the threads in it are assumed.

// The number of lanes of each subgroup.
var<workgroup> subgroup_lanes: array<u32, SUBGROUPS>;

// The number of subgroups, and the one of this thread.
var<private> subgroups: u32;
var<private> subgroup: u32;
// The lanes of this subgroup and of all before it, and which lane this is.
var<private> lanes: u32;
var<private> lanes_earlier: u32;
var<private> lane: u32;
// The rank of this thread among the active lanes of its subgroup.
var<private> active_rank: u32;

// Finds out where this thread stands, and returns its index, which counts subgroup by subgroup:
// other than the index that a device gives it, it is in the order of prefix sums over lanes.
fn enter_subgroups(count: u32, id: u32, subgroup_lane: u32) -> u32 {
    subgroups = count;
    subgroup = id;
    lane = subgroup_lane;
    lanes = subgroupAdd(1u);
    active_rank = subgroupExclusiveAdd(1u);
    subgroup_lanes[subgroup] = lanes;
    workgroupBarrier();
    lanes_earlier = 0u;
    for (var s = 0u; s < SUBGROUPS; s += 1u) {
        lanes_earlier += select(0u, subgroup_lanes[s], s < subgroup);
    }
    return lanes_earlier + active_rank;
}
