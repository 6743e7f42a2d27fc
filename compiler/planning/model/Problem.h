// Problem.h - the decisions of a training step's schedule, as plain values.
//
// A step is a list of *segments*; a segment is a list of *instructions* that
// runs `trips` times: prologue x 1, body x N (one micro-batch each), a peeled
// last body x 1, epilogue x 1. An instruction makes *values* from values by a
// *recipe*. Every instruction runs once in each trip of its segment. In
// addition, any recomputable recipe may run again, anywhere it is allowed, so
// that a value need not be held between its uses:
//
//     keep        F1 F2 F3 | B3 B2 B1        a1 and a2 held from F to B
//     recompute   F1 F2 F3 | B3 F1 F2 B2 B1  a1 and a2 computed twice
//
// A *solution* gives for each segment the recipes that run, in order. One entry
// of that list is an *execution*; the bytes that a value holds after one
// execution that writes it are an *instance* of the value. All of memory
// follows from the solution by these rules, and nothing else is modelled. R1 to
// R8 describe a problem with one space and one engine; R9 to R18 add other
// spaces and the work beside the compute engine, R19 pipelines:
//
//  R1 A read takes the latest instance: the one of the last execution before
//     it that writes the value. It is an error if there is none.
//  R2 An instance is alive from the execution that writes it through its last
//     read, both included. An instance without reads is alive only while
//     it is written (unless R5 keeps it).
//  R3 While an execution runs, the instances it reads, those it writes, and
//     `workspaceBytes` are alive together. Each execution is one *moment*.
//  R4 `Overwrite{read, written}`: `written` may take the storage of `read` if
//     that instance of `read` dies at this execution. Then only the larger of
//     the two counts at this moment. A *must* is an in-place update: it is an
//     error if it isn't taken, that is, if anything (a recomputed clone, a tied
//     use, the next trip) reads the old instance later. Each read and each
//     written value takes part in at most one taken overwrite of an execution.
//  R5 A *persistent* value is in memory when the step begins, and when it ends:
//     parameters, optimizer moments, the batch, scalars. It is alive at every
//     moment; its life goes around the end of the step. If value v has
//     `updates = u`, then the step begins with u and ends with v, v must
//     overwrite u, and one of the two is alive at every moment. A temporary
//     value with `liveOut` is alive to the end of the step (the loss).
//  R6 In each trip of its segment but the first, a *carried* value c is the
//     instance that `carriedFrom` had at the end of the trip before: to read c
//     is to read that instance. In the first trip c is the instance of
//     `initial`, or nothing if `initial` is none: the first trip writes where
//     the others add, and a read of nothing costs no bytes.
//  R7 Segments with several trips run the same list each trip. Values written
//     in a trip are forgotten when the next trip begins (carrying is the only
//     bridge); those of the last trip stay. A read takes its own trip's last
//     write, else the instance from outside the segment, which then is alive
//     in all trips.
//  R8 Two trips are laid out as two, three and more as first, middle and last:
//     these show every moment. A peeled last trip is a segment of its own.
//
//     Example: body x 2 reads w, which the prologue made, in `f`, then runs
//     `g`. w is alive in f g f, and not in the second g.
//
// So the live bytes of a step are those of its unrolled execution list
// (`simulate`). The peak is the maximum; `reservedBytes` is added when the peak
// is compared with a budget of the device.
//
// Spaces, engines, time
// ---------------------
//
//  R9 A *content* may exist in several *forms*: v on the device, v@host,
//     v@file, v@bits. Each form is a value with a `space`, and with `formOf`
//     the content's main form. The forms of a content are interchangeable bit
//     for bit. A form that its instruction's first recipe doesn't make is
//     optional: it exists only in plans that make it. A *copy* is a recipe that
//     reads one form and writes another of the same content. Each space has its
//     live bytes, its peak, its budget and its arena.
//
//     Example: a has 100 bytes, a@host 100. Between `stash` and `fetch` a's
//     bytes are on the host only:
//
//         list     f1   stash   f2 f3 g3   fetch   g1
//         device   100  100     .  .  .    100     100
//         host     .    100   100 100 100  100     .
//
// R10 A recipe runs on one `engine`, for `cost` there. Engines run beside each
//     other, each first in, first out. An execution on the compute engine
//     (engine 0) is one entry; *work* on any other engine is two entries of the
//     same list, `Start` and `Done`, which share a `work` number. The Dones of
//     an engine stand in the order of its Starts. The values that work reads
//     and writes, and its scratch, are alive from Start through Done.
//
//     Example: `stash` copies a while f2 runs; a is freed after the Done.
//
//         list     f1   stash(   f2   )stash   f3
//         device   a    a        a b  a b      b c
//         host     .    a@host from here on
//
// R11 A name means the new instance from the Start on. A compute read before
//     the maker's Done is an error; other work may read it, and then waits for
//     the maker. While work that reads or writes v stands between its Start and
//     Done, nothing else writes v. Compute recipes read and write values of the
//     device only, copy engines copy from and to the spaces of their kind, the
//     host's engine reads and writes values of the host.
//
//     Example: `stash( f2 fetch( )stash )fetch`: fetch reads a@host before the
//     stash is done, so it begins when the stash ends. But fetch writes a while
//     stash reads it: an error. With `stash( f2 )stash fetch( )fetch` it isn't.
//
// R12 Time. Work begins when its engine is free and these are complete: the
//     compute entries before its Start, the work whose Done stands before it,
//     and the makers of its inputs. Compute waits at the Done of work that
//     reads or writes a value of the device, and at no other. At the border of
//     a trip every engine is idle. So a trip takes as long as its last engine,
//     and the *makespan* is the sum over the trips. With one engine it is the
//     sum of the costs.
//
//     Example: kernels of 10, stash and fetch of 15:
//
//         list     f1 stash( f2 )stash f3 fetch( g3 )fetch g1
//         compute  0-10      10-20     25-35     35-45     50-60
//         stash    10-25: f3 waits from 20 to 25 for its Done
//         fetch    35-50: g1 waits from 45 to 50
//
//     The makespan is 60; without the moves it would be 50.
//
// R13 A taken overwrite of work: the read instance must have no other reader
//     that stands after the Start (or whose Done does, if the reader is work),
//     and its maker's Done must stand before the Start. The larger of the two
//     counts from Start through Done. (R4 is the case where Start and Done are
//     one moment.)
//
//     Example: AdamW on the host reads m@host and writes m'@host in its place:
//     100 bytes, not 200, from Start through Done. The list `copy( adam( )copy
//     )adam`, where copy reads m@host, is an error: the copy is in flight.
//
// R14 Homes. A persistent content has a *home*: its form between two steps.
//     `Solution::homes` names it; it must be a form of kind Persistent.
//     R5 holds for the home only; other forms are temporaries, and exist only
//     if a recipe makes them. The home of a content without updates is never
//     written. If the content is updated, the new content's home is the form
//     that `updates` the old home. The new home is written exactly once, the
//     old home never. The execution that writes the new home takes the old
//     home's storage under R13; if it also reads the old home, that overwrite
//     must be declared and taken. A temporary content with `liveOut` has a
//     home, too, among its forms with `liveOut`; it is alive to the end of the
//     step.
//
//     Example: m (200 bytes) is at home on the host. The device updates it:
//
//         list     fetch(m) )fetch   update   stash(m') )stash
//         device   200      200      200      200       200
//         host     200      200      200      200       200
//
//     The stash writes m' in m's place. Between `update` and the stash's Start
//     m@host holds the old content, and may still be fetched.
//
// R15 Forms in loops. A form that is carried is a carried value of its own
//     (c@host from t@host), and crosses the border only if the next trip reads
//     it. It may also be written within a trip, by a copy. A copy of a first
//     trip's nothing makes nothing; on a copy engine it takes no time and no
//     scratch, and no entry waits for it. Kernels cost the same.
//
// R16 Variants. All recipes of an instruction make the same contents, in any
//     forms. Forms that the chosen recipe doesn't make are optional.
//
//     Example: `adam` on compute reads g, m and writes m'; its variant on the
//     host's engine reads g@host, m@host and writes m'@host. If the host's
//     runs, m' exists only if a fetch makes it.
//
// R17 The host's memory. Work of the engines that copy, and of the host's,
//     takes a share of the host's memory bandwidth: `busShare`, in 1024ths of
//     the whole. While the shares of the work in flight sum to more than the
//     whole, all of it goes on at one lower speed, whole / sum. Work without a
//     share keeps its own. Progress is rounded down to a whole unit of time
//     where the sum changes, and an end is rounded up.
//
//     Example: a stash of 100 and a share of 768 begins at 0, an update of 60
//     and 512 at 40, on the host's engine. Together they have 1280 of 1024: at
//     four fifths of their speed the stash's other 60 and the update take 75,
//     to 115. Alone each would end at 100.
//
// R18 The network. An engine of kind Network reads and writes values of the
//     device. Its work is the same, in the same order, in the lists of all
//     ranks of its group. A copy on it is a *gather*: a move from a form in the
//     device's space, such as v@shard with one d-th of the bytes, to another.
//     Any other recipe on it (an exchange, a send, a receive) is a kernel that
//     makes a new content, and runs again only if it is recomputable. A problem
//     may have several such engines. A step's has one: one thread of a rank
//     makes the calls of all axes. Compute waits at the Done
//     (R12). The work has no share of the host's memory (R17).
//
//     Example: two ranks; w has 100 bytes, and its home w@shard 50, a 20. The
//     ranks exchange the pieces of g, `sum` adds those of this rank's shard:
//
//         list     gather( )gather f b exchange( )exchange sum update
//         w        100     100 100 100 .         .         .   .
//         a        .       .    20  20 .         .         .   .
//         g        .       .    .  100 100       100       .   .
//         pieces   .       .    .   .  100       100       100 .
//         G        .       .    .   .  .         .         50  50
//         w@shard  50      50   50  50 50        50        50  50
//
//     The update writes w'@shard in w@shard's place. While it runs no gather
//     reads w@shard (R13). A second gather before b would free w before it.
//
// R19 Lag. A carried value may lag: in trip i it is the instance of trip i - w;
//     for i < w it is that of `initial`, or nothing. R6 is the case w = 1. An
//     instance that it carries is alive from its trip to w trips later, so w +
//     1 of them are in a middle trip. The first w trips, one in the middle and
//     the last w show every moment.
//
//     Example: body x 5 is the forward part f, which makes t of 10 bytes, and
//     the backward part g of two trips before: it reads c, t with a lag of 2.
//
//         trip   0      1      2      3      4
//         list   f  g   f  g   f  g   f  g   f  g
//         t      1  1   2  2   3  3   3  2   2  1
//
//     The first two g read nothing. In trip 2, g reads the t of trip 0.
//
// R9 to R19 need no deadlock check: every wait points backwards in the list,
// and the lists of a group's ranks are one list. Ranks with lists of their own,
// the stages of a pipeline, are run together (SimulateRanks.h).
// Memory doesn't depend on durations: it is a function of the list alone.
//
// A view is not a value: the builder of a problem collapses a view into the
// value whose storage it reads. Sizes are those of the placed buffers, already
// rounded up to the arena's alignment.
//
// Costs are int64 picoseconds (or any other unit, the same everywhere): sums
// are exact, so a plan and its bound are the same on every machine.

