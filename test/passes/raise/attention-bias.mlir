// RUN: tmc-opt %s -tmc-raise -split-input-file | FileCheck %s --implicit-check-not=nn.softmax

// What is added to the scores and trained is the bias: without the dimensions along which it is constant, and
// apart from what masks.

// A table of positions, the same for all samples.

// CHECK-LABEL: func @table(
//     CHECK:   %[[B:.*]] = nn.reshape %{{.*}} : (tensor<4x8x8xf32>) -> tensor<1x4x8x8xf32>
//     CHECK:   nn.attention {{.*}} bias(%[[B]]) {scale = 1.000000e+00 : f64}
func.func @table(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %bias: tensor<4x8x8xf32> {train.role = #train.role<param>}) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %b = nn.broadcast %bias to [1, 2, 3] : (tensor<4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %t = arith.addf %scores, %b : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// -----

// Padding beside it is a mask of its own: neither is a table for each sample and head.

// CHECK-LABEL: func @beside_a_mask(
//     CHECK:   nn.attention {{.*}} mask(%{{.*}}) bias(%{{.*}}) {{.*}} tensor<2x1x1x8xi1>, tensor<1x4x8x8xf32>)
func.func @beside_a_mask(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %bias: tensor<4x8x8xf32> {train.role = #train.role<param>}, %pad: tensor<2x8xi1>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %b = nn.broadcast %bias to [1, 2, 3] : (tensor<4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %m = nn.broadcast %pad to [0, 3] : (tensor<2x8xi1>) -> tensor<2x4x8x8xi1>
  %zero = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %low = arith.constant dense<-3.40282347E+38> : tensor<2x4x8x8xf32>
  %n = arith.select %m, %zero, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %sum = arith.addf %b, %n : tensor<2x4x8x8xf32>
  %t = arith.addf %scores, %sum : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// -----

// A factor of scores and bias together is also the factor of the bias.

// CHECK-LABEL: func @scaled(
//     CHECK:   arith.mulf {{.*}} : tensor<1x1x8x8xf32>
//     CHECK:   nn.attention {{.*}} bias(%{{.*}}) {scale = 2.500000e-01 : f64} {{.*}} tensor<1x1x8x8xf32>)
func.func @scaled(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %bias: tensor<8x8xf32> {train.role = #train.role<param>}) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %b = nn.broadcast %bias to [2, 3] : (tensor<8x8xf32>) -> tensor<2x4x8x8xf32>
  %a = arith.addf %scores, %b : tensor<2x4x8x8xf32>
  %by = arith.constant dense<0.25> : tensor<2x4x8x8xf32>
  %t = arith.mulf %a, %by : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// -----

// Trained slopes of a distance: only the key's part is seen by a softmax.

// CHECK-LABEL: func @slopes(
//     CHECK:   nn.attention {{.*}} bias(%{{.*}}) {scale = 1.000000e+00 : f64} {{.*}} tensor<1x4x1x8xf32>)
func.func @slopes(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %slopes: tensor<4xf32> {train.role = #train.role<param>}) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %s = nn.broadcast %slopes to [1] : (tensor<4xf32>) -> tensor<2x4x8x8xf32>
  %rows = nn.iota {dim = 2 : i64} : () -> tensor<2x4x8x8xi64>
  %columns = nn.iota {dim = 3 : i64} : () -> tensor<2x4x8x8xi64>
  %between = arith.subi %columns, %rows : tensor<2x4x8x8xi64>
  %d = arith.sitofp %between : tensor<2x4x8x8xi64> to tensor<2x4x8x8xf32>
  %b = arith.mulf %s, %d : tensor<2x4x8x8xf32>
  %t = arith.addf %scores, %b : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// -----

// Of a choice between what is trained and minus infinity, the condition is a mask.

// CHECK-LABEL: func @chosen(
//     CHECK:   nn.attention {{.*}} mask(%{{.*}}) bias(%{{.*}}) {{.*}} tensor<2x1x1x8xi1>, tensor<1x4x8x8xf32>)
func.func @chosen(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %bias: tensor<4x8x8xf32> {train.role = #train.role<param>}, %pad: tensor<2x8xi1>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %b = nn.broadcast %bias to [1, 2, 3] : (tensor<4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %m = nn.broadcast %pad to [0, 3] : (tensor<2x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %n = arith.select %m, %b, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %t = arith.addf %scores, %n : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// -----

// What is frozen has no gradient, and is a mask.

// CHECK-LABEL: func @frozen(
//     CHECK:   nn.attention {{.*}} mask(%{{.*}}) {scale = 1.000000e+00 : f64} {{.*}} tensor<1x4x8x8xf32>)
func.func @frozen(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %bias: tensor<4x8x8xf32> {train.role = #train.role<param>, train.frozen}) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %b = nn.broadcast %bias to [1, 2, 3] : (tensor<4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %t = arith.addf %scores, %b : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// -----

// Whole in the file: the bias leaves to the mask what isn't trained.

// CHECK-LABEL: func @whole(
//     CHECK:   nn.attention {{.*}} mask(%{{.*}}) bias(%{{.*}}) {causal, {{.*}} tensor<2x1x1x8xi1>, tensor<1x4x8x8xf32>)
func.func @whole(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %bias: tensor<4x8x8xf32> {train.role = #train.role<param>}, %pad: tensor<2x8xi1>) -> tensor<2x8x4x16xf32> {
  %b = nn.broadcast %bias to [1, 2, 3] : (tensor<4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %m = nn.broadcast %pad to [0, 3] : (tensor<2x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %n = arith.select %m, %b, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %o, %l = nn.attention %q, %k, %v bias(%n) {causal, scale = 0.25} : (tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x4x8x8xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %o : tensor<2x8x4x16xf32>
}

// -----

// And the dimensions along which it is constant are left out, as those of a mask.

// CHECK-LABEL: func @narrowed(
//     CHECK:   nn.attention {{.*}} mask(%{{.*}}) bias(%{{.*}}) {scale = {{.*}} tensor<2x1x8x8xf32>, tensor<1x4x8x8xf32>)
func.func @narrowed(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %bias: tensor<4x8x8xf32> {train.role = #train.role<param>}, %seen: tensor<2x8x8xi1>) -> tensor<2x8x4x16xf32> {
  %b = nn.broadcast %bias to [1, 2, 3] : (tensor<4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %zero = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %x = arith.addf %b, %zero : tensor<2x4x8x8xf32>
  %m = nn.broadcast %seen to [0, 2, 3] : (tensor<2x8x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<-1.0> : tensor<2x4x8x8xf32>
  %n = arith.select %m, %zero, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %o, %l = nn.attention %q, %k, %v mask(%n) bias(%x) {scale = 0.25} : (tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %o : tensor<2x8x4x16xf32>
}
