//===- DataEpochTest.cpp - epochs, their order, several files -------------===//

#include "DataTesting.h"
#include "TrainerTesting.h"

#include "runtime/step/DataPaths.h"
#include "runtime/step/Labels.h"
#include "runtime/step/Permutation.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>

using namespace tmc;
using namespace tmc::test;
namespace fs = std::filesystem;

static std::vector<int64_t> orderOf(uint64_t seed, int64_t epoch, int64_t n) {
  const Permutation permutation(seed, epoch, n);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < n; ++i)
    order.push_back(permutation.at(i));
  return order;
}

// The numbers are those of test/unit/runtime/permutation.py.
TEST(Permutation, HasTheNumbersOfAnIndependentModel) {
  using List = std::vector<int64_t>;
  EXPECT_EQ(orderOf(0, 0, 1), List{0});
  EXPECT_EQ(orderOf(1, 0, 2), (List{1, 0}));
  EXPECT_EQ(orderOf(7, 0, 10), (List{9, 2, 5, 1, 7, 3, 4, 0, 6, 8}));
  EXPECT_EQ(orderOf(7, 1, 10), (List{7, 0, 3, 6, 1, 4, 9, 5, 2, 8}));
  EXPECT_EQ(orderOf((uint64_t(1) << 40) + 5, 3, 13),
            (List{4, 1, 9, 0, 8, 10, 3, 6, 11, 12, 5, 2, 7}));
  const List large = orderOf(7, 0, 1000);
  EXPECT_EQ(List(large.begin(), large.begin() + 8),
            (List{145, 708, 378, 766, 447, 459, 535, 696}));
  const Permutation wide((uint64_t(1) << 63) + 9, UINT32_MAX, 1000000000000);
  EXPECT_EQ(wide.at(0), 18513689708);
  EXPECT_EQ(wide.at(1), 871671721205);
  EXPECT_EQ(wide.at(2), 233489833426);
  EXPECT_EQ(wide.at(999999999999), 931029688001);
}

TEST(Permutation, TakesEachSampleOnce) {
  for (int64_t n : {1, 2, 3, 4, 5, 7, 8, 64, 1000, 4099}) {
    std::vector<int64_t> order = orderOf(uint64_t(n), n % 3, n);
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(order[size_t(i)], i) << n;
  }
}

// Each of n! orders is as likely: chi-square with n! - 1 degrees of freedom
// stays below its mean plus six deviations.
TEST(Permutation, OrdersAreEquallyLikely) {
  for (int64_t n : {2, 3, 4, 5}) {
    std::map<std::vector<int64_t>, int64_t> seen;
    constexpr int64_t kEpochs = 24000;
    for (int64_t epoch = 0; epoch < kEpochs; ++epoch)
      ++seen[orderOf(3, epoch, n)];
    double orders = 1;
    for (int64_t i = 2; i <= n; ++i)
      orders *= double(i);
    EXPECT_EQ(double(seen.size()), orders);
    const double mean = kEpochs / orders;
    double square = 0;
    for (const auto &[order, count] : seen)
      square += (double(count) - mean) * (double(count) - mean) / mean;
    EXPECT_LT(square, orders - 1 + 6 * std::sqrt(2 * (orders - 1))) << n;
  }
}

TEST(Labels, AreKnownByTheirRanges) {
  static const IndexRange later[] = {{{0, 1}, {2, 2}, {1, 1}, 10, true, -100}};
  static const IndexRange both[] = {{{0, 0}, {2, 3}, {1, 1}, 10, false, 0},
                                    {{0, 1}, {2, 2}, {1, 1}, 10, true, -100}};
  TensorInfo input{.name = "labels",
                   .type = DType::I64,
                   .rank = 2,
                   .dims = {2, 3},
                   .offset = 0,
                   .role = Role::Batch};
  const int64_t data[] = {5, -100, 6, 7, -100, -100};
  auto count = [&] {
    return countLabels(input, reinterpret_cast<const char *>(data));
  };
  EXPECT_FALSE(hasLabels(input));
  EXPECT_EQ(count(), 0);
  input.ranges = later;
  input.rangeCount = 1;
  EXPECT_TRUE(hasLabels(input));
  EXPECT_EQ(ignoredValue(input), -100);
  EXPECT_EQ(count(), 1); // 6: those of the first column aren't read
  input.ranges = both;
  input.rangeCount = 2;
  EXPECT_TRUE(hasLabels(input));
  EXPECT_EQ(ignoredValue(input), std::nullopt);
  input.rangeCount = 0;
  input.allowIgnore = true;
  input.ignore = -1;
  input.limit = 10;
  EXPECT_EQ(ignoredValue(input), -1);
  EXPECT_EQ(count(), 6);
}

