// RUN: tmc-opt %s -tmc-raise | FileCheck %s --implicit-check-not=nn.transpose

// Where padding leaves a query nothing within its window, the pieces make a NaN and attention zeros: this
// file isn't run.

// Padding stays a row.

// CHECK-LABEL: func @padded_window(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask(%{{.*}}) {causal, scale = 1.000000e+00 : f64, window = 3 : i64}{{.*}}tensor<2x1x1x8xi1>
func.func @padded_window(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %pad: tensor<2x8xi1>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %m0 = arith.constant dense<[
    [true, false, false, false, false, false, false, false],
    [true, true, false, false, false, false, false, false],
    [true, true, true, false, false, false, false, false],
    [false, true, true, true, false, false, false, false],
    [false, false, true, true, true, false, false, false],
    [false, false, false, true, true, true, false, false],
    [false, false, false, false, true, true, true, false],
    [false, false, false, false, false, true, true, true]
  ]> : tensor<8x8xi1>
  %m2 = nn.broadcast %m0 to [1, 2] : (tensor<8x8xi1>) -> tensor<2x8x8xi1>
  %pads = nn.broadcast %pad to [0, 2] : (tensor<2x8xi1>) -> tensor<2x8x8xi1>
  %m1 = arith.andi %m2, %pads : tensor<2x8x8xi1>
  %m = nn.broadcast %m1 to [0, 2, 3] : (tensor<2x8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}
