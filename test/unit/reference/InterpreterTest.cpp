// InterpreterTest.cpp - values worked out by hand. The other tests compare the
// interpreter with itself; here it is held to the ops' descriptions.

#include "test/unit/reference/Harness.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace tmc::test;
using namespace tmc::reference;

namespace {
Tensor floats(ArrayRef<int64_t> shape, std::vector<double> values) {
  Tensor t(Element::F64, shape);
  EXPECT_EQ(t.floats.size(), values.size());
  t.floats = std::move(values);
  return t;
}
Tensor ints(ArrayRef<int64_t> shape, std::vector<int64_t> values) {
  Tensor t(Element::I64, shape);
  EXPECT_EQ(t.ints.size(), values.size());
  t.ints = std::move(values);
  return t;
}

/// Interprets the only function of `text`.
FailureOr<SmallVector<Tensor>> evaluate(StringRef text,
                                        SmallVector<Tensor> inputs,
                                        Rounding rounding = Rounding::Narrow) {
  static std::unique_ptr<MLIRContext> context = makeContext();
  OwningOpRef<ModuleOp> module = parse(*context, text);
  if (!module)
    return failure();
  InterpreterOptions options;
  options.rounding = rounding;
  return interpret(&module->getBody()->front(), std::move(inputs), options);
}

void expectNear(const Tensor &actual, std::vector<double> expected) {
  ASSERT_EQ(actual.floats.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(actual.floats[i], expected[i], 1e-12) << "element " << i;
}
} // namespace

TEST(Interpreter, Matmul) {
  // [1 2; 3 4] times the transpose of [5 6; 7 8] is [17 23; 39 53].
  auto r = evaluate(R"(
    func.func @f(%x: tensor<2x2xf64>, %y: tensor<2x2xf64>, %b: tensor<2xf64>) -> tensor<2x2xf64> {
      %0 = nn.matmul %x, %y transpose_rhs bias(%b)
          : (tensor<2x2xf64>, tensor<2x2xf64>, tensor<2xf64>) -> tensor<2x2xf64>
      return %0 : tensor<2x2xf64>
    })",
                    {floats({2, 2}, {1, 2, 3, 4}), floats({2, 2}, {5, 6, 7, 8}),
                     floats({2}, {100, 200})});
  expectNear((*r)[0], {117, 223, 139, 253});
}

TEST(Interpreter, ConvolutionWithPaddingAndStride) {
  // Windows of the padded row 0 1 2 3 0 at 0 and 2: 1*1+2*10 and 2*1 + 3*10...
  auto r = evaluate(
      R"(
    func.func @f(%x: tensor<1x1x1x3xf64>, %f: tensor<1x1x1x3xf64>) -> tensor<1x1x1x2xf64> {
      %0 = nn.conv %x, %f {strides = array<i64: 1, 2>, padding = array<i64: 0, 1, 0, 1>,
                           dilations = array<i64: 1, 1>, groups = 1 : i64}
          : (tensor<1x1x1x3xf64>, tensor<1x1x1x3xf64>) -> tensor<1x1x1x2xf64>
      return %0 : tensor<1x1x1x2xf64>
    })",
      {floats({1, 1, 1, 3}, {1, 2, 3}), floats({1, 1, 1, 3}, {100, 10, 1})});
  // 100*0 + 10*1 + 1*2 and 100*2 + 10*3 + 1*0.
  expectNear((*r)[0], {12, 230});
}