//===----------------------------------------------------------------------===//

/// Rows of 8 tokens, each the number of its sample.
class Epochs : public Data {
protected:
  std::string rows(const char *name, int64_t first, int64_t count) {
    std::string bytes;
    for (int64_t i = 0; i < 8 * count; ++i)
      bytes += {char(first + i / 8), 0};
    return file(name, bytes);
  }
  /// The samples of the next batch; a copy is negative, minus one.
  std::vector<int64_t> samples() {
    EXPECT_TRUE(next());
    const auto tokens = read("tokens"), labels = read("labels");
    std::vector<int64_t> found;
    for (size_t i = 0; i < 4; ++i) {
      const bool isCopy = labels[i * 8] == -100;
      for (size_t k = 0; k < 8; ++k) {
        EXPECT_EQ(tokens[i * 8 + k], tokens[i * 8]);
        EXPECT_EQ(labels[i * 8 + k], isCopy ? -100 : tokens[i * 8]);
      }
      found.push_back(isCopy ? -1 - tokens[i * 8] : tokens[i * 8]);
    }
    return found;
  }
  using List = std::vector<int64_t>;
};

TEST_F(Epochs, TheLastBatchIsFilledUp) {
  ASSERT_TRUE(open({rows("a.bin", 0, 10)}));
  EXPECT_EQ(reader_.summary(), "10 samples in steps of 4: 3 steps an epoch, "
                               "the last with 2 of 4 samples, in order");
  for (int epoch = 0; epoch < 2; ++epoch) {
    EXPECT_EQ(samples(), (List{0, 1, 2, 3}));
    EXPECT_EQ(samples(), (List{4, 5, 6, 7}));
    EXPECT_EQ(samples(), (List{8, 9, -1, -2}));
  }
  // Fewer samples than a batch has: they stand there again and again.
  ASSERT_TRUE(open({rows("b.bin", 5, 1)}));
  EXPECT_EQ(reader_.summary(), "1 sample in steps of 4: 1 step an epoch, the "
                               "last with 1 of 4 samples, in order");
  EXPECT_EQ(samples(), (List{5, -6, -6, -6}));
  EXPECT_EQ(samples(), (List{5, -6, -6, -6}));
}

// Three ranks of four samples read the batches of one device with twelve.
TEST_F(Epochs, RanksReadTheirPartsOfABatch) {
  const std::string f = rows("a.bin", 0, 29);
  program_.mesh.data = 3;
  for (std::optional<uint64_t> shuffle :
       {std::optional<uint64_t>(), std::optional<uint64_t>(7)}) {
    List order(29);
    std::iota(order.begin(), order.end(), 0);
    if (shuffle)
      order = orderOf(*shuffle, 0, 29);
    List all;
    for (int64_t rank = 0; rank < 3; ++rank) {
      ASSERT_TRUE(
          DataReader::create(DataInputs::of(program_, rank), {f}, reader_));
      ASSERT_TRUE(reader_.setShuffle(shuffle));
      EXPECT_EQ(reader_.summary().find("29 samples in steps of 12: 3 steps an "
                                       "epoch, the last with 5 of 12 samples"),
                0u);
      for (int64_t step = 0; step < 3; ++step) {
        List wanted;
        for (int64_t i = step * 12 + rank * 4; i < step * 12 + rank * 4 + 4;
             ++i)
          wanted.push_back(i < 29 ? order[size_t(i)]
                                  : -1 - order[size_t(i - 29)]);
        EXPECT_EQ(samples(), wanted) << "rank " << rank << " step " << step;
      }
      EXPECT_EQ(reader_.weight(), rank == 0 ? 32 : rank == 1 ? 8 : 0);
      EXPECT_EQ(reader_.position(), 3);
    }
  }
  countAllLabels();
  const std::string eleven = rows("b.bin", 0, 11);
  EXPECT_EQ(DataReader::create(DataInputs::of(program_, 0),
                               {"tokens=" + eleven, "labels=" + eleven},
                               reader_)
                .message(),
            "'" + eleven + "' has 88 tokens; one step takes 96");
}