#ifndef TMC_COMPILER_PLANNING_MODEL_PROBLEM_H
#define TMC_COMPILER_PLANNING_MODEL_PROBLEM_H

#include "compiler/planning/model/Parts.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tmc::planning {

struct Problem {
  std::vector<Value> values;
  std::vector<Recipe> recipes;
  std::vector<Instruction> instructions;
  std::vector<Segment> segments;
  std::vector<MemorySpace> spaces = {MemorySpace{}};
  std::vector<Engine> engines = {Engine{}};
  int64_t reservedBytes = 0; // Context, handles: counted against the budget.

  ValueId addValue(Value value);
  RecipeId addRecipe(Recipe recipe);
  SegmentId addSegment(std::string name, int64_t trips = 1);
  /// Adds an instruction at the end of `segment` with its first recipe. Sets
  /// the recipe's `instruction`, and its `segment` if the segment has several
  /// trips or the recipe reads a carried value.
  InstructionId addInstruction(SegmentId segment, Recipe recipe);
  /// Adds a space of a kind, named by it.
  SpaceId addSpace(SpaceKind kind, int64_t budgetBytes = -1);
  /// The engine that copies from one space to another, or that runs kernels on
  /// the values of one; added if the problem has none. kNone: there is no such
  /// kind of engine.
  EngineId engineBetween(SpaceId from, SpaceId to);
  /// Adds an engine of kind Network, named by its axis: "dp".
  EngineId addNetwork(std::string name);
  /// The network of that name; added if the problem has none.
  EngineId networkNamed(const std::string &name);
  /// Adds another recipe for `instruction`.
  RecipeId addVariant(InstructionId instruction, Recipe recipe);

