// Tile shapes of satish_radix.cu. The host's copy is
// crates/gpusort/src/cuda/satish_radix/tuning.rs; the shape is part of a kernel's name, so the two
// cannot differ unnoticed. Shared memory stays within 64 KiB, all that Turing has.
//
// SATISH_TILES(X): X(bytes of a value, threads, keys a thread, blocks a multiprocessor to leave
// registers for).
// SATISH_SMALL(X): X(bytes of a value, threads, keys a thread), what one block sorts by all digits.
#pragma once

#if KEY_BITS == 32
#define SATISH_TILES(X) X(0, 256, 16, 4) X(4, 256, 16, 4) X(8, 256, 12, 4)
#define SATISH_SMALL(X) \
    X(0, 256, 16) X(0, 512, 24) X(4, 256, 16) X(4, 512, 24) X(8, 256, 8) X(8, 512, 12)
#else
#define SATISH_TILES(X) X(0, 256, 12, 4) X(4, 256, 12, 4) X(8, 256, 12, 3)
#define SATISH_SMALL(X) \
    X(0, 256, 8) X(0, 512, 12) X(4, 256, 8) X(4, 512, 12) X(8, 256, 8) X(8, 512, 12)
#endif
