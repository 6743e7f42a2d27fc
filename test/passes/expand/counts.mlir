// Sums of truth values are made in f32, which holds them exactly; other sums of
// integers stay what they are.
// RUN: tmc-opt -tmc-expand-composites %s | FileCheck %s

// CHECK-LABEL: @positions
// CHECK: %[[MASK:.*]] = arith.select
// CHECK: %[[F:.*]] = arith.sitofp %[[MASK]] : tensor<2x8x8xi64> to tensor<2x8x8xf32>
// CHECK: %[[SUM:.*]] = nn.reduce sum %[[F]] over [2]
// CHECK: arith.fptosi %[[SUM]] : tensor<2x8xf32> to tensor<2x8xi64>
func.func @positions(%present: tensor<2x8xi1>, %before: tensor<2x8x8xi1>) -> tensor<2x8xi64> {
  %zero = arith.constant dense<0> : tensor<2x8x8xi64>
  %0 = arith.extui %present : tensor<2x8xi1> to tensor<2x8xi64>
  %1 = nn.broadcast %0 to [0, 2] : (tensor<2x8xi64>) -> tensor<2x8x8xi64>
  %2 = arith.select %before, %1, %zero : tensor<2x8x8xi1>, tensor<2x8x8xi64>
  %3 = nn.reduce sum %2 over [2] : (tensor<2x8x8xi64>) -> tensor<2x8xi64>
  return %3 : tensor<2x8xi64>
}

// CHECK-LABEL: @any_integers
// CHECK-NOT: sitofp
func.func @any_integers(%x: tensor<2x8xi64>) -> tensor<2xi64> {
  %0 = nn.reduce sum %x over [1] : (tensor<2x8xi64>) -> tensor<2xi64>
  return %0 : tensor<2xi64>
}

// 2^25 of them might be more than f32 can count.
// CHECK-LABEL: @too_many
// CHECK-NOT: sitofp
func.func @too_many(%x: tensor<33554432xi1>) -> tensor<i64> {
  %0 = arith.extui %x : tensor<33554432xi1> to tensor<33554432xi64>
  %1 = nn.reduce sum %0 over [0] : (tensor<33554432xi64>) -> tensor<i64>
  return %1 : tensor<i64>
}
