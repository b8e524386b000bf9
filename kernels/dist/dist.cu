// A rank of several on its device: which boxes go to which rank, what came from others, and whose
// the pairs are (docs/distributed.md). The pairs are found by the engine of `sap` (sap/sap.cu).
//
// Phases, in the order of the host's launches (`update` and `search` of
// crates/sap-dist/src/device/update.rs):
//
//   1 survey   cells.cuh    checks the boxes, counts records by rank and place; `sample` takes some
//                           boxes, for new cells
//   2 write    cells.cuh    writes the records
//   3 receive  receive.cuh  unpacks what came; `homes` (cells.cuh) leaves out boxes of other cells,
//                           `near` gathers the homes that copies may meet
//   4 name     border.cuh   names the pairs of homes and copies
//     keep     border.cuh   parts the pairs among the homes, which `kept` has counted: those of two
//                           boxes of this rank stay in order, the others are named
//   5 group    border.cuh   groups the named pairs by owner
//   6 split    border.cuh   takes what came apart, for the sorts; `join` joins it after them
//     merge    border.cuh   merges it with the pairs of boxes of this rank
//   7 events   events.cuh   finds what started and ended; `moved` those of boxes that another rank
//                           brings now
//
// `home` (cells.cuh) is for callers: it tells the home of each box.
//
// Nearly all boxes are homes of their own rank, and nearly all pairs are of two of these: then the
// boxes are searched where they lie, while all phases up to `join` run beside that. The engine
// also knows what started and ended among them, which `merge` joins with what `events` finds of the
// pairs that came.
#include "cells.cuh"
#include "receive.cuh"
#include "border.cuh"
#include "events.cuh"