TEST(Interpreter, ConvolutionAddsTheProductsOfItsDefinition) {
  // Two groups, strides, dilations, uneven padding; 70 x 65 outputs an image,
  // more than one piece of the interpreter's matrices.
  constexpr int64_t N = 2, C = 4, K = 6, H = 140, W = 66, R = 2, S = 3;
  constexpr int64_t OH = 70, OW = 65, D = C / 2;
  Random random(7);
  auto drawn = [&](ArrayRef<int64_t> shape) {
    Tensor t(Element::F64, shape);
    for (double &value : t.floats)
      value = random.unit() - 0.5;
    return t;
  };
  for (bool last : {false, true}) {
    auto shapeOf = [&](int64_t c, int64_t h, int64_t w) {
      return last ? SmallVector<int64_t>{N, h, w, c}
                  : SmallVector<int64_t>{N, c, h, w};
    };
    Tensor x = drawn(shapeOf(C, H, W)), f = drawn({K, D, R, S}),
           g = drawn(shapeOf(K, OH, OW));
    Tensor y(Element::F64, g.shape), dx(Element::F64, x.shape),
        df(Element::F64, f.shape);
    auto at = [&](const Tensor &t, int64_t n, int64_t c, int64_t h, int64_t w) {
      return last ? linearIndex({n, h, w, c}, t.shape)
                  : linearIndex({n, c, h, w}, t.shape);
    };
    forEachIndex({N, K, OH, OW}, [&](ArrayRef<int64_t> o, int64_t) {
      forEachIndex({D, R, S}, [&](ArrayRef<int64_t> t, int64_t) {
        int64_t h = o[2] * 2 - 1 + t[1] * 3, w = o[3] - 2 + t[2] * 2;
        if (h < 0 || h >= H || w < 0 || w >= W)
          return;
        int64_t i = at(x, o[0], o[1] / (K / 2) * D + t[0], h, w);
        int64_t k = linearIndex({o[1], t[0], t[1], t[2]}, f.shape);
        int64_t p = at(y, o[0], o[1], o[2], o[3]);
        y.floats[p] += x.floats[i] * f.floats[k];
        dx.floats[i] += g.floats[p] * f.floats[k];
        df.floats[k] += g.floats[p] * x.floats[i];
      });
    });
    auto type = [](const Tensor &t) {
      std::string text = "tensor<";
      for (int64_t size : t.shape)
        text += std::to_string(size) + "x";
      return text + "f64>";
    };
    std::string attributes =
        "{strides = array<i64: 2, 1>, padding = array<i64: 1, 2, 2, 1>, "
        "dilations = array<i64: 3, 2>, groups = 2 : i64" +
        std::string(last ? ", channels_last}" : "}");
    auto run = [&](StringRef op, const Tensor &a, const Tensor &b,
                   const Tensor &expected) {
      SCOPED_TRACE(op.str());
      auto r = evaluate(
          "func.func @f(%a: " + type(a) + ", %b: " + type(b) + ") -> " +
              type(expected) + " { %0 = nn." + op.str() + " %a, %b " +
              attributes + " : (" + type(a) + ", " + type(b) + ") -> " +
              type(expected) + " return %0 : " + type(expected) + " }",
          {a, b});
      ASSERT_TRUE(succeeded(r));
      double worst = 0;
      for (int64_t i = 0; i < expected.size(); ++i)
        worst =
            std::max(worst, std::fabs((*r)[0].floats[i] - expected.floats[i]));
      EXPECT_LT(worst, 1e-11); // Sums of up to 9100 products.
    };
    run("conv", x, f, y);
    run("conv_grad_input", g, f, dx);
    run("conv_grad_filter", x, g, df);
  }
}

TEST(Interpreter, MaxPoolGradGoesToTheFirstLargest) {
  auto r = evaluate(
      R"(
    func.func @f(%x: tensor<1x1x1x4xf64>, %g: tensor<1x1x1x3xf64>) -> tensor<1x1x1x4xf64> {
      %0 = nn.max_pool_grad %x, %g {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
                                    dilations = array<i64: 1, 1>, window = array<i64: 1, 2>}
          : (tensor<1x1x1x4xf64>, tensor<1x1x1x3xf64>) -> tensor<1x1x1x4xf64>
      return %0 : tensor<1x1x1x4xf64>
    })",
      {floats({1, 1, 1, 4}, {5, 5, 1, 2}), floats({1, 1, 1, 3}, {1, 10, 100})});
  expectNear((*r)[0], {1, 10, 0, 100});
}

