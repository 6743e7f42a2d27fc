// ProblemFile.h - the full planning problem as a text file.
//
// One thing per line; things are named by their number in order of appearance,
// and omitted fields have the defaults of Problem.h. Names come last on a line,
// may hold spaces, and end with it. `#` begins a comment line.
//
//     tmc-problem 1
//     reserved 1048576
//     segment trips=4 body
//     value bytes=4096 class=gradients kind=carried from=7 initial=3 acc
//     value bytes=4096 pinned live-out loss
//     value bytes=4096 kind=persistent updates=0 w.new
//     instruction segment=0 attention
//     recipe instruction=0 cost=125000 workspace=256 again segment=0 ..
//         .. reads=0,1,2 writes=5 may=2:5 must=1:6 attention
//
// (`..` marks a line that is continued here; a file has no continued lines.)
// Instructions stand in the program's order; a recipe without `instruction`
// only recomputes.
//
// `tmc-problem 2` adds R9 to R19. Spaces and engines are numbered as they
// stand, from 0: a file with a host names the device before it, and a file with
// a copy engine the compute engine. Sizes are bytes, -1 is no budget.
//
//     tmc-problem 2
//     space budget=17179869184 device
//     space kind=host budget=68719476736 reserved=4096 host
//     engine compute
//     engine kind=d2h d2h
//     engine kind=network dp
//     segment step
//     value bytes=4096 act
//     value bytes=4096 space=1 form-of=0 act@host
//     value bytes=64 kind=carried from=2 lag=3 saved
//     recipe cost=164 again engine=1 bus=614 reads=0 writes=1 stash act
//     recipe cost=900 again engine=1 scratch-space=1 workspace=4096 ..
//
// The kinds of spaces and engines are those of runtime/kernels/Machine.h. The
// writer uses version 1 if that can express the problem. The reader is in
// laboratory/ProblemReader.h: the compiler only writes such files.

#ifndef TMC_COMPILER_PLANNING_MODEL_PROBLEMFILE_H
#define TMC_COMPILER_PLANNING_MODEL_PROBLEMFILE_H

#include "compiler/planning/model/Problem.h"

#include <string_view>

namespace tmc::planning {

/// The first line of a problem with one space and one engine, and of others.
inline constexpr std::string_view kOneSpaceLine = "tmc-problem 1";
inline constexpr std::string_view kManySpacesLine = "tmc-problem 2";

std::string printProblem(const Problem &problem);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_PROBLEMFILE_H
