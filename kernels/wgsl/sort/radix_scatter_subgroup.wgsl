// The scatter with subgroups.

@compute @workgroup_size(WORKGROUP)
fn scatter(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(subgroup_id) subgroup_id: u32,
    @builtin(subgroup_invocation_id) subgroup_lane: u32,
) {
    place(subgroup_id, subgroup_lane);
    tile = group.y * groups.x + group.x;
    let rounds = select(0u, runs(), group.y * groups.x + group.x < params.tiles);
    for (var round = 0u; round < rounds; round += 1u) {
        scatter_tile(lid);
    }
}
