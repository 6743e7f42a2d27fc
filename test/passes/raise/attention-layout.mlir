// RUN: tmc-opt %s -tmc-raise | FileCheck %s --implicit-check-not=nn.transpose

// How q, k and v may be laid out. No transpose is left in any of these.



// CHECK-LABEL: func @two_transposes(
//       CHECK:   nn.attention %arg0, %arg1, %arg2
func.func @two_transposes(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kh = nn.transpose %k [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %kh [0, 1, 3, 2] : (tensor<2x4x8x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @flag(
//       CHECK:   nn.attention %arg0, %arg1, %arg2
func.func @flag(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt transpose_rhs : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @flattened_around_the_transpose(
//       CHECK:   nn.attention %arg0, %arg1, %arg2
func.func @flattened_around_the_transpose(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kh = nn.transpose %k [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %k3 = nn.reshape %kh : (tensor<2x4x8x16xf32>) -> tensor<8x8x16xf32>
  %k3t = nn.transpose %k3 [0, 2, 1] : (tensor<8x8x16xf32>) -> tensor<8x16x8xf32>
  %kt = nn.reshape %k3t : (tensor<8x16x8xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// Batch and heads as one dimension of eight: heads are what lies inside a query.

// CHECK-LABEL: func @three_dimensions(
//       CHECK:   nn.attention %arg0, %arg1, %arg2
func.func @three_dimensions(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %q3 = nn.reshape %qt : (tensor<2x4x8x16xf32>) -> tensor<8x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %k3 = nn.reshape %kt : (tensor<2x4x16x8xf32>) -> tensor<8x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %v3 = nn.reshape %vt : (tensor<2x4x8x16xf32>) -> tensor<8x8x16xf32>
  %s = nn.matmul %q3, %k3 : (tensor<8x8x16xf32>, tensor<8x16x8xf32>) -> tensor<8x8x8xf32>
  %p = nn.softmax %s : (tensor<8x8x8xf32>) -> tensor<8x8x8xf32>
  %o3 = nn.matmul %p, %v3 : (tensor<8x8x8xf32>, tensor<8x8x16xf32>) -> tensor<8x8x16xf32>
  %o = nn.reshape %o3 : (tensor<8x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// One projection for all three, cut before its heads are told apart.

// CHECK-LABEL: func @fused_projection(
//       CHECK:   %[[Q:.*]] = nn.reshape %{{.*}} : (tensor<2x8x64xf32>) -> tensor<2x8x4x16xf32>
//       CHECK:   %[[K:.*]] = nn.reshape
//       CHECK:   %[[V:.*]] = nn.reshape
//       CHECK:   %[[OUT:.*]], %{{.*}} = nn.attention %[[Q]], %[[K]], %[[V]]
//       CHECK:   %[[R:.*]] = nn.reshape %[[OUT]]
//       CHECK:   return %[[R]]
func.func @fused_projection(%x: tensor<2x8x192xf32>) -> tensor<16x64xf32> {
  %q0 = nn.slice %x [0, 0, 0] step [1, 1, 1] : (tensor<2x8x192xf32>) -> tensor<2x8x64xf32>
  %k0 = nn.slice %x [0, 0, 64] step [1, 1, 1] : (tensor<2x8x192xf32>) -> tensor<2x8x64xf32>
  %v0 = nn.slice %x [0, 0, 128] step [1, 1, 1] : (tensor<2x8x192xf32>) -> tensor<2x8x64xf32>
  %q = nn.reshape %q0 : (tensor<2x8x64xf32>) -> tensor<2x8x4x16xf32>
  %k = nn.reshape %k0 : (tensor<2x8x64xf32>) -> tensor<2x8x4x16xf32>
  %v = nn.reshape %v0 : (tensor<2x8x64xf32>) -> tensor<2x8x4x16xf32>
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  %flat = nn.reshape %r : (tensor<2x8x4x16xf32>) -> tensor<16x64xf32>
  return %flat : tensor<16x64xf32>
}

// Cut after one transpose of everything, [3, B, H, T, D].

// CHECK-LABEL: func @cut_after_transpose(
//       CHECK:   nn.attention
func.func @cut_after_transpose(%x: tensor<2x8x192xf32>) -> tensor<16x64xf32> {
  %0 = nn.reshape %x : (tensor<2x8x192xf32>) -> tensor<2x8x3x4x16xf32>
  %1 = nn.transpose %0 [2, 0, 3, 1, 4] : (tensor<2x8x3x4x16xf32>) -> tensor<3x2x4x8x16xf32>
  %q0 = nn.slice %1 [0, 0, 0, 0, 0] step [1, 1, 1, 1, 1] : (tensor<3x2x4x8x16xf32>) -> tensor<1x2x4x8x16xf32>
  %k0 = nn.slice %1 [1, 0, 0, 0, 0] step [1, 1, 1, 1, 1] : (tensor<3x2x4x8x16xf32>) -> tensor<1x2x4x8x16xf32>
  %v0 = nn.slice %1 [2, 0, 0, 0, 0] step [1, 1, 1, 1, 1] : (tensor<3x2x4x8x16xf32>) -> tensor<1x2x4x8x16xf32>
  %qt = nn.reshape %q0 : (tensor<1x2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %kh = nn.reshape %k0 : (tensor<1x2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %vt = nn.reshape %v0 : (tensor<1x2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %kh [0, 1, 3, 2] : (tensor<2x4x8x16xf32>) -> tensor<2x4x16x8xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  %flat = nn.reshape %r : (tensor<2x8x4x16xf32>) -> tensor<16x64xf32>
  return %flat : tensor<16x64xf32>
}

// Two query heads share a key head: what repeats k and v goes.

// CHECK-LABEL: func @grouped_queries(
//       CHECK:   nn.attention %arg0, %arg1, %arg2
//   CHECK-NOT:   nn.broadcast
func.func @grouped_queries(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x2x16xf32>, %v: tensor<2x8x2x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kg = nn.transpose %k [0, 2, 1, 3] : (tensor<2x8x2x16xf32>) -> tensor<2x2x8x16xf32>
  %kb = nn.broadcast %kg to [0, 1, 3, 4] : (tensor<2x2x8x16xf32>) -> tensor<2x2x2x8x16xf32>
  %kh = nn.reshape %kb : (tensor<2x2x2x8x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %kh [0, 1, 3, 2] : (tensor<2x4x8x16xf32>) -> tensor<2x4x16x8xf32>
  %vg = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x2x16xf32>) -> tensor<2x2x8x16xf32>
  %vb = nn.broadcast %vg to [0, 1, 3, 4] : (tensor<2x2x8x16xf32>) -> tensor<2x2x2x8x16xf32>
  %vt = nn.reshape %vb : (tensor<2x2x2x8x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// A rotation between the transpose and the product is done on [B, T, H, D].

// CHECK-LABEL: func @rotary(
//   CHECK-DAG:   %[[COS:.*]] = nn.reshape %arg3 : (tensor<8x16xf32>) -> tensor<1x8x1x16xf32>
//   CHECK-DAG:   %[[SIN:.*]] = nn.reshape %arg4 : (tensor<8x16xf32>) -> tensor<1x8x1x16xf32>
//       CHECK:   %[[ROTATED:.*]] = nn.rotary_embedding %arg0, %[[COS]], %[[SIN]]
//       CHECK:   nn.attention %[[ROTATED]], %arg1, %arg2
func.func @rotary(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %cos: tensor<8x16xf32>, %sin: tensor<8x16xf32>) -> tensor<2x8x4x16xf32> {
  %q0 = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %c = nn.broadcast %cos to [2, 3] : (tensor<8x16xf32>) -> tensor<2x4x8x16xf32>
  %n = nn.broadcast %sin to [2, 3] : (tensor<8x16xf32>) -> tensor<2x4x8x16xf32>
  %q1 = arith.mulf %q0, %c : tensor<2x4x8x16xf32>
  %low = nn.slice %q0 [0, 0, 0, 0] step [1, 1, 1, 1] : (tensor<2x4x8x16xf32>) -> tensor<2x4x8x8xf32>
  %high = nn.slice %q0 [0, 0, 0, 8] step [1, 1, 1, 1] : (tensor<2x4x8x16xf32>) -> tensor<2x4x8x8xf32>
  %neg = arith.negf %high : tensor<2x4x8x8xf32>
  %turned = nn.concat %neg, %low {dim = 3 : i64} : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x16xf32>
  %q2 = arith.mulf %turned, %n : tensor<2x4x8x16xf32>
  %qt = arith.addf %q1, %q2 : tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

