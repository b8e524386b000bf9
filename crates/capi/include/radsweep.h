/*
 * radsweep: exact broad-phase collision detection by sort and sweep. Boxes in, the pairs that overlap out.
 * Licence: MIT or Apache-2.0. Made by cbindgen from crates/capi/src; do not edit.
 *
 *     RadsweepBroadPhase *broad_phase = NULL;
 *     RadsweepAabb boxes[2] = {{{0, 0, 0}, {1, 1, 1}}, {{1, 0, 0}, {2, 1, 1}}};
 *     const RadsweepPair *pairs = NULL;
 *     size_t count = 0;
 *     if (radsweep_create(NULL, &broad_phase) != RADSWEEP_STATUS_OK ||
 *         radsweep_update(broad_phase, boxes, 2) != RADSWEEP_STATUS_OK ||
 *         radsweep_pairs(broad_phase, RADSWEEP_PAIRS_ALL, &pairs, &count) != RADSWEEP_STATUS_OK)
 *         fprintf(stderr, "%s\n", radsweep_last_error());
 *     radsweep_destroy(broad_phase);
 *
 * Rules for every call:
 * - It returns a RadsweepStatus. What is not RADSWEEP_STATUS_OK left the last result as it was, and radsweep_last_error() says why.
 * - A handle that is null, misaligned, destroyed or of something else is RADSWEEP_STATUS_HANDLE, never followed.
 * - Other pointers must be what they are said to be; null (where not said to be allowed) and misaligned ones are errors.
 * - Handles may be used from any thread, by one at a time: a second one gets RADSWEEP_STATUS_BUSY.
 * - Lists that are lent out (const pointers) stay until the next call with the same handle.
 */

#ifndef RADSWEEP_H
#define RADSWEEP_H

#include <stddef.h>
#include <stdint.h>

/**
 * Counts up with every change that a program built against an older header could notice.
 */
#define RADSWEEP_ABI_VERSION 1

/**
 * CUDA where a device answers, else the CPU; the environment variable RADSWEEP_BACKEND decides otherwise.
 */
#define RADSWEEP_BACKEND_AUTO 0

/**
 * All cores.
 */
#define RADSWEEP_BACKEND_CPU 1

/**
 * The first CUDA device; radsweep_create fails where there is none.
 */
#define RADSWEEP_BACKEND_CUDA 2

/**
 * Chosen from the boxes of each frame. All strategies give the same pairs.
 */
#define RADSWEEP_STRATEGY_AUTO 0

/**
 * Both ends of every box sorted on one axis and scanned.
 */
#define RADSWEEP_STRATEGY_ENDPOINTS 1

/**
 * Least ends sorted on the best axis, each box sweeps forward.
 */
#define RADSWEEP_STRATEGY_SWEEP 2

/**
 * The space cut into columns or cells first.
 */
#define RADSWEEP_STRATEGY_SUBDIVIDED 3

/**
 * Boxes that touch overlap.
 */
#define RADSWEEP_RULE_CLOSED 0

/**
 * Boxes that only touch do not overlap.
 */
#define RADSWEEP_RULE_OPEN 1

/**
 * An update with an invalid box fails and names the first.
 */
#define RADSWEEP_INVALID_ERROR 0

/**
 * Invalid boxes overlap nothing; the report counts them and names the first.
 */
#define RADSWEEP_INVALID_SKIP 1

/**
 * All pairs of the last update.
 */
#define RADSWEEP_PAIRS_ALL 0

/**
 * The pairs that the update before did not have.
 */
#define RADSWEEP_PAIRS_STARTED 1

/**
 * The pairs that the update before had and the last has not.
 */
#define RADSWEEP_PAIRS_ENDED 2

/**
 * The flag of a box that never moves: two static boxes do not pair.
 */
#define RADSWEEP_FILTER_STATIC 1

/**
 * The flag of a box at rest: two boxes asleep do not pair.
 */
#define RADSWEEP_FILTER_ASLEEP 2

/**
 * What every call returns.
 */