TEST(Interpreter, AvgPoolCountsPaddingOnlyIfTold) {
  for (bool countPadding : {false, true}) {
    std::string text = R"(
      func.func @f(%x: tensor<1x1x1x2xf64>) -> tensor<1x1x1x2xf64> {
        %0 = nn.avg_pool %x {strides = array<i64: 1, 1>, padding = array<i64: 0, 1, 0, 0>,
                             dilations = array<i64: 1, 1>, window = array<i64: 1, 2>)";
    text += countPadding ? ", count_padding" : "";
    text += R"(} : (tensor<1x1x1x2xf64>) -> tensor<1x1x1x2xf64>
        return %0 : tensor<1x1x1x2xf64>
      })";
    auto r = evaluate(text, {floats({1, 1, 1, 2}, {4, 8})});
    expectNear((*r)[0], {countPadding ? 2.0 : 4.0, 6});
  }
}

TEST(Interpreter, CausalAttention) {
  // One head of depth 1. Query 0 sees key 0 alone; query 1 weighs both keys
  // with scores 0 and log 3: a quarter and three.
  auto r = evaluate(R"(
    func.func @f(%q: tensor<1x2x1x1xf64>, %k: tensor<1x2x1x1xf64>, %v: tensor<1x2x1x1xf64>)
        -> (tensor<1x2x1x1xf64>, tensor<1x1x2xf64>) {
      %0:2 = nn.attention %q, %k, %v {causal, scale = 0.5}
          : (tensor<1x2x1x1xf64>, tensor<1x2x1x1xf64>, tensor<1x2x1x1xf64>)
          -> (tensor<1x2x1x1xf64>, tensor<1x1x2xf64>)
      return %0#0, %0#1 : tensor<1x2x1x1xf64>, tensor<1x1x2xf64>
    })",
                    {floats({1, 2, 1, 1}, {1, 2}),
                     floats({1, 2, 1, 1}, {0, std::log(3.0)}),
                     floats({1, 2, 1, 1}, {10, 20})});
  expectNear((*r)[0], {10, 17.5});
  expectNear((*r)[1], {0, std::log(4.0)});
}

TEST(Interpreter, GroupedHeadsReadTheirKeys) {
  // Four query heads, two key heads: heads 0 and 1 read the first.
  auto r =
      evaluate(R"(
    func.func @f(%q: tensor<1x1x4x1xf64>, %k: tensor<1x1x2x1xf64>, %v: tensor<1x1x2x1xf64>)
        -> tensor<1x1x4x1xf64> {
      %0:2 = nn.attention %q, %k, %v {scale = 1.0}
          : (tensor<1x1x4x1xf64>, tensor<1x1x2x1xf64>, tensor<1x1x2x1xf64>)
          -> (tensor<1x1x4x1xf64>, tensor<1x4x1xf64>)
      return %0#0 : tensor<1x1x4x1xf64>
    })",
               {floats({1, 1, 4, 1}, {1, 2, 3, 4}),
                floats({1, 1, 2, 1}, {1, 1}), floats({1, 1, 2, 1}, {5, 7})});
  expectNear((*r)[0], {5, 5, 7, 7});
}

TEST(Interpreter, BatchNormMovesItsStatistics) {
  // Values 1 and 3: mean 2, variance 1, unbiased variance 2.
  auto r = evaluate(R"(
    func.func @f(%x: tensor<2x1xf64>, %s: tensor<1xf64>, %b: tensor<1xf64>, %m: tensor<1xf64>, %v: tensor<1xf64>)
        -> (tensor<2x1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>) {
      %0:5 = nn.batch_norm %x, %s, %b, %m, %v {epsilon = 0.0, momentum = 0.25}
          : (tensor<2x1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>)
          -> (tensor<2x1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>)
      return %0#0, %0#1, %0#2, %0#3, %0#4
          : tensor<2x1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>
    })",
                    {floats({2, 1}, {1, 3}), floats({1}, {10}),
                     floats({1}, {100}), floats({1}, {4}), floats({1}, {6})});
  expectNear((*r)[0], {90, 110});
  expectNear((*r)[1], {0.75 * 4 + 0.25 * 2});
  expectNear((*r)[2], {0.75 * 6 + 0.25 * 2});
  expectNear((*r)[3], {2});
  expectNear((*r)[4], {1});
}