  /// The main form of v's content.
  ValueId contentOf(ValueId v) const {
    return values[v].formOf == kNone ? v : values[v].formOf;
  }
  /// Whether the recipe reads one form and writes another of one content.
  bool isCopy(const Recipe &recipe) const;
  /// True if the recipe runs on a copy engine, or is a gather: it is no kernel.
  bool isMove(const Recipe &recipe) const;
  /// True if the recipe runs on an engine of kind Network (R18).
  bool isOnNetwork(const Recipe &recipe) const {
    return engines[recipe.engine].kind == EngineKind::Network;
  }
  /// A move to the device from another space, one away from it, and one within
  /// it, on the network.
  bool isFetch(const Recipe &recipe) const {
    return isMove(recipe) && !isOnNetwork(recipe) &&
           values[recipe.writes[0]].space == 0;
  }
  bool isStash(const Recipe &recipe) const {
    return isMove(recipe) && !isOnNetwork(recipe) &&
           values[recipe.reads[0]].space == 0;
  }
  bool isGather(const Recipe &recipe) const {
    return isOnNetwork(recipe) && isCopy(recipe);
  }
  /// Whether the recipe is a kernel of another engine than compute: an update
  /// on the host, an exchange.
  bool isBeside(const Recipe &recipe) const {
    return recipe.engine != 0 && !isMove(recipe);
  }
  /// Whether compute waits for its Done (R12).
  bool touchesDevice(const Recipe &recipe) const {
    return touches(engines[recipe.engine].kind, spaces[0].kind);
  }
  /// The space whose values kernels beside compute read and write; kNone:
  /// there is none.
  SpaceId hostSpace() const;
  int64_t reservedOf(SpaceId space) const {
    return space ? spaces[space].reservedBytes : reservedBytes;
  }
  /// The live bytes that the budget of a space permits; -1: no limit.
  int64_t liveLimitOf(SpaceId space) const;
};

