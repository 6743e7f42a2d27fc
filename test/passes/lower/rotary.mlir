// RUN: tmc-opt %s -tmc-lower | FileCheck %s

// Rows of a packed buffer lie 24 elements apart in time, 8 from head to head.
// The tables have a row of 4 for each sample and time, which heads share; their
// other dimension takes no step. The adjoint reads contiguous rows, and angles
// that all samples share, and rotates the first of two heads.

// The first result is read and written by 2 x 640 bytes, and both tables have 160
// bytes. The second one takes the place of the first, where only one of two heads
// moves: 640 + 2 x 160 bytes, and 3 operations for each of 80 elements.

// CHECK: mem.launch "RotaryEmbedding"
// CHECK-SAME: bytes = 1600 : i64, flops = 240 : i64
// CHECK-SAME: params = {{\[\[}}"type", f32], ["rows", array<i64: 2, 5, 2>], ["columns", 8], ["rotated", 4], ["heads", 2], ["strides", array<i64: 120, 24, 8>], ["tableStrides", array<i64: 20, 4, 0>], ["interleaved", true], ["transposed", false]]
// CHECK: mem.launch "RotaryEmbedding"
// CHECK-SAME: bytes = 960 : i64, flops = 240 : i64
// CHECK-SAME: params = {{\[\[}}"type", f32], ["rows", array<i64: 2, 5, 2>], ["columns", 8], ["rotated", 8], ["heads", 1], ["strides", array<i64: 80, 16, 8>], ["tableStrides", array<i64: 0, 8, 0>], ["interleaved", false], ["transposed", true]]
// CHECK: mem.launch "RotaryEmbedding"
// CHECK-SAME: params = {{\[\[}}"type", f32], ["rows", array<i64: 1, 1, 20>], ["columns", 8], ["rotated", 8], ["heads", 20], ["strides", array<i64: 0, 0, 8>], ["tableStrides", array<i64: 0, 0, 8>], ["interleaved", false], ["transposed", false]]
train.step @step(%x: tensor<2x5x3x8xf32> {train.name = "x", train.role = #train.role<batch>},
                 %t: tensor<2x5x1x4xf32> {train.name = "t", train.role = #train.role<batch>},
                 %u: tensor<1x5x1x8xf32> {train.name = "u", train.role = #train.role<param>},
                 %v: tensor<20x8xf32> {train.name = "v", train.role = #train.role<param>})
    -> (tensor<20x8xf32> {train.name = "out"}) {
  %q = nn.slice %x [0, 0, 0, 0] step [1, 1, 1, 1] : (tensor<2x5x3x8xf32>) -> tensor<2x5x2x8xf32>
  %y = nn.rotary_embedding %q, %t, %t {interleaved} : (tensor<2x5x2x8xf32>, tensor<2x5x1x4xf32>, tensor<2x5x1x4xf32>) -> tensor<2x5x2x8xf32>
  %z = nn.rotary_embedding %y, %u, %u {heads = 1 : i64, transposed} : (tensor<2x5x2x8xf32>, tensor<1x5x1x8xf32>, tensor<1x5x1x8xf32>) -> tensor<2x5x2x8xf32>
  %r = nn.reshape %z : (tensor<2x5x2x8xf32>) -> tensor<20x8xf32>
  %w = nn.rotary_embedding %r, %v, %v : (tensor<20x8xf32>, tensor<20x8xf32>, tensor<20x8xf32>) -> tensor<20x8xf32>
  train.return %w : tensor<20x8xf32>
}
