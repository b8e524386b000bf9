// Indices in a grid of workgroups of two dimensions: of a workgroup, and of a thread where each has
// one item.

fn group_index(group: vec3<u32>, groups: vec3<u32>) -> u32 {
    return group.y * groups.x + group.x;
}

fn index_of(lid: u32, group: vec3<u32>, groups: vec3<u32>) -> u32 {
    return group_index(group, groups) * WORKGROUP + lid;
}