TEST_F(Epochs, WithoutIgnoredLabelsAShortBatchIsLeftOut) {
  countAllLabels();
  const std::string f = rows("a.bin", 0, 9);
  ASSERT_TRUE(open({"tokens=" + f, "labels=" + f}));
  EXPECT_EQ(reader_.summary(), "9 samples in steps of 4: 2 steps an epoch, and "
                               "1 sample is left out, in order");
  EXPECT_EQ(samples(), (List{0, 1, 2, 3}));
  EXPECT_EQ(samples(), (List{4, 5, 6, 7}));
  EXPECT_EQ(samples(), (List{0, 1, 2, 3}));
  fails({rows("b.bin", 0, 3)}, Code::BadInput, "has 24 tokens; one step takes");
}

TEST_F(Epochs, AShuffledEpochHasAllSamplesInThePermutationsOrder) {
  ASSERT_TRUE(open({rows("a.bin", 0, 10)}));
  ASSERT_TRUE(reader_.setShuffle(7));
  EXPECT_EQ(reader_.summary(), "10 samples in steps of 4: 3 steps an epoch, "
                               "the last with 2 of 4 samples, shuffled by seed "
                               "7");
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    const List order = orderOf(7, epoch, 10);
    EXPECT_EQ(samples(), List(order.begin(), order.begin() + 4));
    EXPECT_EQ(samples(), List(order.begin() + 4, order.begin() + 8));
    EXPECT_EQ(samples(),
              (List{order[8], order[9], -1 - order[0], -1 - order[1]}));
  }
  // Any position is a start.
  reader_.setPosition(4);
  const List order = orderOf(7, 1, 10);
  EXPECT_EQ(samples(), List(order.begin() + 4, order.begin() + 8));
}

TEST_F(Epochs, EachSampleOnceWhereShortOnesAreLeftOut) {
  countAllLabels();
  const std::string f = rows("a.bin", 0, 10);
  ASSERT_TRUE(open({"tokens=" + f, "labels=" + f}));
  ASSERT_TRUE(reader_.setShuffle(7));
  // Other samples are left out in each epoch.
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    const List order = orderOf(7, epoch, 10);
    EXPECT_EQ(samples(), List(order.begin(), order.begin() + 4));
    EXPECT_EQ(samples(), List(order.begin() + 4, order.begin() + 8));
  }
}

TEST_F(Epochs, SeveralFilesAreOneStream) {
  // Samples cross the border of files: 20 tokens are two and a half.
  std::string one, two;
  for (int64_t i = 0; i < 32; ++i)
    (i < 20 ? one : two) += {char(i / 8), 0};
  file("t-2.bin", two);
  file("t-1.bin", one);
  const std::string list = (dir_ / "t-1.bin") + "," + (dir_ / "t-2.bin");
  for (const std::string &spec : {list, dir_ / "t-*.bin", dir_ / "t-?.bin"}) {
    ASSERT_TRUE(open({spec}));
    EXPECT_EQ(reader_.samples(), 4);
    EXPECT_EQ(samples(), (List{0, 1, 2, 3})) << spec;
  }
  ASSERT_TRUE(open({"tokens=" + list, "labels=" + list + "+1"}));
  EXPECT_EQ(reader_.samples(), 3);
  ASSERT_TRUE(next());
  EXPECT_EQ(read("labels")[7], 1);

  // Arrays add up along their first dimension.
  const std::string a = file("x-1.npy", npy("|u1", "(3, 8)", 24)),
                    b = file("x-2.npy", npy("<i4", "(5, 8)", 160)),
                    c = file("y.npy", npy("|u1", "(3, 7)", 21));
  const std::string labels = "labels=" + rows("l.bin", 0, 12);
  std::string ones = npy("<i4", "(5, 8)", 160);
  for (size_t i = 0; i < 40; ++i)
    ones.replace(ones.size() - 160 + 4 * i, 4, std::string("\2\0\0\0", 4));
  file("x-2.npy", ones);
  ASSERT_TRUE(open({"tokens=" + (dir_ / "x-*.npy"), labels}));
  EXPECT_EQ(reader_.samples(), 8);
  ASSERT_TRUE(next());
  EXPECT_EQ(read("tokens")[23], 1);
  EXPECT_EQ(read("tokens")[24], 2);
  fails({"tokens=" + a + "," + c, labels}, Code::BadInput, "is [3, 7], and '");
  fails({"tokens=" + a + "," + (dir_ / "l.bin"), labels}, Code::BadInput,
        "they are no one stream");
  fails({"tokens=" + a + "," + (dir_ / "none.npy"), labels}, Code::BadInput,
        "can't open");
}

