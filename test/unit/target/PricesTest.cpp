// PricesTest.cpp - the price of a kernel, its source, and what a card measured.

#include "compiler/support/Json.h"
#include "compiler/target/Target.h"

#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace tmc;
namespace json = llvm::json;

namespace {

KernelWork product(int64_t m, int64_t n, int64_t k) {
  KernelWork work;
  work.family = "Matmul";
  work.products = ProductType::Bits16;
  work.flops = 2 * m * n * k;
  work.bytes = 2 * (m * k + k * n + m * n);
  work.object =
      "Matmul lhs=BF16 rhs=BF16 out=BF16 batch=1 m=" + std::to_string(m) +
      " n=" + std::to_string(n) + " k=" + std::to_string(k) +
      " transposeLhs=false bias=false";
  return work;
}

/// A card of ten processors, a second for each operation of a tile.
KernelClass tiles() {
  KernelClass its;
  its.family = "Matmul";
  its.where = "products=16-bit";
  its.roofline = {0, 10, 1e18};
  its.tileSeconds = 1;
  return its;
}

PriceSource sourceOf(const Target &target, const KernelWork &work) {
  return target.price(work).source;
}

} // namespace

TEST(KernelClass, HoldsWhereAllConditionsDo) {
  KernelWork work = product(64, 64, 768);
  work.object += " dropout=0.10000000000000001";
  auto holds = [&](const std::string &where) {
    KernelClass its;
    its.family = "Matmul";
    its.where = where;
    EXPECT_EQ(faultOfConditions(where), "") << where;
    return its.holds(work);
  };
  EXPECT_TRUE(holds(""));
  EXPECT_TRUE(holds("products=16-bit k<=768 dropout>0 transposeLhs=false"));
  EXPECT_TRUE(holds("m=64 k>=768 launches=1"));
  EXPECT_FALSE(holds("products=tf32"));
  EXPECT_FALSE(holds("k<768"));
  EXPECT_FALSE(holds("k>768"));
  EXPECT_FALSE(holds("products=16-bit transposeLhs=true"));
  // A parameter that the object lacks, and one whose name ends like another's.
  EXPECT_FALSE(holds("headDim<=64"));
  EXPECT_FALSE(holds("hs=BF16"));
  // A word isn't smaller or larger than a number.
  EXPECT_FALSE(holds("lhs<=5"));
  KernelClass other;
  other.family = "Attention";
  EXPECT_FALSE(other.holds(work));
  other.family = "*";
  EXPECT_TRUE(other.holds(work));
  for (const char *wrong : {"k", "=5", "k<", "k<x", "k==3", "k<>3"})
    EXPECT_NE(faultOfConditions(wrong), "") << wrong;
}

TEST(KernelClass, ProductsTakeWholeWaves) {
  const KernelClass its = tiles();
  // Ten tiles of 128 x 256 on ten processors. One tile more is better cut into
  // smaller ones, which take three waves.
  const double wave = its.seconds(product(1280, 256, 1), 10);
  EXPECT_EQ(wave, 1 + 2 * 128 * 256);
  EXPECT_EQ(its.seconds(product(1408, 256, 1), 10), 3 * (1 + 2 * 128 * 128));
  EXPECT_EQ(its.seconds(product(2560, 256, 1), 10), 2 * wave);
  // The better direction of the tiles counts.
  EXPECT_EQ(its.seconds(product(256, 1280, 1), 10), wave);
  // Alone, a tile's k is cut into eight parts; the result is small.
  EXPECT_EQ(its.seconds(product(128, 128, 800), 10),
            1 + 2 * 128 * 128 * 100 + 2 * 4 * 128 * 128 * 8 / 1e18);
  // Without tiles it is a roofline.
  KernelClass plain = its;
  plain.tileSeconds = 0;
  EXPECT_EQ(plain.seconds(product(128, 128, 800), 10),
            2. * 128 * 128 * 800 / 10);
}

TEST(KernelClass, ALaunchTimeForEachLaunch) {
  KernelClass its;
  its.family = "*";
  its.roofline = {3, 2, 5};
  KernelWork work;
  work.launches = 4, work.flops = 10, work.bytes = 100;
  EXPECT_EQ(its.seconds(work, 0), 4 * 3 + 100 / 5);
  work.flops = 100;
  EXPECT_EQ(its.seconds(work, 0), 4 * 3 + 100 / 2);
}

