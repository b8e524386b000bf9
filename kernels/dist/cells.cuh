// Which boxes go where: counts them by cell, and writes the records that travel.
//
// A box whose home is the cell of its own rank needs no record. All others, and every copy, have
// one for each cell that they reach, the cell of their own rank too. Records are in order of the
// rank that they go to and of the place in its cell.
//
// The two launches have the same blocks, so a block finds its own boxes again: the first leaves the
// number of its records by rank and place, sap_scan makes offsets of them, the second writes there.
// Homes, which nearly all boxes are, are counted in registers. The first also leaves a bit for each
// box, which says whether it has a record: the second reads only these boxes.
//
// A thread a box and round. Bytes a box: 24 read by the first, and with ids that are not
// consecutive 8 more, 16 if they are compared with the last ones; an eighth of one written, and
// read by the second. A box with records: 24 read, 28 written a record (44 with filters, 4 more
// with worlds, 8 more with ids).
//
// H200, 2026-12-01, 40 blocks, some 10,000 boxes of a rank of four: survey 3.8 us, write 12, homes
// 3.6, of which launching takes 2. By their bytes they take 0.1: the loads of a thread, one after
// the other, wait for memory. docs/distributed.md has whole updates; larger ranks were not timed.
#pragma once
#include "types.cuh"

