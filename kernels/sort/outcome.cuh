// The result that every sort leaves at the start of its scratch memory, for the report. The host's
// copy: crates/gpusort/src/cuda/outcome.rs.
#pragma once

#include "common/types.cuh"

namespace radsweep {

enum AlgorithmId : u32 {
    NO_ALGORITHM,
    ONESWEEP,
    FOUR_WAY,
    EIGHT_WAY,
    SATISH_RADIX,
    SATISH_MERGE,
    QUICKSORT,
    BUCKET_SORT
};

constexpr u32 EARLY_EXIT = 1, ADAPTIVE = 2;

struct Outcome {
    u32 algorithm;  // AlgorithmId
    u32 passes;     // that the bit window needs
    u32 passes_run;
    u32 flags;  // EARLY_EXIT: in order before all passes; ADAPTIVE: by windows
    u64 n;
    // A figure of the family's own: bucket sort's largest bucket, the keys that quicksort's
    // partitions moved, merge sort's largest piece; with ADAPTIVE the elements removed.
    u64 detail;
};
#ifdef ASSERT_LAYOUT  // not if compiled at run time
ASSERT_LAYOUT(Outcome, 32,
    AT(algorithm, 0) AT(passes, 4) AT(passes_run, 8) AT(flags, 12) AT(n, 16) AT(detail, 24));
#endif

}  // namespace radsweep
