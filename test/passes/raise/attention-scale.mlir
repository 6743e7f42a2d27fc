// RUN: tmc-opt %s -tmc-raise | FileCheck %s --implicit-check-not=nn.transpose

// Where the factor may stand. [B, T, H, D] = [2, 8, 4, 16]; 0.25 = 1 / sqrt(16).


// CHECK-LABEL: func @divided_constant_left(
//       CHECK:   nn.attention %{{.*}} {scale = 2.500000e-01 : f64}
func.func @divided_constant_left(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %s = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %c = arith.constant dense<4.0> : tensor<2x4x8x8xf32>
  %t = arith.divf %s, %c : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @constant_first(
//       CHECK:   nn.attention %{{.*}} {scale = 2.500000e-01 : f64}
func.func @constant_first(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %s = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %c = arith.constant dense<0.25> : tensor<2x4x8x8xf32>
  %t = arith.mulf %c, %s : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @on_the_query(
//       CHECK:   nn.attention %{{.*}} {scale = 2.500000e-01 : f64}
func.func @on_the_query(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %c = arith.constant dense<0.25> : tensor<2x8x4x16xf32>
  %qs = arith.mulf %q, %c : tensor<2x8x4x16xf32>
  %qt = nn.transpose %qs [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// 0.5 on the left and 0.5 on the right.

// CHECK-LABEL: func @square_root_on_both(
//       CHECK:   nn.attention %{{.*}} {scale = 2.500000e-01 : f64}
func.func @square_root_on_both(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %c = arith.constant dense<0.25> : tensor<f32>
  %root = math.sqrt %c : tensor<f32>
  %cq = nn.broadcast %root to [] : (tensor<f32>) -> tensor<2x4x8x16xf32>
  %qs = arith.mulf %qt, %cq : tensor<2x4x8x16xf32>
  %ck = nn.broadcast %root to [] : (tensor<f32>) -> tensor<2x4x16x8xf32>
  %ks = arith.mulf %kt, %ck : tensor<2x4x16x8xf32>
  %t = nn.matmul %qs, %ks : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @no_factor(
//       CHECK:   nn.attention %{{.*}} {scale = 1.000000e+00 : f64}
func.func @no_factor(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// A softmax in f32 between casts: nn.attention computes it so in any case.

// CHECK-LABEL: func @softmax_in_f32(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 {scale = 2.500000e-01 : f64} : (tensor<2x8x4x16xbf16>,
func.func @softmax_in_f32(%q: tensor<2x8x4x16xbf16>, %k: tensor<2x8x4x16xbf16>, %v: tensor<2x8x4x16xbf16>) -> tensor<2x8x4x16xbf16> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xbf16>) -> tensor<2x4x8x16xbf16>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xbf16>) -> tensor<2x4x16x8xbf16>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xbf16>) -> tensor<2x4x8x16xbf16>
  %s = nn.matmul %qt, %kt : (tensor<2x4x8x16xbf16>, tensor<2x4x16x8xbf16>) -> tensor<2x4x8x8xbf16>
  %f = arith.constant dense<0.25> : tensor<2x4x8x8xbf16>
  %t = arith.mulf %s, %f : tensor<2x4x8x8xbf16>
  %w = arith.extf %t : tensor<2x4x8x8xbf16> to tensor<2x4x8x8xf32>
  %pw = nn.softmax %w : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %p = arith.truncf %pw : tensor<2x4x8x8xf32> to tensor<2x4x8x8xbf16>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xbf16>, tensor<2x4x8x16xbf16>) -> tensor<2x4x8x16xbf16>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xbf16>) -> tensor<2x8x4x16xbf16>
  return %r : tensor<2x8x4x16xbf16>
}
