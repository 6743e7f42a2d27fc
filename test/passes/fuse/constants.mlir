// RUN: tmc-opt %s -tmc-expand-composites -canonicalize -tmc-fold-into-kernels -canonicalize -tmc-fuse | FileCheck %s

// The softmax of equal elements is 1 / 8: the sum of a splat is eight times it.
// CHECK-LABEL: @softmax
//       CHECK:   nn.fused
//       CHECK:     %[[P:.*]] = arith.constant dense<1.250000e-01> : tensor<4x8xf32>
//       CHECK:     arith.mulf %{{.*}}, %[[P]]
//   CHECK-NOT:   nn.reduce
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %c = arith.constant dense<3.0> : tensor<4x8xf32>
  %p = nn.softmax %c : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = arith.mulf %x, %p : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// Of whole numbers, and of 16 bits.
// CHECK-LABEL: @sums
//   CHECK-DAG:   arith.constant dense<24> : tensor<4xi32>
//   CHECK-DAG:   arith.constant dense<3.000000e+00> : tensor<8xbf16>
//   CHECK-DAG:   arith.constant dense<6.000000e+00> : tensor<bf16>
//   CHECK-NOT:   nn.reduce
func.func @sums() -> (tensor<4xi32>, tensor<8xbf16>, tensor<bf16>) {
  %i = arith.constant dense<3> : tensor<4x8xi32>
  %f = arith.constant dense<7.500000e-01> : tensor<4x8xbf16>
  %g = arith.constant dense<1.875000e-01> : tensor<4x8xbf16>
  %0 = nn.reduce sum %i over [1] : (tensor<4x8xi32>) -> tensor<4xi32>
  %1 = nn.reduce sum %f over [0] : (tensor<4x8xbf16>) -> tensor<8xbf16>
  %2 = nn.reduce sum %g over [0, 1] : (tensor<4x8xbf16>) -> tensor<bf16>
  return %0, %1, %2 : tensor<4xi32>, tensor<8xbf16>, tensor<bf16>
}
