// Files in and out, and what is said of files that are wrong.

#include "test/unit/planning/RandomProblem.h"

#include "compiler/planning/driver/PlanBy.h"
#include "compiler/planning/laboratory/ArenaFile.h"
#include "compiler/planning/laboratory/Generate.h"
#include "compiler/planning/laboratory/ProblemReader.h"
#include "compiler/planning/laboratory/Text.h"
#include "compiler/planning/model/Checks.h"
#include "compiler/planning/model/ProblemFile.h"

#include <gtest/gtest.h>

using namespace tmc::planning;

namespace {

TEST(ProblemFile, ReadsWhatItWrites) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    RandomShape shape;
    shape.trips = 1 + int64_t(seed % 3);
    Problem p = randomProblem(random, shape);
    p.reservedBytes = int64_t(seed);
    p.values[0].name = "a name with spaces";
    std::string text = printProblem(p);
    ASSERT_TRUE(isProblemFile(text));
    absl::StatusOr<Problem> again = parseProblem(text);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(printProblem(*again), text);
    EXPECT_TRUE(check(*again).ok());
    EXPECT_EQ(simulate(*again, baseSolution(*again))->liveBytes,
              simulate(p, baseSolution(p))->liveBytes);
  }
}

/// A name that is a key or a flag changes nothing but a name.
TEST(ProblemFile, NamesAreNoWordsOfTheFormat) {
  Random random(1);
  Problem plain = randomProblem(random, RandomShape());
  for (const char *name :
       {"pinned", "live-out x", "again", "bytes=0", "bytes=0 x", "cost=1",
        "reads=0,1", " x", "class=gradient y", "'a'", "#", "", "segment"}) {
    Problem p = plain;
    for (Value &value : p.values)
      value.name = name;
    for (Recipe &recipe : p.recipes)
      recipe.name = name;
    for (Instruction &instruction : p.instructions)
      instruction.name = name;
    for (Segment &segment : p.segments)
      segment.name = name;
    absl::StatusOr<Problem> again = parseProblem(printProblem(p));
    ASSERT_TRUE(again.ok()) << name << ": " << again.status().message();
    EXPECT_EQ(printProblem(*again), printProblem(p)) << name;
    for (size_t i = 0; i < p.values.size(); ++i) {
      EXPECT_EQ(again->values[i].bytes, p.values[i].bytes) << name;
      EXPECT_EQ(again->values[i].pinned, p.values[i].pinned) << name;
      EXPECT_EQ(again->values[i].liveOut, p.values[i].liveOut) << name;
      EXPECT_EQ(again->values[i].valueClass, p.values[i].valueClass) << name;
    }
    for (size_t i = 0; i < p.recipes.size(); ++i) {
      EXPECT_EQ(again->recipes[i].cost, p.recipes[i].cost) << name;
      EXPECT_EQ(again->recipes[i].reads, p.recipes[i].reads) << name;
      EXPECT_EQ(again->recipes[i].recomputable, p.recipes[i].recomputable)
          << name;
    }
  }
}

TEST(ProblemFile, NamesTheLine) {
  auto error = [](const char *text) {
    return std::string(parseProblem(text).status().message());
  };
  EXPECT_EQ(error("tmc-problem 3\n"),
            "line 1: 'tmc-problem 1' or 'tmc-problem 2' is missing");
  EXPECT_EQ(
      error("tmc-problem 1\nvalue bytes=99999999999999999999 x\n"),
      "line 2: '99999999999999999999' of bytes isn't an integer of 64 bits");
  EXPECT_EQ(error("tmc-problem 1\nsegment s\nrecipe instruction=0 r\n"),
            "line 3: instruction 0 isn't there yet");
  EXPECT_EQ(error("tmc-problem 1\nvalue kind=odd x\n"),
            "line 2: there is no kind 'odd'");
  EXPECT_EQ(
      error("tmc-problem 1\nwhat\n"),
      "line 2: 'what' is no segment, value, instruction, recipe or reserved");
  EXPECT_EQ(error("tmc-problem 1\n"), "the file has no segment");
}

/// One activation that may wait on the host or in a file.
constexpr const char *kSpacesText = R"(tmc-problem 2
reserved 7
space kind=device budget=1000 gpu
space kind=host budget=4000 reserved=16 ram
space kind=file disk
engine kind=compute compute
engine kind=d2h d2h
engine kind=h2d h2d
engine kind=file-write write
engine kind=file-read read
engine kind=host host
segment trips=2 body
value bytes=64 class=parameters kind=persistent w
value bytes=64 class=parameters kind=persistent space=1 form-of=0 w@host
value bytes=8 a
value bytes=8 space=1 form-of=2 a@host
value bytes=8 space=2 form-of=2 a@file
instruction segment=0 f
recipe instruction=0 cost=5 segment=0 reads=0 writes=2 f
recipe instruction=0 cost=9 segment=0 engine=5 reads=1 writes=3 f on the host
recipe cost=3 engine=1 again reads=2 writes=3 stash a
recipe cost=3 engine=2 again reads=3 writes=2 fetch a
recipe cost=7 workspace=4 engine=3 scratch-space=1 again reads=3 writes=4 out a
recipe cost=6 engine=4 again reads=4 writes=3 in a
recipe cost=2 engine=2 again reads=1 writes=0 fetch w
)";

