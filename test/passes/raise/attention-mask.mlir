// RUN: tmc-opt %s -tmc-raise | FileCheck %s --implicit-check-not=nn.transpose

// What may be done to scores of [B, H, T, S] = [2, 4, 8, 8]. A key s is after the
// query t, and forbidden by a causal mask, where s > t.


// CHECK-LABEL: func @constant_condition(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 {causal,
func.func @constant_condition(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %m0 = arith.constant dense<[[[
    [true, false, false, false, false, false, false, false],
    [true, true, false, false, false, false, false, false],
    [true, true, true, false, false, false, false, false],
    [true, true, true, true, false, false, false, false],
    [true, true, true, true, true, false, false, false],
    [true, true, true, true, true, true, false, false],
    [true, true, true, true, true, true, true, false],
    [true, true, true, true, true, true, true, true]
  ]]]> : tensor<1x1x8x8xi1>
  %m1 = nn.reshape %m0 : (tensor<1x1x8x8xi1>) -> tensor<8x8xi1>
  %m = nn.broadcast %m1 to [2, 3] : (tensor<8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// The smallest f32 where a key is forbidden, added before the scores.

// CHECK-LABEL: func @constant_summand(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 {causal,
func.func @constant_summand(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %m0 = arith.constant dense<[[[
    [0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38],
    [0.0, 0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38],
    [0.0, 0.0, 0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38],
    [0.0, 0.0, 0.0, 0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38],
    [0.0, 0.0, 0.0, 0.0, 0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38],
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -3.40282347E+38, -3.40282347E+38],
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -3.40282347E+38],
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
  ]]]> : tensor<1x1x8x8xf32>
  %m1 = nn.reshape %m0 : (tensor<1x1x8x8xf32>) -> tensor<8x8xf32>
  %m = nn.broadcast %m1 to [2, 3] : (tensor<8x8xf32>) -> tensor<2x4x8x8xf32>
  %t = arith.addf %m, %scores : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// s <= t.

// CHECK-LABEL: func @compared_positions(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 {causal,
func.func @compared_positions(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %qi = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %ki = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %qb = nn.broadcast %qi to [2] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %kb = nn.broadcast %ki to [3] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %m = arith.cmpi sle, %kb, %qb : tensor<2x4x8x8xi64>
  %low = arith.constant dense<-3.40282347E+38> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// A triangle of ones that isn't zero.

// CHECK-LABEL: func @triangle_of_ones(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 {causal,
func.func @triangle_of_ones(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %qi = nn.iota {dim = 0 : i64} : () -> tensor<8x8xi64>
  %ki = nn.iota {dim = 1 : i64} : () -> tensor<8x8xi64>
  %c = arith.cmpi sle, %ki, %qi : tensor<8x8xi64>
  %one = arith.constant dense<1> : tensor<8x8xi64>
  %zero = arith.constant dense<0> : tensor<8x8xi64>
  %n = arith.select %c, %one, %zero : tensor<8x8xi1>, tensor<8x8xi64>
  %m = arith.cmpi ne, %n, %zero : tensor<8x8xi64>
  %b = nn.broadcast %m to [2, 3] : (tensor<8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<-3.40282347E+38> : tensor<2x4x8x8xf32>
  %t = arith.select %b, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// What is above the diagonal as numbers, and less than a half elsewhere.

// CHECK-LABEL: func @triangle_above(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 {causal,
func.func @triangle_above(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %qi = nn.iota {dim = 0 : i64} : () -> tensor<8x8xi64>
  %ki = nn.iota {dim = 1 : i64} : () -> tensor<8x8xi64>
  %c = arith.cmpi sgt, %ki, %qi : tensor<8x8xi64>
  %n = arith.uitofp %c : tensor<8x8xi1> to tensor<8x8xf32>
  %half = arith.constant dense<0.5> : tensor<8x8xf32>
  %m = arith.cmpf ogt, %half, %n : tensor<8x8xf32>
  %b = nn.broadcast %m to [2, 3] : (tensor<8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<-3.40282347E+38> : tensor<2x4x8x8xf32>
  %t = arith.select %b, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// Both numbers are above the third: nothing is forbidden.

// CHECK-LABEL: func @choice_of_none(
//       CHECK:   arith.cmpi sgt
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask(
func.func @choice_of_none(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %qi = nn.iota {dim = 0 : i64} : () -> tensor<8x8xi64>
  %ki = nn.iota {dim = 1 : i64} : () -> tensor<8x8xi64>
  %c = arith.cmpi sle, %ki, %qi : tensor<8x8xi64>
  %one = arith.constant dense<1> : tensor<8x8xi64>
  %zero = arith.constant dense<0> : tensor<8x8xi64>
  %n = arith.select %c, %one, %zero : tensor<8x8xi1>, tensor<8x8xi64>
  %less = arith.constant dense<-1> : tensor<8x8xi64>
  %m = arith.cmpi sgt, %n, %less : tensor<8x8xi64>
  %b = nn.broadcast %m to [2, 3] : (tensor<8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<-3.40282347E+38> : tensor<2x4x8x8xf32>
  %t = arith.select %b, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// Where t < s, the smallest f32; positions partly folded.

// CHECK-LABEL: func @compared_the_other_way(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 {causal,
func.func @compared_the_other_way(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %qi = nn.iota {dim = 0 : i64} : () -> tensor<8x8xi64>
  %ki = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : tensor<8xi64>
  %kb = nn.broadcast %ki to [1] : (tensor<8xi64>) -> tensor<8x8xi64>
  %m = arith.cmpi slt, %qi, %kb : tensor<8x8xi64>
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %low = arith.constant dense<-3.40282347E+38> : tensor<8x8xf32>
  %n = arith.select %m, %low, %zero : tensor<8x8xi1>, tensor<8x8xf32>
  %b = nn.broadcast %n to [2, 3] : (tensor<8x8xf32>) -> tensor<2x4x8x8xf32>
  %t = arith.addf %scores, %b : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @scaled_after_the_mask(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 {causal, scale = 2.500000e-01 : f64}
func.func @scaled_after_the_mask(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %qi = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %ki = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %qb = nn.broadcast %qi to [2] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %kb = nn.broadcast %ki to [3] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %m = arith.cmpi sgt, %kb, %qb : tensor<2x4x8x8xi64>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %u = arith.select %m, %low, %scores : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %c = arith.constant dense<0.25> : tensor<2x4x8x8xf32>
  %t = arith.mulf %u, %c : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @forbids_nothing(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 {scale
func.func @forbids_nothing(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %m = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %t = arith.addf %scores, %m : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// Keys at most two away.

// CHECK-LABEL: func @window(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 {scale = 1.000000e+00 : f64, window = 3 : i64}
func.func @window(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %m0 = arith.constant dense<[[[
    [true, true, true, false, false, false, false, false],
    [true, true, true, true, false, false, false, false],
    [true, true, true, true, true, false, false, false],
    [false, true, true, true, true, true, false, false],
    [false, false, true, true, true, true, true, false],
    [false, false, false, true, true, true, true, true],
    [false, false, false, false, true, true, true, true],
    [false, false, false, false, false, true, true, true]
  ]]]> : tensor<1x1x8x8xi1>
  %m1 = nn.reshape %m0 : (tensor<1x1x8x8xi1>) -> tensor<8x8xi1>
  %m = nn.broadcast %m1 to [2, 3] : (tensor<8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<-1.0e+09> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// (1 - pad) times the smallest f32, one number per key.

// CHECK-LABEL: func @padding_added(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask(%{{.*}}) {scale
//   CHECK-SAME:     tensor<2x1x1x8xf32>
func.func @padding_added(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %pad: tensor<2x8xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %one = arith.constant dense<1.0> : tensor<2x1x1x8xf32>
  %low = arith.constant dense<-3.40282347E+38> : tensor<2x1x1x8xf32>
  %p0 = nn.reshape %pad : (tensor<2x8xf32>) -> tensor<2x1x1x8xf32>
  %p1 = arith.subf %one, %p0 : tensor<2x1x1x8xf32>
  %p2 = arith.mulf %p1, %low : tensor<2x1x1x8xf32>
  %p3 = nn.reshape %p2 : (tensor<2x1x1x8xf32>) -> tensor<2x8xf32>
  %p4 = nn.broadcast %p3 to [0, 3] : (tensor<2x8xf32>) -> tensor<2x4x8x8xf32>
  %t = arith.addf %scores, %p4 : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// The smallest f32 by a choice: the condition alone, once per key.

// CHECK-LABEL: func @padding_chosen(
//       CHECK:   %[[M:.*]] = nn.reshape %arg3 : (tensor<2x8xi1>) -> tensor<2x1x1x8xi1>
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask(%[[M]]) {nn.fill = -3.4028234663852886E+38 : f64, scale
func.func @padding_chosen(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %pad: tensor<2x8xi1>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %b = nn.broadcast %pad to [0, 3] : (tensor<2x8xi1>) -> tensor<2x1x8x8xi1>
  %zero = arith.constant dense<0.0> : tensor<2x1x8x8xf32>
  %low = arith.constant dense<-3.40282347E+38> : tensor<2x1x8x8xf32>
  %m = arith.select %b, %zero, %low : tensor<2x1x8x8xi1>, tensor<2x1x8x8xf32>
  %m1 = nn.reshape %m : (tensor<2x1x8x8xf32>) -> tensor<2x8x8xf32>
  %m2 = nn.broadcast %m1 to [0, 2, 3] : (tensor<2x8x8xf32>) -> tensor<2x4x8x8xf32>
  %t = arith.addf %scores, %m2 : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// A comparison of what is repeated: made once per key.

// CHECK-LABEL: func @condition_of_work(
//       CHECK:   %[[M:.*]] = arith.cmpi ne, %{{.*}} : tensor<2x1x1x8xi64>
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask(%[[M]]) {nn.fill = -1.000000e+04 : f64, nn.fill_kind = 2 : i64, scale
func.func @condition_of_work(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %pad: tensor<2x8xi64>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %none = arith.constant dense<0> : tensor<2x4x8x8xi64>
  %b = nn.broadcast %pad to [0, 3] : (tensor<2x8xi64>) -> tensor<2x4x8x8xi64>
  %c = arith.cmpi ne, %b, %none : tensor<2x4x8x8xi64>
  %low = arith.constant dense<-1.0e+04> : tensor<2x4x8x8xf32>
  %t = arith.select %c, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// The two conditions come apart.

// CHECK-LABEL: func @padding_and_causal(
//       CHECK:   %[[M:.*]] = nn.reshape %arg3 : (tensor<2x8xi1>) -> tensor<2x1x1x8xi1>
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask(%[[M]]) {causal,
func.func @padding_and_causal(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %pad: tensor<2x8xi1>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %qi = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %ki = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %qb = nn.broadcast %qi to [2] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %kb = nn.broadcast %ki to [3] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %c = arith.cmpi sle, %kb, %qb : tensor<2x4x8x8xi64>
  %b = nn.broadcast %pad to [0, 3] : (tensor<2x8xi1>) -> tensor<2x4x8x8xi1>
  %m = arith.andi %b, %c : tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// The same by the smallest f32.

// CHECK-LABEL: func @padding_and_causal_by_a_number(
//       CHECK:   %[[M:.*]] = nn.reshape %arg3 : (tensor<2x8xi1>) -> tensor<2x1x1x8xi1>
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask(%[[M]]) {causal,
func.func @padding_and_causal_by_a_number(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %pad: tensor<2x8xi1>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %qi = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %ki = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %qb = nn.broadcast %qi to [2] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %kb = nn.broadcast %ki to [3] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %c = arith.cmpi sle, %kb, %qb : tensor<2x4x8x8xi64>
  %b = nn.broadcast %pad to [0, 3] : (tensor<2x8xi1>) -> tensor<2x4x8x8xi1>
  %m = arith.andi %b, %c : tensor<2x4x8x8xi1>
  %zero = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %low = arith.constant dense<-3.40282347E+38> : tensor<2x4x8x8xf32>
  %n = arith.select %m, %zero, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %t = arith.addf %scores, %n : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @per_head(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask(%{{.*}}) {scale
//   CHECK-SAME:     tensor<1x4x1x8xf32>
func.func @per_head(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %bias: tensor<4x8xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %b = nn.broadcast %bias to [1, 3] : (tensor<4x8xf32>) -> tensor<2x4x8x8xf32>
  %t = arith.addf %scores, %b : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// Zeros where the softmax is no number: what nn.attention gives.

// CHECK-LABEL: func @rows_without_a_key(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask(%{{.*}}) {scale
//   CHECK-SAME:     tensor<2x1x1x8xi1>
func.func @rows_without_a_key(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %pad: tensor<2x8xi1>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %b = nn.broadcast %pad to [0, 3] : (tensor<2x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %b, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p0 = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %nan = arith.cmpf uno, %p0, %p0 : tensor<2x4x8x8xf32>
  %zero = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %p = arith.select %nan, %zero, %p0 : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @distances_and_causal(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask(%{{.*}}) {causal,
//   CHECK-SAME:     tensor<1x1x8x8xf32>
func.func @distances_and_causal(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %d0 = arith.constant dense<[[[
    [0.0, -0.5, -1.0, -1.5, -2.0, -2.5, -3.0, -3.5],
    [-0.5, 0.0, -0.5, -1.0, -1.5, -2.0, -2.5, -3.0],
    [-1.0, -0.5, 0.0, -0.5, -1.0, -1.5, -2.0, -2.5],
    [-1.5, -1.0, -0.5, 0.0, -0.5, -1.0, -1.5, -2.0],
    [-2.0, -1.5, -1.0, -0.5, 0.0, -0.5, -1.0, -1.5],
    [-2.5, -2.0, -1.5, -1.0, -0.5, 0.0, -0.5, -1.0],
    [-3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0, -0.5],
    [-3.5, -3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0]
  ]]]> : tensor<1x1x8x8xf32>
  %d1 = nn.reshape %d0 : (tensor<1x1x8x8xf32>) -> tensor<8x8xf32>
  %d = nn.broadcast %d1 to [2, 3] : (tensor<8x8xf32>) -> tensor<2x4x8x8xf32>
  %qi = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %ki = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %qb = nn.broadcast %qi to [2] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %kb = nn.broadcast %ki to [3] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %c = arith.cmpi sgt, %kb, %qb : tensor<2x4x8x8xi64>
  %low = arith.constant dense<-3.40282347E+38> : tensor<2x4x8x8xf32>
  %u = arith.addf %scores, %d : tensor<2x4x8x8xf32>
  %t = arith.select %c, %low, %u : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// One constant for both: the flag, and what is left of the numbers is a row.

// CHECK-LABEL: func @distances_that_are_causal(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask(%{{.*}}) {causal,
//   CHECK-SAME:     tensor<1x1x1x8xf32>
func.func @distances_that_are_causal(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %d0 = arith.constant dense<[[[
    [0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38],
    [-0.5, 0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38],
    [-1.0, -0.5, 0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38],
    [-1.5, -1.0, -0.5, 0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38],
    [-2.0, -1.5, -1.0, -0.5, 0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38],
    [-2.5, -2.0, -1.5, -1.0, -0.5, 0.0, -3.40282347E+38, -3.40282347E+38],
    [-3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0, -3.40282347E+38],
    [-3.5, -3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0]
  ]]]> : tensor<1x1x8x8xf32>
  %d1 = nn.reshape %d0 : (tensor<1x1x8x8xf32>) -> tensor<8x8xf32>
  %d = nn.broadcast %d1 to [2, 3] : (tensor<8x8xf32>) -> tensor<2x4x8x8xf32>
  %t = arith.addf %scores, %d : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// Numbers per key stay numbers.

// CHECK-LABEL: func @padding_and_causal_apart(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask(%{{.*}}) {causal,
//   CHECK-SAME:     tensor<2x1x1x8xf32>
func.func @padding_and_causal_apart(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %pad: tensor<2x8xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %qi = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %ki = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %qb = nn.broadcast %qi to [2] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %kb = nn.broadcast %ki to [3] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %c = arith.cmpi sle, %kb, %qb : tensor<2x4x8x8xi64>
  %low = arith.constant dense<-3.40282347E+38> : tensor<2x4x8x8xf32>
  %u = arith.select %c, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %b = nn.broadcast %pad to [0, 3] : (tensor<2x8xf32>) -> tensor<2x4x8x8xf32>
  %t = arith.addf %u, %b : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// Query 1 sees key 7: not causal.

// CHECK-LABEL: func @almost_causal(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask(%{{.*}}) {scale
func.func @almost_causal(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %m0 = arith.constant dense<[[[
    [true, false, false, false, false, false, false, false],
    [true, true, false, false, false, false, false, true],
    [true, true, true, false, false, false, false, false],
    [true, true, true, true, false, false, false, false],
    [true, true, true, true, true, false, false, false],
    [true, true, true, true, true, true, false, false],
    [true, true, true, true, true, true, true, false],
    [true, true, true, true, true, true, true, true]
  ]]]> : tensor<1x1x8x8xi1>
  %m1 = nn.reshape %m0 : (tensor<1x1x8x8xi1>) -> tensor<8x8xi1>
  %m = nn.broadcast %m1 to [2, 3] : (tensor<8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// s <= t + 1.

// CHECK-LABEL: func @one_key_further(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask(%{{.*}}) {scale
//   CHECK-SAME:     tensor<1x1x8x8xi1>
func.func @one_key_further(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %qi = arith.constant dense<[1, 2, 3, 4, 5, 6, 7, 8]> : tensor<8xi64>
  %ki = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %qb = nn.broadcast %qi to [2] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %kb = nn.broadcast %ki to [3] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %m = arith.cmpi sle, %kb, %qb : tensor<2x4x8x8xi64>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// Later keys only, s >= t.

// CHECK-LABEL: func @queries_before_keys(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 mask(%{{.*}}) {scale
//   CHECK-SAME:     tensor<1x1x8x8xi1>
func.func @queries_before_keys(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %qi = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %ki = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %qb = nn.broadcast %qi to [2] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %kb = nn.broadcast %ki to [3] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %m = arith.cmpi sge, %kb, %qb : tensor<2x4x8x8xi64>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %t = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

