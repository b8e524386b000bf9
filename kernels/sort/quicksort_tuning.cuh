// Shapes of quicksort.cu; the host's copy: crates/gpusort/src/cuda/quicksort/tuning.rs. The shape
// is part of the kernels' names, so the two cannot differ unnoticed. Shared memory stays within 64
// KiB, all that Turing has.
#pragma once

#define QUICKSORT_THREADS 512
#define QUICKSORT_SAMPLE 1024

// A tile has THREADS x TILE_ITEMS keys, a leaf THREADS x LEAF_ITEMS; odd, so that runs of a thread
// meet no bank twice.
#if KEY_BITS == 32
#define QUICKSORT_TILE_ITEMS 12
#define QUICKSORT_LEAF_ITEMS 15
#define QUICKSORT_SHAPE 512x12x15
#else
#define QUICKSORT_TILE_ITEMS 8
#define QUICKSORT_LEAF_ITEMS 11
#define QUICKSORT_SHAPE 512x8x11
#endif