TEST(ProblemFile, SaysSpacesEnginesAndForms) {
  absl::StatusOr<Problem> p = parseProblem(kSpacesText);
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ(checkSpaces(*p).message(), "");
  EXPECT_EQ(p->spaces[1].kind, SpaceKind::Host);
  EXPECT_EQ(p->spaces[1].reservedBytes, 16);
  EXPECT_EQ(p->spaces[2].budgetBytes, -1);
  EXPECT_EQ(p->engines[3].kind, EngineKind::FileWrite);
  EXPECT_EQ(p->values[3].formOf, 2);
  EXPECT_EQ(p->recipes[4].workspaceSpace, 1);
  std::string text = printProblem(*p);
  EXPECT_EQ(printProblem(*parseProblem(text)), text);
  EXPECT_EQ(text.size(), std::string_view(kSpacesText).size());
}

TEST(ProblemFile, OneSpaceIsVersionOne) {
  Problem p = *parseProblem("tmc-problem 1\nsegment s\nvalue bytes=3 a\n");
  EXPECT_TRUE(isOneSpace(p));
  EXPECT_EQ(printProblem(p).substr(0, 14), "tmc-problem 1\n");
  p.spaces[0].budgetBytes = 0;
  EXPECT_EQ(parseProblem(printProblem(p))->spaces[0].budgetBytes, 0);
  auto error = [](const std::string &text) {
    return std::string(parseProblem(text).status().message());
  };
  EXPECT_EQ(error("tmc-problem 1\nspace host\n"),
            "line 2: 'space' is no segment, value, instruction, recipe or "
            "reserved");
  EXPECT_EQ(error("tmc-problem 2\nspace kind=moon x\n"),
            "line 2: there is no kind 'moon'");
  EXPECT_EQ(error("tmc-problem 2\nspace budget=9e9 x\n"),
            "line 2: '9e9' of budget isn't an integer of 64 bits");
  EXPECT_EQ(error("tmc-problem 2\nvalue space=-1 x\n"),
            "line 2: space names number -1");
}

TEST(ProblemFile, CheckNamesWhatIsMalformedInSpaces) {
  auto with = [](const char *from, const char *to) {
    std::string text = kSpacesText;
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, std::string_view(from).size(), to);
    absl::StatusOr<Problem> p = parseProblem(text);
    EXPECT_TRUE(p.ok()) << p.status().message();
    return std::string(check(*p).message());
  };
  EXPECT_EQ(with("space kind=device", "space kind=host"),
            "space 0 'gpu' is of kind host; space 0 and no other is the "
            "device");
  EXPECT_EQ(with("reserved=16", "reserved=-1"),
            "space 'ram' has a budget of 4000 bytes and -1 reserved");
  EXPECT_EQ(with("reserved=16", "reserved=4611686018427387904"),
            "space 'ram' has a budget of 4000 bytes and 4611686018427387904 "
            "reserved");
  EXPECT_EQ(with("kind=file-read", "kind=compute"),
            "engine 4 'read' is of kind compute; engine 0 and no other "
            "computes");
  EXPECT_EQ(with("space=2 form-of=2", "space=3 form-of=2"),
            "value 'a@file' is in space 3 of 3");
  EXPECT_EQ(with("space=2 form-of=2", "space=2 form-of=3"),
            "value 'a@file' is a form of what is no content's main form");
  EXPECT_EQ(with("engine=4 again", "engine=6 again"),
            "recipe 'in a' runs on engine 6 of 6, with scratch in space 0 of "
            "3");
  EXPECT_EQ(with("engine=4 again", "engine=2 again"),
            "recipe 'in a' reads 'a@file' in a space of kind file, but engine "
            "'h2d' reads from host");
  EXPECT_EQ(with("scratch-space=1", "scratch-space=0"),
            "recipe 'out a' has its scratch in a space of kind device, which "
            "engine 'write' doesn't reach");
  EXPECT_EQ(with("reads=3 writes=2 fetch", "reads=1 writes=2 fetch"),
            "recipe 'fetch a' on engine 'h2d' doesn't copy one form of a "
            "content to another");
  EXPECT_EQ(with("reads=1 writes=3", "reads=1 writes=1"),
            "recipe 'f on the host' copies 'w@host' to itself");
  EXPECT_EQ(with("bytes=8 space=2", "bytes=8 space=2 live-out"),
            "form 'a@file' lives out, but 'a' doesn't");
}

