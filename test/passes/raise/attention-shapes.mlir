// RUN: tmc-opt %s -tmc-raise | FileCheck %s --implicit-check-not=nn.transpose

// What attention says of its scores without a table of them: soft caps, windows,
// groups and prefixes. Scores are [B, H, T, S] = [2, 4, 8, 8].


// CHECK-LABEL: func @soft_cap(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 {scale = 1.000000e+00 : f64, softcap = 3.000000e+01 : f64}
func.func @soft_cap(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %cap = arith.constant dense<30.0> : tensor<2x4x8x8xf32>
  %t0 = arith.divf %scores, %cap : tensor<2x4x8x8xf32>
  %t1 = math.tanh %t0 : tensor<2x4x8x8xf32>
  %t = arith.mulf %t1, %cap : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @soft_cap_before_a_mask(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 {causal, scale = 1.000000e+00 : f64, softcap = 3.000000e+01 : f64}
func.func @soft_cap_before_a_mask(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %cap = arith.constant dense<30.0> : tensor<2x4x8x8xf32>
  %t0 = arith.divf %scores, %cap : tensor<2x4x8x8xf32>
  %t1 = math.tanh %t0 : tensor<2x4x8x8xf32>
  %capped = arith.mulf %t1, %cap : tensor<2x4x8x8xf32>
  %m1 = arith.constant dense<[
    [true, false, false, false, false, false, false, false],
    [true, true, false, false, false, false, false, false],
    [true, true, true, false, false, false, false, false],
    [true, true, true, true, false, false, false, false],
    [true, true, true, true, true, false, false, false],
    [true, true, true, true, true, true, false, false],
    [true, true, true, true, true, true, true, false],
    [true, true, true, true, true, true, true, true]
  ]> : tensor<8x8xi1>
  %m = nn.broadcast %m1 to [2, 3] : (tensor<8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %capped, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// Three keys, of which the last is the query's own.

// CHECK-LABEL: func @window(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 {causal, scale = 1.000000e+00 : f64, window = 3 : i64}
func.func @window(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
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
    [false, false, false, false, true, true, true, false],
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


// CHECK-LABEL: func @window_both_ways(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 {scale = 1.000000e+00 : f64, window = 3 : i64}
func.func @window_both_ways(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %m1 = arith.constant dense<[
    [true, true, true, false, false, false, false, false],
    [true, true, true, true, false, false, false, false],
    [true, true, true, true, true, false, false, false],
    [false, true, true, true, true, true, false, false],
    [false, false, true, true, true, true, true, false],
    [false, false, false, true, true, true, true, true],
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


// CHECK-LABEL: func @window_by_positions(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 {causal, scale = 1.000000e+00 : f64, window = 4 : i64}
func.func @window_by_positions(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %row = nn.iota {dim = 0 : i64} : () -> tensor<8x8xi64>
  %col = nn.iota {dim = 1 : i64} : () -> tensor<8x8xi64>
  %causal = arith.cmpi sle, %col, %row : tensor<8x8xi64>
  %four = arith.constant dense<4> : tensor<8x8xi64>
  %first = arith.subi %row, %four : tensor<8x8xi64>
  %near = arith.cmpi sgt, %col, %first : tensor<8x8xi64>
  %m1 = arith.andi %causal, %near : tensor<8x8xi1>
  %m = nn.broadcast %m1 to [2, 3] : (tensor<8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// A group has the number of its first key.

// CHECK-LABEL: func @blocks(
//       CHECK:   %[[G:.*]] = arith.constant dense<{{\[\[}}0, 0, 0, 3, 3, 5, 5, 5]]> : tensor<1x8xi64>
//       CHECK:   nn.attention %arg0, %arg1, %arg2 groups(%[[G]]) {scale
func.func @blocks(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %m1 = arith.constant dense<[
    [true, true, true, false, false, false, false, false],
    [true, true, true, false, false, false, false, false],
    [true, true, true, false, false, false, false, false],
    [false, false, false, true, true, false, false, false],
    [false, false, false, true, true, false, false, false],
    [false, false, false, false, false, true, true, true],
    [false, false, false, false, false, true, true, true],
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


// CHECK-LABEL: func @causal_blocks(
//       CHECK:   %[[G:.*]] = arith.constant dense<{{\[\[}}0, 0, 0, 3, 3, 5, 5, 5]]> : tensor<1x8xi64>
//       CHECK:   nn.attention %arg0, %arg1, %arg2 groups(%[[G]]) {causal
func.func @causal_blocks(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %m1 = arith.constant dense<[
    [true, false, false, false, false, false, false, false],
    [true, true, false, false, false, false, false, false],
    [true, true, true, false, false, false, false, false],
    [false, false, false, true, false, false, false, false],
    [false, false, false, true, true, false, false, false],
    [false, false, false, false, false, true, false, false],
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

// Sequences behind each other in a row, by their numbers.

// CHECK-LABEL: func @packed(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 groups(%arg3) {causal, scale
func.func @packed(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %ids: tensor<2x8xi64>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %rows = nn.broadcast %ids to [0, 1] : (tensor<2x8xi64>) -> tensor<2x8x8xi64>
  %cols = nn.broadcast %ids to [0, 2] : (tensor<2x8xi64>) -> tensor<2x8x8xi64>
  %same = arith.cmpi eq, %rows, %cols : tensor<2x8x8xi64>
  %row = nn.iota {dim = 0 : i64} : () -> tensor<8x8xi64>
  %col = nn.iota {dim = 1 : i64} : () -> tensor<8x8xi64>
  %causal = arith.cmpi sle, %col, %row : tensor<8x8xi64>
  %all = nn.broadcast %causal to [1, 2] : (tensor<8x8xi1>) -> tensor<2x8x8xi1>
  %m1 = arith.andi %same, %all : tensor<2x8x8xi1>
  %m = nn.broadcast %m1 to [0, 2, 3] : (tensor<2x8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @prefix(
//       CHECK:   %[[N:.*]] = arith.constant dense<3> : tensor<1xi64>
//       CHECK:   nn.attention %arg0, %arg1, %arg2 prefix(%[[N]]) {causal
func.func @prefix(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %m1 = arith.constant dense<[
    [true, true, true, false, false, false, false, false],
    [true, true, true, false, false, false, false, false],
    [true, true, true, false, false, false, false, false],
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


// CHECK-LABEL: func @prefix_of_each_sample(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 prefix(%arg3) {causal
func.func @prefix_of_each_sample(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %n: tensor<2xi64>) -> tensor<2x8x4x16xf32> {
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
  %m1 = arith.ori %all, %early : tensor<2x8x8xi1>
  %m = nn.broadcast %m1 to [0, 2, 3] : (tensor<2x8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// Slopes times distances differ from slopes times positions by the same number
// for all keys of a query.

// CHECK-LABEL: func @distances(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask(%{{.*}}) {causal, scale{{.*}}tensor<1x4x1x8xf32>
func.func @distances(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %row = nn.iota {dim = 0 : i64} : () -> tensor<8x8xi64>
  %col = nn.iota {dim = 1 : i64} : () -> tensor<8x8xi64>
  %causal = arith.cmpi sle, %col, %row : tensor<8x8xi64>
  %rf = arith.sitofp %row : tensor<8x8xi64> to tensor<8x8xf32>
  %cf = arith.sitofp %col : tensor<8x8xi64> to tensor<8x8xf32>
  %d = arith.subf %cf, %rf : tensor<8x8xf32>
  %d4 = nn.broadcast %d to [2, 3] : (tensor<8x8xf32>) -> tensor<2x4x8x8xf32>
  %slopes = arith.constant dense<[0.5, 0.25, 0.125, 0.0625]> : tensor<4xf32>
  %s4 = nn.broadcast %slopes to [1] : (tensor<4xf32>) -> tensor<2x4x8x8xf32>
  %bias = arith.mulf %s4, %d4 : tensor<2x4x8x8xf32>
  %biased = arith.addf %scores, %bias : tensor<2x4x8x8xf32>
  %m = nn.broadcast %causal to [2, 3] : (tensor<8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %biased, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @constant_distances(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask(%{{.*}}) {scale{{.*}}tensor<1x4x1x8xf32>
func.func @constant_distances(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
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
     [-3.5, -3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0]],
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


// CHECK-LABEL: func @table_of_a_whole_op(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 {causal, scale = 1.000000e+00 : f64, window = 3 : i64}
func.func @table_of_a_whole_op(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %m1 = arith.constant dense<[
    [true, false, false, false, false, false, false, false],
    [true, true, false, false, false, false, false, false],
    [true, true, true, false, false, false, false, false],
    [false, true, true, true, false, false, false, false],
    [false, false, true, true, true, false, false, false],
    [false, false, false, true, true, true, false, false],
    [false, false, false, false, true, true, true, false],
    [false, false, false, false, false, true, true, true]
  ]> : tensor<8x8xi1>
  %m = nn.reshape %m1 : (tensor<8x8xi1>) -> tensor<1x1x8x8xi1>
  %r:2 = nn.attention %q, %k, %v mask(%m) {scale = 1.0} : (tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<1x1x8x8xi1>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %r#0 : tensor<2x8x4x16xf32>
}
