// An exclusive prefix sum over the threads of a workgroup, in the order of `enter_subgroups`.

var<workgroup> subgroup_sums: array<u32, SUBGROUPS>;

// Returns the sum of the values of all threads before this one, and the sum of all.
fn scan_exclusive(lid: u32, value: u32) -> vec2<u32> {
    let before_lane = subgroupExclusiveAdd(value);
    let sum = subgroupAdd(value);
    if active_rank == 0u {
        subgroup_sums[subgroup] = sum;
    }
    workgroupBarrier();
    var sums = vec2<u32>(before_lane, 0u);
    for (var s = 0u; s < SUBGROUPS; s += 1u) {
        let sum_there = select(0u, subgroup_sums[s], s < subgroups);
        sums += vec2<u32>(select(0u, sum_there, s < subgroup), sum_there);
    }
    workgroupBarrier();
    return sums;
}
