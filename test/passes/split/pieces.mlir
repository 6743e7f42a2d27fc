// RUN: tmc-opt %s -tmc-split=micro-batches=4 -split-input-file | FileCheck %s

// What is the same for all samples, but has them in its shape: constants,
// repeated tables, lookups of constant ids. Of each the piece is made.

// CHECK-LABEL: func @forward(
//       CHECK:   %[[HALF:.*]] = arith.constant dense<5.000000e-01> : tensor<2x3x5xf32>
//   CHECK-DAG:   %[[IDS:.*]] = arith.constant dense<{{\[\[}}0, 1, 2], [0, 1, 2]]> : tensor<2x3xi64>
//   CHECK-DAG:   nn.embedding %{{.*}}, %[[IDS]] : (tensor<7x5xf32>, tensor<2x3xi64>) -> tensor<2x3x5xf32>
//   CHECK-DAG:   nn.broadcast %{{.*}} to [2] : (tensor<5xf32>) -> tensor<2x3x5xf32>
//   CHECK-DAG:   nn.iota {dim = 1 : i64} : () -> tensor<2x3x5xf32>
//       CHECK:   nn.reshape %{{.*}} : (tensor<2x3x5xf32>) -> tensor<6x5xf32>
//       CHECK:   return %{{.*}} : tensor<f32>
func.func @forward(
    %x: tensor<8x3x5xf32> {train.role = #train.role<batch>, train.name = "x"},
    %table: tensor<7x5xf32> {train.role = #train.role<param>, train.name = "table"},
    %b: tensor<5xf32> {train.role = #train.role<param>, train.name = "b"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %half = arith.constant dense<0.5> : tensor<8x3x5xf32>
  %x1 = arith.mulf %x, %half : tensor<8x3x5xf32>
  %ids = arith.constant dense<[[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]]> : tensor<8x3xi64>
  %e = nn.embedding %table, %ids : (tensor<7x5xf32>, tensor<8x3xi64>) -> tensor<8x3x5xf32>
  %x2 = arith.addf %x1, %e : tensor<8x3x5xf32>
  %bb = nn.broadcast %b to [2] : (tensor<5xf32>) -> tensor<8x3x5xf32>
  %i = nn.iota {dim = 1 : i64} : () -> tensor<8x3x5xf32>
  %bi = arith.mulf %bb, %i : tensor<8x3x5xf32>
  %x3 = arith.addf %x2, %bi : tensor<8x3x5xf32>
  %f = nn.reshape %x3 : (tensor<8x3x5xf32>) -> tensor<24x5xf32>
  %loss = nn.reduce sum %f over [0, 1] : (tensor<24x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// What doesn't depend on the batch, a penalty on the parameters, is added in four
// shares of 0.25.

// CHECK-LABEL: func @forward(
//       CHECK:   %[[PENALTY:.*]] = nn.reduce sum %{{.*}} over [0] : (tensor<5xf32>) -> tensor<f32>
//       CHECK:   %[[SUM:.*]] = nn.reduce sum %{{.*}} over [0, 1] : (tensor<2x5xf32>) -> tensor<f32>
//       CHECK:   %[[QUARTER:.*]] = arith.constant dense<2.500000e-01> : tensor<f32>
//       CHECK:   %[[SHARE:.*]] = arith.mulf %[[PENALTY]], %[[QUARTER]]
//       CHECK:   %[[LOSS:.*]] = arith.addf %[[SUM]], %[[SHARE]]
//       CHECK:   return %[[LOSS]]
func.func @forward(
    %x: tensor<8x5xf32> {train.role = #train.role<batch>, train.name = "x"},
    %b: tensor<5xf32> {train.role = #train.role<param>, train.name = "b"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %b2 = arith.mulf %b, %b : tensor<5xf32>
  %penalty = nn.reduce sum %b2 over [0] : (tensor<5xf32>) -> tensor<f32>
  %bb = nn.broadcast %b to [1] : (tensor<5xf32>) -> tensor<8x5xf32>
  %y = arith.mulf %x, %bb : tensor<8x5xf32>
  %s = nn.reduce sum %y over [0, 1] : (tensor<8x5xf32>) -> tensor<f32>
  %loss = arith.addf %s, %penalty : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A loss divided by a sum over the batch: the loss stays a sum, what divides it is
// a fact; numbers of the batch that are returned are dropped.

// CHECK-LABEL: func @prologue(
//       CHECK:   nn.reduce sum %{{.*}} over [0] : (tensor<8xf32>) -> tensor<f32>
// CHECK-LABEL: func @forward(
//  CHECK-SAME:     -> (tensor<f32> {train.loss, train.name = "loss"})
//       CHECK:   %[[SUM:.*]] = nn.reduce sum %{{.*}} : (tensor<2x5xf32>) -> tensor<f32>
//       CHECK:   %[[LOSS:.*]] = arith.divf %[[SUM]], %arg3
//       CHECK:   return %[[LOSS]]
func.func @forward(
    %x: tensor<8x5xf32> {train.role = #train.role<batch>, train.name = "x"},
    %weights: tensor<8xf32> {train.role = #train.role<batch>, train.name = "weights"},
    %b: tensor<5xf32> {train.role = #train.role<param>, train.name = "b"})
    -> (tensor<f32> {train.loss, train.name = "loss"}, tensor<f32> {train.name = "total"}) {
  %total = nn.reduce sum %weights over [0] : (tensor<8xf32>) -> tensor<f32>
  %bb = nn.broadcast %b to [1] : (tensor<5xf32>) -> tensor<8x5xf32>
  %y = arith.mulf %x, %bb : tensor<8x5xf32>
  %s = nn.reduce sum %y over [0, 1] : (tensor<8x5xf32>) -> tensor<f32>
  %loss = arith.divf %s, %total : tensor<f32>
  return %loss, %total : tensor<f32>, tensor<f32>
}

// -----

// Dropout draws by the sample's index in the whole batch, which is an argument.

// CHECK-LABEL: func @forward(
//       CHECK:   nn.random %arg1, %arg2 {stream = 7 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2x5xf32>
func.func @forward(
    %x: tensor<8x5xf32> {train.role = #train.role<batch>, train.name = "x"},
    %seed: tensor<2xi64> {train.role = #train.role<scalar>, train.name = "seed"},
    %samples: tensor<8xi64> {train.role = #train.role<batch>, train.name = "samples"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %u = nn.random %seed, %samples {stream = 7 : i64} : (tensor<2xi64>, tensor<8xi64>) -> tensor<8x5xf32>
  %y = arith.mulf %x, %u : tensor<8x5xf32>
  %loss = nn.reduce sum %y over [0, 1] : (tensor<8x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