TEST(Graph, ReadsWhatItWrites) {
  Graph graph = generateGraph({Family::UNet, 200, 1, false});
  std::string text = printGraph(graph);
  EXPECT_EQ(printGraph(*parseGraph(text)), text);
  auto error = [](const char *text) {
    return std::string(parseGraph(text).status().message());
  };
  EXPECT_EQ(
      error("2 1\n1 1\n1 1\n1 0\n"),
      "line 4: the edge from 1 to 0 leads backward in the order of the nodes");
  EXPECT_EQ(error("2 1\n1 1\n1 1\n0 2\n"),
            "line 4: an edge's end is 2, not in [0, 1]");
  EXPECT_EQ(error("2 0\n1 1\n1"),
            "line 3: a node's cost is missing, the file ends");
  EXPECT_EQ(error("1 0\n-1 1\n"),
            "line 2: a node's size is -1, not in [0, 1152921504606846976]");
  EXPECT_EQ(error("1 0\n1 1x\n"), "line 2: a node's cost isn't an integer");
  EXPECT_EQ(error("1 0\n1 1\n7\n"),
            "line 3: there is more than 1 nodes and 0 edges");
  EXPECT_EQ(error("200000000 0\n"),
            "line 1: 200000000 nodes and 0 edges don't fit a file of 12 bytes");
  EXPECT_EQ(error("2 0\n1152921504606846976 1\n1 1\n"),
            "line 3: a node's size is 1, not in [0, 0]");
}

TEST(ArenaFile, ReadsTiesAndNamesTheLine) {
  absl::StatusOr<ArenaProblem> p =
      parseArena("id,lower,upper,size,alignment,inside,distance,fixed\na,0,2,"
                 "64,16,,,32\nb,1,3,16,,a,16,\n");
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ(p->buffers[0].fixedOffset, 32);
  EXPECT_EQ(p->buffers[1].inside, 0);
  Packing packing = packArena(*p);
  EXPECT_EQ(verifyPacking(*p, packing), std::nullopt);
  EXPECT_EQ(printPacking(*p, packing),
            "id,lower,upper,size,alignment,inside,distance,fixed,offset\na,0,2,"
            "64,16,,,32,32\nb,1,3,16,,a,16,,48\n");
  auto error = [](const char *text) {
    return std::string(parseArena(text).status().message());
  };
  EXPECT_EQ(error("id,lower,upper\n"),
            "line 1: the header has no column 'size'");
  EXPECT_EQ(error("id,lower,upper,size\na,0,1,x\n"),
            "line 2: 'x' isn't an integer of 64 bits");
  EXPECT_EQ(error("id,lower,upper,size\na,0,1,1\na,0,1,1\n"),
            "line 3: id 'a' is there twice");
  EXPECT_EQ(error("id,lower,upper,size\na,3,1,1\n"),
            "'a' dies at 1, before it is born at 3");
  EXPECT_EQ(error(""), "line 0: the file has no header");
}

TEST(Text, Sizes) {
  EXPECT_EQ(*parseSize("4096"), 4096);
  EXPECT_EQ(*parseSize("12GiB"), int64_t(12) << 30);
  EXPECT_EQ(*parseSize("1.5 MB"), 1500000);
  EXPECT_EQ(*parseSize("0.001KiB"), 1); // Rounded down.
  EXPECT_FALSE(parseSize("12 gigs").ok());
  EXPECT_FALSE(parseSize("").ok());
  EXPECT_FALSE(parseSize("99999999999 TiB").ok());
  EXPECT_EQ(parseFactor("0.8x")->times(11), 9);
  EXPECT_EQ(parseFactor("0.8x")->times(10), 8); // Exact: no 8.000001.
  EXPECT_FALSE(parseFactor("0.8").ok());
}

TEST(Planners, AWrongAnswerIsNamed) {
  Problem p = *problemOf(generateGraph({Family::Transformer, 30, 1, true}));
  registerPlanner("lazy", "forgets the end",
                  [](const Problem &problem,
                     const PlanRequest &) -> absl::StatusOr<Solution> {
                    Solution s = baseSolution(problem);
                    s.segments[0].pop_back();
                    return s;
                  });
  absl::StatusOr<Plan> plan = planBy("lazy", p, {}, "");
  EXPECT_EQ(plan.status().message(),
            "the answer of planner 'lazy' is wrong: lists: instruction 'n" +
                std::to_string(p.instructions.size() - 1) +
                "' runs 0 times for itself, not once");
  EXPECT_TRUE(planBy("none", p, {}, "")->feasible);
  EXPECT_EQ(planBy("exec:echo 0 0 0 1 0 2 #", p, {}, "").status().message(),
            "the answer of planner 'exec:echo 0 0 0 1 0 2 #' is wrong: lists: "
            "instruction 'n3' runs 0 times for itself, not once");
  EXPECT_FALSE(planBy("exec:false", p, {}, "").ok());
  EXPECT_FALSE(planBy("nobody", p, {}, "").ok());
}

} // namespace