enum RadsweepStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * It did what it was asked.
   */
  RADSWEEP_STATUS_OK = 0,
  /**
   * The handle is null, destroyed, or was never one.
   */
  RADSWEEP_STATUS_HANDLE = 1,
  /**
   * Another thread, or a callback of this one, is using the handle.
   */
  RADSWEEP_STATUS_BUSY = 2,
  /**
   * A pointer is null where it may not be.
   */
  RADSWEEP_STATUS_NULL = 3,
  /**
   * A pointer is not aligned for what it should point at.
   */
  RADSWEEP_STATUS_ALIGNMENT = 4,
  /**
   * A number or a combination is outside of what is allowed.
   */
  RADSWEEP_STATUS_ARGUMENT = 5,
  /**
   * A structure's size is below that of the first version, or members that this version does not know are set.
   */
  RADSWEEP_STATUS_VERSION = 6,
  /**
   * A box is NaN or inverted; the detail has the index of the first.
   */
  RADSWEEP_STATUS_INVALID_AABB = 7,
  /**
   * The pairs do not fit in the memory allowed; the detail has their exact count, radsweep_for_each_pair_chunk delivers them all.
   */
  RADSWEEP_STATUS_TOO_MANY_PAIRS = 8,
  /**
   * The room given is too small; the count that the call returns says what is needed.
   */
  RADSWEEP_STATUS_TOO_SMALL = 9,
  /**
   * CUDA was asked for and cannot be had.
   */
  RADSWEEP_STATUS_NO_CUDA = 10,
  /**
   * Memory ran out. On the CPU most large allocations end the process instead, with the message of Rust's allocator.
   */
  RADSWEEP_STATUS_OUT_OF_MEMORY = 11,
  /**
   * The GPU, or a call to it, failed.
   */
  RADSWEEP_STATUS_GPU = 12,
  /**
   * A defect of the library: please report the message. The handle can only be destroyed from then on.
   */
  RADSWEEP_STATUS_PANIC = 13,
  /**
   * Any other failure; the message says which.
   */
  RADSWEEP_STATUS_OTHER = 14,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum RadsweepStatus RadsweepStatus;
#else
typedef int32_t RadsweepStatus;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A broad phase: what finds the overlapping pairs of a scene, frame after frame. Made by radsweep_create.
 */
typedef struct RadsweepBroadPhase RadsweepBroadPhase;

/**
 * How a broad phase works. Fill it with radsweep_config_default, then change what should differ.
 */
typedef struct RadsweepConfig {
  /**
   * sizeof(RadsweepConfig).
   */
  uint64_t size;
  /**
   * RADSWEEP_BACKEND_*.
   */
  uint32_t backend;
  /**
   * RADSWEEP_STRATEGY_*.
   */
  uint32_t strategy;
  /**
   * RADSWEEP_RULE_*.
   */
  uint32_t rule;
  /**
   * RADSWEEP_INVALID_*.
   */
  uint32_t on_invalid;
  /**
   * 1: pairs that start and end are found; 0: they are not, which is faster.
   */
  uint32_t events;
  /**
   * How far boxes are loosened, in the unit of the coordinates; 0 is off. A box is kept loosened while the one given stays inside, and
   * pairs are those of the loosened boxes.
   */
  float margin;
  /**
   * The most bytes that the list of pairs may take, at 8 a pair; 0: half of the memory available at the time.
   */
  uint64_t pair_memory;
  /**
   * Pairs to make room for at first; more are made as needed.
   */
  uint64_t initial_pair_capacity;
  /**
   * Static and sleeping boxes that stayed as they were for some frames are held apart, neither sorted nor tested against each other,
   * where there are this many or more, and they are a good part of all; 0: as many as are worth it, by measurement; UINT64_MAX: never.
   * The pairs are the same.
   */
  uint64_t hold_from;
} RadsweepConfig;

/**
 * An axis-aligned box. Borders belong to it; sides may be infinite. A box is invalid when a number is NaN or min > max on an axis,
 * but min = +INFINITY, max = -INFINITY on all three is the empty box, which overlaps nothing.
 */