TEST(Interpreter, CrossEntropyLeavesOutWhatDoesNotCount) {
  auto r = evaluate(R"(
    func.func @f(%x: tensor<2x2xf64>, %l: tensor<2xi64>, %w: tensor<f64>) -> (tensor<f64>, tensor<2xf64>) {
      %0:2 = nn.cross_entropy %x, %l, %w
          : (tensor<2x2xf64>, tensor<2xi64>, tensor<f64>) -> (tensor<f64>, tensor<2xf64>)
      return %0#0, %0#1 : tensor<f64>, tensor<2xf64>
    })",
                    {floats({2, 2}, {0, std::log(3.0), 1, 1}),
                     ints({2}, {0, -100}), floats({}, {0.5})});
  expectNear((*r)[0], {0.5 * std::log(4.0)});
  expectNear((*r)[1], {std::log(4.0), 1 + std::log(2.0)});
}

TEST(Interpreter, AnIdOutsideItsTableIsAnError) {
  EXPECT_TRUE(failed(evaluate(R"(
    func.func @f(%t: tensor<3x1xf64>, %i: tensor<1xi64>) -> tensor<1x1xf64> {
      %0 = nn.embedding %t, %i : (tensor<3x1xf64>, tensor<1xi64>) -> tensor<1x1xf64>
      return %0 : tensor<1x1xf64>
    })",
                              {floats({3, 1}, {1, 2, 3}), ints({1}, {3})})));
}

TEST(Interpreter, DropoutKeepsWhatItDrew) {
  // nn.random of two samples is the two halves of nn.random of each.
  const char *text = R"(
    func.func @f(%s: tensor<2xi64>, %n: tensor<2xi64>) -> tensor<2x3xf64> {
      %0 = nn.random %s, %n {stream = 4 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2x3xf64>
      return %0 : tensor<2x3xf64>
    })";
  auto both = evaluate(text, {ints({2}, {1, 2}), ints({2}, {5, 6})});
  auto swapped = evaluate(text, {ints({2}, {1, 2}), ints({2}, {6, 5})});
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*both)[0].floats[i], (*swapped)[0].floats[3 + i]);
    EXPECT_NE((*both)[0].floats[i], (*both)[0].floats[3 + i]);
  }
}

TEST(Interpreter, MicroBatchesCarryFromRunToRun) {
  // The first run writes: 0 + 1 + 2, then 3 + 3 + 4.
  auto r = evaluate(R"(
    train.step @s(%x: tensor<4xf64>, %y: tensor<f64>) -> tensor<f64> {
      %0 = train.micro_batch 2 slices(%x : tensor<4xf64>) -> tensor<f64> {
      ^bb0(%p: tensor<2xf64>, %acc: tensor<f64>):
        %1 = nn.reduce sum %p over [0] : (tensor<2xf64>) -> tensor<f64>
        %2 = arith.mulf %1, %y : tensor<f64>
        %3 = arith.addf %2, %acc : tensor<f64>
        train.yield %3 : tensor<f64>
      }
      train.return %0 : tensor<f64>
    })",
                    {floats({4}, {1, 2, 3, 4}), floats({}, {10})});
  ASSERT_TRUE(succeeded(r));
  expectNear((*r)[0], {100});
}

static Tensor asF32(Tensor x) {
  x.element = Element::F32;
  return x;
}
static Tensor asBF16(Tensor x) {
  x.element = Element::BF16;
  return x;
}
static Tensor asI8(Tensor x) {
  x.element = Element::I8;
  return x;
}

