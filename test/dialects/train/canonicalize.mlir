// RUN: tmc-opt %s -canonicalize | FileCheck %s

// The sum that no run adds to is zeros, and isn't carried.
// CHECK-LABEL: @idle_carried
// CHECK-DAG: %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : tensor<3xf32>
// CHECK: %[[LOOP:.*]]:2 = train.micro_batch 2 slices(%{{.*}} : tensor<4xf32>) -> tensor<2xf32>, tensor<f32>
// CHECK-NEXT: ^bb0(%[[PIECE:.*]]: tensor<2xf32>, %[[A:.*]]: tensor<2xf32>, %[[B:.*]]: tensor<f32>):
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[A]], %[[PIECE]]
// CHECK: train.yield %[[SUM]], %{{.*}} : tensor<2xf32>, tensor<f32>
// CHECK: train.return %[[LOOP]]#0, %[[ZEROS]], %[[LOOP]]#1
train.step @idle_carried(%x: tensor<4xf32>) -> (tensor<2xf32>, tensor<3xf32>, tensor<f32>) {
  %0:3 = train.micro_batch 2 slices(%x : tensor<4xf32>) -> tensor<2xf32>, tensor<3xf32>, tensor<f32> {
  ^bb0(%piece: tensor<2xf32>, %a: tensor<2xf32>, %b: tensor<3xf32>, %c: tensor<f32>):
    %sum = arith.addf %a, %piece : tensor<2xf32>
    %one = arith.constant dense<1.0> : tensor<f32>
    %next = arith.addf %c, %one : tensor<f32>
    train.yield %sum, %b, %next : tensor<2xf32>, tensor<3xf32>, tensor<f32>
  }
  train.return %0#0, %0#1, %0#2 : tensor<2xf32>, tensor<3xf32>, tensor<f32>
}
