// RUN: tmc-opt %s -tmc-layout | FileCheck %s

// One transpose in, one out: the two between convolution and pool cancel, the
// maximum with zero doesn't see them. The filter stays.

// CHECK-LABEL: func @conv_relu_pool(
//       CHECK:   %[[T:.*]] = nn.transpose %arg0 [0, 2, 3, 1] : (tensor<2x3x8x8xf32>) -> tensor<2x8x8x3xf32>
//  CHECK-NEXT:   %[[Y:.*]] = nn.conv %[[T]], %arg1 {channels_last, {{.*}}} : (tensor<2x8x8x3xf32>, tensor<4x3x1x1xf32>) -> tensor<2x8x8x4xf32>
//  CHECK-NEXT:   %[[Z:.*]] = arith.maximumf %[[Y]]
//  CHECK-NEXT:   %[[P:.*]] = nn.max_pool %[[Z]] {channels_last, {{.*}}} : (tensor<2x8x8x4xf32>) -> tensor<2x4x4x4xf32>
//  CHECK-NEXT:   %[[R:.*]] = nn.transpose %[[P]] [0, 3, 1, 2]
//  CHECK-NEXT:   return %[[R]]
func.func @conv_relu_pool(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<2x4x4x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %y = nn.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<2x4x8x8xf32>
  %z = arith.maximumf %y, %zero : tensor<2x4x8x8xf32>
  %p = nn.max_pool %z {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, window = array<i64: 2, 2>} : (tensor<2x4x8x8xf32>) -> tensor<2x4x4x4xf32>
  return %p : tensor<2x4x4x4xf32>
}
