// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-precision{spec=fp8}))' | FileCheck %s
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-precision{spec=fp8:current}))' | FileCheck %s
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-precision{spec=fp8:block}))' | FileCheck %s --check-prefix=BLOCK
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-precision{spec=bf16,*w=fp8}))' | FileCheck %s
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-precision{spec=fp8,*w=bf16}))' | FileCheck %s --check-prefix=LEFT
// RUN: not tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-precision{spec=fp8:mx}))' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-precision{spec=fp8,gradients=fp8}))' 2>&1 | FileCheck %s --check-prefix=GRADIENTS

// The parameter and the activation become codes once, of the range for a forward pass,
// the gradient codes of the wider one; views of them are moved. Results are bf16, but
// the parameter's gradient.

// CHECK-LABEL: train.step @step
//   CHECK-DAG:   %[[W:.*]], %[[WS:.*]] = nn.quantize %arg1 : (tensor<4x256xf32>) -> (tensor<4x256xf8E4M3FN>, tensor<f32>)
//   CHECK-DAG:   %[[X:.*]], %[[XS:.*]] = nn.quantize %arg0 : (tensor<2x2x256xf32>) -> (tensor<2x2x256xf8E4M3FN>, tensor<f32>)
//       CHECK:   %[[V:.*]] = nn.reshape %[[X]] : (tensor<2x2x256xf8E4M3FN>) -> tensor<4x256xf8E4M3FN>
//       CHECK:   nn.matmul %[[V]], %[[W]] transpose_rhs scales(%[[XS]], %[[WS]])
//  CHECK-SAME:       -> tensor<4x4xbf16>
//       CHECK:   %[[D:.*]], %[[DS:.*]] = nn.quantize %{{.*}} : (tensor<4x4xf32>) -> (tensor<4x4xf8E5M2>, tensor<f32>)
//       CHECK:   nn.matmul %[[D]], %[[W]] scales(%[[DS]], %[[WS]])
//  CHECK-SAME:       (tensor<4x4xf8E5M2>, tensor<4x256xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<4x256xbf16>
//       CHECK:   nn.matmul %[[D]], %[[V]] transpose_lhs scales(%[[DS]], %[[XS]])
//  CHECK-SAME:       -> tensor<4x256xf32>

// In blocks every product reads codes that go along what it sums over; a parameter's
// squares go along both.

// BLOCK-LABEL: train.step @step
//   BLOCK-DAG:   %[[W:.*]], %[[WS:.*]] = nn.quantize %arg1 : (tensor<4x256xf32>) -> (tensor<4x256xf8E4M3FN>, tensor<1x2xf32>)
//   BLOCK-DAG:   %[[X:.*]], %[[XS:.*]] = nn.quantize %[[XV:.*]] : (tensor<4x256xf32>) -> (tensor<4x256xf8E4M3FN>, tensor<4x2xf32>)
//   BLOCK-DAG:   %[[T:.*]], %[[TS:.*]] = nn.quantize %[[XV]] : (tensor<4x256xf32>) -> (tensor<4x256xf8E4M3FN>, tensor<1x256xf32>)
//       BLOCK:   nn.matmul %[[X]], %[[W]] transpose_rhs scales(%[[XS]], %[[WS]])
//   BLOCK-DAG:   %[[D:.*]], %[[DS:.*]] = nn.quantize %[[DY:.*]] : (tensor<4x4xf32>) -> (tensor<4x4xf8E4M3FN>, tensor<4x1xf32>)
//   BLOCK-DAG:   %[[E:.*]], %[[ES:.*]] = nn.quantize %[[DY]] : (tensor<4x4xf32>) -> (tensor<4x4xf8E4M3FN>, tensor<1x4xf32>)
//       BLOCK:   nn.matmul %[[D]], %[[W]] scales(%[[DS]], %[[WS]])
//       BLOCK:   nn.matmul %[[E]], %[[T]] transpose_lhs scales(%[[ES]], %[[TS]])

// LEFT-NOT: nn.quantize
// LEFT: nn.matmul %{{.*}} {train.precision = "*w=bf16"} : (tensor<4x256xbf16>

// UNKNOWN: precision: there is no format 'fp8:mx'; there are f32, tf32, bf16, fp16, and fp8 as fp8:current, fp8:delayed or fp8:block
// GRADIENTS: precision: gradients of parameters aren't kept in 'fp8'
train.step @step(%x: tensor<2x2x256xf32> {train.name = "x", train.role = #train.role<batch>},
                 %w: tensor<4x256xf32> {train.name = "a.w", train.role = #train.role<param>},
                 %lr: tensor<f32> {train.feed = "lr", train.name = "lr", train.role = #train.role<scalar>},
                 %t: tensor<i64> {train.feed = "step", train.name = "step", train.role = #train.role<scalar>})
    -> (tensor<f32> {train.loss, train.name = "loss"}, tensor<4x256xf32> {train.name = "a.w", train.updates = 1 : i64}, tensor<f32> {train.name = "grad_norm"}) {
  %v = nn.reshape %x : (tensor<2x2x256xf32>) -> tensor<4x256xf32>
  %y = nn.matmul %v, %w transpose_rhs : (tensor<4x256xf32>, tensor<4x256xf32>) -> tensor<4x4xf32> loc("a")
  %s = arith.mulf %y, %y : tensor<4x4xf32>
  %loss = nn.reduce sum %s over [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
  %d = arith.addf %y, %y : tensor<4x4xf32>
  %dx = nn.matmul %d, %w : (tensor<4x4xf32>, tensor<4x256xf32>) -> tensor<4x256xf32> loc("a")
  %e = math.exp %dx : tensor<4x256xf32>
  %g = nn.matmul %d, %v transpose_lhs : (tensor<4x4xf32>, tensor<4x256xf32>) -> tensor<4x256xf32> loc("a")
  %h = arith.addf %g, %e : tensor<4x256xf32>
  %n, %q = train.sgd %w, %h lr(%lr) step(%t) {dampening = 0.0 : f64, momentum = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<4x256xf32>, tensor<4x256xf32>, tensor<f32>, tensor<i64>) -> (tensor<4x256xf32>, tensor<f32>)
  %norm, %clip = train.grad_norm %q {max_norm = 0.0 : f64} : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  train.return %loss, %n, %norm : tensor<f32>, tensor<4x256xf32>, tensor<f32>
}
