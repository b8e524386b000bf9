// Pairs by ids: those that go to the rank that owns them, and the result of a rank.
//
// Bytes of a pair that `kept` counts: 8 read; that `keep` parts: 8 read and 8 written if it stays,
// 40 read and 16 written if it is named. Of one that is named: 40 read, 16 written; grouped: 16
// read, 16 written; taken apart and joined: 28 read, 28 written; merged: 8 read, 16 written, and
// two ids read where they are not consecutive. Pairs that concern other ranks are few, and only
// these are named, grouped, taken apart and joined. So most of the time is in `merge`, and in
// `kept` and `keep` where pairs are found by cell. Instructions a pair, counted in the source:
// about 20 to keep, 60 to merge with its search. On an H200 with 13.7 M pairs and consecutive ids,
// `kept` takes 33 us, `keep` 71, and `merge` 82 to 106, where its bytes take 80.
#pragma once
#include "block/scan.cuh"
#include "receive.cuh"

namespace radsweep::dist {

constexpr u32 ITEMS = 1024;  // pairs of a block where order counts
constexpr u32 ROUNDS = ITEMS / THREADS;

// The pair of two boxes belongs to the rank that brought the one of the smaller id.
DEVICE Found found(const Name& one, const Name& other, Twice* twice) {
    if (one.id == other.id) twice->add(one.id);
    const Name& a = one.id < other.id ? one : other;
    return Found{max(one.id, other.id), a.index, a.origin};
}

// Adds 1 to the count of the owner for each lane that has one, and returns what the count was
// before this lane's. Lanes of one owner take one atomic. All lanes take part.
DEVICE u64 count_owner(u64* counts, u32 owner, bool has) {
    u64 before = 0;
    u32 left = __ballot_sync(ALL_LANES, has);
    while (left) {
        const u32 leader = __ffs(i32(left)) - 1;
        const u32 one = __shfl_sync(ALL_LANES, owner, leader);
        const u32 same = __ballot_sync(ALL_LANES, has && owner == one);
        u64 at = 0;
        if (lane_index() == leader) at = atomicAdd(counts + one, u64(__popc(same)));
        at = __shfl_sync(ALL_LANES, at, leader);
        if (has && owner == one) before = at + __popc(same & lanes_below());
        left &= ~same;
    }
    return before;
}

constexpr u32 NOBODY = ~0u;  // the owner of a pair that is left out

// Two sets, and which of the pairs between them are left out.
struct Between {
    const Name *a, *b;
    // Homes that are in both sets, from this index of `a` on and from the first of `b` on: one that
    // is found with itself, or a second time the other way around.
    u64 homes_a, homes_b;
    u32 skips_own, unused;  // 1: the engine of the rank that brought both finds them
    DEVICE bool has(const Indices& pair) const {
        if (skips_own && a[pair.a].origin == b[pair.b].origin) return false;
        return pair.a < homes_a || pair.b >= homes_b || pair.a - homes_a < pair.b;
    }
};
ASSERT_LAYOUT(Between, 40,
    AT(a, 0) AT(b, 8) AT(homes_a, 16) AT(homes_b, 24) AT(skips_own, 32) AT(unused, 36));

// Names pairs between two sets.
extern "C" __global__ void __launch_bounds__(THREADS) dist_name(
    const Indices* pairs, u64 n, const __grid_constant__ Between between, Found* out, u64* counts,
    Twice* twice) {
    const u64 i = u64(blockIdx.x) * THREADS + threadIdx.x;
    Found named{0, 0, NOBODY};
    if (i < n) {
        const Indices pair = pairs[i];
        if (between.has(pair)) named = found(between.a[pair.a], between.b[pair.b], twice);
        out[i] = named;
    }
    count_owner(counts, named.owner, named.owner != NOBODY);
}

// Counts the pairs of each block in which both boxes are of this rank, which has brought the first
// `boxes`.
extern "C" __global__ void __launch_bounds__(THREADS) dist_kept(
    const Indices* pairs, u64 n, u64 boxes, u32* counts) {
    __shared__ u32 sums[THREADS / WARP];
    u32 kept = 0, total;
    for (u32 round = 0; round < ROUNDS; round++) {
        const u64 i = u64(blockIdx.x) * ITEMS + round * THREADS + threadIdx.x;
        kept += i < n && pairs[i].b < boxes;
    }
    block_exclusive_sum<THREADS / WARP>(kept, sums, total);
    if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

// Divides the pairs among the homes: those of two boxes of this rank stay in order, the others are
// named. `before` are the kept ones before each block.
extern "C" __global__ void __launch_bounds__(THREADS) dist_keep(
    const Indices* pairs, u64 n, const __grid_constant__ Homes homes, const u64* before,
    Indices* kept, Found* out, u64* counts, Twice* twice) {
    __shared__ u32 sums[THREADS / WARP];
    u64 at = before[blockIdx.x];
    for (u32 round = 0; round < ROUNDS; round++) {
        const u64 i = u64(blockIdx.x) * ITEMS + round * THREADS + threadIdx.x;
        const Indices pair = i < n ? pairs[i] : Indices{};
        const bool keeps = i < n && pair.b < homes.own, leaves = i < n && !keeps;
        u32 total;
        const u64 slot = at + block_exclusive_sum<THREADS / WARP>(u32(keeps), sums, total);
        Found named{};
        if (keeps) kept[slot] = pair;
        if (leaves) {
            named = found(name_of(homes, pair.a), name_of(homes, pair.b), twice);
            out[i - slot] = named;
        }
        count_owner(counts, named.owner, leaves);
        at += total;
        __syncthreads();
    }
}

// Groups pairs by owner. `next` begins with where the group of each owner begins.
extern "C" __global__ void __launch_bounds__(THREADS) dist_group(
    const Found* pairs, u64 n, u64* next, Found* out) {
    const u64 i = u64(blockIdx.x) * THREADS + threadIdx.x;
    const Found pair = i < n ? pairs[i] : Found{0, 0, NOBODY};
    const u64 at = count_owner(next, pair.owner, pair.owner != NOBODY);
    if (pair.owner != NOBODY) out[at] = pair;
}

// Takes the pairs that came apart, for the sorts.
extern "C" __global__ void __launch_bounds__(THREADS) dist_split(
    const Found* pairs, u64 n, u32* a, u64* b) {
    const u64 i = u64(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= n) return;
    a[i] = pairs[i].a;
    b[i] = pairs[i].b;
}

// Joins them again once they are sorted, with the ids of the boxes a.
extern "C" __global__ void __launch_bounds__(THREADS) dist_join(
    const u32* a, const u64* b, u64 n, const __grid_constant__ Ids ids, Pair* pairs) {
    const u64 i = u64(blockIdx.x) * THREADS + threadIdx.x;
    if (i < n) pairs[i] = Pair{ids[a[i]], b[i]};
}

DEVICE bool operator==(const Pair& one, const Pair& other) {
    return one.a == other.a && one.b == other.b;
}

// Two sorted lists of pairs that this rank owns: `own` by the indices of its boxes, `other` by ids.
// A pair is found once, so equal pairs are of two boxes b with the same id; `twice` is null where
// there are none.
struct Merge {
    const Indices* own;
    u64 own_count;
    const Pair* other;
    u64 count;
    Ids ids;
    Pair* out;
    Twice* twice;

    DEVICE Pair own_pair(u64 i) const { return Pair{ids[own[i].a], ids[own[i].b]}; }
    DEVICE bool is_before(u64 i, u64 k) const {
        const Pair one = own_pair(i), two = other[k];
        return one.a < two.a || (one.a == two.a && one.b < two.b);
    }
    // Whether pair k of the second list is also the one before it.
    DEVICE bool has_before(u64 k) const { return k > 0 && other[k - 1] == other[k]; }
    // Whether pair k of the second list is also pair i of the first.
    DEVICE bool has_own(u64 i, u64 k) const { return i < own_count && own_pair(i) == other[k]; }
};
ASSERT_LAYOUT(Merge, 64,
    AT(own, 0) AT(own_count, 8) AT(other, 16) AT(count, 24) AT(ids, 32) AT(out, 48) AT(twice, 56));

// Merges the two lists: each pair goes to its index plus the number of those before it in the other
// list. The first blocks take 1,024 pairs of `own` each, the others 256 of the second list, which
// has few. Two warps find the part of the second list that a block of the first kind needs.
extern "C" __global__ void __launch_bounds__(THREADS) dist_merge(
    const __grid_constant__ Merge m, u32 own_blocks) {
    __shared__ u64 part[2];
    if (blockIdx.x >= own_blocks) {
        const u64 k = u64(blockIdx.x - own_blocks) * THREADS + threadIdx.x;
        if (k >= m.count) return;
        const u64 at =
            partition_point(u64(0), m.own_count, [&](u64 i) { return m.is_before(i, k); });
        const Pair pair = m.other[k];
        m.out[k + at] = pair;
        if (m.twice && (m.has_before(k) || m.has_own(at, k))) m.twice->add(pair.b);
        return;
    }
    const u64 from = u64(blockIdx.x) * ITEMS, to = min(from + ITEMS, m.own_count);
    const u32 warp = threadIdx.x / WARP;
    if (warp < 2) {
        const u64 i = warp == 0 ? from : to - 1;
        const u64 at =
            warp_partition_point(u64(0), m.count, [&](u64 k) { return !m.is_before(i, k); });
        if (lane_index() == 0) part[warp] = at;
    }
    __syncthreads();
    for (u64 i = from + threadIdx.x; i < to; i += THREADS) {
        const u64 at = partition_point(part[0], part[1], [&](u64 k) { return !m.is_before(i, k); });
        m.out[i + at] = m.own_pair(i);
    }
}

}  // namespace radsweep::dist
