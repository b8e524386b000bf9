// The pairs of a grid (grid.cuh): every box against those in the cells that may hold a box that
// overlaps it and that it answers for.
//
// A box i of level l answers on its own level for the pairs with boxes later in its cell and in the
// cells that come after it by (z, y, x). Of those it looks only at the ones that it touches or
// whose boxes may touch it:
//   row (y, z):              its cell from its own slot on, and the next if it touches that
//   rows (y+1, z), (*, z+1): cells x-1 to the last it touches, if it touches that row on the axis
//                            that steps up
// On each higher level that has boxes it answers for all pairs: cells from one before to the last
// it touches, on each axis. Boxes of lower levels answer for theirs.
//
// Work. A warp has BOXES boxes next to each other in memory; its lanes look up the rows of a level
// at once, or where there are fewer than 32 boxes, the rows of several levels. A row of up to three
// cells is one run of records. The runs of all boxes are laid end to end and tested 32 at a time,
// whatever their lengths. A bit for each test tells whether a run begins there, so the number of
// bits up to a lane's own gives its run. Hits in f32 wait on a stack of the warp until there are
// 32; then full warps test everything else (cells, rule, filters). Where there is nothing else to
// test, warps of 4 boxes report hits at once.
//
// 32 boxes a warp cost the fewest instructions. 8 or 4 give more warps, for few boxes, and are for
// crowded ones, some of which would keep a warp busy long after all others. The host chooses by the
// tests of the last frame (crates/sap/src/cuda/find/width.rs). Resident warps that take boxes off a
// counter, as many as their last ones suggest, were tried: 10^6 boxes took 123 us instead of 111,
// and two meshes of 10^5 crowded ones twice as long (H200, 2026-11-23). That is about 2 ns for each
// atomic on the counters of the frame, which wait for each other.
//
// `uniform`, 10^6 boxes in cells of 1.0 (3.6 rows and 8.1 tests a box), on an H200 on 2026-11-27:
// 95 us, and 90 on another. Predicted were 1,100 instructions a warp of 32 boxes, 35 M in all, 38
// us at 0.92 T a second and twice that with waits. There were 57 M when it took 110 us, issued in
// half of all cycles: half of the warps that fit are resident (64 registers, 21 KB a block), and
// wait for records most of the time. A third of the samples were at the end of a block, where warps
// wait for the last one and for the atomics of all. From 110 us step by step: one sum for both
// counts of a block's end, 106 us; blocks of 128 threads instead of 256, 104.5; tests without
// branches, 97.5; without a branch around them, 95. Without gain: 48 registers, so that five warps
// of eight are resident (125 instead of 110, by what is spilled); sums of runs in 32 bits (102
// instead of 95); and steps known when it is compiled besides (110).
//
// That is 208 instructions of a thread a test, of which the test itself is some 45; the others look
// up 3.6 rows a box, and report. Cell against cell, each lane its own box with the records of its
// runs, which the warp staged in shared memory by row: a test cost 11 instructions of the warp, but
// lanes with short runs wait for the longest, 7 records where the mean is 2.3, and each row has its
// own staging and reports. 70 M instructions instead of 53, 115 us instead of 91; 20 pairs a box,
// 922 instead of 780; 5 pairs a box, 189 instead of 205 (2026-11-30).
//
// Boxes above the level with a block (grid.cuh), while they are few, are tested from their list: a
// lane compares the cells of one with those of the warp's boxes, and these are tested with it if it
// is near. Six walls around 10^6 boxes: 126 us when each box looked for them in cells, now 101.
//
// Faces of cloth-ball, 92,230 boxes in four levels and 256 tests a box, H200, 2026-11-28: 218 to
// 228 us by machine. Before, 2 boxes a warp looked up one level after another: 269 us, and 2,620
// instructions a warp, of which 1,000 made the tests. Each of three or four levels had its own
// look-up, its own sum and its own last tests, which keep half of the lanes busy. One list for the
// runs of all levels: 246 (predicted were 220). Hits reported at once: 6 to 9 less. 4 boxes a warp
// instead of 2: 228; with 8 it is 260. Rounds without a hit skip what takes hits: 8 less. For
// `uniform` a list of all levels costs 105 to 111 us instead of 90, as a level that is the same for
// all lanes needs no test by lane. Where few tests hit, reporting hits at once costs more than it
// saves: sticks with 8 boxes a warp 755 instead of 654. Registers for 14 blocks instead of 16 are
// as fast; for 19, 289.
//
// Launch: 128 threads with 32 boxes a warp, 21 KB of shared memory; 64 threads with fewer boxes, as
// the times of such warps vary much.
#pragma once
#include "accept.cuh"
#include "emit.cuh"
#include "grid.cuh"