typedef struct RadsweepAabb {
  /**
   * The least corner: x, y, z.
   */
  float min[3];
  /**
   * The greatest corner.
   */
  float max[3];
} RadsweepAabb;

/**
 * An axis-aligned box of doubles.
 */
typedef struct RadsweepAabb64 {
  /**
   * The least corner: x, y, z.
   */
  double min[3];
  /**
   * The greatest corner.
   */
  double max[3];
} RadsweepAabb64;

/**
 * What a box may pair with: each of two must be in a layer of the other's mask, and their groups differ or are 0.
 * {0xffffffff, 0xffffffff, 0, 0} pairs with everything.
 */
typedef struct RadsweepFilter {
  /**
   * The layers that the box is in.
   */
  uint32_t layers;
  /**
   * The layers that it pairs with.
   */
  uint32_t mask;
  /**
   * Boxes of one group do not pair; 0 is no group.
   */
  uint32_t group;
  /**
   * RADSWEEP_FILTER_STATIC, RADSWEEP_FILTER_ASLEEP.
   */
  uint32_t flags;
} RadsweepFilter;

/**
 * Two boxes that overlap, by their index. Within one set a < b; between two sets a is of the first and b of the second.
 */
typedef struct RadsweepPair {
  /**
   * The smaller index.
   */
  uint32_t a;
  /**
   * The larger index.
   */
  uint32_t b;
} RadsweepPair;

/**
 * Boxes, and what may come with them. Fill it with radsweep_frame_default, then set `boxes` or `boxes64`, `count`, and what else there is.
 * Everything is read during the call only.
 */
typedef struct RadsweepFrame {
  /**
   * sizeof(RadsweepFrame).
   */
  uint64_t size;
  /**
   * How many boxes.
   */
  size_t count;
  /**
   * The boxes, or null with boxes64.
   */
  const struct RadsweepAabb *boxes;
  /**
   * Where each box ends in this step, or null: then a box takes the room of its start and its end together.
   */
  const struct RadsweepAabb *ends;
  /**
   * Boxes of doubles in the place of `boxes`, tested exactly, or null.
   */
  const struct RadsweepAabb64 *boxes64;
  /**
   * A filter for each box, or null.
   */
  const struct RadsweepFilter *filters;
  /**
   * A world for each box, or null: boxes pair within one world only.
   */
  const uint32_t *worlds;
  /**
   * Pairs never to report, sorted by a, then b, with a < b; or null.
   */
  const struct RadsweepPair *excluded;
  /**
   * How many pairs are excluded.
   */
  size_t excluded_count;
  /**
   * The boxes that may differ from those of the last update that succeeded, by index, in any order; null: nothing is told. All others
   * are taken to be as they were, with their filters and worlds.
   */
  const uint32_t *changed;
  /**
   * How many boxes are told to have changed.
   */
  size_t changed_count;
} RadsweepFrame;

/**
 * Numbers that belong to a failure.
 */
typedef struct RadsweepErrorDetail {
  /**
   * The status of the last call of this thread that failed; RADSWEEP_STATUS_OK if none did.
   */
  RadsweepStatus status;
  /**
   * RADSWEEP_STATUS_INVALID_AABB: the index of the first invalid box; else 0.
   */
  uint64_t index;
  /**
   * RADSWEEP_STATUS_TOO_MANY_PAIRS: how many there are; RADSWEEP_STATUS_TOO_SMALL: how many elements are needed; else 0.
   */
  uint64_t count;
} RadsweepErrorDetail;

/**
 * What the last update did.
 */