TEST(Interpreter, AdamWInPyTorchsOrder) {
  // p = 1 - 0.1 * 0.5 * 1 = 0.95; m = 0.1 * 2, v = 0.01 * 4, both corrected:
  // 2 and 4, so p -= 0.1 * 2 / (2 + 0.5).
  auto r = evaluate(R"(
    func.func @f(%p: tensor<1xf64>, %g: tensor<1xf64>, %m: tensor<1xf64>, %v: tensor<1xf64>, %lr: tensor<f64>, %t: tensor<i64>)
        -> (tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<f64>) {
      %0:4 = train.adamw %p, %g, %m, %v lr(%lr) step(%t)
          {beta1 = 0.9, beta2 = 0.99, epsilon = 0.5, weight_decay = 0.5}
          : (tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<f64>, tensor<i64>)
          -> (tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<f64>)
      return %0#0, %0#1, %0#2, %0#3 : tensor<1xf64>, tensor<1xf64>, tensor<1xf64>, tensor<f64>
    })",
                    {floats({1}, {1}), floats({1}, {2}), floats({1}, {0}),
                     floats({1}, {0}), floats({}, {0.1}), ints({}, {1})});
  ASSERT_TRUE(succeeded(r));
  expectNear((*r)[0], {0.95 - 0.1 * 2 / 2.5});
  expectNear((*r)[1], {0.2});
  expectNear((*r)[2], {0.04});
  expectNear((*r)[3], {4});
}

TEST(Interpreter, UpdatesRoundTheCopy) {
  // p = 1 - 0.1 * 0.0625 = 0.99375, between the bf16 0.9921875 and 0.99609375.
  // At step 0 the copy stays, whatever it is.
  for (int64_t t : {1, 0}) {
    auto r = evaluate(R"(
    func.func @f(%p: tensor<1xf32>, %g: tensor<1xf32>, %lr: tensor<f32>, %t: tensor<i64>, %c: tensor<1xbf16>)
        -> (tensor<1xf32>, tensor<1xbf16>, tensor<f32>) {
      %0:3 = train.sgd %p, %g lr(%lr) step(%t) copy(%c) {momentum = 0.0, dampening = 0.0, weight_decay = 0.0}
          : (tensor<1xf32>, tensor<1xf32>, tensor<f32>, tensor<i64>, tensor<1xbf16>) -> (tensor<1xf32>, tensor<1xbf16>, tensor<f32>)
      return %0#0, %0#1, %0#2 : tensor<1xf32>, tensor<1xbf16>, tensor<f32>
    })",
                      {asF32(floats({1}, {1})), asF32(floats({1}, {0.0625})),
                       asF32(floats({}, {0.1})), ints({}, {t}),
                       asBF16(floats({1}, {0.5}))});
    ASSERT_TRUE(succeeded(r));
    expectNear((*r)[0], {t ? 0.99375 : 1});
    expectNear((*r)[1], {t ? 0.9921875 : 0.5});
    expectNear((*r)[2], {0.0625 * 0.0625});
  }
}