namespace radsweep::sap {

struct GridInput {
    Cut cut;
    const Record* records;
    const u32* starts;
    const u32* worlds;   // by index in the frame
    const u32* high;     // slots of records above the level with a block; null = no list
    const State* table;  // has `placed`, `levels` and `high` of these records
    State* state;        // counters of the frame
    Accept accept;
    u64 limit;  // of tests, beside those allowed for pairs; 2^64 - 1 = none
};
ASSERT_LAYOUT(GridInput, 184,
    AT(cut, 0) AT(records, 64) AT(starts, 72) AT(worlds, 80) AT(high, 88) AT(table, 96)
    AT(state, 104) AT(accept, 112) AT(limit, 176));

constexpr u32 REPORT = 512;   // tests of a box after which its warp checks the limit
constexpr u32 WINDOW = 2048;  // tests whose runs are marked at a time

// Combinations of steps (dz, dy) to rows, two bits each for dz + 1 and dy + 1. Those of the own
// level are first.
constexpr u32 OWN_STEPS = 5, ALL_STEPS = 9;
DEVICE u32 step_code(u32 step) {
    // (0,0) (0,1) (1,-1) (1,0) (1,1) (0,-1) (-1,-1) (-1,0) (-1,1), as dz + 1 in the high half of
    // four bits
    constexpr u64 CODES = 0x2104a9865ull;  // nibbles, the first lowest
    return u32(CODES >> 4 * step) & 15;
}

// Rows that a lane looks up at once: enough to find those of a box's own level in one step, or
// those of some levels.
template <u32 BOXES>
constexpr u32 LOOKS = BOXES == WARP ? OWN_STEPS
                      : BOXES > 2   ? 2
                                    : 1;

// The shared memory of a warp.
template <u32 BOXES>
struct GridShared {
    static constexpr u32 RUNS = LOOKS<BOXES> * WARP;
    float4 low[BOXES], high[BOXES];  // its boxes
    // By run: slot of its first record (later less its first test); what it looks for.
    uint2 runs[RUNS];
    u32 lens[RUNS];             // records of each run
    u8 levels[WARP];            // those that have boxes, the lowest first (look_at_once)
    u32 begins[WINDOW / WARP];  // a bit for each test of a window that is a run's first
    uint2 stack[3 * WARP];      // hits: what was looked for, slot of the record
    WarpOut out;
};

// Whether two boxes overlap, as records store them. There is no branch in it.
DEVICE bool overlap(const float4& low, const float4& high, const float4& l, const float4& h) {
    return (low.x <= l.w) & (l.x <= low.w) & (low.y <= h.x) & (l.y <= high.x) & (low.z <= h.y) &
           (l.z <= high.y);
}

DEVICE bool overlap_openly(
    const float4& low, const float4& high, const float4& l, const float4& h) {
    return low.x < l.w && l.x < low.w && low.y < h.x && l.y < high.x && low.z < h.y && l.z < high.y;
}

// RESTING: the warp's boxes are not among the records (grid_resting.cuh), and a run's step counts
// rows.
template <u32 BOXES, class Output, bool RESTING = false>
struct GridWarp {
    using Shared = GridShared<BOXES>;
    // Whether hits are reported at once where there is nothing else to test.
    static constexpr bool DIRECT = BOXES == 4;
    const GridInput& in;
    Shared& shared;
    Emitter<Output> emitter;
    u32 waiting = 0;
    u64 tests = 0;  // not counted yet
    bool stopped = false;
    // The level where all boxes that overlap are pairs; none is 32.
    const u32 plain;

    DEVICE GridWarp(const GridInput& in, const Output& output, Shared& shared)
        : in(in), shared(shared), emitter(output, &in.state->pairs, shared.out),
          plain(in.accept.all && !in.worlds ? in.cut.main : WARP) {}

    // Packs what a run looks for: the box's index in the warp, the level, the step, whether it is
    // the box's own row.
    static DEVICE u32 wanted(u32 box, u32 level, u32 step, bool own) {
        return box | level << 5 | step << 10 | (own ? 1u : 0u) << 14;
    }

