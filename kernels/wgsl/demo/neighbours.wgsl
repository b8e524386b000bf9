// The neighbours of every body from the sorted pairs (a, b): the steps of
// kernels/demo/neighbours.cuh. The pairs (i, b) are a run of the list. The pairs (a, i) are a run
// of the list sorted by b, which a stable sort makes between `split` and `mark_below`. So a body
// sees its neighbours in ascending order, and its sums are the same every time, without atomics.
//
// | kernel | bytes a pair |
// |---|---|
// | `split` | 8 read, 8 written |
// | the sort by 20 bits | 56 |
// | `mark_below`, `mark_above` | 4 read each; 8 written a body |

struct Run {
    // The first pair of a buffer among all pairs, and the number of its pairs.
    first: u32,
    count: u32,
}

@group(0) @binding(8) var<uniform> run: Run;
@group(0) @binding(9) var<storage, read> pairs: array<vec2<u32>>;
// The two bodies of each pair.
@group(0) @binding(10) var<storage, read_write> a_list: array<u32>;
@group(0) @binding(11) var<storage, read_write> b_list: array<u32>;
// The bodies whose runs are marked, in order.
@group(0) @binding(12) var<storage, read> owners: array<u32>;
// The begin and the end of the run of each body in `below`, then in `above`.
@group(0) @binding(13) var<storage, read_write> marks: array<u32>;

// What a scene reads: the runs of each body, and its neighbours of smaller and of larger index.
@group(0) @binding(14) var<storage, read> rows: array<vec4<u32>>;
@group(0) @binding(15) var<storage, read> below: array<u32>;
@group(0) @binding(16) var<storage, read> above: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn split(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let i = index_of(lid, group, groups);
    if i < run.count {
        a_list[run.first + i] = pairs[i].x;
        b_list[run.first + i] = pairs[i].y;
    }
}

// Marks where a run of equal owners begins or ends, in rows that were 0.
fn mark(i: u32, begin: u32) {
    if i >= run.count {
        return;
    }
    let own = owners[i];
    if i == 0u || owners[i - 1u] != own {
        marks[4u * own + begin] = i;
    }
    if i + 1u == run.count || owners[i + 1u] != own {
        marks[4u * own + begin + 1u] = i + 1u;
    }
}

@compute @workgroup_size(WORKGROUP)
fn mark_below(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    mark(index_of(lid, group, groups), 0u);
}

@compute @workgroup_size(WORKGROUP)
fn mark_above(
    @builtin(local_invocation_index) lid: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    mark(index_of(lid, group, groups), 2u);
}

// The number of neighbours.
fn count_of(row: vec4<u32>) -> u32 {
    return row.y - row.x + row.w - row.z;
}