TEST(Interpreter, AdamWWithMomentsIn8Bits) {
  // m = 0.5 g = 1, -0.5, 0; v = 0.5 g^2 = 2, 0.5, 0. Of their largest, 1 and 2,
  // that is 1, -0.5, 0 and 1, 0.25, 0. The nearest values of m's top decade,
  // (0.1 + 0.9 (k + 0.5) / 64), are 1 itself and 0.5008 (k = 28); those of v's
  // have 128 parts: 0.2512 (k = 21). Codes: 255, 127 - (64 + 28), 127; 255,
  // 255 - 128 + 21, 0; as signed bytes.
  auto r =
      evaluate(R"(
    func.func @f(%p: tensor<3xf32>, %g: tensor<3xf32>, %m: tensor<3xi8>, %mm: tensor<1xf32>,
                 %v: tensor<3xi8>, %vm: tensor<1xf32>, %lr: tensor<f32>, %t: tensor<i64>)
        -> (tensor<3xf32>, tensor<3xi8>, tensor<1xf32>, tensor<3xi8>, tensor<1xf32>, tensor<f32>) {
      %0:6 = train.adamw8bit %p, %g, %m, %mm, %v, %vm lr(%lr) step(%t)
          {beta1 = 0.5, beta2 = 0.5, epsilon = 1.0, weight_decay = 0.0}
          : (tensor<3xf32>, tensor<3xf32>, tensor<3xi8>, tensor<1xf32>, tensor<3xi8>, tensor<1xf32>, tensor<f32>, tensor<i64>)
          -> (tensor<3xf32>, tensor<3xi8>, tensor<1xf32>, tensor<3xi8>, tensor<1xf32>, tensor<f32>)
      return %0#0, %0#1, %0#2, %0#3, %0#4, %0#5 : tensor<3xf32>, tensor<3xi8>, tensor<1xf32>, tensor<3xi8>, tensor<1xf32>, tensor<f32>
    })",
               {asF32(floats({3}, {1, 1, 1})), asF32(floats({3}, {2, -1, 0})),
                asI8(ints({3}, {0, 0, 0})), asF32(floats({1}, {0})),
                asI8(ints({3}, {0, 0, 0})), asF32(floats({1}, {0})),
                asF32(floats({}, {0.1})), ints({}, {1})});
  ASSERT_TRUE(succeeded(r));
  // Corrected: m / 0.5 = g, sqrt(v / 0.5) = |g|.
  expectNear((*r)[0], {1 - 0.1 * 2 / 3, 1 + 0.1 / 2, 1});
  EXPECT_EQ((*r)[1].ints, (std::vector<int64_t>{-1, 127 - 92, 127}));
  expectNear((*r)[2], {1});
  EXPECT_EQ((*r)[3].ints,
            (std::vector<int64_t>{-1, int8_t(255 - 128 + 21), 0}));
  expectNear((*r)[4], {2});
  expectNear((*r)[5], {5});
}

TEST(Interpreter, AdamWWithMomentsIn4Bits) {
  // Of a block of 128 the first three gradients are 2, -1 and 0.5. m = 0.5 g =
  // 1, -0.5, 0.25, v = 0.5 g^2 = 2, 0.5, 0.125: of their largest 1, -0.5, 0.25
  // and 1, 0.25, 0.0625. Nearest are 1, -0.4375, 0.2125 (codes 15, 2, 11) and
  // themselves (15, 3, 0). Of zeros the codes are 7 and 0.
  std::vector<double> grads(128, 0.0), params(128, 1.0);
  grads[0] = 2, grads[1] = -1, grads[2] = 0.5;
  auto r = evaluate(
      R"(
    func.func @f(%p: tensor<128xf32>, %g: tensor<128xf32>, %m: tensor<64xi8>, %ms: tensor<1xf32>,
                 %v: tensor<64xi8>, %vs: tensor<1xf32>, %lr: tensor<f32>, %t: tensor<i64>)
        -> (tensor<128xf32>, tensor<64xi8>, tensor<1xf32>, tensor<64xi8>, tensor<1xf32>, tensor<f32>) {
      %0:6 = train.adamw4bit %p, %g, %m, %ms, %v, %vs lr(%lr) step(%t)
          {beta1 = 0.5, beta2 = 0.5, epsilon = 1.0, weight_decay = 0.0}
          : (tensor<128xf32>, tensor<128xf32>, tensor<64xi8>, tensor<1xf32>, tensor<64xi8>, tensor<1xf32>, tensor<f32>, tensor<i64>)
          -> (tensor<128xf32>, tensor<64xi8>, tensor<1xf32>, tensor<64xi8>, tensor<1xf32>, tensor<f32>)
      return %0#0, %0#1, %0#2, %0#3, %0#4, %0#5 : tensor<128xf32>, tensor<64xi8>, tensor<1xf32>, tensor<64xi8>, tensor<1xf32>, tensor<f32>
    })",
      {asF32(floats({128}, params)), asF32(floats({128}, grads)),
       asI8(ints({64}, std::vector<int64_t>(64, 0))), asF32(floats({1}, {0})),
       asI8(ints({64}, std::vector<int64_t>(64, 0))), asF32(floats({1}, {0})),
       asF32(floats({}, {0.1})), ints({}, {1})});
  ASSERT_TRUE(succeeded(r));
  // Corrected: m / 0.5 = g, sqrt(v / 0.5) = |g|.
  EXPECT_NEAR((*r)[0].floats[0], 1 - 0.1 * 2 / 3, 1e-6);
  EXPECT_NEAR((*r)[0].floats[1], 1 + 0.1 / 2, 1e-6);
  EXPECT_NEAR((*r)[0].floats[2], 1 - 0.1 / 3, 1e-6);
  EXPECT_EQ((*r)[0].floats[3], 1);
  EXPECT_EQ((*r)[1].ints[0], int8_t(0xf2));
  EXPECT_EQ((*r)[1].ints[1], int8_t(0xb7));
  EXPECT_EQ((*r)[1].ints[2], 0x77);
  expectNear((*r)[2], {1});
  EXPECT_EQ((*r)[3].ints[0], int8_t(0xf3));
  EXPECT_EQ((*r)[3].ints[1], 0x00);
  expectNear((*r)[4], {2});
  expectNear((*r)[5], {5.25});
}