    DEVICE Box box_of(const float4& low, const float4& high) const {
        return Box{{low.x, low.y, low.z}, {low.w, high.x, high.y}};
    }

    // Pops up to 32 hits: tests whether the box found is in the cells looked for, and the pair is
    // one to report.
    DEVICE void pop() {
        const u32 take = min(waiting, WARP);
        waiting -= take;
        bool hit = lane_index() < take;
        u32 a = 0, b = 0;
        if (hit) {
            const uint2 entry = shared.stack[waiting + lane_index()];
            const u32 number = entry.x % BOXES, level = entry.x >> 5 & 31,
                      step = RESTING ? entry.x >> 10 : entry.x >> 10 & 15;
            const bool own = !RESTING && entry.x >> 14;
            const float4 low = shared.low[number], high = shared.high[number];
            const float4 l = in.records[entry.y].low, h = in.records[entry.y].high;
            const u32 i = __float_as_uint(high.z), j = __float_as_uint(h.z);
            if (level != in.cut.main) {
                const int first = (cell(in.cut, 0, low.x) >> level) - (own ? 0 : 1),
                          last = cell(in.cut, 0, low.w) >> level;
                int y = (cell(in.cut, 1, low.y) >> level) - 1,
                    z = (cell(in.cut, 2, low.z) >> level) - 1;
                const u32 rows_y = u32((cell(in.cut, 1, high.x) >> level) - y) + 1;
                y += int(RESTING ? step % rows_y : step & 3);
                z += int(RESTING ? step / rows_y : step >> 2);
                const int x = cell(in.cut, 0, l.x) >> level;
                hit = __float_as_uint(h.w) == level && first <= x && x <= last &&
                      cell(in.cut, 1, l.y) >> level == y && cell(in.cut, 2, l.z) >> level == z;
            }
            if (in.worlds) hit = hit && in.worlds[i] == in.worlds[j];
            if (in.accept.open) hit = hit && overlap_openly(low, high, l, h);
            hit = hit && accept(in.accept, i, j, a, b);
        }
        __syncwarp();
        emitter.take(hit, a, b);
    }

    // A test: what is looked for and the slot of the record, or where the boxes are a pair if they
    // overlap, their indices.
    struct Test {
        u32 what, found;
        bool plain, hit;
    };

    DEVICE Test test(u32 number, u32 run_number) const {
        const uint2 run = shared.runs[run_number];
        const u32 slot = run.x + number;
        const float4 l = in.records[slot].low, h = in.records[slot].high;
        const float4 low = shared.low[run.y % BOXES], high = shared.high[run.y % BOXES];
        const bool is_plain = DIRECT && (run.y >> 5 & 31) == plain;
        return Test{
            is_plain ? __float_as_uint(high.z) : run.y, is_plain ? __float_as_uint(h.z) : slot,
            is_plain, overlap(low, high, l, h)};
    }

    // Takes what a test found, if it is a hit. Hits that are not pairs yet wait.
    DEVICE void take(bool hit, const Test& test) {
        if constexpr (DIRECT)
            emitter.take(hit & test.plain, min(test.what, test.found), max(test.what, test.found));
        const u32 others = __ballot_sync(ALL_LANES, hit & !test.plain);
        if (hit & !test.plain)
            shared.stack[waiting + __popc(others & lanes_below())] =
                make_uint2(test.what, test.found);
        waiting += __popc(others);
    }

    // Makes `here` tests from index `base` on, two rounds at a time, so that one's records load
    // while the other's are tested. `before` runs begin before them; returns the number of runs
    // that begin before the next ones.
    DEVICE u32 test_window(u32 base, u32 here, u32 before) {
        const u32 up_to_me = lanes_below() << 1 | 1;
        for (u32 round = 0; round < here; round += 2 * WARP) {
            const u32 first = shared.begins[round / WARP], second = shared.begins[round / WARP + 1];
            const u32 middle = before + __popc(first), number = round + lane_index();
            // Lanes without a test repeat the last one, without a branch.
            const Test one = test(
                           base + min(number, here - 1), before + __popc(first & up_to_me) - 1),
                       two = test(
                           base + min(number + WARP, here - 1),
                           middle + __popc(second & up_to_me) - 1);
            before = middle + __popc(second);
            const bool hit_one = number < here & one.hit, hit_two = number + WARP < here & two.hit;
            if (DIRECT && !__any_sync(ALL_LANES, hit_one | hit_two)) continue;
            take(hit_one, one);
            take(hit_two, two);
            __syncwarp();
            while (waiting >= WARP) pop();
        }
        return before;
    }

