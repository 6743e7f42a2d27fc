//===- ValuesFileTest.cpp - files that several ranks write ----------------===//

#include "RanksTesting.h"
#include "Testing.h"

#include "runtime/step/File.h"
#include "runtime/step/ValuesFile.h"
#include "test/unit/TemporaryDirectory.h"

#include <cmath>
#include <filesystem>
#include <fstream>

using namespace tmc;
using namespace tmc::test;
using namespace tmc::values;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kShardUnit = 4096;
constexpr int64_t kPiece = 1 << 20;

/// Three tensors that are cut together, two that all ranks hold, and one whose
/// columns ranks of tp have. "cut" spans several pieces, and a border of shards
/// lies within "table" or "small".
class Model {
public:
  explicit Model(int ranks) : Model(Mesh{.data = ranks}) {}
  explicit Model(const Mesh &mesh) : device_(deviceWith(nullptr)) {
    const int ranks = mesh.data;
    const int64_t counts[] = {700001, 5000, 1300000};
    const char *names[] = {"cut", "small", "table"};
    int64_t all = 0;
    for (const int64_t count : counts)
      all += count;
    const int64_t shard = (all / ranks / kShardUnit + 1) * kShardUnit;
    int64_t from = 0;
    for (int i = 0; i < 3; ++i) {
      add(names[i], counts[i], 0);
      if (ranks > 1) {
        tensors_[size_t(i)].shard = shard;
        tensors_[size_t(i)].shardFrom = from;
      } else {
        tensors_[size_t(i)].offset = from * 4;
      }
      from += counts[i];
    }
    bytes_ = (ranks > 1 ? shard : from) * 4;
    addColumns(mesh);
    add("whole", 900000, bytes_);
    add("scale", 1, bytes_ + 900000 * 4);
    bytes_ += 900001 * 4;
  }

  /// Reads all tensors as the rank of `peers`, and compares them with those
  /// that were written.
  void check(Peers *peers) {
    fill(peers);
    for (const TensorInfo &info : tensors_)
      for (const int64_t first : {int64_t(0), info.elements() / 3}) {
        std::vector<float> values(size_t(info.elements() - first));
        EXPECT_TRUE(Homes(*device_).read(info, first * 4, values.data(),
                                         int64_t(values.size()) * 4));
        int64_t wrong = 0;
        for (size_t i = 0; i < values.size(); ++i)
          wrong += values[i] != numberOf(info, size_t(first) + i);
        EXPECT_EQ(wrong, 0) << info.name << " from " << first;
      }
  }

  /// Writes a file as the rank of `peers`; null: alone.
  Status write(Peers *peers, const std::string &directory,
               std::optional<DType> type = {}, double broken = 0,
               const std::string &where = "table") {
    fill(peers, broken, where);
    FileContents contents;
    for (const TensorInfo &info : tensors_)
      contents.tensors.push_back({info.name, &info});
    contents.metadata = {{"format", "test"}};
    contents.hasSum = true;
    contents.type = type;
    return writeFile(Homes(*device_), directory, "f", contents);
  }

private:
  static float numberOf(const TensorInfo &info, size_t i) {
    return float(i % 60000) + float(info.name[0]);
  }

  void fill(Peers *peers, double broken = 0, const std::string &where = "") {
    device_ = deviceWith(peers);
    EXPECT_TRUE(device_->allocateArena(SpaceKind::Device, bytes_));
    for (const TensorInfo &info : tensors_) {
      std::vector<float> values(size_t(info.elements()));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = numberOf(info, i);
      // The last number is another rank's.
      if (broken != 0 && info.name == where)
        values.back() = float(broken);
      EXPECT_TRUE(Homes(*device_).write(info, 0, values.data(), info.bytes()));
    }
  }

  /// 600 columns of 1,000 rows.
  void addColumns(const Mesh &mesh) {
    add("columns", 600000, bytes_);
    int64_t own = 600000 / mesh.tensor;
    if (mesh.tensor > 1) {
      tensors_.back().chunk = 600 / mesh.tensor;
      tensors_.back().pieces = mesh.tensor;
      if (mesh.data > 1)
        own = tensors_.back().shard =
            (own / mesh.data / kShardUnit + 1) * kShardUnit;
    }
    bytes_ += own * 4;
  }