TEST_F(Epochs, JsonLinesOfSeveralFilesAreShuffledAlike) {
  std::string text[2];
  for (int64_t i = 0; i < 10; ++i) {
    std::string row;
    for (int k = 0; k < 8; ++k)
      row += (k ? "," : "") + std::to_string(i);
    text[i / 6] += "{\"tokens\":[" + row + "],\"labels\":[" + row + "]}\n";
  }
  file("a.jsonl", text[0] + "\n");
  file("b.jsonl", "\n");
  file("c.jsonl", text[1]);
  ASSERT_TRUE(open({dir_ / "*.jsonl"}));
  ASSERT_TRUE(reader_.setShuffle(7));
  const List order = orderOf(7, 0, 10);
  EXPECT_EQ(samples(), List(order.begin(), order.begin() + 4));
  EXPECT_EQ(samples(), List(order.begin() + 4, order.begin() + 8));
  EXPECT_EQ(samples(),
            (List{order[8], order[9], -1 - order[0], -1 - order[1]}));
}

TEST_F(Epochs, ListsAndGlobs) {
  for (const char *name : {"b-10", "b-2", "b-a", "x,y", "q[1]"})
    file(name, "x");
  std::vector<std::string> paths;
  auto of = [&](const std::string &text) {
    EXPECT_TRUE(listPaths(text, paths)) << text;
    std::string names;
    for (const std::string &path : paths)
      names += fs::path(path).filename().string() + " ";
    return names;
  };
  EXPECT_EQ(of(dir_ / "b-*"), "b-10 b-2 b-a ");
  EXPECT_EQ(of((dir_ / "b-a") + "," + (dir_ / "b-[0-9]*")), "b-a b-10 b-2 ");
  EXPECT_EQ(of(dir_ / "x,y"), "x,y ");
  EXPECT_EQ(of(dir_ / "q[1]"), "q[1] ");
  EXPECT_EQ(of("none"), "none ");
  Status s = listPaths(dir_ / "c-*", paths);
  EXPECT_EQ(s.code(), Code::BadInput);
  EXPECT_EQ(s.message(), "no file matches '" + (dir_ / "c-*") + "'");
  EXPECT_EQ(listPaths("a,,b", paths).code(), Code::Usage);
  EXPECT_EQ(listPaths("", paths).code(), Code::Usage);
}

TEST_F(Epochs, NumbersOfStepsCantBeShuffled) {
  static const TensorInfo inputs[] = {{.name = "rate",
                                       .type = DType::F32,
                                       .rank = 0,
                                       .dims = {},
                                       .offset = 0,
                                       .role = Role::Batch,
                                       .feed = Feed::Data}};
  ASSERT_TRUE(DataReader::create(
      {{&inputs[0]}, 4}, {"rate=" + file("r.npy", npy("|u1", "(5,)", 5))},
      reader_));
  EXPECT_EQ(reader_.stepsPerEpoch(), 5);
  EXPECT_EQ(reader_.setShuffle(1).code(), Code::Usage);
  EXPECT_TRUE(reader_.setShuffle(std::nullopt));
}

//===----------------------------------------------------------------------===//

class EpochTrainer : public Trainer {
protected:
  EpochTrainer() {
    // 11 samples: three steps an epoch, the last with 3 of 4.
    std::ofstream lines(dir_ / "a.jsonl");
    for (int i = 0; i < 11; ++i) {
      std::string row;
      for (int k = 0; k < 3 + i % 6; ++k)
        row += (k ? "," : "") + std::to_string((i * 7 + k * k) % 97);
      lines << "{\"tokens\":[" + row + "],\"labels\":[" + row + "]}\n";
    }
  }
  Result run(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--data", *this / "a.jsonl"});
    return finish(start(arguments));
  }
  std::string checkpoint(const char *name) {
    return read((*this / name) + "/checkpoint.safetensors");
  }
};