TEST(Prices, TheBestKnownSourceCounts) {
  Target target = *findTarget("cuda:h200");
  const KernelWork work = product(8192, 768, 768);
  const std::string current = kernelVersion("Matmul");
  ASSERT_NE(current, "");
  auto its =
      std::find_if(target.classes.begin(), target.classes.end(),
                   [&](const KernelClass &each) { return each.holds(work); });
  ASSERT_NE(its, target.classes.end());
  its->version = current;
  EXPECT_EQ(sourceOf(target, work), PriceSource::Class);
  its->version = "0";
  EXPECT_EQ(sourceOf(target, work), PriceSource::Stale);
  its->version = "";
  EXPECT_EQ(sourceOf(target, work), PriceSource::Scaled);
  its->version = current;
  target.areClassesScaled = true;
  EXPECT_EQ(sourceOf(target, work), PriceSource::Scaled);
  // A calibration's family, of this type alone.
  target.rates = PriceSource::Measured;
  target.families["Matmul"][ProductType::F32] = {1, 1, 1};
  EXPECT_EQ(sourceOf(target, work), PriceSource::Scaled);
  target.families["Matmul"][ProductType::Bits16] = {1, 1e30, 1e30};
  EXPECT_EQ(sourceOf(target, work), PriceSource::Measured);
  EXPECT_EQ(target.price(work).picoseconds, 1'000'000'000'000);
  // Its own time.
  target.ownSeconds[work.object] = 2;
  EXPECT_EQ(target.price(work).picoseconds, 2'000'000'000'000);
  KernelWork unknown = work;
  unknown.object.clear();
  EXPECT_EQ(target.price(unknown).picoseconds, 1'000'000'000'000);
  target.families.clear();
  target.classes.clear();
  target.rates = PriceSource::Published;
  EXPECT_EQ(sourceOf(target, product(1, 2, 3)), PriceSource::Published);
  EXPECT_EQ(sourceOf(*findTarget("cpu"), work), PriceSource::Nominal);
}

/// The interval holds the price, and is narrower the better the source is.
TEST(Prices, ALibrarysKernelCostsAsMuchAsOurs) {
  Target target;
  target.rooflines[ProductType::F32] = {0, 1e12, 1e12};
  KernelClass own;
  own.family = "Attention";
  own.where = "products=16-bit headDim<=64";
  own.roofline = {1e-6, 1e12, 1e18};
  own.version = kernelVersion("Attention");
  KernelClass any; // For all families but this one.
  any.family = "*";
  any.roofline = {1, 1e12, 1e18};
  target.classes = {own, any};
  KernelWork work;
  work.products = ProductType::Bits16;
  work.flops = 4000000;
  work.family = "Attention";
  work.object = "Attention type=BF16 headDim=64";
  KernelWork its = work;
  its.family = "CudnnAttention";
  its.object = "CudnnAttention type=BF16 headDim=64";
  // 1 us + 4e6 / 1e12 s. The library's wasn't measured.
  EXPECT_EQ(target.price(work).picoseconds, 5000000);
  EXPECT_EQ(sourceOf(target, work), PriceSource::Class);
  EXPECT_EQ(target.price(its).picoseconds, 5000000);
  EXPECT_EQ(sourceOf(target, its), PriceSource::Scaled);
  EXPECT_EQ(target.price(its).most, 7500000); // half as much again
  // Our own time of this kernel, in place of the class.
  target.ownSeconds[work.object] = 3e-6;
  EXPECT_EQ(sourceOf(target, work), PriceSource::Measured);
  EXPECT_EQ(target.price(its).picoseconds, 3000000);
  EXPECT_EQ(sourceOf(target, its), PriceSource::Scaled);
  // A class of the library's own.
  KernelClass library = own;
  library.family = "CudnnAttention";
  library.roofline = {1e-6, 4e12, 1e18};
  library.version = kernelVersion("CudnnAttention");
  EXPECT_FALSE(library.version.empty());
  target.classes.insert(target.classes.begin(), library);
  EXPECT_EQ(target.price(its).picoseconds, 2000000);
  EXPECT_EQ(sourceOf(target, its), PriceSource::Class);
  // And its own time.
  target.ownSeconds[its.object] = 1e-6;
  EXPECT_EQ(target.price(its).picoseconds, 1000000);
  EXPECT_EQ(sourceOf(target, its), PriceSource::Measured);
  EXPECT_EQ(target.price(work).picoseconds, 3000000);
}