typedef struct RadsweepReport {
  /**
   * The size that was asked for.
   */
  uint64_t size;
  /**
   * Boxes in the frame.
   */
  uint64_t boxes;
  /**
   * Pairs that overlap.
   */
  uint64_t pairs;
  /**
   * Pairs that the update before did not have.
   */
  uint64_t started;
  /**
   * Pairs of the update before that are gone.
   */
  uint64_t ended;
  /**
   * Invalid boxes that were skipped.
   */
  uint64_t invalid;
  /**
   * The index of the first of them.
   */
  uint64_t first_invalid;
  /**
   * Interval tests: far more than pairs tell of a scene that the strategy does not suit.
   */
  uint64_t tests;
  /**
   * Milliseconds that the update took.
   */
  double milliseconds;
  /**
   * RADSWEEP_BACKEND_CPU or RADSWEEP_BACKEND_CUDA.
   */
  uint32_t backend;
  /**
   * RADSWEEP_STRATEGY_*: the one that ran.
   */
  uint32_t strategy;
  /**
   * Boxes that were held apart, being at rest.
   */
  uint64_t resting;
} RadsweepReport;

/**
 * A box that a ray meets.
 */
typedef struct RadsweepRayHit {
  /**
   * The index of the box.
   */
  uint32_t index;
  /**
   * Where the ray enters it, in lengths of the direction; 0 when it starts inside.
   */
  float t;
} RadsweepRayHit;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The ABI of the library that runs, to compare with RADSWEEP_ABI_VERSION of the header.
 */
uint32_t radsweep_abi_version(void);

/**
 * The version of the library that runs, as "0.1.0". Never null; stays for ever.
 */
const char *radsweep_version(void);

/**
 * Makes a broad phase without boxes. A null `config` is the default. On failure *out is null.
 */
RadsweepStatus radsweep_create(const struct RadsweepConfig *config, struct RadsweepBroadPhase **out);

/**
 * Ends a broad phase; the handle is none from then on. Lists that it lent out are gone.
 */
RadsweepStatus radsweep_destroy(struct RadsweepBroadPhase *broad_phase);

/**
 * Takes the `count` boxes of a frame and finds all their pairs. `boxes` may be null if there are none.
 */
RadsweepStatus radsweep_update(struct RadsweepBroadPhase *broad_phase, const struct RadsweepAabb *boxes, size_t count);

/**
 * As radsweep_update, for boxes of any form, with filters, worlds and excluded pairs.
 */
RadsweepStatus radsweep_update_frame(struct RadsweepBroadPhase *broad_phase, const struct RadsweepFrame *frame);

/**
 * As radsweep_update, for boxes in the memory of the first CUDA device, as its driver's or its runtime's API gives it (the primary
 * context). What writes them must be done: synchronise its stream first. RADSWEEP_STATUS_NO_CUDA where the broad phase works on the CPU.
 */
RadsweepStatus radsweep_update_device(struct RadsweepBroadPhase *broad_phase,
                                      uint64_t boxes,
                                      size_t count);

/**
 * Waits until all work on the device is done, so that lists from radsweep_device_pairs can be read on any stream. Nothing to wait for
 * on the CPU.
 */
RadsweepStatus radsweep_synchronize(struct RadsweepBroadPhase *broad_phase);

/**
 * Forgets the last update: no boxes, no pairs, no margins; the next update starts every pair it finds.
 */
RadsweepStatus radsweep_clear(struct RadsweepBroadPhase *broad_phase);

/**
 * Lends out the overlapping pairs between two sets, sorted: a is an index in the first, b in the second. Margins do not apply; excluded
 * pairs are those of the first frame. The result of the last update stays.
 */
RadsweepStatus radsweep_overlaps_between(struct RadsweepBroadPhase *broad_phase,
                                         const struct RadsweepFrame *first,
                                         const struct RadsweepFrame *second,
                                         const struct RadsweepPair **pairs,
                                         size_t *count);

/**
 * Delivers all pairs of a frame, sorted over all calls of `each`, at most `chunk` at once (0 counts as 1), in memory that does not grow with
 * their number. `total`, which may be null, gets their number. Margins do not apply; the result of the last update stays. `each` gets
 * `user`; it must return, and may use other handles but not this one.
 */