TEST_F(EpochTrainer, EndsAtTheEndOfTheLastEpoch) {
  Result r = run({"--epochs", "2"});
  ASSERT_EQ(r.code, 0) << r.error;
  EXPECT_EQ(r.error, "");
  EXPECT_EQ(r.out.find("data: 11 samples in steps of 4: 3 steps an epoch, the "
                       "last with 3 of 4 samples, in order; 2 epochs end at "
                       "step 6\nstep 1/6  loss "),
            0u)
      << r.out;
  EXPECT_EQ(std::count(r.out.begin(), r.out.end(), '\n'), 7);
  r = run({"--epochs", "2", "--steps", "4"});
  EXPECT_NE(r.out.find("step 4/4"), std::string::npos);
  r = run({"--epochs", "1", "--steps", "4"});
  EXPECT_NE(r.out.find("; 1 epoch ends at step 3\n"), std::string::npos);
  EXPECT_NE(r.out.find("step 3/3"), std::string::npos);
  EXPECT_EQ(run({"--epochs", "0"}).code, 2);
  EXPECT_EQ(run({"--epochs", "4294967296"}).code, 2);
  EXPECT_EQ(run({}).error.find("error: --steps or --epochs is missing"), 0u);
}

TEST_F(EpochTrainer, ResumesInTheMiddleOfAShuffledEpoch) {
  ASSERT_EQ(run({"--shuffle", "5", "--epochs", "3", "--log", *this / "whole",
                 "--save", *this / "a", "--threads", "1"})
                .code,
            0);
  // Steps 1 to 4 end in the middle of the second epoch.
  ASSERT_EQ(run({"--shuffle", "5", "--steps", "4", "--log", *this / "parts",
                 "--save", *this / "b", "--threads", "2"})
                .code,
            0);
  for (const char *threads : {"3", "1"}) {
    const Result r =
        run({"--resume", *this / "b", "--epochs", "3", "--log", *this / "parts",
             "--save", *this / "b", "--threads", threads});
    ASSERT_EQ(r.code, 0) << r.error;
    EXPECT_EQ(r.error, "");
    EXPECT_NE(r.out.find("shuffled by seed 5; 3 epochs end at step 9\n"),
              std::string::npos)
        << r.out;
    // The second time there is nothing left to do.
    EXPECT_EQ(field(*this / "parts", "loss"), field(*this / "whole", "loss"));
    EXPECT_EQ(checkpoint("a"), checkpoint("b"));
  }
  EXPECT_EQ(field(*this / "whole", "step").size(), 9u);

  // Another order is another run.
  ASSERT_EQ(
      run({"--shuffle", "6", "--epochs", "3", "--save", *this / "c"}).code, 0);
  EXPECT_NE(checkpoint("a"), checkpoint("c"));
  const Result r =
      run({"--resume", *this / "b", "--epochs", "4", "--shuffle", "5"});
  EXPECT_EQ(r.code, 2);
  EXPECT_EQ(r.error.find("error: --shuffle can't be given with --resume"), 0u);
}

TEST_F(EpochTrainer, WarnsOfOtherDataBehindACheckpoint) {
  ASSERT_EQ(run({"--epochs", "1", "--save", *this / "a"}).code, 0);
  std::ofstream(*this / "a.jsonl", std::ios::app)
      << "{\"tokens\":[1],\"labels\":[1]}\n";
  const Result r = run({"--steps", "1", "--resume", *this / "a"});
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.error, "warning: the checkpoint is of data with 11 samples, and "
                     "this has 12: its position is of another epoch\n");
}

TEST_F(EpochTrainer, ABadLineIsOneMessageBeforeTheFirstStep) {
  std::ofstream(*this / "a.jsonl", std::ios::app) << "{\"tokens\":[1,x]}\n";
  const Result r = run({"--epochs", "1"});
  EXPECT_EQ(r.code, 1);
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(r.error, "error: '" + (*this / "a.jsonl") +
                         "', line 12, column 14: a whole number expected\n");
}

