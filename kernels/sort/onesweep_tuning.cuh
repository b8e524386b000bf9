// Tile shapes of onesweep.cu: X(bytes of a value, threads, keys a thread, blocks a multiprocessor
// to leave registers for). The host's copy is in crates/gpusort/src/cuda/onesweep/tuning.rs; the
// shape is part of a kernel's name, so the two cannot differ unnoticed. A block has 64 KiB of
// shared memory on Turing; wider shapes are for later devices.
#pragma once

#if KEY_BITS == 64
#define ONESWEEP_TILES(X) \
    X(0, 384, 16, 3) X(4, 384, 16, 2) X(8, 384, 16, 2) X(0, 384, 24, 2) X(4, 384, 24, 2)
#elif OFFSET_BITS == 64
#define ONESWEEP_TILES(X) X(0, 384, 32, 3) X(4, 384, 32, 2) X(8, 384, 16, 2)
#else
#define ONESWEEP_TILES(X) \
    X(0, 384, 32, 3)      \
    X(4, 384, 32, 2) X(8, 384, 16, 2) X(8, 384, 24, 2) X(0, 512, 16, 3) X(4, 512, 16, 2)
#endif

// Shapes of onesweep_finish.cuh, for the keys of a digit and for segments of 32-bit keys, INTEGER
// or FLOAT: X(bytes of a value, threads, keys a thread).
#if OFFSET_BITS == 64
#define ONESWEEP_FINISHES(X)
#define ONESWEEP_SEGMENTS(INTEGER, FLOAT)
#elif KEY_BITS == 64
#define ONESWEEP_FINISHES(X) X(0, 512, 24) X(4, 512, 16) X(8, 512, 16)
#define ONESWEEP_SEGMENTS(INTEGER, FLOAT)
#else
#define ONESWEEP_FINISHES(X) X(0, 512, 32) X(4, 512, 24) X(8, 512, 24)
#define ONESWEEP_SEGMENTS(INTEGER, FLOAT) \
    INTEGER(0, 256, 32)                   \
    INTEGER(4, 256, 32) FLOAT(4, 256, 32) INTEGER(8, 256, 32) FLOAT(8, 256, 32)
#endif
