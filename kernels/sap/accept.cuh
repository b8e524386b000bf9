// Whether two boxes that overlap are a pair to report, and which one.
#pragma once
#include "common/search.cuh"
#include "types.cuh"

namespace radsweep::sap {

struct Accept {
    const uint4* filters;  // layers, mask, group, flags; null = all pass
    const double* exact;   // f64 boxes to test once more; null = f32 decides
    const u64* excluded;   // a * 2^32 + b, sorted
    u64 excluded_len;
    u64 split;           // boxes of the first set; 0 = one set, paired with itself
    u64 a_begin, a_end;  // only pairs with a in this range
    u32 open;            // boxes that only touch do not overlap
    u32 all;             // all boxes that overlap, touching ones too, are pairs
};
ASSERT_LAYOUT(Accept, 64,
    AT(filters, 0) AT(exact, 8) AT(excluded, 16) AT(excluded_len, 24) AT(split, 32)
    AT(a_begin, 40) AT(a_end, 48) AT(open, 56) AT(all, 60));

DEVICE bool filters_allow(const uint4& i, const uint4& j) {
    return (i.x & j.y) != 0 && (j.x & i.y) != 0 && (i.z != j.z || i.z == 0) &&
           (i.w & j.w & STATIC_OR_ASLEEP) == 0;
}

DEVICE bool overlap_exactly(const double* i, const double* j, bool open) {
    bool all = true;
    for (int axis = 0; axis < 3; axis++) {
        const double min_i = i[axis], max_i = i[axis + 3], min_j = j[axis], max_j = j[axis + 3];
        all = all && (open ? min_i < max_j && min_j < max_i : min_i <= max_j && min_j <= max_i);
    }
    return all;
}

// Gives the pair (a, b) of the boxes i and j. Returns false if it is not to be reported.
DEVICE bool accept(const Accept& rules, u32 i, u32 j, u32& a, u32& b) {
    a = min(i, j);
    b = max(i, j);
    // The indices of the first set are below those of the second.
    if (rules.split > 0 && (a >= rules.split || b < rules.split)) return false;
    if (a < rules.a_begin || a >= rules.a_end) return false;
    if (rules.filters && !filters_allow(rules.filters[i], rules.filters[j])) return false;
    if (rules.exact &&
        !overlap_exactly(rules.exact + 6ull * i, rules.exact + 6ull * j, rules.open != 0))
        return false;
    b -= u32(rules.split);
    if (rules.excluded_len > 0) {
        const u64 pair = u64(a) << 32 | b;
        const u64 from = partition_point(
            u64(0), rules.excluded_len, [&](u64 k) { return rules.excluded[k] < pair; });
        if (from < rules.excluded_len && rules.excluded[from] == pair) return false;
    }
    return true;
}

}  // namespace radsweep::sap
