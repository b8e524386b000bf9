/*
 * The closest hit of a ray, with a filter: a guard turns around in a hall of pillars and crates and
 * looks for intruders. Glass does not stop the look, and the guard's own box is left out by its
 * group.
 *
 *     cc closest_ray.c $(pkg-config --cflags --libs radsweep) -lm && ./a.out
 */
#include <math.h>
#include <radsweep.h>
#include <stdio.h>
#include <stdlib.h>

/* Layers. */
enum { PILLAR = 1, GLASS = 2, INTRUDER = 4, GUARD = 8 };
/* Boxes of one group do not pair with each other, and a query of that group does not meet them. */
enum { GUARD_GROUP = 1 };
enum { SIDE = 30, BOXES = SIDE * SIDE, LOOKS = 360 };

static RadsweepAabb boxes[BOXES];
static RadsweepFilter filters[BOXES];

/* Ends the program with the library's message on failure. */
static void must(RadsweepStatus status, const char *what) {
    if (status != RADSWEEP_STATUS_OK) {
        fprintf(stderr, "%s: %s (%s)\n", what, radsweep_last_error(), radsweep_status_name(status));
        exit(1);
    }
}

/* Returns a random number up to `limit`; the sequence is the same everywhere. */
static uint32_t random_below(uint32_t limit) {
    static uint32_t state = 7;
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % limit;
}

static void furnish(void) {
    for (uint32_t i = 0; i < BOXES; i++) {
        const float x = 2.0f * (float)(i % SIDE) - SIDE, z = 2.0f * (float)(i / SIDE) - SIDE;
        const float half = 0.1f + 0.01f * (float)random_below(30);
        const RadsweepAabb box = {{x - half, 0, z - half}, {x + half, 2, z + half}};
        const uint32_t kind = random_below(10);
        boxes[i] = box;
        filters[i].layers = kind < 2 ? PILLAR : kind < 9 ? GLASS : INTRUDER;
        filters[i].mask = UINT32_MAX;
    }
    /* The guard stands in the middle. */
    filters[SIDE / 2 * SIDE + SIDE / 2].layers = GUARD;
    filters[SIDE / 2 * SIDE + SIDE / 2].group = GUARD_GROUP;
}

/* Returns where a ray enters a box, or infinity if it misses it. */
static float entry_of(const RadsweepAabb *box, const float *point, const float *direction) {
    float first = 0, last = INFINITY;
    for (int axis = 0; axis < 3; axis++) {
        const float to_min = box->min[axis] - point[axis], to_max = box->max[axis] - point[axis];
        if (direction[axis] == 0) {
            if (to_min > 0 || to_max < 0) {
                return INFINITY;
            }
            continue;
        }
        const float a = to_min / direction[axis], b = to_max / direction[axis];
        first = fmaxf(first, fminf(a, b));
        last = fminf(last, fmaxf(a, b));
    }
    return first <= last ? first : INFINITY;
}

/* Returns the distance to the closest pillar or intruder by testing every box. */
static float closest_by_force(const RadsweepQuery *query) {
    float closest = INFINITY;
    for (int i = 0; i < BOXES; i++) {
        const int is_own = filters[i].group == query->filter.group;
        if ((filters[i].layers & query->filter.mask) != 0 && !is_own) {
            closest = fminf(closest, entry_of(&boxes[i], query->point, query->direction));
        }
    }
    return closest <= query->max_t ? closest : INFINITY;
}

int main(void) {
    RadsweepBroadPhase *broad_phase = NULL;
    must(radsweep_create(NULL, &broad_phase), "radsweep_create");
    furnish();
    RadsweepFrame frame;
    must(radsweep_frame_default(&frame, sizeof frame), "radsweep_frame_default");
    frame.boxes = boxes;
    frame.filters = filters;
    frame.count = BOXES;
    must(radsweep_update_frame(broad_phase, &frame), "radsweep_update_frame");

    RadsweepQuery query;
    must(radsweep_query_default(&query, sizeof query), "radsweep_query_default");
    query.shape = RADSWEEP_SHAPE_RAY;
    query.point[1] = 1.7f; /* the guard's eyes */
    query.max_t = 25;
    query.flags = RADSWEEP_QUERY_FILTER;
    query.filter.mask = PILLAR | INTRUDER | GUARD;
    query.filter.group = GUARD_GROUP;

    int seen = 0, hidden = 0, wrong = 0;
    for (int look = 0; look < LOOKS; look++) {
        const float angle = 6.2831853f * ((float)look + 0.3f) / LOOKS;
        query.direction[0] = cosf(angle);
        query.direction[2] = sinf(angle);
        RadsweepRayHit hit;
        uint32_t found = 0;
        must(radsweep_query_closest(broad_phase, &query, &hit, &found), "radsweep_query_closest");
        if (found) {
            const int is_intruder = filters[hit.index].layers == INTRUDER;
            seen += is_intruder;
            hidden += !is_intruder;
        }
        const float expected = closest_by_force(&query), t = found ? hit.t : INFINITY;
        wrong += !(t == expected || fabsf(t - expected) <= 1e-4f * expected);
    }
    printf("%d looks among %d boxes: %d meet an intruder, %d end at a pillar, %d meet nothing\n", (int)LOOKS, (int)BOXES,
           seen, hidden, LOOKS - seen - hidden);
    printf("hits that brute force does not confirm: %d\n", wrong);
    must(radsweep_destroy(broad_phase), "radsweep_destroy");
    return wrong == 0 && seen > 0 && hidden > 0 ? 0 : 1;
}