  void add(const char *name, int64_t count, int64_t offset) {
    tensors_.push_back({.name = name,
                        .type = DType::F32,
                        .rank = 1,
                        .dims = {count},
                        .offset = offset,
                        .role = Role::Param,
                        .trainable = true});
  }

  std::unique_ptr<Device> device_;
  std::vector<TensorInfo> tensors_;
  int64_t bytes_ = 0;
};

std::string get(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ValuesFile : public ::testing::Test {
protected:
  std::string alone(std::optional<DType> type = {}) {
    EXPECT_TRUE(Model(1).write(nullptr, *this / "one", type));
    return get(*this / "one/f");
  }
  std::string operator/(const std::string &name) const { return dir_ / name; }
  TemporaryDirectory dir_;
};

} // namespace

TEST_F(ValuesFile, AnyNumberOfRanksWritesTheSameBytes) {
  for (const std::optional<DType> type :
       {std::optional<DType>(), std::optional(DType::BF16)}) {
    const std::string one = alone(type);
    EXPECT_GT(one.size(), size_t(5 * kPiece));
    for (int ranks : {2, 3, 4, 7})
      for (const bool isShared : {true, false}) {
        const std::string at = *this / "many";
        onRanks(ranks, [&](Threads &peers, int rank) {
          const std::string own =
              isShared || rank == 0 ? at : at + std::to_string(rank);
          EXPECT_TRUE(Model(ranks).write(&peers, own, type));
          // In one folder no tensor travels.
          const int64_t travelled = peers.sharedBytes;
          if (isShared)
            EXPECT_LT(travelled, 4096);
          else
            EXPECT_GT(travelled, 2000000 * 4);
        });
        EXPECT_TRUE(get(at + "/f") == one) << ranks << " " << isShared;
        EXPECT_EQ(std::distance(fs::directory_iterator(at), {}), 1);
        EXPECT_FALSE(fs::exists(at + "1"));
        fs::remove_all(at);
      }
  }
}

// Ranks that share heads and columns have pieces of a tensor's rows, and shards
// of these pieces.
TEST_F(ValuesFile, AnyMeshWritesTheSameBytes) {
  const std::string one = alone();
  for (const Mesh mesh : {Mesh{.tensor = 2}, Mesh{.data = 2, .tensor = 2},
                          Mesh{.data = 3, .tensor = 2}, Mesh{.tensor = 3}})
    for (const bool isShared : {true, false}) {
      const std::string at = *this / "many";
      onMesh(mesh, [&](Threads &peers, int rank) {
        const std::string own =
            isShared || rank == 0 ? at : at + std::to_string(rank);
        EXPECT_TRUE(Model(mesh).write(&peers, own));
      });
      EXPECT_TRUE(get(at + "/f") == one) << mesh.text() << " " << isShared;
      EXPECT_EQ(std::distance(fs::directory_iterator(at), {}), 1);
      fs::remove_all(at);
    }
}

TEST_F(ValuesFile, AnyMeshReadsWhatItWrote) {
  for (const Mesh mesh : {Mesh{.data = 2}, Mesh{.tensor = 2},
                          Mesh{.data = 2, .tensor = 2}, Mesh{.tensor = 3}})
    onMesh(mesh, [&](Threads &peers, int) { Model(mesh).check(&peers); });
}