RadsweepStatus radsweep_for_each_pair_chunk(struct RadsweepBroadPhase *broad_phase,
                                            const struct RadsweepFrame *frame,
                                            size_t chunk,
                                            void (*each)(const struct RadsweepPair *pairs, size_t count, void *user),
                                            void *user,
                                            uint64_t *total);

/**
 * Fills a configuration with the default. `size` is sizeof(RadsweepConfig).
 */
RadsweepStatus radsweep_config_default(struct RadsweepConfig *config, size_t size);

/**
 * What went wrong in the last call of this thread that failed, in one line; "" if none did. Never null; stays until the next call
 * of this thread fails.
 */
const char *radsweep_last_error(void);

/**
 * The numbers of the last call of this thread that failed. Does not change what radsweep_last_error gives unless it fails itself.
 */
RadsweepStatus radsweep_last_error_detail(struct RadsweepErrorDetail *detail);

/**
 * The name of a status, as "invalid aabb"; "unknown" for a number that is none. Never null; stays for ever.
 */
const char *radsweep_status_name(int32_t status);

/**
 * Fills a frame with nothing. `size` is sizeof(RadsweepFrame).
 */
RadsweepStatus radsweep_frame_default(struct RadsweepFrame *frame, size_t size);

/**
 * Lends out the pairs of the last update, sorted by a, then b. `which` is RADSWEEP_PAIRS_*.
 */
RadsweepStatus radsweep_pairs(const struct RadsweepBroadPhase *broad_phase,
                              uint32_t which,
                              const struct RadsweepPair **out,
                              size_t *count);

/**
 * Copies the pairs of the last update to `out`, which has room for `room` of them. `count` gets how many there are; with less room than
 * that the status is RADSWEEP_STATUS_TOO_SMALL and nothing is copied. `out` may be null with no room.
 */
RadsweepStatus radsweep_copy_pairs(const struct RadsweepBroadPhase *broad_phase,
                                   uint32_t which,
                                   struct RadsweepPair *out,
                                   size_t room,
                                   size_t *count);

/**
 * The pairs of the last update in the memory of the CUDA device: an address, and how many. Waits until they are there. They stay until
 * the next call that updates or clears. RADSWEEP_STATUS_NO_CUDA where the broad phase works on the CPU.
 */
RadsweepStatus radsweep_device_pairs(const struct RadsweepBroadPhase *broad_phase,
                                     uint64_t *out,
                                     size_t *count);

/**
 * What the last update did. `size` is sizeof(RadsweepReport).
 */
RadsweepStatus radsweep_report(const struct RadsweepBroadPhase *broad_phase,
                               struct RadsweepReport *report,
                               size_t size);

/**
 * Lends out the indices of the boxes of the last update that overlap `query`, in order. The first query after an update builds a tree,
 * which costs about as much as the update; each then costs microseconds.
 */
RadsweepStatus radsweep_query_box(struct RadsweepBroadPhase *broad_phase,
                                  const struct RadsweepAabb *query_box,
                                  const uint32_t **out,
                                  size_t *count);

/**
 * As radsweep_query_box, for the boxes that hold a point (three numbers).
 */
RadsweepStatus radsweep_query_point(struct RadsweepBroadPhase *broad_phase,
                                    const float *point,
                                    const uint32_t **out,
                                    size_t *count);

/**
 * As radsweep_query_box, for the boxes within `radius` of `center` (three numbers).
 */
RadsweepStatus radsweep_query_sphere(struct RadsweepBroadPhase *broad_phase,
                                     const float *center,
                                     float radius,
                                     const uint32_t **out,
                                     size_t *count);

/**
 * Lends out the boxes of the last update that the ray origin + t * direction, 0 <= t <= max_t, meets, the nearest first. `direction`
 * need not have length 1; t counts in its lengths.
 */
RadsweepStatus radsweep_query_ray(struct RadsweepBroadPhase *broad_phase,
                                  const float *origin,
                                  const float *direction,
                                  float max_t,
                                  const struct RadsweepRayHit **out,
                                  size_t *count);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RADSWEEP_H */