TEST(Prices, LimitsSayHowMuchIsKnown) {
  Target target = *findTarget("cuda:h200");
  const KernelWork work = product(8192, 3072, 768);
  auto width = [&] {
    const Price price = target.price(work);
    EXPECT_LE(price.least, price.picoseconds);
    EXPECT_GE(price.most, price.picoseconds);
    return double(price.most) / double(price.least);
  };
  const double ofClass = width();
  target.areClassesScaled = true;
  const double scaled = width();
  target.classes.clear();
  const double published = width();
  target.ownSeconds[work.object] = 60e-6;
  const double own = width();
  EXPECT_LT(own, ofClass);
  EXPECT_LT(ofClass, scaled);
  EXPECT_LT(scaled, published);
  // A processor's price has no limits, nor has a sum with such a price.
  const Price nominal = findTarget("cpu")->price(work);
  EXPECT_LT(nominal.most, nominal.least);
  PriceSum sum;
  sum.add(target.price(work), 3, "Matmul");
  EXPECT_EQ(sum.least, 3 * target.price(work).least);
  EXPECT_EQ(sum.total(), 3 * target.price(work).picoseconds);
  EXPECT_EQ(sum.mainSource(), PriceSource::Measured);
  sum.add(nominal, 1, "Matmul");
  EXPECT_LT(sum.most, sum.least);
  sum.add(target.price(work), 1, "Matmul");
  EXPECT_LT(sum.most, sum.least);
}

/// On another card kernels reach the same share of its peak rates.
TEST(Prices, OtherCardsScaleWhatWasMeasured) {
  auto rates = [](const char *name, ProductType type) {
    KernelWork work = product(8192, 8192, 8192);
    work.products = type;
    const Target target = *findTarget(name);
    auto its =
        std::find_if(target.classes.begin(), target.classes.end(),
                     [&](const KernelClass &each) { return each.holds(work); });
    EXPECT_NE(its, target.classes.end());
    return its->roofline;
  };
  const Roofline measured = rates("cuda:h200", ProductType::Bits16);
  const Roofline scaled = rates("cuda:a100-40", ProductType::Bits16);
  EXPECT_DOUBLE_EQ(scaled.flopsPerSecond, measured.flopsPerSecond * 312 / 989);
  EXPECT_DOUBLE_EQ(scaled.bytesPerSecond,
                   measured.bytesPerSecond * 1555 / 4800);
  EXPECT_EQ(scaled.launchSeconds, measured.launchSeconds);
  EXPECT_DOUBLE_EQ(rates("cuda:a100-40", ProductType::TF32).flopsPerSecond,
                   rates("cuda:h200", ProductType::TF32).flopsPerSecond * 156 /
                       494.5);
  EXPECT_TRUE(findTarget("cuda:a100-40")->areClassesScaled);
  EXPECT_FALSE(findTarget("cuda:h200")->areClassesScaled);
  EXPECT_EQ(findTarget("cuda:sm_90")->standsFor, "cuda:h200");
  EXPECT_EQ(findTarget("cuda:h200")->standsFor, "");
  // A T4 multiplies no TF32.
  const Target t4 = *findTarget("cuda:t4");
  for (const KernelClass &its : t4.classes)
    EXPECT_EQ(its.where.find("tf32"), std::string::npos) << its.where;
}

/// Products of each type are priced as products, in every family: no slower
/// than four times what the card's peak rate says, and no faster than it.
TEST(Prices, ProductsOfAllTypesArePricedAsProducts) {
  for (const char *card : {"cuda:h200", "cuda:rtx3060", "cuda:v100"}) {
    const Target target = *findTarget(card);
    for (const char *family : {"Matmul", "MatmulCodes", "Conv",
                               "ConvGradFilter", "LinearCrossEntropyWithGrad"})
      for (ProductType type : kProductTypes) {
        if (!target.rooflines.count(type))
          continue;
        KernelWork work = product(8192, 8192, 8192);
        work.object.replace(0, work.family.size(), family);
        work.family = family;
        work.products = type;
        work.hasProducts = true;
        const double peak =
            double(work.flops) / target.rooflines.at(type).flopsPerSecond;
        const double seconds = double(target.price(work).picoseconds) * 1e-12;
        EXPECT_LT(seconds, 4 * peak) << card << family << nameOf(type);
        EXPECT_GT(seconds, 0.9 * peak) << card << family << nameOf(type);
      }
  }
}

//===----------------------------------------------------------------------===//
// The measurement of an H200
//===----------------------------------------------------------------------===//

