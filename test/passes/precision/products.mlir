// RUN: tmc-opt %s -split-input-file -pass-pipeline='builtin.module(train.step(tmc-precision{spec=bf16}))' | FileCheck %s
// RUN: tmc-opt %s -split-input-file -pass-pipeline='builtin.module(train.step(tmc-precision{spec=bf16,attention=exact}))' | FileCheck %s --check-prefix=EXACT
// RUN: tmc-opt %s -split-input-file -pass-pipeline='builtin.module(train.step(tmc-precision{spec=tf32}))' | FileCheck %s --check-prefix=TF32
// RUN: tmc-opt %s -split-input-file -pass-pipeline='builtin.module(train.step(tmc-precision{spec=tf32,attention=exact}))' | FileCheck %s --check-prefix=WHOLE

// EXACT: nn.attention {{.*}} {exact, scale
// TF32: nn.attention {{.*}} {scale = {{[^ ]*}} : f64, tf32}
// WHOLE: nn.attention {{.*}} {scale = {{[^ ]*}} : f64} :

// One cast for each value that products read, however many read it; results are
// bf16 and widened behind the view. The parameter's gradient stays f32, and so does
// the update.

// CHECK-LABEL: train.step @step
//       CHECK:   %[[W:.*]] = arith.truncf %arg1 : tensor<4x4xf32> to tensor<4x4xbf16>
//       CHECK:   %[[X:.*]] = arith.truncf %arg0 : tensor<2x4xf32> to tensor<2x4xbf16>
//       CHECK:   %[[Y:.*]] = nn.matmul %[[X]], %[[W]] : (tensor<2x4xbf16>, tensor<4x4xbf16>) -> tensor<2x4xbf16>
//       CHECK:   %[[V:.*]] = nn.reshape %[[Y]] : (tensor<2x4xbf16>) -> tensor<8xbf16>
//       CHECK:   %[[F:.*]] = arith.extf %[[V]] : tensor<8xbf16> to tensor<8xf32>
//       CHECK:   %[[S:.*]] = math.exp %[[F]] : tensor<8xf32>
//       CHECK:   %[[N:.*]] = arith.truncf %[[S]] : tensor<8xf32> to tensor<8xbf16>
//       CHECK:   %[[Z:.*]] = nn.reshape %[[N]] : (tensor<8xbf16>) -> tensor<2x4xbf16>
//       CHECK:   nn.matmul %[[Z]], %[[W]] transpose_rhs : (tensor<2x4xbf16>, tensor<4x4xbf16>) -> tensor<2x4xbf16>
//       CHECK:   %[[G:.*]] = nn.matmul %[[X]], %[[Z]] transpose_lhs : (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<4x4xf32>
//       CHECK:   train.sgd %arg1, %[[G]]
train.step @step(%x: tensor<2x4xf32> {train.name = "x", train.role = #train.role<batch>},
                 %w: tensor<4x4xf32> {train.name = "w", train.role = #train.role<param>},
                 %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
                 %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<4x4xf32> {train.name = "w", train.updates = 1 : i64}, tensor<2x4xf32> {train.name = "out"}) {
  %y = nn.matmul %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %v = nn.reshape %y : (tensor<2x4xf32>) -> tensor<8xf32>
  %s = math.exp %v : tensor<8xf32>
  %z = nn.reshape %s : (tensor<8xf32>) -> tensor<2x4xf32>
  %o = nn.matmul %z, %w transpose_rhs : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %g = nn.matmul %x, %z transpose_lhs : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %n, %q = train.sgd %w, %g lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x4xf32>, tensor<f32>)
  train.return %n, %o : tensor<4x4xf32>, tensor<2x4xf32>
}

// -----

// A widened result that a product reads is read as it is; a bias follows the
// result, and being frozen and read in no other way it is kept narrow; attention keeps its log-sum-exps and its mask.

// CHECK-LABEL: train.step @step
//  CHECK-SAME:   %[[B:[a-z0-9]+]]: tensor<8xbf16> {train.frozen
//       CHECK:   %[[X:.*]] = arith.truncf %arg0
//       CHECK:   %[[Y:.*]] = nn.matmul %[[X]], %[[X]] bias(%[[B]]) : (tensor<8x8xbf16>, tensor<8x8xbf16>, tensor<8xbf16>) -> tensor<8x8xbf16>
//   CHECK-NOT:   arith.truncf
//       CHECK:   %[[Q:.*]] = nn.reshape %[[Y]] : (tensor<8x8xbf16>) -> tensor<1x8x2x4xbf16>
//       CHECK:   %[[OUT:.*]], %[[LSE:.*]] = nn.attention %[[Q]], %[[Q]], %[[Q]] mask(%arg2)
//  CHECK-SAME:       tensor<1x1x8x8xf32>) -> (tensor<1x8x2x4xbf16>, tensor<1x2x8xf32>)
//       CHECK:   %[[R:.*]] = arith.extf %[[OUT]]
//       CHECK:   train.return %[[R]], %[[LSE]]
train.step @step(%x: tensor<8x8xf32> {train.name = "x", train.role = #train.role<batch>},
                 %b: tensor<8xf32> {train.frozen, train.name = "b", train.role = #train.role<param>},
                 %m: tensor<1x1x8x8xf32> {train.name = "m", train.role = #train.role<batch>})
    -> (tensor<1x8x2x4xf32> {train.name = "out"}, tensor<1x2x8xf32> {train.name = "lse"}) {
  %y = nn.matmul %x, %x bias(%b) : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  %q = nn.reshape %y : (tensor<8x8xf32>) -> tensor<1x8x2x4xf32>
  %o, %l = nn.attention %q, %q, %q mask(%m) {scale = 0.5 : f64} : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x1x8x8xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  train.return %o, %l : tensor<1x8x2x4xf32>, tensor<1x2x8xf32>
}

// -----

// Parts that are all widened are put together narrow, once: the product reads
// the whole as it is, and the sum of rows reads it widened.

// CHECK-LABEL: train.step @step
//       CHECK:   %[[P:.*]] = nn.matmul {{.*}} -> tensor<2x4xbf16>
//       CHECK:   %[[Q:.*]] = nn.matmul {{.*}} -> tensor<2x4xbf16>
//       CHECK:   %[[C:.*]] = nn.concat %[[P]], %[[Q]] {{.*}} -> tensor<2x8xbf16>
//   CHECK-NOT:   nn.concat
//       CHECK:   %[[F:.*]] = arith.extf %[[C]] : tensor<2x8xbf16> to tensor<2x8xf32>
//       CHECK:   nn.reduce sum %[[F]] over [0]
//       CHECK:   nn.matmul %[[C]], %{{.*}} : (tensor<2x8xbf16>,
train.step @step(%x: tensor<2x4xf32> {train.name = "x", train.role = #train.role<batch>},
                 %v: tensor<4x4xf32> {train.name = "v", train.role = #train.role<param>},
                 %w: tensor<8x4xf32> {train.name = "w", train.role = #train.role<param>})
    -> (tensor<8xf32> {train.name = "sum"}, tensor<2x4xf32> {train.name = "out"}) {
  %p = nn.matmul %x, %v : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %q = nn.matmul %x, %v transpose_rhs : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %c = nn.concat %p, %q {dim = 1 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  %s = nn.reduce sum %c over [0] : (tensor<2x8xf32>) -> tensor<8xf32>
  %o = nn.matmul %c, %w : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  train.return %s, %o : tensor<8xf32>, tensor<2x4xf32>
}
