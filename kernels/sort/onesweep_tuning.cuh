// Tile shapes of onesweep.cu: X(bytes of a value, threads, keys a thread, blocks a multiprocessor to leave registers for).
// The host's copy is in crates/gpusort/src/cuda/tuning.rs; the shape is part of a kernel's name, so the two cannot differ
// unnoticed. Shared memory stays within 64 KiB, all that Turing has.
#pragma once

#if KEY_BITS == 32
#define ONESWEEP_TILES(X) X(0, 384, 20, 3) X(4, 384, 16, 3) X(8, 384, 11, 3)
#else
#define ONESWEEP_TILES(X) X(0, 384, 16, 3) X(4, 384, 11, 3) X(8, 384, 8, 3)
#endif
