// RUN: tmc-opt %s -tmc-raise | FileCheck %s

// Queries that may see no key: what a finite number in the place of their
// scores, or added to them, makes of them is said by the op's fill.

// Padding alone. The mean of the values.

// CHECK-LABEL: func @in_the_place_of_scores(
//       CHECK:   nn.attention {{.*}} mask(%{{.*}}) {nn.fill = -1.000000e+09 : f64, nn.fill_kind = 2 : i64, scale
func.func @in_the_place_of_scores(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %pad: tensor<2x8xi1>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %s = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %b = nn.broadcast %pad to [0, 3] : (tensor<2x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<-1.0e+09> : tensor<2x4x8x8xf32>
  %t = arith.select %b, %s, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// One condition of padding and causality. The softmax of the scores, rounded.

// CHECK-LABEL: func @added_to_scores(
//       CHECK:   nn.attention {{.*}} mask(%{{.*}}) {causal, nn.fill = -1.000000e+09 : f64, scale
func.func @added_to_scores(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %pad: tensor<2x8xi1>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %s = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %b = nn.broadcast %pad to [0, 3] : (tensor<2x8xi1>) -> tensor<2x4x8x8xi1>
  %i = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %qb = nn.broadcast %i to [2] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %kb = nn.broadcast %i to [3] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %c = arith.cmpi sle, %kb, %qb : tensor<2x4x8x8xi64>
  %zero = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %low = arith.constant dense<-1.0e+09> : tensor<2x4x8x8xf32>
  %m = arith.andi %b, %c : tensor<2x4x8x8xi1>
  %n = arith.select %m, %zero, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %t = arith.addf %s, %n : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// Numbers of padding beside causality: they are added to the fill.

// CHECK-LABEL: func @added_to_what_was_replaced(
//       CHECK:   nn.attention {{.*}} mask(%{{.*}}) {causal, nn.fill = -1.000000e+09 : f64, nn.fill_kind = 1 : i64, scale
//       CHECK:   tensor<2x1x1x8xf32>
func.func @added_to_what_was_replaced(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %pad: tensor<2x8xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %s = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %i = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %qb = nn.broadcast %i to [2] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %kb = nn.broadcast %i to [3] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %c = arith.cmpi sle, %kb, %qb : tensor<2x4x8x8xi64>
  %low = arith.constant dense<-1.0e+09> : tensor<2x4x8x8xf32>
  %u = arith.select %c, %s, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %b = nn.broadcast %pad to [0, 3] : (tensor<2x8xf32>) -> tensor<2x4x8x8xf32>
  %t = arith.addf %u, %b : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// What is hidden twice is less likely than what is hidden once.

// CHECK-LABEL: func @added_twice(
//       CHECK:   %[[N:.*]] = arith.select %{{.*}} : tensor<2x1x1x8xi1>, tensor<2x1x1x8xf32>
//       CHECK:   nn.attention {{.*}} mask(%[[N]]) {causal, nn.fill = -1.000000e+09 : f64, scale
func.func @added_twice(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %pad: tensor<2x8xi1>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %s = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %b = nn.broadcast %pad to [0, 3] : (tensor<2x8xi1>) -> tensor<2x4x8x8xi1>
  %i = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %qb = nn.broadcast %i to [2] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %kb = nn.broadcast %i to [3] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %c = arith.cmpi sle, %kb, %qb : tensor<2x4x8x8xi64>
  %zero = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %low = arith.constant dense<-1.0e+09> : tensor<2x4x8x8xf32>
  %m = arith.select %c, %zero, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %n = arith.select %b, %zero, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %u = arith.addf %s, %m : tensor<2x4x8x8xf32>
  %t = arith.addf %u, %n : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// Causality by infinity leaves nothing to fill; padding is added.

// CHECK-LABEL: func @beside_infinity(
//       CHECK:   %[[N:.*]] = arith.select %{{.*}} : tensor<2x1x1x8xi1>, tensor<2x1x1x8xf32>
//       CHECK:   nn.attention {{.*}} mask(%[[N]]) {causal, scale
func.func @beside_infinity(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %pad: tensor<2x8xi1>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %s = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %b = nn.broadcast %pad to [0, 3] : (tensor<2x8xi1>) -> tensor<2x4x8x8xi1>
  %i = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %qb = nn.broadcast %i to [2] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %kb = nn.broadcast %i to [3] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %c = arith.cmpi sle, %kb, %qb : tensor<2x4x8x8xi64>
  %zero = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %low = arith.constant dense<-1.0e+09> : tensor<2x4x8x8xf32>
  %inf = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %n = arith.select %b, %zero, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %u = arith.addf %s, %n : tensor<2x4x8x8xf32>
  %t = arith.select %c, %u, %inf : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// Every query sees its own key: nothing is filled.

// CHECK-LABEL: func @sees_itself(
//       CHECK:   nn.attention %{{.*}}, %{{.*}}, %{{.*}} {causal, scale
func.func @sees_itself(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %s = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %i = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %qb = nn.broadcast %i to [2] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %kb = nn.broadcast %i to [3] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %c = arith.cmpi sle, %kb, %qb : tensor<2x4x8x8xi64>
  %low = arith.constant dense<-1.0e+09> : tensor<2x4x8x8xf32>
  %t = arith.select %c, %s, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// Two numbers in the place of scores: the op has one.

// CHECK-LABEL: func @two_numbers(
//       CHECK:   nn.softmax
func.func @two_numbers(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %pad: tensor<2x8xi1>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %s = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %b = nn.broadcast %pad to [0, 3] : (tensor<2x8xi1>) -> tensor<2x4x8x8xi1>
  %i = nn.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %qb = nn.broadcast %i to [2] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %kb = nn.broadcast %i to [3] : (tensor<8xi64>) -> tensor<2x4x8x8xi64>
  %c = arith.cmpi sle, %kb, %qb : tensor<2x4x8x8xi64>
  %low = arith.constant dense<-1.0e+09> : tensor<2x4x8x8xf32>
  %lower = arith.constant dense<-1.0e+30> : tensor<2x4x8x8xf32>
  %u = arith.select %c, %s, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %t = arith.select %b, %u, %lower : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}
