// RUN: tmc-opt %s -tmc-split=micro-batches=2 | FileCheck %s
// RUN: tmc-opt %s -tmc-split=micro-batches=1 | FileCheck %s --check-prefix=ONE

// Eight samples as two times four. The mean over the labels that count isn't
// linear in their number, so that one over it is a fact of all eight labels.

// CHECK-LABEL: func @prologue(
//  CHECK-SAME:     %[[LABELS:.*]]: tensor<8xi64> {train.name = "labels", train.role = #train.role<batch>}) -> tensor<f32>
//       CHECK:   %[[COUNT:.*]] = nn.reduce sum %{{.*}} : (tensor<8xf32>) -> tensor<f32>
//       CHECK:   %[[WEIGHT:.*]] = arith.divf %{{.*}}, %[[COUNT]]
//       CHECK:   return %[[WEIGHT]]

// CHECK-LABEL: func @forward(
//  CHECK-SAME:     %[[X:[a-z0-9]+]]: tensor<4x6xf32> {train.name = "x", train.role = #train.role<batch>}
//  CHECK-SAME:     %[[L:[a-z0-9]+]]: tensor<4xi64> {train.name = "labels", train.role = #train.role<batch>}
//  CHECK-SAME:     %[[W:[a-z0-9]+]]: tensor<6x10xf32> {train.name = "w", train.role = #train.role<param>}
//  CHECK-SAME:     %[[FACT:[a-z0-9]+]]: tensor<f32> {train.name = "batch_fact.0", train.role = #train.role<scalar>}
//  CHECK-SAME:     -> (tensor<f32> {train.loss, train.name = "loss"}, tensor<4x10xf32> {train.concat = 0 : i64, train.name = "logits"})
//  CHECK-SAME:     attributes {train.micro_batches = 2 : i64}
//  CHECK-NEXT:   %[[LOGITS:.*]] = nn.matmul %[[X]], %[[W]] : (tensor<4x6xf32>, tensor<6x10xf32>) -> tensor<4x10xf32>
//  CHECK-NEXT:   %[[LOSS:.*]], %{{.*}} = nn.cross_entropy %[[LOGITS]], %[[L]], %[[FACT]]
//  CHECK-NEXT:   return %[[LOSS]], %[[LOGITS]]

//   ONE-NOT: @prologue
// ONE-LABEL: func @forward(
//  ONE-SAME:   tensor<8x6xf32>
//   ONE-NOT:   train.micro_batches
func.func @forward(
    %x: tensor<8x6xf32> {train.role = #train.role<batch>, train.name = "x"},
    %labels: tensor<8xi64> {train.role = #train.role<batch>, train.name = "labels"},
    %w: tensor<6x10xf32> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f32> {train.loss, train.name = "loss"}, tensor<8x10xf32> {train.name = "logits"}) {
  %logits = nn.matmul %x, %w : (tensor<8x6xf32>, tensor<6x10xf32>) -> tensor<8x10xf32>
  %none = arith.constant dense<-100> : tensor<8xi64>
  %counts = arith.cmpi ne, %labels, %none : tensor<8xi64>
  %ones = arith.uitofp %counts : tensor<8xi1> to tensor<8xf32>
  %count = nn.reduce sum %ones over [0] : (tensor<8xf32>) -> tensor<f32>
  %one = arith.constant dense<1.0> : tensor<f32>
  %weight = arith.divf %one, %count : tensor<f32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %weight : (tensor<8x10xf32>, tensor<8xi64>, tensor<f32>) -> (tensor<f32>, tensor<8xf32>)
  return %loss, %logits : tensor<f32>, tensor<8x10xf32>
}
