// An exclusive prefix sum over the threads of a workgroup.

var<workgroup> scan_words: array<u32, WORKGROUP>;

// Returns the sum of the values of all threads before this one, and the sum of all.
fn scan_exclusive(lid: u32, value: u32) -> vec2<u32> {
    scan_words[lid] = value;
    workgroupBarrier();
    for (var distance = 1u; distance < WORKGROUP; distance *= 2u) {
        let before = select(0u, scan_words[max(lid, distance) - distance], lid >= distance);
        workgroupBarrier();
        scan_words[lid] += before;
        workgroupBarrier();
    }
    let sums = vec2<u32>(scan_words[lid] - value, scan_words[WORKGROUP - 1u]);
    workgroupBarrier();
    return sums;
}
