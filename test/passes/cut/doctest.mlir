// RUN: tmc-opt %s -tmc-cut=ranks=2 | FileCheck %s
// RUN: tmc-opt %s -tmc-cut=ranks=1 | FileCheck %s --check-prefix=ONE
// RUN: tmc-opt %s -tmc-cut=ranks=2 -tmc-autodiff="optimizer=adamw(clip=1.0)" | FileCheck %s --check-prefix=STEP
// RUN: not tmc-opt %s -tmc-cut=ranks=3 2>&1 | FileCheck %s --check-prefix=THREE
// RUN: not tmc-opt %s -tmc-cut=ranks=0 2>&1 | FileCheck %s --check-prefix=ZERO

// Hidden columns: the first product makes a rank's, the second one a part of the sum.

// CHECK-LABEL: func @forward(
//  CHECK-SAME:     %[[W1:[a-z0-9]+]]: tensor<4x8xf32> {train.cut = #train.cut<tensor<4x16xf32>, dim 1, runs 1>
//  CHECK-SAME:     %[[B1:[a-z0-9]+]]: tensor<8xf32> {train.cut = #train.cut<tensor<16xf32>, dim 0, runs 1>
//  CHECK-SAME:     %[[W2:[a-z0-9]+]]: tensor<8x4xf32> {train.cut = #train.cut<tensor<16x4xf32>, dim 0, runs 1>
//  CHECK-SAME:     %[[B2:[a-z0-9]+]]: tensor<4xf32> {train.name = "b2"
//  CHECK-SAME:     attributes {train.tensor_ranks = 2 : i64}
//       CHECK:   %[[X:.*]] = nn.rms_norm
//       CHECK:   %[[E:.*]] = nn.spread %[[X]] over tp of 2 : tensor<8x4xf32>
//       CHECK:   %[[H:.*]] = nn.matmul %[[E]], %[[W1]] bias(%[[B1]])
//       CHECK:   %[[A:.*]] = math.tanh %[[H]] : tensor<8x8xf32>
//       CHECK:   %[[P:.*]] = nn.matmul %[[A]], %[[W2]] : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
//       CHECK:   %[[S:.*]] = nn.sum_over %[[P]] over tp of 2 : tensor<8x4xf32>
//       CHECK:   %[[B:.*]] = nn.broadcast %[[B2]] to [1]
//       CHECK:   arith.addf %[[S]], %[[B]] : tensor<8x4xf32>

//   ONE-NOT: nn.s
//       ONE: nn.matmul {{.*}} -> tensor<8x16xf32>

// The gradient of what all ranks read is summed; that of the sum is each rank's. A
// norm has the squares of all pieces, and those of others once.

//  STEP-LABEL: train.step
//    STEP-NOT:   nn.spread
//        STEP:   nn.sum_over %{{.*}} over tp of 2 : tensor<8x4xf32>
//    STEP-NOT:   nn.sum_over
//        STEP:   nn.sum_over %{{.*}} over tp of 2 : tensor<8x4xf32>
//    STEP-NOT:   nn.sum_over
//        STEP:   %[[ALL:.*]] = nn.concat %{{.*}}, %{{.*}}, %{{.*}} {dim = 0 : i64} : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<3xf32>
//        STEP:   nn.sum_over %[[ALL]] over tp of 2 : tensor<3xf32>
//    STEP-NOT:   nn.sum_over
//        STEP:   train.return

// THREE: error: the model has no heads or hidden columns that 3 ranks could share
// THREE: note: {{.*}}the sum of 'nn.matmul' stays whole: {{.*}} has 16 parts, which 3 ranks can't share equally
//  ZERO: error: can't deal heads and columns to 0 ranks
func.func @forward(
    %x: tensor<8x4xf32> {train.role = #train.role<batch>, train.name = "x"},
    %s: tensor<4xf32> {train.role = #train.role<param>, train.name = "s"},
    %w1: tensor<4x16xf32> {train.role = #train.role<param>, train.name = "w1"},
    %b1: tensor<16xf32> {train.role = #train.role<param>, train.name = "b1"},
    %w2: tensor<16x4xf32> {train.role = #train.role<param>, train.name = "w2"},
    %b2: tensor<4xf32> {train.role = #train.role<param>, train.name = "b2"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %n = nn.rms_norm %x scale(%s) {epsilon = 1.0e-6 : f64} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %h = nn.matmul %n, %w1 bias(%b1) : (tensor<8x4xf32>, tensor<4x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  %a = math.tanh %h : tensor<8x16xf32>
  %y = nn.matmul %a, %w2 bias(%b2) : (tensor<8x16xf32>, tensor<16x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %loss = nn.reduce sum %y over [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
