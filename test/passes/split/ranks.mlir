// RUN: tmc-opt %s -tmc-split=ranks=2 | FileCheck %s
// RUN: tmc-opt %s -tmc-split="ranks=2 micro-batches=2" | FileCheck %s --check-prefix=BOTH
// RUN: tmc-opt %s -tmc-split=ranks=2 -tmc-autodiff=optimizer=sgd -canonicalize | FileCheck %s --check-prefix=STEP
// RUN: not tmc-opt %s -tmc-split=ranks=3 2>&1 | FileCheck %s --check-prefix=UNEQUAL
// RUN: not tmc-opt %s -tmc-split=ranks=0 2>&1 | FileCheck %s --check-prefix=NONE

// The mean of the rows that count. One over their number is of the whole batch.

// CHECK-LABEL: func @forward(
//  CHECK-SAME:     tensor<4x3xf32> {train.name = "x", train.role = #train.role<batch>}
//  CHECK-SAME:     attributes {train.ranks = 2 : i64}
//       CHECK:   %[[MINE:.*]] = nn.reduce sum %arg1 over [0] : (tensor<4xf32>) -> tensor<f32>
//       CHECK:   %[[COUNT:.*]] = nn.sum_over %[[MINE]] over dp of 2 : tensor<f32>
//       CHECK:   %[[LOSS:.*]] = arith.divf %{{.*}}, %[[COUNT]]
//       CHECK:   return %[[LOSS]]

// A micro-batch takes the number from a prologue, which sums over the ranks.

// BOTH-LABEL: func @prologue(%{{.*}}: tensor<4xf32>
//       BOTH:   nn.sum_over
// BOTH-LABEL: func @forward(
//  BOTH-SAME:     tensor<2x3xf32>
//   BOTH-NOT:   nn.sum_over

// The loss and the gradients are sums over the ranks.

// STEP-LABEL: train.step
//  STEP-SAME:   attributes {train.ranks = 2 : i64}
//       STEP:   %[[GRAD:.*]] = nn.matmul {{.*}} transpose_lhs
//       STEP:   %[[SUM:.*]] = nn.sum_over %[[GRAD]] over dp of 2 : tensor<3x2xf32>
//       STEP:   train.sgd %{{.*}}, %[[SUM]]
//       STEP:   %[[LOSS:.*]] = nn.sum_over %{{.*}} over dp of 2 : tensor<f32>
//       STEP:   train.return %{{.*}}, %{{.*}}, %[[LOSS]]

// UNEQUAL: error: a batch of 8 can't be dealt to 3 ranks in equal parts
// UNEQUAL: note: take a batch of 6 or 9
//    NONE: error: can't deal a batch to 0 ranks
func.func @forward(
    %x: tensor<8x3xf32> {train.role = #train.role<batch>, train.name = "x"},
    %counts: tensor<8xf32> {train.role = #train.role<batch>, train.name = "counts"},
    %w: tensor<3x2xf32> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %y = nn.matmul %x, %w : (tensor<8x3xf32>, tensor<3x2xf32>) -> tensor<8x2xf32>
  %rows = nn.reduce sum %y over [1] : (tensor<8x2xf32>) -> tensor<8xf32>
  %kept = arith.mulf %rows, %counts : tensor<8xf32>
  %sum = nn.reduce sum %kept over [0] : (tensor<8xf32>) -> tensor<f32>
  %count = nn.reduce sum %counts over [0] : (tensor<8xf32>) -> tensor<f32>
  %loss = arith.divf %sum, %count : tensor<f32>
  return %loss : tensor<f32>
}
