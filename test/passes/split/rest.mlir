// RUN: tmc-opt %s -tmc-split=micro-batches=3 -split-input-file | FileCheck %s
// RUN: tmc-opt %s -tmc-split=micro-batches=3 -tmc-autodiff=optimizer=sgd -canonicalize -tmc-fold-into-kernels -split-input-file | FileCheck %s --check-prefix=STEP

// Five samples as twice two and one. Each piece takes the count of all five
// labels, and of the constant, whose pieces of two are alike, as many rows as it
// has.

// CHECK-LABEL: func @prologue(
//  CHECK-SAME:     tensor<5xi64>
// CHECK-LABEL: func @forward(
//  CHECK-SAME:     tensor<2x6xf32> {train.name = "x"
//  CHECK-SAME:     tensor<2xi64> {train.name = "labels"
//  CHECK-SAME:     %[[FACT:[a-z0-9]+]]: tensor<f32> {train.name = "batch_fact.0"
//  CHECK-SAME:     tensor<2x3xf32> {train.concat = 0 : i64, train.name = "logits"})
//  CHECK-SAME:     attributes {train.micro_batches = 2 : i64}
//       CHECK:   arith.constant dense<{{\[\[}}1.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00, 6.000000e+00]]> : tensor<2x3xf32>
//       CHECK:   nn.cross_entropy %{{.*}}, %{{.*}}, %[[FACT]]
// CHECK-LABEL: func @rest(
//  CHECK-SAME:     tensor<1x6xf32> {train.name = "x"
//  CHECK-SAME:     tensor<1xi64> {train.name = "labels"
//  CHECK-SAME:     %[[FACT:[a-z0-9]+]]: tensor<f32> {train.name = "batch_fact.0"
//  CHECK-SAME:     tensor<1x3xf32> {train.concat = 0 : i64, train.name = "logits"})
//       CHECK:   arith.constant dense<{{\[\[}}1.000000e+00, 2.000000e+00, 3.000000e+00]]> : tensor<1x3xf32>
//       CHECK:   nn.cross_entropy %{{.*}}, %{{.*}}, %[[FACT]]

// The loop runs twice; the last piece adds onto what it leaves, and the update
// follows the gradient.

// STEP-LABEL: train.step @step(%arg0: tensor<5x6xf32>
//       STEP:   %[[HEAD:.*]] = nn.slice %arg0 [0, 0] step [1, 1] : (tensor<5x6xf32>) -> tensor<4x6xf32>
//       STEP:   %[[SUMS:.*]]:2 = train.micro_batch 2 slices(%[[HEAD]], %{{.*}} : tensor<4x6xf32>, tensor<4xi64>)
//       STEP:     nn.matmul %{{.*}} transpose_lhs acc(%{{.*}})
//       STEP:   %[[LAST:.*]] = nn.slice %arg0 [4, 0] step [1, 1] : (tensor<5x6xf32>) -> tensor<1x6xf32>
//       STEP:   %[[ALL:.*]] = nn.matmul %[[LAST]], %{{.*}} transpose_lhs acc(%[[SUMS]]#1)
//  STEP-NEXT:   train.sgd %arg2, %[[ALL]]
//       STEP:   arith.addf %[[SUMS]]#0

func.func @forward(
    %x: tensor<5x6xf32> {train.role = #train.role<batch>, train.name = "x"},
    %labels: tensor<5xi64> {train.role = #train.role<batch>, train.name = "labels"},
    %w: tensor<6x3xf32> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f32> {train.loss, train.name = "loss"}, tensor<5x3xf32> {train.name = "logits"}) {
  %product = nn.matmul %x, %w : (tensor<5x6xf32>, tensor<6x3xf32>) -> tensor<5x3xf32>
  %rows = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [1.0, 2.0, 3.0]]> : tensor<5x3xf32>
  %logits = arith.addf %product, %rows : tensor<5x3xf32>
  %none = arith.constant dense<-100> : tensor<5xi64>
  %counts = arith.cmpi ne, %labels, %none : tensor<5xi64>
  %ones = arith.uitofp %counts : tensor<5xi1> to tensor<5xf32>
  %count = nn.reduce sum %ones over [0] : (tensor<5xf32>) -> tensor<f32>
  %one = arith.constant dense<1.0> : tensor<f32>
  %weight = arith.divf %one, %count : tensor<f32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %weight : (tensor<5x3xf32>, tensor<5xi64>, tensor<f32>) -> (tensor<f32>, tensor<5xf32>)
  return %loss, %logits : tensor<f32>, tensor<5x3xf32>
}
