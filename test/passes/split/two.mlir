// RUN: tmc-opt %s -tmc-split=micro-batches=2 -tmc-autodiff=optimizer=sgd -canonicalize -tmc-fold-into-kernels | FileCheck %s

// Two pieces, of three and of two: no loop.

// CHECK-LABEL: train.step @step(%arg0: tensor<5x6xf32>
//   CHECK-NOT:   train.micro_batch
//       CHECK:   %[[FIRST:.*]] = nn.slice %arg0 [0, 0] step [1, 1] : (tensor<5x6xf32>) -> tensor<3x6xf32>
//       CHECK:   %[[PART:.*]] = nn.matmul %[[FIRST]], %{{.*}} transpose_lhs : (
//       CHECK:   %[[SECOND:.*]] = nn.slice %arg0 [3, 0] step [1, 1] : (tensor<5x6xf32>) -> tensor<2x6xf32>
//       CHECK:   %[[ALL:.*]] = nn.matmul %[[SECOND]], %{{.*}} transpose_lhs acc(%[[PART]])
//       CHECK:   train.sgd %arg2, %[[ALL]]
func.func @forward(
    %x: tensor<5x6xf32> {train.role = #train.role<batch>, train.name = "x"},
    %labels: tensor<5xi64> {train.role = #train.role<batch>, train.name = "labels"},
    %w: tensor<6x3xf32> {train.role = #train.role<param>, train.name = "w"},
    %fifth: tensor<f32> {train.role = #train.role<scalar>, train.name = "fifth"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %logits = nn.matmul %x, %w : (tensor<5x6xf32>, tensor<6x3xf32>) -> tensor<5x3xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %fifth : (tensor<5x3xf32>, tensor<5xi64>, tensor<f32>) -> (tensor<f32>, tensor<5xf32>)
  return %loss : tensor<f32>
}
