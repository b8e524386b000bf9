// Boxes against the resting set (resting.cuh), which has a grid of its own that lasts from frame to
// frame.
//
// A box here may be of any size, beside cells there of any level. On each level that has boxes it
// looks through all cells that may hold a box that overlaps it: on each axis from one before the
// first cell it touches to the last. Rows are looked up and tested as in grid_sweep.cuh. A box with
// so many rows that one warp would take long goes on a list. All records are tested against the
// boxes of that list, a thread a record, so that the work is even.
//
// Bytes a box: 24 + 4 read, two bucket entries of 4 for each row, 32 for each test. The list: 32 a
// record, if it has any box.
#pragma once
#include "grid_sweep.cuh"

namespace radsweep::sap {

struct RestingInput {
    GridInput grid;  // of the resting set
    const Box* boxes;
    const u32* ids;  // their indices in the frame
    u32 n, pad;
    u32* large;  // the list; its capacity is all boxes
};
ASSERT_LAYOUT(RestingInput, 216,
    AT(grid, 0) AT(boxes, 184) AT(ids, 192) AT(n, 200) AT(pad, 204) AT(large, 208));

// A box with more rows than this is large: a warp looks up some 10 a microsecond.
DEVICE u64 max_rows(u32 placed) { return min(placed / 64 + 64, (1u << 22) - 1); }

template <u32 BOXES, class Output>
struct RestingWarp : GridWarp<BOXES, Output, true> {
    using Base = GridWarp<BOXES, Output, true>;
    using Base::in, Base::shared, Base::emitter, Base::waiting, Base::tests;
    const RestingInput& resting;

    DEVICE RestingWarp(const RestingInput& resting, const Output& output, GridShared<BOXES>& shared)
        : Base(resting.grid, output, shared), resting(resting) {}

    // Rows of a level: from one before the first cell to the last, on y and on z.
    struct Rows {
        int y, z;
        u32 by_y;
        u64 count;
    };

    DEVICE Rows rows(const Cells& c, u32 level) const {
        Rows r;
        r.y = at_level(in.cut, 1, c.low[1], level) - 1;
        r.z = at_level(in.cut, 2, c.low[2], level) - 1;
        r.by_y = u32(at_level(in.cut, 1, c.high[1], level) - r.y) + 1;
        r.count = u64(r.by_y) * (u32(at_level(in.cut, 2, c.high[2], level) - r.z) + 1);
        return r;
    }

    // This lane's box.
    struct Own {
        u32 number, world;
        Cells cells;
    };

    // Looks up the rows of this lane's box from `first` on, of `steps` in all, and tests what is
    // there.
    DEVICE void look(const Own& own, u32 level, const Rows& r, u32 steps, u32 first) {
        const Cells& c = own.cells;
        const bool is_main = level == in.cut.main;
        const int from_x =
            max(at_level(in.cut, 0, c.low[0], level) - 1, is_main ? in.cut.low[0] : -(1 << 30) - 1);
        const u32 cells = u32(at_level(in.cut, 0, c.high[0], level) - from_x) + 1,
                  hashed = in.cut.mask + 1;
        // Hashed rows may wrap around within a run, which leaves a second piece. A row of more
        // cells than buckets takes all buckets.
        bool more = false;
        for (u32 piece = 0; piece < 2; piece++) {
            u32 count = 0;
            for (u32 k = 0; k < LOOKS<BOXES>; k++) {
                const u32 step = first + k * (WARP / BOXES) + lane_index() / BOXES;
                const int y = r.y + int(step % r.by_y), z = r.z + int(step / r.by_y);
                u32 from = 0, len = 0;
                if (step < steps && is_row(in.cut, level, y, z)) {
                    u32 bucket = bucket_of(in.cut, level, from_x, y, z, own.world), here = cells;
                    if (!is_main) {
                        if (cells >= hashed) bucket = in.cut.hashed;
                        const u32 wanted = min(cells, hashed);
                        here = min(wanted, in.cut.hashed + hashed - bucket);
                        more = more || here < wanted;
                        if (piece == 1) {
                            bucket = in.cut.hashed;
                            here = wanted - here;
                        }
                    }
                    if (piece == 0 || !is_main) {
                        from = in.starts[bucket];
                        len = here > 0 ? in.starts[bucket + here] - from : 0;
                    }
                }
                count = this->list(count, from, len, own.number | level << 5 | step << 10);
            }
            __syncwarp();
            if (count > 0) this->test_runs(count);
            if (!__any_sync(ALL_LANES, more)) break;
        }
    }