// The folder of rank 1 has another file of that name: its bytes are lost.
TEST_F(ValuesFile, BytesThatDontArriveAreFound) {
  class Pretends : public Threads {
  public:
    Pretends(Room &room, int rank, std::string at)
        : Threads(room, rank), at_(std::move(at)) {}
    Status share(Axis axis, int from, void *data, int64_t bytes) override {
      Status done = Threads::share(axis, from, data, bytes);
      if (const std::string name(
              static_cast<char *>(data),
              strnlen(static_cast<char *>(data), size_t(bytes)));
          place(axis) == 1 && name.find(".f.tmp.") == 0) {
        fs::create_directory(at_ + "1");
        fs::copy_file(at_ + "/" + name, at_ + "1/" + name);
      }
      return done;
    }

  private:
    const std::string at_;
  };
  const std::string at = *this / "many";
  Room room(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      Pretends peers(room, rank, at);
      const Status s = Model(2).write(&peers, rank ? at + "1" : at);
      EXPECT_EQ(s.code(), Code::World) << rank;
      EXPECT_NE(s.message().find("rank 1 wrote aren't in 'f'"),
                std::string::npos)
          << s.message();
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_TRUE(fs::is_empty(at));
}

// The rank with the fault has its own words, and the others name it.
TEST_F(ValuesFile, AnErrorOfOneRankIsOneOfAll) {
  for (const auto &[ranks, isShared, where] : {std::tuple(2, true, "table"),
                                               {3, true, "table"},
                                               {3, true, "whole"},
                                               {2, false, "table"},
                                               {3, false, "whole"}}) {
    const std::string at = *this / "many";
    fs::create_directory(at);
    std::ofstream(at + "/f") << "old";
    onRanks(ranks, [&, ranks = ranks, isShared = isShared,
                    where = where](Threads &peers, int rank) {
      const std::string own =
          isShared || rank == 0 ? at : at + std::to_string(rank);
      const Status s = Model(ranks).write(&peers, own, DType::F16, 1e6, where);
      EXPECT_EQ(s.code(), Code::BadInput);
      const int culprit = isShared ? ranks - 1 : 0;
      const std::string words =
          "'" + std::string(where) +
          "' has numbers that f16 can't hold; 'f' isn't written";
      EXPECT_EQ(s.message(),
                rank == culprit
                    ? words
                    : "rank " + std::to_string(culprit) + ": " + words);
    });
    EXPECT_EQ(get(at + "/f"), "old");
    EXPECT_EQ(std::distance(fs::directory_iterator(at), {}), 1);
  }
}

TEST_F(ValuesFile, AFiniteValueStays) {
  const std::string one = alone();
  for (const int ranks : {2, 3}) {
    const std::string at = *this / "one";
    onRanks(ranks, [&](Threads &peers, int rank) {
      const Status s = Model(ranks).write(&peers, at, {}, NAN);
      EXPECT_EQ(s.code(), Code::BadInput);
      EXPECT_EQ(s.message(), std::string(rank ? "rank 0: " : "") +
                                 "'table' isn't finite after step 0; '" + at +
                                 "/f' is, and stays as it was");
    });
    EXPECT_TRUE(get(at + "/f") == one);
    EXPECT_EQ(std::distance(fs::directory_iterator(at), {}), 1);
  }
}

TEST_F(ValuesFile, JoinsTheFileOfAnotherProcessAlone) {
  const std::string at = *this / "d";
  AtomicFile file;
  ASSERT_TRUE(file.create(at, "f"));
  ASSERT_TRUE(file.resize(10));
  const auto joins = [&](const std::string &name, int64_t bytes) {
    AtomicFile other;
    return other.join(at, "f", name, bytes);
  };
  EXPECT_TRUE(joins(file.temporary(), 10));
  EXPECT_FALSE(joins(file.temporary(), 11));
  EXPECT_FALSE(joins(file.temporary() + "0", 10));
  std::ofstream(at + "/secret") << "0123456789";
  fs::create_symlink(at + "/" + file.temporary(), at + "/.f.tmp.link");
  fs::create_hard_link(at + "/secret", at + "/.f.tmp.hard");
  for (const char *name : {"secret", "../d/secret", ".f.tmp./../secret",
                           ".f.tmp.link", ".f.tmp.hard", ".f.tmp.", ""})
    EXPECT_FALSE(joins(name, 10)) << name;
  EXPECT_TRUE(fs::exists(at + "/" + file.temporary()));
}
