//===- SavedWeightsTest.cpp - which tensors a file of weights has ---------===//

#include "TrainerTesting.h"

#include "runtime/step/Safetensors.h"

using namespace tmc;
using namespace tmc::test;

namespace {

class SavedWeights : public Trainer {
protected:
  /// "name:type " for each tensor of the file that a run writes.
  std::string saved(std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--steps", "1", "--save", *this / "run"});
    const Result r = train(flags);
    EXPECT_EQ(r.code, 0) << r.error;
    SafetensorsFile file;
    EXPECT_TRUE(SafetensorsFile::open(*this / "run/model.safetensors", file));
    std::string names;
    for (const auto &[name, tensor] : file.tensors())
      names += name + ":" + nameOf(tensor.type) + " ";
    return names;
  }
};

TEST_F(SavedWeights, WordsOfTheFlag) {
  EXPECT_EQ(saved({"--save-weights"}), "embed:f32 head:f32 ");
  EXPECT_EQ(saved({"--save-weights=trained"}), "embed:f32 head:f32 ");
  EXPECT_EQ(saved({"--save-weights=trained,bf16"}), "embed:bf16 head:bf16 ");
  for (const char *words : {"", "f8", "bf16,", "trained,all"}) {
    const Result r = train({"--steps", "1", "--save", *this / "run",
                            std::string("--save-weights=") + words});
    EXPECT_EQ(r.code, 2) << words;
    EXPECT_EQ(r.error.find("error: --save-weights takes f32, bf16, f16 and "
                           "trained, not '"),
              0u)
        << r.error;
  }
}

TEST_F(SavedWeights, PrefixesAreUndone) {
  EXPECT_EQ(saved({"--save-weights", "--save-prefix", "em=model.em"}),
            "head:f32 model.embed:f32 ");
  EXPECT_EQ(saved({"--save-weights", "--save-prefix=emb="}),
            "ed:f32 head:f32 ");
  EXPECT_EQ(saved({"--save-weights", "--save-prefix==m."}),
            "m.embed:f32 m.head:f32 ");
  struct {
    const char *prefix, *fault;
    int code;
  } const kCases[] = {
      {"embed=head", "two tensors would be 'head' in the file", 1},
      {"embed=", "'embed': its name in the file is empty", 1},
      {"body=", "--save-prefix: no parameter's name begins with 'body'", 2},
      {"embed", "--save-prefix takes OLD=NEW, not 'embed'", 2}};
  for (const auto &[prefix, fault, code] : kCases) {
    const Result r = train({"--steps", "1", "--save", *this / "bad",
                            "--save-weights", "--save-prefix", prefix});
    EXPECT_EQ(r.code, code) << prefix;
    EXPECT_NE(r.error.find(fault), std::string::npos) << r.error;
    // Before the first step: no run of hours ends so.
    EXPECT_EQ(r.out, "");
    EXPECT_FALSE(std::filesystem::exists(*this / "bad"));
  }
  EXPECT_EQ(train({"--steps", "1", "--save-prefix", "a=b"}).code, 2);
}

} // namespace