/// Moves between the space `near` and the space `far` (kNone: any other): for
/// each value in `near`, the fastest one that writes it and the fastest one
/// that reads it; kNone: none is offered.
struct FastestMoves {
  std::vector<RecipeId> in, out;
};
FastestMoves fastestMoves(const Problem &problem, SpaceId near,
                          SpaceId far = kNone);

/// True if the live bytes of each space from `first` on, plus reserved ones,
/// are within its budget.
bool fitsBudgets(const Problem &problem, const std::vector<int64_t> &peakBytes,
                 SpaceId first = 0);

/// Whether R1 to R8 describe all of the problem: one space, one engine, one
/// form of each content.
bool isOneSpace(const Problem &problem);
/// True if the problem has an engine of kind Network.
bool hasNetwork(const Problem &problem);
/// True if a carried value lags by more than one trip (R19).
bool hasLag(const Problem &problem);
/// The most trips that a value of each segment lags behind; at least 1.
std::vector<int32_t> lagsOf(const Problem &problem);
/// Number of trips of a segment that show every moment.
int32_t shownTrips(const Problem &problem, SegmentId segment);

/// The first defect of `problem`, in words with names and numbers: indices,
/// negative sizes, sums that overflow, an order in which a value is read before
/// it is made, an in-place update that can't be in place.
absl::Status check(const Problem &problem);