namespace radsweep::dist {

// Returns the slab, or the row in a slab, of a coordinate: a cut belongs to the one above it.
DEVICE u32 slab(const i32* cuts, u32 count, i32 value) {
    return partition_point(0u, count, [&](u32 k) { return cuts[k] <= value; });
}

DEVICE i32 pick(const i32 (&of3)[3], u32 axis) {
    return axis == 0 ? of3[0] : axis == 1 ? of3[1] : of3[2];
}

// Calls `f` with the rank of every cell that the box reaches, and its place there.
template <class F>
DEVICE void for_each_cell(const Cells& cells, const Bounds& box, F f) {
    const u32 x = cells.axes[0], y = cells.axes[1];
    const u32 from = slab(cells.cuts, cells.columns - 1, pick(box.min, x)),
              to = slab(cells.cuts, cells.columns - 1, pick(box.max, x));
    for (u32 column = from; column <= to; column++) {
        const u32 first = cells.first[column], count = cells.first[column + 1] - first - 1;
        const i32* rows = cells.rows + (first - column);
        const u32 low = slab(rows, count, pick(box.min, y)),
                  high = slab(rows, count, pick(box.max, y));
        for (u32 row = low; row <= high; row++) {
            f(first + row, Place((column == from ? 0 : SECOND) + (row == low ? 0 : FIRST)));
        }
    }
}

// Returns the rank whose cell is the home of the box.
DEVICE u32 home_of(const Cells& cells, const Bounds& box) {
    const u32 x = cells.axes[0], y = cells.axes[1];
    const u32 column = slab(cells.cuts, cells.columns - 1, pick(box.min, x));
    const u32 first = cells.first[column], count = cells.first[column + 1] - first - 1;
    return first + slab(cells.rows + (first - column), count, pick(box.min, y));
}

// Whether that is the cell of this rank.
DEVICE bool is_home(const Cells& cells, const Bounds& box) {
    return home_of(cells, box) == cells.rank;
}

// Finds the home of each box, the greatest number for one that takes no part. A thread a box: 24
// bytes read, 4 written.
extern "C" __global__ void __launch_bounds__(THREADS) dist_home(
    const float* boxes, u64 n, const __grid_constant__ Cells cells, u32* homes) {
    const u64 i = u64(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= n) return;
    float box[6];
    bool valid;
    homes[i] = read_box(boxes, i, box, valid) ? home_of(cells, bounds_of(box)) : ~0u;
}

// What a rank counts of its boxes.
struct Survey {
    u64 invalid;
    u64 first_invalid;    // ~0 - index of the first one; 0 = none
    u64 homes;            // boxes whose home is the cell of this rank
    u64 first_unordered;  // ~0 - index of the first id that is not above the one before; 0 = none
    u64 has_other_ids;    // 1 if an id differs from the last one of this index
};
ASSERT_LAYOUT(Survey, 40,
    AT(invalid, 0) AT(first_invalid, 8) AT(homes, 16) AT(first_unordered, 24)
    AT(has_other_ids, 32));

DEVICE void check_id(const u64* ids, u64 i, const u64* last_ids, Survey* survey) {
    const u64 id = ids[i];
    if (i > 0 && id <= ids[i - 1]) atomicMax(&survey->first_unordered, ~0ull - i);
    if (last_ids && id != last_ids[i]) survey->has_other_ids = 1;
}

// `ranks` times PLACES counts for each block: `table` has those of all blocks side by side, and
// `records` the sums over the blocks. `travels` has a bit for each box. `last_ids`, of as many
// boxes, may be null.
extern "C" __global__ void __launch_bounds__(THREADS) dist_survey(
    const __grid_constant__ Frame frame, const __grid_constant__ Cells cells, u32 ranks,
    const u64* last_ids, Survey* survey, u64* records, u32* table, u32* travels) {
    extern __shared__ uint4 shared_memory[];
    u32* counts = reinterpret_cast<u32*>(shared_memory);
    const u32 kinds = cells.columns == 0 ? 0 : ranks * PLACES;
    for (u32 k = threadIdx.x; k < kinds; k += THREADS) counts[k] = 0;
    __syncthreads();
    u64 homes = 0, invalid = 0, first_invalid = 0;
    for (u64 first = u64(blockIdx.x) * THREADS; first < frame.n;
         first += u64(gridDim.x) * THREADS) {
        const u64 i = first + threadIdx.x;
        bool has_record = false;
        if (i < frame.n) {
            float box[6];
            bool valid;
            const bool takes_part = read_box(frame.boxes, i, box, valid);
            if (!valid) {
                invalid++;
                first_invalid = max(first_invalid, ~0ull - i);
            }
            if (frame.ids.each) check_id(frame.ids.each, i, last_ids, survey);
            if (takes_part && kinds > 0) {
                for_each_cell(cells, bounds_of(box), [&](u32 rank, Place place) {
                    if (rank == cells.rank && place == HOME) {
                        homes++;
                        return;
                    }
                    has_record = true;
                    atomicAdd(counts + rank * PLACES + place, 1u);
                });
            }
        }
        const u32 word = __ballot_sync(ALL_LANES, has_record);
        if (lane_index() == 0 && i < frame.n && kinds > 0) travels[i / WARP] = word;
    }
    homes = warp_sum(homes);
    if (lane_index() == 0 && homes) atomicAdd(&survey->homes, homes);
    if (invalid) {
        atomicAdd(&survey->invalid, invalid);
        atomicMax(&survey->first_invalid, first_invalid);
    }
    __syncthreads();
    for (u32 k = threadIdx.x; k < kinds; k += THREADS) {
        table[u64(k) * gridDim.x + blockIdx.x] = counts[k];
        if (counts[k]) atomicAdd(records + k, u64(counts[k]));
    }
}

// Writes the records: `words` words each, the box, its index, its id if `has_ids`, and its filter
// and world where the frame has some. `offsets` are the sums of the table before each of its
// entries, `travels` the bits of the boxes that have records.
extern "C" __global__ void __launch_bounds__(THREADS) dist_write(
    const __grid_constant__ Frame frame, const __grid_constant__ Cells cells, u32 ranks, u32 words,
    u32 has_ids, const u64* offsets, const u32* travels, u32* records) {
    extern __shared__ uint4 shared_memory[];
    u64* next = reinterpret_cast<u64*>(shared_memory);
    for (u32 k = threadIdx.x; k < ranks * PLACES; k += THREADS) {
        next[k] = offsets[u64(k) * gridDim.x + blockIdx.x];
    }
    __syncthreads();
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < frame.n;
         i += u64(gridDim.x) * THREADS) {
        if (!(travels[i / WARP] >> lane_index() & 1)) continue;
        float box[6];
        bool valid;
        read_box(frame.boxes, i, box, valid);
        for_each_cell(cells, bounds_of(box), [&](u32 rank, Place place) {
            if (rank == cells.rank && place == HOME) return;
            u32* record = records + atomicAdd(next + rank * PLACES + place, 1ull) * words;
#pragma unroll
            for (int word = 0; word < 6; word++) record[word] = __float_as_uint(box[word]);
            record[6] = u32(i);
            record += 7;
            if (has_ids) {
                const u64 id = frame.ids[i];
                record[0] = u32(id);
                record[1] = u32(id >> 32);
                record += 2;
            }
            if (frame.filters) {
                const uint4 filter = frame.filters[i];
                record[0] = filter.x;
                record[1] = filter.y;
                record[2] = filter.z;
                record[3] = filter.w;
                record += 4;
            }
            if (frame.worlds) record[0] = frame.worlds[i];
        });
    }
}

// Copies the boxes whose home is here; the others become empty. A thread a box.
extern "C" __global__ void __launch_bounds__(THREADS) dist_homes(
    const __grid_constant__ Frame frame, const __grid_constant__ Cells cells, float* homes) {
    const u64 i = u64(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= frame.n) return;
    float box[6];
    bool valid;
    if (read_box(frame.boxes, i, box, valid) && is_home(cells, bounds_of(box))) {
        store_box(homes, i, box);
    } else {
        store_empty(homes, i);
    }
}

// Copies the boxes at some indices. A thread a box.
extern "C" __global__ void __launch_bounds__(THREADS) dist_sample(
    const float* boxes, const u64* indices, u32 count, float* samples) {
    const u32 k = blockIdx.x * THREADS + threadIdx.x;
    if (k >= count) return;
#pragma unroll
    for (int word = 0; word < 6; word++) samples[6ull * k + word] = boxes[6 * indices[k] + word];
}

}  // namespace radsweep::dist