    DEVICE u64* counter() const { return RESTING ? &in.state->resting_tests : &in.state->tests; }

    // Counts this warp's tests, with the `next` ones that it is about to make, and gives up if all
    // warps have made more than allowed.
    DEVICE void stop(u64 next) {
        if (in.limit == ~0ull) return;
        emitter.flush();
        u64 all = 0;
        if (lane_index() == 0) {
            all = atomicAdd(counter(), tests) + tests;
            const u64 pairs = *const_cast<const volatile u64*>(&in.state->pairs);
            stopped = all > in.limit && (all - in.limit) / TESTS_A_PAIR > pairs;
            if (stopped) {
                in.state->stopped = 1;
                atomicAdd(counter(), 0 - next);
            }
        }
        stopped = __shfl_sync(ALL_LANES, u32(stopped), 0);
        tests = 0;
    }

    // Tests the `count` runs listed, none of them empty. Lanes take equal shares of them to add up.
    DEVICE void test_runs(u32 count) {
        const u32 each = (count + WARP - 1) / WARP, first = lane_index() * each,
                  end = min(first + each, count);
        u64 own = 0;
        for (u32 k = first; k < end; k++) own += shared.lens[k];
        __syncwarp();  // after a stop the next runs are listed at once
        const u64 inclusive = warp_inclusive_sum(own),
                  total = __shfl_sync(ALL_LANES, inclusive, WARP - 1);
        if (stopped) return;
        tests += total;
        if (tests >= REPORT * BOXES && !stopped) stop(total);
        if (stopped) return;
        u32 before = 0;
        for (u64 window = 0; window < total; window += WINDOW) {
            const u32 here = u32(min(total - window, u64(WINDOW)));
            for (u32 k = lane_index(); k <= (here - 1) / WARP + 1 && k < WINDOW / WARP; k += WARP)
                shared.begins[k] = 0;
            __syncwarp();
            u64 begin = inclusive - own;
            for (u32 k = first; k < end; k++) {
                if (begin >= window && begin < window + WINDOW) {
                    const u32 at = u32(begin - window);
                    atomicOr(&shared.begins[at / WARP], 1u << at % WARP);
                }
                // Slots are counted modulo 2^32, as indices of tests are.
                if (window == 0) shared.runs[k].x -= u32(begin);
                begin += shared.lens[k];
            }
            __syncwarp();
            before = test_window(u32(window), here, before);
            __syncwarp();
        }
    }

    // Lists this lane's run behind `count` others, unless it is empty; returns how many there are.
    DEVICE u32 list(u32 count, u32 from, u32 len, u32 what) {
        const u32 listed = __ballot_sync(ALL_LANES, len > 0);
        if (len > 0) {
            const u32 to = count + __popc(listed & lanes_below());
            shared.runs[to] = make_uint2(from, what);
            shared.lens[to] = len;
        }
        return count + __popc(listed);
    }

    // A lane's box.
    struct Own {
        u32 number, level, world;
        u32 after;  // the slot behind its own
        Cells cells;
    };

    // A row to look up, unless it is none of the box's.
    struct Row {
        u32 level, step;
        bool is_first;  // the box's own row
        bool looks;
        AtLevel at_l;
    };