/// An execution on compute is one entry, Whole; work is a Start and a Done.
enum class Phase : uint8_t { Whole, Start, Done };

/// One entry of a segment's list.
struct Execution {
  RecipeId recipe = kNone;
  /// The instruction whose own execution this is; kNone for a recomputation.
  InstructionId instruction = kNone;
  /// Indices into the recipe's `overwrites` that are taken; a Done has none.
  std::vector<int32_t> overwrites;
  Phase phase = Phase::Whole;
  /// Shared by a Start and its Done, and by no other entry of the segment.
  int32_t work = kNone;
};

struct Solution {
  /// `segments[s]` is the list of segment s, the same for each of its trips.
  std::vector<std::vector<Execution>> segments;
  /// The forms that are homes (R14), at most one of each content. A content
  /// without one is at home in its main form.
  std::vector<ValueId> homes;
};

/// The home of each value's content in `solution`, or the main form.
std::vector<ValueId> homesOf(const Problem &problem, const Solution &solution);

/// One permutation of instructions per segment.
using Orders = std::vector<std::vector<InstructionId>>;

/// The problem whose program has these orders; without any, the problem itself.
Problem inOrder(Problem problem, const Orders &orders);

/// The instructions of each segment in the order of their first executions.
Orders firstExecutions(const Solution &solution);

/// Kernels that run again in all segments, each trip alike.
int64_t recomputedExecutions(const Problem &problem, const Solution &solution);

/// Every instruction once, by its first recipe, in the program's order, each
/// possible overwrite taken; each Done right after its Start. Homes are the
/// main forms. A form that is read or is a home, and that no first recipe
/// makes, is copied: before its first read in a trip, or when its content is
/// made.
Solution baseSolution(const Problem &problem);

/// Replaces the overwrites of every execution by those that R4 permits there,
/// taken in the recipe's order. Never raises the live bytes.
void takeOverwrites(const Problem &problem, Solution &solution);

/// The cost of each instruction by its first recipe, in all trips, if that runs
/// on compute.
int64_t baseCost(const Problem &problem);

/// Memory of one solution over the moments of its unrolled list; segments of
/// several trips show the first, a middle one and the last.
struct Profile {
  struct Moment {
    SegmentId segment = 0;
    int32_t trip = 0;  // Among those shown: 0 to 2 without lags.
    int32_t index = 0; // Into the segment's list.
  };
  std::vector<Moment> moments;
  std::vector<int64_t> liveBytes; // One per moment, reserved left out.
  int64_t peakBytes = 0;          // On the device, like the next two.
  size_t peakMoment = 0;
  /// Live bytes at `peakMoment`, by class; sums to `peakBytes`.
  std::array<int64_t, kNumClasses> peakByClass = {};
  std::vector<int64_t> spacePeakBytes; // Per space.
  std::vector<int64_t> engineBusy;     // Per engine, each trip counted.
  int64_t makespan = 0;                // R12.
};

/// Live bytes at each moment. An error names the first rule that is broken.
absl::StatusOr<Profile> simulate(const Problem &problem,
                                 const Solution &solution);

/// An instance of a value: written at moment `begin` (-1: before the step),
/// alive through moment `last` inclusive (moments.size(): to the step's end).
struct Instance {
  ValueId value = kNone;
  int32_t begin = 0;
  int32_t last = 0;
  /// The instance whose storage this one took over (overwrite or carry), or
  /// kNone. Instances of one chain share an offset.
  int32_t storageOf = kNone;
  /// The moment that ends its writing: `begin`, or the Done of work.
  int32_t made = 0;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MODEL_PROBLEM_H