TEST_F(EpochTrainer, EvaluationsChangeNothing) {
  std::ofstream(*this / "eval.jsonl") << "{\"tokens\":[1,2],\"labels\":[3,4]}\n"
                                         "{\"tokens\":[5],\"labels\":[6]}\n";
  for (const char *clips : {"", "1"}) {
    if (*clips)
      setenv("TMC_TINY_CLIPS", clips, 1);
    ASSERT_EQ(
        run({"--epochs", "2", "--save", *this / "a", "--log", *this / "plain"})
            .code,
        0);
    const Result r =
        run({"--epochs", "2", "--save", *this / "b", "--log", *this / "log",
             "--eval", *this / "eval.jsonl", "--eval-every", "4", "--poison"});
    ASSERT_EQ(r.code, 0) << r.error;
    EXPECT_EQ(checkpoint("a"), checkpoint("b"));
    EXPECT_EQ(field(*this / "log", "loss"), field(*this / "plain", "loss"));
    EXPECT_EQ(field(*this / "log", "eval_loss").size(), 2u);
    EXPECT_NE(r.out.find("\neval loss "), std::string::npos) << r.out;
    EXPECT_NE(r.out.find(" after step 4, 2 samples, "), std::string::npos);
    unsetenv("TMC_TINY_CLIPS");
  }
  // No step: the values as they are.
  const Result alone = run({"--steps", "0", "--resume", *this / "a", "--eval",
                            *this / "eval.jsonl", "--log", *this / "alone"});
  EXPECT_EQ(alone.code, 0) << alone.error;
  EXPECT_EQ(field(*this / "alone", "eval_loss").at(0),
            field(*this / "log", "eval_loss").at(1));
  EXPECT_EQ(run({"--steps", "1", "--eval-every", "1"}).code, 2);
  const Result none = run({"--steps", "1", "--eval", *this / "none.jsonl"});
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.error.find("error: --eval: can't open '"), 0u) << none.error;
  std::ofstream(*this / "empty.jsonl") << "{\"tokens\":[1],\"labels\":[]}\n";
  EXPECT_EQ(run({"--steps", "1", "--eval", *this / "empty.jsonl"}).error,
            "error: --eval: no label of the data counts\n");
}

// A batch counts by its labels: 1 of 3, and 2 of 3.
TEST_F(EpochTrainer, AnEvaluationIsAMeanOverLabels) {
  const std::string first = "{\"tokens\":[1],\"labels\":[2]}\n",
                    blank = "{\"tokens\":[9],\"labels\":[]}\n",
                    last = "{\"tokens\":[3,4],\"labels\":[5,6]}\n";
  std::ofstream(*this / "first.jsonl") << first;
  std::ofstream(*this / "last.jsonl") << last;
  std::ofstream(*this / "both.jsonl") << first + blank + blank + blank + last;
  std::map<std::string, double> loss;
  for (const char *name : {"first", "last", "both"}) {
    const Result r = run({"--steps", "0", "--log", *this / name, "--eval",
                          (*this / name) + ".jsonl"});
    ASSERT_EQ(r.code, 0) << r.error;
    loss[name] = std::stod(field(*this / name, "eval_loss").at(0));
  }
  EXPECT_NE(loss["first"], loss["last"]);
  EXPECT_NEAR(loss["both"], (loss["first"] + 2 * loss["last"]) / 3, 1e-7);
}

// The copies in a short batch change no bit: the loss is a mean over labels.
TEST_F(EpochTrainer, CopiesDontCount) {
  std::ofstream(*this / "one.jsonl") << "{\"tokens\":[1,2],\"labels\":[3,4]}\n";
  std::ofstream(*this / "four.jsonl")
      << "{\"tokens\":[1,2],\"labels\":[3,4]}\n"
         "{\"tokens\":[9],\"labels\":[]}\n{\"tokens\":[8],\"labels\":[]}\n"
         "{\"tokens\":[7],\"labels\":[]}\n";
  for (const char *name : {"one", "four"}) {
    const Result r = finish(start({"--steps", "1", "--log", *this / name,
                                   "--data", (*this / name) + ".jsonl"}));
    ASSERT_EQ(r.code, 0) << r.error;
  }
  EXPECT_EQ(field(*this / "one", "loss"), field(*this / "four", "loss"));
}
