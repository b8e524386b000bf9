// The kernels that scan and scatter, with subgroups.

@compute @workgroup_size(WORKGROUP)
fn scan(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_subgroups) count: u32,
    @builtin(subgroup_id) id: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    scan_digit(enter_subgroups(count, id, lane), group.x);
}

@compute @workgroup_size(WORKGROUP)
fn scatter(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_subgroups) count: u32,
    @builtin(subgroup_id) id: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    scatter_tiles(enter_subgroups(count, id, lane), group.x);
}