    // Looks up the rows of this lane's box that `row_of` gives, and tests what is there.
    template <class RowOf>
    DEVICE void look(const Own& own, RowOf row_of) {
        // Hashed rows may wrap around within a run, which leaves a second piece.
        bool more = false;
        u32 piece = 0;
        do {
            u32 count = 0;
#pragma unroll 2
            for (u32 k = 0; k < LOOKS<BOXES>; k++) {
                const Row row = row_of(k);
                const AtLevel& at_l = row.at_l;
                const u32 level = row.level, code = step_code(min(row.step, ALL_STEPS - 1));
                const int dy = int(code & 3) - 1, dz = int(code >> 2) - 1;
                u32 from = 0, len = 0;
                if (row.looks && (dy < 1 || at_l.up_y) && (dz < 1 || at_l.up_z) &&
                    is_row(in.cut, level, at_l.y + dy, at_l.z + dz)) {
                    const bool is_main = level == in.cut.main;
                    const int least = is_main ? in.cut.low[0] : at_l.x - 1;
                    const int from_x = row.is_first ? at_l.x : max(at_l.x - 1, least);
                    u32 bucket =
                            bucket_of(in.cut, level, from_x, at_l.y + dy, at_l.z + dz, own.world),
                        cells = at_l.last - from_x + 1;
                    const u32 here =
                        is_main ? cells : min(cells, in.cut.hashed + in.cut.mask + 1 - bucket);
                    if (piece == 0) {
                        more = more || here < cells;
                        cells = here;
                    } else {
                        bucket = in.cut.hashed;
                        cells -= here;
                    }
                    from = row.is_first && piece == 0 ? own.after : in.starts[bucket];
                    len = cells > 0 ? in.starts[bucket + cells] - from : 0;
                }
                count = list(count, from, len, wanted(own.number, level, code, row.is_first));
            }
            __syncwarp();
            if (count > 0) test_runs(count);
            piece++;
        } while (piece < 2 && __any_sync(ALL_LANES, more));
    }

    // Looks up the rows of one of `levels` after the other, which is the same for all lanes.
    DEVICE void look_level_by_level(const Own& own, u32 levels) {
        for (; levels != 0; levels &= levels - 1) {
            const u32 level = __ffs(int(levels)) - 1;
            const u32 steps = __any_sync(ALL_LANES, own.level < level)    ? ALL_STEPS
                              : __any_sync(ALL_LANES, own.level == level) ? OWN_STEPS
                                                                          : 0;
            const AtLevel at_l = at_level(in.cut, own.cells, level);
#pragma unroll 1
            for (u32 first = 0; first < steps; first += LOOKS<BOXES>) {
                look(own, [&](u32 k) {
                    const u32 step = first + k;
                    const bool is_own = own.level == level,
                               looks =
                                   own.level < level ? step < steps : is_own && step < OWN_STEPS;
                    return Row{level, step, is_own && step == 0, looks, at_l};
                });
            }
        }
    }

    // Looks up the rows of all `levels` at once: those of a box's own level, then those of each
    // higher one. Warps of few boxes have lanes for that.
    DEVICE void look_at_once(const Own& own, u32 levels) {
        const u32 lane = lane_index();
        if (levels >> lane & 1) shared.levels[__popc(levels & lanes_below())] = u8(lane);
        __syncwarp();
        const u32 up_to_own = own.level < WARP ? __popc(levels & ((2u << own.level) - 1)) : 0;
        const u32 rows =
            own.level < WARP ? OWN_STEPS + (__popc(levels) - up_to_own) * ALL_STEPS : 0;
        const u32 most = warp_max(rows);
        constexpr u32 LANES_A_BOX = WARP / BOXES;
#pragma unroll 1
        for (u32 first = 0; first < most; first += LOOKS<BOXES> * LANES_A_BOX) {
            look(own, [&](u32 k) {
                const u32 row = first + k * LANES_A_BOX + lane / BOXES;
                u32 level = own.level % WARP, step = row;
                if (row >= OWN_STEPS && row < rows) {
                    const u32 higher = row - OWN_STEPS;
                    level = shared.levels[up_to_own + higher / ALL_STEPS];
                    step = higher % ALL_STEPS;
                }
                return Row{level, step, row == 0, row < rows, at_level(in.cut, own.cells, level)};
            });
        }
    }

