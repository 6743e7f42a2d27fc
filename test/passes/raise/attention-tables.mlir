// RUN: tmc-opt %s -tmc-raise | FileCheck %s --implicit-check-not=window --implicit-check-not=groups --implicit-check-not=prefix

// Masks that are nearly what attention can say without a table, and stay one.


// CHECK-LABEL: func @ragged_window(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask({{.*}}tensor<1x1x8x8xi1>
func.func @ragged_window(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %m1 = arith.constant dense<[
    [true, false, false, false, false, false, false, false],
    [true, true, false, false, false, false, false, false],
    [true, true, true, false, false, false, false, false],
    [false, true, true, true, false, false, false, false],
    [false, false, true, true, true, false, false, false],
    [false, false, false, true, true, true, false, false],
    [false, false, false, false, false, true, true, false],
    [false, false, false, false, false, true, true, true]
  ]> : tensor<8x8xi1>
  %m = nn.broadcast %m1 to [2, 3] : (tensor<8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @window_with_a_sink(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask({{.*}}tensor<1x1x8x8xi1>
func.func @window_with_a_sink(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %m1 = arith.constant dense<[
    [true, false, false, false, false, false, false, false],
    [true, true, false, false, false, false, false, false],
    [true, true, true, false, false, false, false, false],
    [true, true, true, true, false, false, false, false],
    [true, false, true, true, true, false, false, false],
    [true, false, false, true, true, true, false, false],
    [true, false, false, false, true, true, true, false],
    [true, false, false, false, false, true, true, true]
  ]> : tensor<8x8xi1>
  %m = nn.broadcast %m1 to [2, 3] : (tensor<8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @window_of_two_widths(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask({{.*}}tensor<1x1x8x8xi1>
func.func @window_of_two_widths(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %m1 = arith.constant dense<[
    [true, true, false, false, false, false, false, false],
    [true, true, true, false, false, false, false, false],
    [true, true, true, true, false, false, false, false],
    [false, true, true, true, true, false, false, false],
    [false, false, true, true, true, true, false, false],
    [false, false, false, true, true, true, true, false],
    [false, false, false, false, true, true, true, true],
    [false, false, false, false, false, true, true, true]
  ]> : tensor<8x8xi1>
  %m = nn.broadcast %m1 to [2, 3] : (tensor<8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @overlapping_blocks(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask({{.*}}tensor<1x1x8x8xi1>
func.func @overlapping_blocks(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %m1 = arith.constant dense<[
    [true, true, true, false, false, false, false, false],
    [true, true, true, false, false, false, false, false],
    [true, true, true, true, false, false, false, false],
    [false, false, false, true, true, true, false, false],
    [false, false, false, true, true, true, false, false],
    [false, false, false, true, true, true, false, false],
    [false, false, false, false, false, false, true, true],
    [false, false, false, false, false, false, true, true]
  ]> : tensor<8x8xi1>
  %m = nn.broadcast %m1 to [2, 3] : (tensor<8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @prefix_that_grows(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask({{.*}}tensor<1x1x8x8xi1>
func.func @prefix_that_grows(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %m1 = arith.constant dense<[
    [true, true, true, false, false, false, false, false],
    [true, true, true, true, false, false, false, false],
    [true, true, true, true, false, false, false, false],
    [true, true, true, true, false, false, false, false],
    [true, true, true, true, true, false, false, false],
    [true, true, true, true, true, true, false, false],
    [true, true, true, true, true, true, true, false],
    [true, true, true, true, true, true, true, true]
  ]> : tensor<8x8xi1>
  %m = nn.broadcast %m1 to [2, 3] : (tensor<8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @ids_of_others(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask({{.*}}tensor<2x1x8x8xi1>
func.func @ids_of_others(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %ids: tensor<2x8xi64>, %other: tensor<2x8xi64>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %rows = nn.broadcast %ids to [0, 1] : (tensor<2x8xi64>) -> tensor<2x8x8xi64>
  %cols = nn.broadcast %other to [0, 2] : (tensor<2x8xi64>) -> tensor<2x8x8xi64>
  %same = arith.cmpi eq, %rows, %cols : tensor<2x8x8xi64>
  %row = nn.iota {dim = 1 : i64} : () -> tensor<2x8x8xi64>
  %col = nn.iota {dim = 2 : i64} : () -> tensor<2x8x8xi64>
  %self = arith.cmpi eq, %row, %col : tensor<2x8x8xi64>
  %m1 = arith.ori %same, %self : tensor<2x8x8xi1>
  %m = nn.broadcast %m1 to [0, 2, 3] : (tensor<2x8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @ids_that_differ(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask({{.*}}tensor<2x1x8x8xi1>
func.func @ids_that_differ(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %ids: tensor<2x8xi64>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %rows = nn.broadcast %ids to [0, 1] : (tensor<2x8xi64>) -> tensor<2x8x8xi64>
  %cols = nn.broadcast %ids to [0, 2] : (tensor<2x8xi64>) -> tensor<2x8x8xi64>
  %m1 = arith.cmpi ne, %rows, %cols : tensor<2x8x8xi64>
  %m = nn.broadcast %m1 to [0, 2, 3] : (tensor<2x8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @prefix_and_itself(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask({{.*}}tensor<2x1x8x8xi1>
func.func @prefix_and_itself(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %n: tensor<2xi64>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %row = nn.iota {dim = 0 : i64} : () -> tensor<8x8xi64>
  %col = nn.iota {dim = 1 : i64} : () -> tensor<8x8xi64>
  %causal = arith.cmpi sle, %col, %row : tensor<8x8xi64>
  %all = nn.broadcast %causal to [1, 2] : (tensor<8x8xi1>) -> tensor<2x8x8xi1>
  %keys = nn.iota {dim = 2 : i64} : () -> tensor<2x8x8xi64>
  %until = nn.broadcast %n to [0] : (tensor<2xi64>) -> tensor<2x8x8xi64>
  %early = arith.cmpi sle, %keys, %until : tensor<2x8x8xi64>
  %m1 = arith.ori %all, %early : tensor<2x8x8xi1>
  %m = nn.broadcast %m1 to [0, 2, 3] : (tensor<2x8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// Causality forbids what the prefix would allow.

// CHECK-LABEL: func @prefix_under_a_mask(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask({{.*}}causal
func.func @prefix_under_a_mask(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %n: tensor<2xi64>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %row = nn.iota {dim = 0 : i64} : () -> tensor<8x8xi64>
  %col = nn.iota {dim = 1 : i64} : () -> tensor<8x8xi64>
  %causal = arith.cmpi sle, %col, %row : tensor<8x8xi64>
  %all = nn.broadcast %causal to [1, 2] : (tensor<8x8xi1>) -> tensor<2x8x8xi1>
  %keys = nn.iota {dim = 2 : i64} : () -> tensor<2x8x8xi64>
  %until = nn.broadcast %n to [0] : (tensor<2xi64>) -> tensor<2x8x8xi64>
  %early = arith.cmpi slt, %keys, %until : tensor<2x8x8xi64>
  %either = arith.ori %all, %early : tensor<2x8x8xi1>
  %m1 = arith.andi %either, %all : tensor<2x8x8xi1>
  %m = nn.broadcast %m1 to [0, 2, 3] : (tensor<2x8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @bent_distances(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask({{.*}}tensor<1x4x8x8xf32>
func.func @bent_distances(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %b = arith.constant dense<[
    [[0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5],
     [-0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0],
     [-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5],
     [-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0],
     [-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5],
     [-2.5, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0],
     [-3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5],
     [-3.25, -3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0]],
    [[0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75],
     [-0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5],
     [-0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25],
     [-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0],
     [-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75],
     [-1.25, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5],
     [-1.5, -1.25, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25],
     [-1.75, -1.5, -1.25, -1.0, -0.75, -0.5, -0.25, 0.0]],
    [[0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875],
     [-0.125, 0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75],
     [-0.25, -0.125, 0.0, 0.125, 0.25, 0.375, 0.5, 0.625],
     [-0.375, -0.25, -0.125, 0.0, 0.125, 0.25, 0.375, 0.5],
     [-0.5, -0.375, -0.25, -0.125, 0.0, 0.125, 0.25, 0.375],
     [-0.625, -0.5, -0.375, -0.25, -0.125, 0.0, 0.125, 0.25],
     [-0.75, -0.625, -0.5, -0.375, -0.25, -0.125, 0.0, 0.125],
     [-0.875, -0.75, -0.625, -0.5, -0.375, -0.25, -0.125, 0.0]],
    [[0.0, 0.0625, 0.125, 0.1875, 0.25, 0.3125, 0.375, 0.4375],
     [-0.0625, 0.0, 0.0625, 0.125, 0.1875, 0.25, 0.3125, 0.375],
     [-0.125, -0.0625, 0.0, 0.0625, 0.125, 0.1875, 0.25, 0.3125],
     [-0.1875, -0.125, -0.0625, 0.0, 0.0625, 0.125, 0.1875, 0.25],
     [-0.25, -0.1875, -0.125, -0.0625, 0.0, 0.0625, 0.125, 0.1875],
     [-0.3125, -0.25, -0.1875, -0.125, -0.0625, 0.0, 0.0625, 0.125],
     [-0.375, -0.3125, -0.25, -0.1875, -0.125, -0.0625, 0.0, 0.0625],
     [-0.4375, -0.375, -0.3125, -0.25, -0.1875, -0.125, -0.0625, 0.0]]
  ]> : tensor<4x8x8xf32>
  %b4 = nn.broadcast %b to [1, 2, 3] : (tensor<4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %t = arith.addf %scores, %b4 : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}
