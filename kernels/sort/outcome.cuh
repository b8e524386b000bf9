// What every sort leaves at the start of its scratch memory for the report. The host's copy: crates/gpusort/src/cuda/outcome.rs.
#pragma once

#include <stdint.h>

namespace radsweep {

enum FamilyId : uint32_t { NO_FAMILY, ONESWEEP, FOUR_WAY, EIGHT_WAY, SATISH_RADIX, SATISH_MERGE, QUICKSORT, BUCKET_SORT };

constexpr uint32_t EARLY_EXIT = 1, ADAPTIVE = 2;

struct Outcome {
    uint32_t algorithm;   // FamilyId
    uint32_t passes;      // that the bit window asks for
    uint32_t passes_run;
    uint32_t early_exit;  // EARLY_EXIT: found in order before all passes were run; ADAPTIVE: sorted by windows
    uint64_t n;
    uint64_t detail;      // a figure of the family's own: bucket sort's largest bucket, the keys that quicksort's partitions moved, merge
                          // sort's largest piece; with ADAPTIVE the elements taken out
};
#ifdef ASSERT_LAYOUT  // not where the text is compiled at run time
ASSERT_LAYOUT(Outcome, 32, AT(algorithm, 0) AT(passes, 4) AT(passes_run, 8) AT(early_exit, 12) AT(n, 16) AT(detail, 24));
#endif

}  // namespace radsweep