    // Tests the warp's boxes with those listed that are near some of them.
    DEVICE void test_listed(const Own& own) {
        const u32 lane = lane_index();
        const bool is_box = own.level < WARP && lane < BOXES;
        Cells all;
#pragma unroll
        for (u32 axis = 0; axis < 3; axis++) {
            all.low[axis] = warp_min(is_box ? own.cells.low[axis] : int(~0u >> 1));
            all.high[axis] = warp_max(is_box ? own.cells.high[axis] : int(1u << 31));
        }
        const u32 boxes = __popc(__ballot_sync(ALL_LANES, is_box)), listed = in.table->high;
        for (u32 first = 0; first < listed; first += WARP) {
            bool is_near = first + lane < listed;
            const u32 slot = is_near ? in.high[first + lane] : 0;
            const Cells c = cells(in.cut, box_of(in.records[slot].low, in.records[slot].high));
#pragma unroll
            for (u32 axis = 0; axis < 3; axis++) {
                is_near &= c.low[axis] <= all.high[axis] && all.low[axis] <= c.high[axis];
            }
            for (u32 near = __ballot_sync(ALL_LANES, is_near); near != 0; near &= near - 1) {
                const u32 of = __shfl_sync(ALL_LANES, slot, __ffs(int(near)) - 1);
                const float4 l = in.records[of].low, h = in.records[of].high;
                const float4 low = shared.low[own.number], high = shared.high[own.number];
                const bool hit = is_box & overlap(low, high, l, h);
                tests += boxes;
                if (!__any_sync(ALL_LANES, hit)) continue;
                // As if it were on the level with a block, where no cells are compared.
                const u32 i = __float_as_uint(high.z), j = __float_as_uint(h.z);
                const bool is_plain = DIRECT && plain < WARP;
                const u32 what = wanted(own.number, in.cut.main, 0, false);
                take(hit, Test{is_plain ? i : what, is_plain ? j : of, is_plain, hit});
                __syncwarp();
                while (waiting >= WARP) pop();
            }
        }
        static_assert(MAX_HIGH < REPORT, "these tests need no look at the limit");
    }

    DEVICE void run() {
        const u32 lane = lane_index(), number = lane % BOXES;
        const u32 warp = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
        const u32 at = warp * BOXES + number;
        Own own = {number, WARP, 0, at + 1};
        if (at < u32(in.table->placed)) {
            const float4 low = in.records[at].low, high = in.records[at].high;
            if (lane < BOXES) {
                shared.low[lane] = low;
                shared.high[lane] = high;
            }
            own.level = __float_as_uint(high.w);
            if (in.worlds) own.world = in.worlds[__float_as_uint(high.z)];
            own.cells = cells(in.cut, box_of(low, high));
        }
        __syncwarp();
        u32 levels = in.table->levels;
        const u32 up_to_main = in.cut.main < WARP ? (2u << in.cut.main) - 1 : ~0u;
        if (in.high && levels > up_to_main && in.table->high <= MAX_HIGH &&
            !__any_sync(ALL_LANES, own.level < WARP && own.level > in.cut.main)) {
            levels &= up_to_main;
            test_listed(own);
        }
        if constexpr (BOXES == WARP) {
            look_level_by_level(own, levels);
        } else {
            look_at_once(own, levels);
        }
        while (waiting > 0) pop();
        // Warps of few pairs share an atomic; those of crowded boxes do not wait for each other.
        if constexpr (BOXES == WARP) {
            emitter.flush_block(tests, counter());
        } else {
            emitter.flush();
            if (lane == 0 && tests > 0) atomicAdd(counter(), tests);
        }
    }
};

constexpr u32 SWEEP_THREADS = 128, FEW_THREADS = 64;

template <u32 BOXES, class Output>
DEVICE void grid_sweep(const GridInput& in, const Output& output) {
    __shared__ GridShared<BOXES> shared[(BOXES == WARP ? SWEEP_THREADS : FEW_THREADS) / WARP];
    GridWarp<BOXES, Output>(in, output, shared[threadIdx.x / WARP]).run();
}

extern "C" __global__ void __launch_bounds__(SWEEP_THREADS, 8) sap_grid_sweep_32(
    const __grid_constant__ GridInput in, const __grid_constant__ Keys keys) {
    wait_for_stream();
    grid_sweep<32>(in, keys);
}

extern "C" __global__ void __launch_bounds__(FEW_THREADS, 16) sap_grid_sweep_8(
    const __grid_constant__ GridInput in, const __grid_constant__ Keys keys) {
    wait_for_stream();
    grid_sweep<8>(in, keys);
}

extern "C" __global__ void __launch_bounds__(FEW_THREADS, 16) sap_grid_sweep_4(
    const __grid_constant__ GridInput in, const __grid_constant__ Keys keys) {
    wait_for_stream();
    grid_sweep<4>(in, keys);
}

// Only counts the pairs of each `a`, to cut them into chunks.
extern "C" __global__ void __launch_bounds__(FEW_THREADS, 16) sap_grid_count_pairs(
    const __grid_constant__ GridInput in, const __grid_constant__ Counts counts) {
    wait_for_stream();
    grid_sweep<4>(in, counts);
}

}  // namespace radsweep::sap
