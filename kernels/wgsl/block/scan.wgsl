// An exclusive prefix sum over the threads of a workgroup.

// Two copies of the sums, which take turns, so that a step takes one barrier.
var<workgroup> scan_words: array<u32, 2u * WORKGROUP>;

// Returns the sum of the values of all threads before this one, and the sum of all.
fn scan_exclusive(lid: u32, value: u32) -> vec2<u32> {
    var sum = value;
    var copy = 0u;
    scan_words[lid] = sum;
    workgroupBarrier();
    for (var distance = 1u; distance < WORKGROUP; distance *= 2u) {
        let before = scan_words[copy + max(lid, distance) - distance];
        sum += select(0u, before, lid >= distance);
        copy = WORKGROUP - copy;
        scan_words[copy + lid] = sum;
        workgroupBarrier();
    }
    let all = scan_words[copy + WORKGROUP - 1u];
    workgroupBarrier();
    return vec2<u32>(sum - value, all);
}
