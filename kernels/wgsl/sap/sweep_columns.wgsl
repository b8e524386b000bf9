// Copies boxes into columns along the sweep axis.
//
// The two other axes are cut. The part of a coordinate is the number of cuts at or below it, and a
// box is in all columns that it touches. That is monotone, so two boxes that overlap share the
// column of the greater of their two `min`s on both axes, which is the first of one of them on
// each: their pair is reported there only. The high word of a key is the column.
//
// There may be memory for more copies: their keys come last. Copies beyond it are only counted.
//
// A copy takes 12 bytes written, and a box 24 read and four searches among up to 255 cuts, of 8
// steps: bound by the latency of these. A box of many copies is written by one thread.

// The first copy of each box.
@group(0) @binding(8) var<storage, read> first_copies: array<vec2<u32>>;
// The number of copies of each box.
@group(0) @binding(6) var<storage, read_write> copy_counts: array<u32>;
// The sums of each workgroup.
@group(0) @binding(7) var<storage, read_write> copy_sums: array<vec2<u32>>;
// The box of each copy, with the bits of its first column.
@group(0) @binding(3) var<storage, read_write> copies: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn count_copies(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let block = group_index(group, groups);
    let index = block * WORKGROUP + lid;
    var count = 0u;
    if index < params.entries {
        if !is_inverted(index) {
            let u = parts_of(index, 0u);
            let v = parts_of(index, 1u);
            count = (u.y + 1u - u.x) * (v.y + 1u - v.x);
        }
        copy_counts[index] = count;
    }
    let all = scan_runs(lid, count).zw;
    if lid == 0u && block * WORKGROUP < params.entries {
        copy_sums[block] = all;
    }
}

@compute @workgroup_size(WORKGROUP)
fn make_copies(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let index = index_of(lid, group, groups);
    if index >= params.entries {
        return;
    }
    let first = first_copies[index];
    // Beyond the memory is beyond it, with a high word too.
    var at = select(first.x, params.copy_capacity, first.y != 0u);
    if !is_inverted(index) {
        let low = bound(index, params.axis);
        let u = parts_of(index, 0u);
        let v = parts_of(index, 1u);
        for (var i = u.x; i <= u.y; i += 1u) {
            for (var j = v.x; j <= v.y && at < params.copy_capacity; j += 1u) {
                let is_first = select(0u, FIRST_IN_U, i == u.x) | select(0u, FIRST_IN_V, j == v.x);
                keys[at] = vec2<u32>(low, i * (params.cut_counts[1] + 1u) + j);
                copies[at] = index | is_first;
                at += 1u;
            }
        }
    }
    let last = first_copies[params.entries - 1u];
    let end = plus(last, vec2<u32>(copy_counts[params.entries - 1u], 0u));
    if end.y == 0u && end.x < params.copy_capacity {
        let unused = params.copy_capacity - end.x;
        for (var i = index; i < unused; i += params.entries) {
            keys[end.x + i] = last_key();
            copies[end.x + i] = 0u;
        }
    }
}
