/*
 * A tiny engine in C: balls fall into a box and bounce off each other. Each step passes the boxes
 * of all balls to radsweep and tests only the pairs that it returns.
 *
 *     cc engine.c $(pkg-config --cflags --libs radsweep) -lm && ./a.out
 */
#include <math.h>
#include <radsweep.h>
#include <stdio.h>
#include <stdlib.h>

enum { BALLS = 2000, STEPS = 240 };

static const float RADIUS = 0.25f, SIDE = 12.0f, STEP = 1.0f / 120.0f;

static float place[BALLS][3], speed[BALLS][3];
static RadsweepAabb boxes[BALLS];

/* Ends the program with the library's message on failure. */
static void must(RadsweepStatus status, const char *what) {
    if (status != RADSWEEP_STATUS_OK) {
        fprintf(stderr, "%s: %s (%s)\n", what, radsweep_last_error(), radsweep_status_name(status));
        exit(1);
    }
}

/* Returns a random number; the sequence is the same everywhere. */
static float random_between(float low, float high) {
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return low + (high - low) * (float)(state >> 8) / 16777216.0f;
}

static void fall(void) {
    for (int i = 0; i < BALLS; i++) {
        speed[i][1] -= 9.81f * STEP;
        for (int axis = 0; axis < 3; axis++) {
            place[i][axis] += speed[i][axis] * STEP;
            const float wall = SIDE - RADIUS;
            const float inside = fminf(fmaxf(place[i][axis], RADIUS), wall);
            if (inside != place[i][axis]) {
                place[i][axis] = inside;
                speed[i][axis] *= -0.5f;
            }
            boxes[i].min[axis] = place[i][axis] - RADIUS;
            boxes[i].max[axis] = place[i][axis] + RADIUS;
        }
    }
}

/* Lets touching balls exchange speeds along the line between them. Returns 1 if they touch. */
static int bounce(uint32_t a, uint32_t b) {
    float line[3], along = 0, square = 0;
    for (int axis = 0; axis < 3; axis++) {
        line[axis] = place[b][axis] - place[a][axis];
        along += line[axis] * (speed[a][axis] - speed[b][axis]);
        square += line[axis] * line[axis];
    }
    if (square > 4 * RADIUS * RADIUS || square == 0) {
        return 0;
    }
    const float apart = 0.5f * (2 * RADIUS - sqrtf(square)) / sqrtf(square);
    for (int axis = 0; axis < 3; axis++) {
        place[a][axis] -= line[axis] * apart;
        place[b][axis] += line[axis] * apart;
        if (along > 0) {
            speed[a][axis] -= line[axis] * along / square;
            speed[b][axis] += line[axis] * along / square;
        }
    }
    return 1;
}

/* Counts all pairs by brute force. */
static size_t count_by_force(void) {
    size_t count = 0;
    for (int i = 0; i < BALLS; i++) {
        for (int j = 0; j < i; j++) {
            int overlap = 1;
            for (int axis = 0; axis < 3; axis++) {
                overlap &= boxes[i].min[axis] <= boxes[j].max[axis] && boxes[j].min[axis] <= boxes[i].max[axis];
            }
            count += (size_t)overlap;
        }
    }
    return count;
}

int main(void) {
    if (radsweep_abi_version() != RADSWEEP_ABI_VERSION) {
        fprintf(stderr, "the header does not match the library, version %s\n", radsweep_version());
        return 1;
    }
    RadsweepBroadPhase *broad_phase = NULL;
    RadsweepConfig config;
    must(radsweep_config_default(&config, sizeof config), "radsweep_config_default");
    must(radsweep_create(&config, &broad_phase), "radsweep_create");
    for (int i = 0; i < BALLS; i++) {
        for (int axis = 0; axis < 3; axis++) {
            place[i][axis] = random_between(RADIUS, SIDE - RADIUS);
            speed[i][axis] = random_between(-2, 2);
        }
    }

    printf("radsweep %s, %d balls\n step    pairs  touching  started    ended      ms\n", radsweep_version(), (int)BALLS);
    size_t count = 0;
    double spent = 0;
    for (int step = 0; step < STEPS; step++) {
        fall();
        must(radsweep_update(broad_phase, boxes, BALLS), "radsweep_update");
        const RadsweepPair *pairs = NULL;
        must(radsweep_pairs(broad_phase, RADSWEEP_PAIRS_ALL, &pairs, &count), "radsweep_pairs");
        size_t touching = 0;
        for (size_t i = 0; i < count; i++) {
            touching += (size_t)bounce(pairs[i].a, pairs[i].b);
        }
        RadsweepReport report;
        must(radsweep_report(broad_phase, &report, sizeof report), "radsweep_report");
        spent += report.milliseconds;
        if (step % 40 == 0 || step == STEPS - 1) {
            printf("%5d %8zu %9zu %8llu %8llu %7.3f\n", step, count, touching, (unsigned long long)report.started,
                   (unsigned long long)report.ended, report.milliseconds);
        }
    }
    const size_t expected = count_by_force();
    printf("mean %.3f ms per update; the last pairs by brute force: %zu\n", spent / STEPS, expected);

    /* A failed update has a message and changes nothing. */
    boxes[7].min[1] = NAN;
    RadsweepErrorDetail detail;
    const RadsweepStatus status = radsweep_update(broad_phase, boxes, BALLS);
    must(radsweep_last_error_detail(&detail), "radsweep_last_error_detail");
    printf("a broken box: %s\n", radsweep_last_error());
    RadsweepPair *copy = malloc((expected + 1) * sizeof *copy);
    size_t kept = 0;
    must(radsweep_copy_pairs(broad_phase, RADSWEEP_PAIRS_ALL, copy, expected + 1, &kept), "radsweep_copy_pairs");
    free(copy);
    must(radsweep_destroy(broad_phase), "radsweep_destroy");
    /* A destroyed handle is an error too. */
    const int again = radsweep_destroy(broad_phase) == RADSWEEP_STATUS_HANDLE;
    return count == expected && kept == expected && status == RADSWEEP_STATUS_INVALID_AABB && detail.index == 7 && again ? 0 : 1;
}
