// RUN: tmc-opt %s -tmc-layout | FileCheck %s --implicit-check-not=nn.transpose

// Where transposes may and may not go. Images of [2, 3, 8, 8] come in by one
// transpose each; whatever isn't listed below has none left.

// A bias per channel, batch norm, a residual sum; then the mean over the image,
// [N, C] without a transpose.

// CHECK-LABEL: func @residual(
//       CHECK:   nn.transpose %arg0 [0, 2, 3, 1]
//       CHECK:   %[[B:.*]] = nn.broadcast %arg2 to [3] : (tensor<4xf32>) -> tensor<2x8x8x4xf32>
//       CHECK:   arith.addf %{{.*}}, %[[B]]
//       CHECK:   nn.batch_norm %{{.*}} {channels_last,
//       CHECK:   nn.reduce sum %{{.*}} over [1, 2] : (tensor<2x8x8x4xf32>) -> tensor<2x4xf32>
func.func @residual(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x1x1xf32>, %b: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>) {
  %y = nn.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<2x4x8x8xf32>
  %bb = nn.broadcast %b to [1] : (tensor<4xf32>) -> tensor<2x4x8x8xf32>
  %z = arith.addf %y, %bb : tensor<2x4x8x8xf32>
  %n, %nm, %nv, %m, %r = nn.batch_norm %z, %b, %b, %b, %b {epsilon = 1.0e-5 : f64, momentum = 0.1 : f64} : (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %s = arith.addf %n, %y : tensor<2x4x8x8xf32>
  %mean = nn.reduce sum %s over [2, 3] : (tensor<2x4x8x8xf32>) -> tensor<2x4xf32>
  return %mean, %nm : tensor<2x4xf32>, tensor<4xf32>
}

// GELU between two convolutions.

// CHECK-LABEL: func @gelu(
//       CHECK:   nn.transpose %arg0 [0, 2, 3, 1]
//       CHECK:   nn.gelu %{{.*}} {tanh} : (tensor<2x8x8x4xf32>) -> tensor<2x8x8x4xf32>
//       CHECK:   nn.conv
//       CHECK:   nn.reduce
func.func @gelu(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x1x1xf32>, %v: tensor<5x4x1x1xf32>) -> tensor<2x5xf32> {
  %y = nn.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<2x4x8x8xf32>
  %a = nn.gelu %y {tanh} : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %z = nn.conv %a, %v {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x4x8x8xf32>, tensor<5x4x1x1xf32>) -> tensor<2x5x8x8xf32>
  %s = nn.reduce sum %z over [2, 3] : (tensor<2x5x8x8xf32>) -> tensor<2x5xf32>
  return %s : tensor<2x5xf32>
}

// A mean over the channels leaves [N, H, W] in order.

// CHECK-LABEL: func @over_channels(
//       CHECK:   nn.transpose %arg0 [0, 2, 3, 1]
//       CHECK:   nn.reduce sum %{{.*}} over [3] : (tensor<2x8x8x4xf32>) -> tensor<2x8x8xf32>
func.func @over_channels(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<2x8x8xf32> {
  %y = nn.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<2x4x8x8xf32>
  %s = nn.reduce sum %y over [1] : (tensor<2x4x8x8xf32>) -> tensor<2x8x8xf32>
  return %s : tensor<2x8x8xf32>
}

// A mean over rows leaves [N, C, W] of [N, W, C]: a smaller transpose.

// CHECK-LABEL: func @over_rows(
//       CHECK:   nn.transpose %arg0 [0, 2, 3, 1]
//       CHECK:   %[[S:.*]] = nn.reduce sum %{{.*}} over [1] : (tensor<2x8x8x4xf32>) -> tensor<2x8x4xf32>
//       CHECK:   nn.transpose %[[S]] [0, 2, 1] : (tensor<2x8x4xf32>) -> tensor<2x4x8xf32>
func.func @over_rows(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<2x4x8xf32> {
  %y = nn.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<2x4x8x8xf32>
  %s = nn.reduce sum %y over [2] : (tensor<2x4x8x8xf32>) -> tensor<2x4x8xf32>
  return %s : tensor<2x4x8xf32>
}

// Side by side along the channels, padded, cut and twice as large: all on
// [N, H, W, C].

// CHECK-LABEL: func @pieces(
//       CHECK:   nn.transpose %arg0 [0, 2, 3, 1]
//       CHECK:   nn.concat %{{.*}} {dim = 3 : i64} : (tensor<2x8x8x4xf32>, tensor<2x8x8x4xf32>) -> tensor<2x8x8x8xf32>
//       CHECK:   nn.pad %{{.*}} [0, 1, 1, 0] step [1, 1, 1, 1] : (tensor<2x8x8x8xf32>) -> tensor<2x10x10x8xf32>
//       CHECK:   nn.slice %{{.*}} [0, 0, 0, 2] step [1, 1, 1, 1] : (tensor<2x10x10x8xf32>) -> tensor<2x10x10x3xf32>
//       CHECK:   nn.broadcast %{{.*}} to [0, 1, 3, 5] : ({{.*}}) -> tensor<2x10x2x10x2x3xf32>
//       CHECK:   nn.conv
//       CHECK:   nn.reduce
func.func @pieces(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<2x4xf32> {
  %y = nn.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<4x3x1x1xf32>) -> tensor<2x4x8x8xf32>
  %e = math.exp %y : tensor<2x4x8x8xf32>
  %c = nn.concat %y, %e {dim = 1 : i64} : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x8x8x8xf32>
  %p = nn.pad %c [0, 0, 1, 1] step [1, 1, 1, 1] : (tensor<2x8x8x8xf32>) -> tensor<2x8x10x10xf32>
  %s = nn.slice %p [0, 2, 0, 0] step [1, 1, 1, 1] : (tensor<2x8x10x10xf32>) -> tensor<2x3x10x10xf32>
  %u = nn.broadcast %s to [0, 1, 2, 4] : (tensor<2x3x10x10xf32>) -> tensor<2x3x10x2x10x2xf32>
  %v = nn.reshape %u : (tensor<2x3x10x2x10x2xf32>) -> tensor<2x3x20x20xf32>
  %z = nn.conv %v, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x20x20xf32>, tensor<4x3x1x1xf32>) -> tensor<2x4x20x20xf32>
  %m = nn.reduce sum %z over [2, 3] : (tensor<2x4x20x20xf32>) -> tensor<2x4xf32>
  return %m : tensor<2x4xf32>
}

// A transposed convolution; its result is compared with an image that comes in
// channels first, so that one transpose stands at the border.

// CHECK-LABEL: func @against_a_target(
//       CHECK:   nn.transpose %arg0 [0, 2, 3, 1]
//       CHECK:   %[[Y:.*]] = nn.conv_grad_input %{{.*}} {channels_last, {{.*}} -> tensor<2x16x16x3xf32>
//       CHECK:   %[[T:.*]] = nn.transpose %[[Y]] [0, 3, 1, 2]
//       CHECK:   arith.subf %[[T]], %arg2
func.func @against_a_target(%x: tensor<2x4x8x8xf32>, %w: tensor<4x3x2x2xf32>, %target: tensor<2x3x16x16xf32>) -> tensor<2x3x16x16xf32> {
  %y = nn.conv_grad_input %x, %w {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x4x8x8xf32>, tensor<4x3x2x2xf32>) -> tensor<2x3x16x16xf32>
  %d = arith.subf %y, %target : tensor<2x3x16x16xf32>
  return %d : tensor<2x3x16x16xf32>
}

// Patches of an image as a sequence of tokens: [N, C, H, W] -> [N, HW, C] is how
// channels last lie in memory.

// CHECK-LABEL: func @patches(
//       CHECK:   nn.transpose %arg0 [0, 2, 3, 1]
//       CHECK:   nn.reshape %{{.*}} : (tensor<2x4x4x5xf32>) -> tensor<2x16x5xf32>
func.func @patches(%x: tensor<2x3x8x8xf32>, %w: tensor<5x3x2x2xf32>) -> tensor<2x16x5xf32> {
  %y = nn.conv %x, %w {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<5x3x2x2xf32>) -> tensor<2x5x4x4xf32>
  %f = nn.reshape %y : (tensor<2x5x4x4xf32>) -> tensor<2x5x16xf32>
  %t = nn.transpose %f [0, 2, 1] : (tensor<2x5x16xf32>) -> tensor<2x16x5xf32>
  return %t : tensor<2x16x5xf32>
}

// Without convolutions nothing changes.

// CHECK-LABEL: func @none(
//  CHECK-NEXT:   arith.addf
//  CHECK-NEXT:   return
func.func @none(%x: tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32> {
  %y = arith.addf %x, %x : tensor<2x3x8x8xf32>
  return %y : tensor<2x3x8x8xf32>
}