    DEVICE void run() {
        const u32 lane = lane_index(), number = lane % BOXES, placed = u32(in.table->placed);
        const u32 warp = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
        const u32 at = warp * BOXES + number;
        const Box box = at < resting.n ? load_box(resting.boxes + at) : empty_box();
        bool live = !is_empty(box);
        const u32 id = live ? resting.ids[at] : 0, world = live && in.worlds ? in.worlds[id] : 0;
        if (lane < BOXES) {
            const Record record = record_of(box, id, 0);
            shared.low[lane] = record.low;
            shared.high[lane] = record.high;
        }
        const Own own{number, world, cells(in.cut, live ? box : Box{})};
        u64 all = 0;
        for (u32 levels = in.table->levels; levels != 0; levels &= levels - 1)
            all += rows(own.cells, __ffs(int(levels)) - 1).count;
        if (live && all > max_rows(placed)) {
            if (lane < BOXES) resting.large[atomicAdd(&in.state->large, 1ull)] = at;
            live = false;
        }
        __syncwarp();
        for (u32 levels = in.table->levels; levels != 0; levels &= levels - 1) {
            const u32 level = __ffs(int(levels)) - 1;
            const Rows r = rows(own.cells, level);
            const u32 steps = live ? u32(r.count) : 0;
            const u32 most = warp_max(steps);
#pragma unroll 1
            for (u32 first = 0; first < most; first += LOOKS<BOXES> * (WARP / BOXES))
                look(own, level, r, steps, first);
        }
        while (waiting > 0) this->pop();
        emitter.flush();
        if (lane == 0 && tests > 0) atomicAdd(this->counter(), tests);
    }
};

template <u32 BOXES>
DEVICE void grid_resting(const RestingInput& in, const Keys& keys) {
    __shared__ GridShared<BOXES> shared[FEW_THREADS / WARP];
    RestingWarp<BOXES, Keys>(in, keys, shared[threadIdx.x / WARP]).run();
}

extern "C" __global__ void __launch_bounds__(FEW_THREADS, 12) sap_grid_resting_8(
    const __grid_constant__ RestingInput in, const __grid_constant__ Keys keys) {
    wait_for_stream();
    grid_resting<8>(in, keys);
}

extern "C" __global__ void __launch_bounds__(FEW_THREADS, 12) sap_grid_resting_2(
    const __grid_constant__ RestingInput in, const __grid_constant__ Keys keys) {
    wait_for_stream();
    grid_resting<2>(in, keys);
}

// Tests the large boxes against every record.
extern "C" __global__ void __launch_bounds__(GRID_THREADS) sap_grid_resting_large(
    const __grid_constant__ RestingInput in, const __grid_constant__ Keys keys) {
    wait_for_stream();
    __shared__ WarpOut out[GRID_THREADS / WARP];
    const u32 large = u32(in.grid.state->large), placed = u32(in.grid.table->placed);
    const u32 index = blockIdx.x * blockDim.x + threadIdx.x, warp_start = index - lane_index();
    if (large == 0 || warp_start >= placed) return;
    const GridInput& grid = in.grid;
    if (grid.limit < u64(large) * placed / SWEPT_A_TEST) {
        if (index == 0) grid.state->stopped = 1;
        return;
    }
    Emitter<Keys> emitter(keys, &grid.state->pairs, out[threadIdx.x / WARP]);
    const bool present = index < placed;
    const Record record = present ? grid.records[index] : Record{};
    const u32 j = __float_as_uint(record.high.z);
    for (u32 k = 0; k < large; k++) {
        const u32 at = in.large[k], i = in.ids[at];
        const Record own = record_of(load_box(in.boxes + at), i, 0);
        u32 a = 0, b = 0;
        bool hit = present && overlap(own.low, own.high, record.low, record.high);
        if (hit && grid.worlds) hit = grid.worlds[i] == grid.worlds[j];
        if (hit && grid.accept.open)
            hit = overlap_openly(own.low, own.high, record.low, record.high);
        hit = hit && accept(grid.accept, i, j, a, b);
        emitter.take(hit, a, b);
    }
    emitter.flush();
    if (lane_index() == 0)
        atomicAdd(&grid.state->resting_tests, u64(large) * min(placed - warp_start, WARP));
}

}  // namespace radsweep::sap