TEST(Interpreter, AdafactorKeepsRowsAndColumns) {
  // At step 1 the moments are the gradient's: rows (1 + 9) / 2 = 5, (1 + 4) / 2
  // = 2.5, columns 1, 6.5. Over the rows' mean of 3.75 that is v = 4/3, 26/3,
  // 2/3, 13/3, and u = g / sqrt(v). Its squares are 3/4, 27/26, 3/2, 12/13,
  // their mean 1.0529, which d lowers to 1. The parameter's size is 2 and the
  // rate 0.1.
  auto r = evaluate(
      R"(
    func.func @f(%p: tensor<2x2xf32>, %g: tensor<2x2xf32>, %r: tensor<2x1xf32>, %c: tensor<1x2xf32>,
                 %lr: tensor<f32>, %t: tensor<i64>)
        -> (tensor<2x2xf32>, tensor<2x1xf32>, tensor<1x2xf32>, tensor<f32>) {
      %0:4 = train.adafactor %p, %g moments(%r, %c) lr(%lr) step(%t)
          {beta2_decay = -0.8, eps1 = 1.0e-7, eps2 = 1.0e-3, d = 1.0, weight_decay = 0.5}
          : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x1xf32>, tensor<1x2xf32>, tensor<f32>, tensor<i64>)
          -> (tensor<2x2xf32>, tensor<2x1xf32>, tensor<1x2xf32>, tensor<f32>)
      return %0#0, %0#1, %0#2, %0#3 : tensor<2x2xf32>, tensor<2x1xf32>, tensor<1x2xf32>, tensor<f32>
    })",
      {asF32(floats({2, 2}, {2, 2, 2, 2})),
       asF32(floats({2, 2}, {1, -3, 1, 2})), asF32(floats({2, 1}, {7, 7})),
       asF32(floats({1, 2}, {7, 7})), asF32(floats({}, {0.1})), ints({}, {1})});
  ASSERT_TRUE(succeeded(r));
  const double scale =
      0.2 / std::sqrt((3.0 / 4 + 27.0 / 26 + 3.0 / 2 + 12.0 / 13) / 4);
  expectNear((*r)[0], {1.9 - scale * std::sqrt(3.0 / 4),
                       1.9 + scale * std::sqrt(27.0 / 26),
                       1.9 - scale * std::sqrt(3.0 / 2),
                       1.9 - scale * std::sqrt(12.0 / 13)});
  expectNear((*r)[1], {5, 2.5});
  expectNear((*r)[2], {1, 6.5});
  expectNear((*r)[3], {15});
}