/// The prices of the kernels of six steps, all runs of a step together, are
/// within a tenth of what the kernels took; those of single runs are right to a
/// twentieth in the median, and nine of ten to a fifth.
TEST(Prices, SayWhatTheCardMeasured) {
  auto file = llvm::MemoryBuffer::getFile(
      TMC_SOURCES "/bench/gpu/measured/h200/kernels.json");
  ASSERT_TRUE(bool(file));
  auto read = parseJson((*file)->getBuffer());
  ASSERT_TRUE(bool(read));
  const Target target = *findTarget("cuda:h200");
  std::map<std::string, std::pair<double, double>> steps;
  std::vector<double> errors; // Of each run.
  for (const json::Value &value : *read->getAsObject()->getArray("rows")) {
    const json::Object &row = *value.getAsObject();
    KernelWork work;
    work.family = row.getString("family")->str();
    work.object = row.getString("object")->str();
    work.flops = *row.getInteger("flops");
    work.bytes = *row.getInteger("bytes");
    work.launches = *row.getInteger("launches");
    for (ProductType type : kProductTypes)
      if (*row.getString("products") == nameOf(type))
        work.products = type;
    work.hasProducts = work.family.find("Matmul") == 0 ||
                       work.family.find("Attention") == 0 ||
                       work.family.find("Conv") == 0;
    const double priced = double(target.price(work).picoseconds) * 1e-12;
    const double runs = *row.getNumber("runs");
    const double measured = *row.getNumber("seconds");
    auto &[predicted, took] = steps[row.getString("step")->str()];
    predicted += runs * priced;
    took += runs * measured;
    errors.insert(errors.end(), size_t(std::max(1.0, std::round(runs))),
                  std::abs(priced / measured - 1));
  }
  EXPECT_EQ(steps.size(), 6u);
  for (const auto &[step, times] : steps) {
    EXPECT_GT(times.first, 0.9 * times.second) << step;
    EXPECT_LT(times.first, 1.1 * times.second) << step;
  }
  ASSERT_GT(errors.size(), 10000u);
  std::sort(errors.begin(), errors.end());
  EXPECT_LE(errors[errors.size() / 2], 0.05);
  EXPECT_LE(errors[errors.size() * 9 / 10], 0.2);
}

//===----------------------------------------------------------------------===//
// Own times
//===----------------------------------------------------------------------===//

TEST(OwnPrices, AreMeansOfAnObject) {
  Target target = *findTarget("cuda:h200");
  const std::string text = R"({"schema": 3, "steps": 2, "device": "a card",
    "objects": {"a_0": "A m=1", "a_1": "A m=2", "b_0": "A m=1"},
    "launches": [
      {"kernel": "a_0", "runs": 2, "seconds": 4},
      {"kernel": "b_0", "runs": 2, "seconds": 2},
      {"kernel": "a_1", "runs": 0, "seconds": 0},
      {"kernel": "a_1", "runs": 2, "seconds": 50, "together": 3},
      {"kernel": "a_1", "runs": 2, "seconds": 0},
      {"kernel": "a_0", "runs": 2, "seconds": 0},
      {"kernel": "", "runs": 2, "seconds": 9}]})";
  ASSERT_TRUE(addOwnPrices(text, "p.json", target).ok());
  EXPECT_EQ(target.ownSeconds.size(), 1u);
  EXPECT_EQ(target.ownSeconds["A m=1"], 1.5);
  EXPECT_EQ(target.ownMeasuredOn, "a card");
  auto why = [&](std::string from, std::string to) {
    std::string wrong = text;
    wrong.replace(wrong.find(from), from.size(), to);
    return std::string(addOwnPrices(wrong, "p.json", target).message());
  };
  EXPECT_EQ(why("3,", "2,"), "'p.json' is no profile of a step: its schema is "
                             "2; this tmc reads 3");
  EXPECT_EQ(why("a card", "cpu"),
            "'p.json' was measured on cpu, which isn't cuda:h200");
  EXPECT_EQ(why("\"objects\"", "\"things\""),
            "'p.json' is no profile of a step: it lacks its device, objects or "
            "launches");
  EXPECT_EQ(why("\"seconds\": 4", "\"seconds\": -4"),
            "'p.json' is no profile of a step: a launch lacks its kernel, "
            "seconds or runs");
  EXPECT_EQ(why("\"objects\": {", "\"objects\": {}, \"x\": {"),
            "'p.json' is no profile of a step: it has no time of a kernel");
}