TEST(Interpreter, LionMovesByASign) {
  // Blends 0.9 m + 0.1 g: 0.1, 0.8, 0. Moments 0.99 m + 0.01 g.
  auto r =
      evaluate(R"(
    func.func @f(%p: tensor<3xf32>, %g: tensor<3xf32>, %m: tensor<3xf32>, %lr: tensor<f32>, %t: tensor<i64>, %k: tensor<f32>)
        -> (tensor<3xf32>, tensor<3xf32>, tensor<f32>) {
      %0:3 = train.lion %p, %g, %m lr(%lr) step(%t) clip(%k) {beta1 = 0.9, beta2 = 0.99, weight_decay = 0.5}
          : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<i64>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<f32>)
      return %0#0, %0#1, %0#2 : tensor<3xf32>, tensor<3xf32>, tensor<f32>
    })",
               {asF32(floats({3}, {1, 1, 1})), asF32(floats({3}, {2, -2, 0})),
                asF32(floats({3}, {0, 1, 0})), asF32(floats({}, {0.1})),
                ints({}, {1}), asF32(floats({}, {0.5}))});
  ASSERT_TRUE(succeeded(r));
  expectNear((*r)[0], {0.95 - 0.1, 0.95 - 0.1, 0.95});
  expectNear((*r)[1], {0.01, 0.98, 0});
  expectNear((*r)[2], {8});
}

TEST(Interpreter, RoundsAsFarAsTold) {
  const char *text = R"(
    func.func @f(%x: tensor<1xf32>) -> (tensor<1xf32>, tensor<1xbf16>) {
      %0 = arith.addf %x, %x : tensor<1xf32>
      %1 = arith.truncf %0 : tensor<1xf32> to tensor<1xbf16>
      return %0, %1 : tensor<1xf32>, tensor<1xbf16>
    })";
  Tensor x(Element::F32, {1});
  x.floats[0] = 1.001;
  auto results = [&](Rounding rounding) {
    auto r = evaluate(text, {x}, rounding);
    return std::pair((*r)[0].floats[0], (*r)[1].floats[0]);
  };
  EXPECT_EQ(results(Rounding::None), std::pair(2.002, 2.002));
  EXPECT_EQ(results(Rounding::Narrow), std::pair(2.002, 2.0));
  EXPECT_EQ(results(Rounding::ToType), std::pair(double(2.002f), 2.0));
}

// What a kernel makes again must be what it would have read from memory.
TEST(Interpreter, RoundsInsideFusedKernels) {
  Tensor x(Element::F32, {1});
  x.floats[0] = 1.07;
  auto r = evaluate(R"(
    func.func @f(%x: tensor<1xf32>) -> tensor<1xf32> {
      %0 = nn.fused (%a = %x) : (tensor<1xf32>) -> tensor<1xf32> {
        %1 = arith.truncf %a : tensor<1xf32> to tensor<1xf8E4M3FN>
        %2 = arith.extf %1 : tensor<1xf8E4M3FN> to tensor<1xf32>
        nn.yield %2 : tensor<1xf32>
      }
      return %0 : tensor<1xf32>
    })",
                    {x});
  ASSERT_TRUE(succeeded(r));
  EXPECT_EQ((*r)[0].floats[0], 1.125);
}

TEST(Interpreter, IntegersAreExactAndWrap) {
  auto r = evaluate(R"(
    func.func @f(%x: tensor<1xi64>) -> (tensor<1xi64>, tensor<1xi32>) {
      %0 = arith.addi %x, %x : tensor<1xi64>
      %1 = arith.trunci %x : tensor<1xi64> to tensor<1xi32>
      return %0, %1 : tensor<1xi64>, tensor<1xi32>
    })",
                    {ints({1}, {(int64_t(1) << 62) + 1})});
  EXPECT_EQ((*r)[0].ints[0], int64_t((uint64_t(1) << 63) + 2));
  EXPECT_EQ((*r)[1].ints[0], 1);
}
