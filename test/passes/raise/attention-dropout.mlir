// RUN: tmc-opt %s -tmc-raise | FileCheck %s --implicit-check-not=nn.random

// Dropout of probabilities: kept where the uniform number is at least 0.1, and
// scaled by 1 / 0.9.


// CHECK-LABEL: func @scaled_then_chosen(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 random(%arg3, %arg4)
//   CHECK-SAME:     {dropout = 0.1000000{{.*}} : f64, scale = 1.000000e+00 : f64, stream = 3 : i64}
func.func @scaled_then_chosen(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %seed: tensor<2xi64>, %samples: tensor<2xi64>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p0 = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %u = nn.random %seed, %samples {stream = 3 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2x4x8x8xf32>
  %rate = arith.constant dense<0.1> : tensor<2x4x8x8xf32>
  %keep = arith.cmpf oge, %u, %rate : tensor<2x4x8x8xf32>
  %scale = arith.constant dense<1.11111116> : tensor<2x4x8x8xf32>
  %zero = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %p1 = arith.mulf %p0, %scale : tensor<2x4x8x8xf32>
  %p = arith.select %keep, %p1, %zero : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @chosen_then_scaled(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 random(%arg3, %arg4)
//   CHECK-SAME:     {dropout = 0.1000000{{.*}} : f64, scale = 1.000000e+00 : f64, stream = 3 : i64}
func.func @chosen_then_scaled(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %seed: tensor<2xi64>, %samples: tensor<2xi64>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p0 = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %u = nn.random %seed, %samples {stream = 3 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2x4x8x8xf32>
  %rate = arith.constant dense<0.1> : tensor<2x4x8x8xf32>
  %keep = arith.cmpf oge, %u, %rate : tensor<2x4x8x8xf32>
  %scale = arith.constant dense<1.11111116> : tensor<2x4x8x8xf32>
  %zero = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %p1 = arith.select %keep, %p0, %zero : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = arith.mulf %scale, %p1 : tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @divided(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 random(%arg3, %arg4)
//   CHECK-SAME:     {dropout = 0.1000000{{.*}} : f64, scale = 1.000000e+00 : f64, stream = 3 : i64}
func.func @divided(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %seed: tensor<2xi64>, %samples: tensor<2xi64>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p0 = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %u = nn.random %seed, %samples {stream = 3 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2x4x8x8xf32>
  %rate = arith.constant dense<0.1> : tensor<2x4x8x8xf32>
  %keep = arith.cmpf oge, %u, %rate : tensor<2x4x8x8xf32>
  %scale = arith.constant dense<1.11111116> : tensor<2x4x8x8xf32>
  %zero = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %p1 = arith.select %keep, %p0, %zero : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %kept = arith.constant dense<0.9> : tensor<2x4x8x8xf32>
  %p = arith.divf %p1, %kept : tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @times_a_mask(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 random(%arg3, %arg4)
//   CHECK-SAME:     {dropout = 0.1000000{{.*}} : f64, scale = 1.000000e+00 : f64, stream = 3 : i64}
func.func @times_a_mask(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %seed: tensor<2xi64>, %samples: tensor<2xi64>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p0 = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %u = nn.random %seed, %samples {stream = 3 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2x4x8x8xf32>
  %rate = arith.constant dense<0.1> : tensor<2x4x8x8xf32>
  %keep = arith.cmpf oge, %u, %rate : tensor<2x4x8x8xf32>
  %scale = arith.constant dense<1.11111116> : tensor<2x4x8x8xf32>
  %zero = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %m = arith.select %keep, %scale, %zero : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = arith.mulf %m, %p0 : tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @times_a_cast_mask(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 random(%arg3, %arg4)
//   CHECK-SAME:     {dropout = 0.1000000{{.*}} : f64, scale = 1.000000e+00 : f64, stream = 3 : i64}
func.func @times_a_cast_mask(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %seed: tensor<2xi64>, %samples: tensor<2xi64>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p0 = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %u = nn.random %seed, %samples {stream = 3 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2x4x8x8xf32>
  %rate = arith.constant dense<0.1> : tensor<2x4x8x8xf32>
  %keep = arith.cmpf oge, %u, %rate : tensor<2x4x8x8xf32>
  %scale = arith.constant dense<1.11111116> : tensor<2x4x8x8xf32>
  %zero = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %m = arith.uitofp %keep : tensor<2x4x8x8xi1> to tensor<2x4x8x8xf32>
  %p1 = arith.mulf %p0, %m : tensor<2x4x8x8xf32>
  %p = arith.mulf %p1, %scale : tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @dropped_where_less(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 random(%arg3, %arg4)
//   CHECK-SAME:     {dropout = 0.1000000{{.*}} : f64, scale = 1.000000e+00 : f64, stream = 3 : i64}
func.func @dropped_where_less(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %seed: tensor<2xi64>, %samples: tensor<2xi64>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p0 = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %u = nn.random %seed, %samples {stream = 3 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2x4x8x8xf32>
  %rate = arith.constant dense<0.1> : tensor<2x4x8x8xf32>
  %drop = arith.cmpf olt, %u, %rate : tensor<2x4x8x8xf32>
  %scale = arith.constant dense<1.11111116> : tensor<2x4x8x8xf32>
  %zero = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %p1 = arith.mulf %p0, %scale : tensor<2x4x8x8xf32>
  %p = arith.select %drop, %zero, %p1 : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}


// CHECK-LABEL: func @rate_on_the_left(
//       CHECK:   nn.attention %arg0, %arg1, %arg2 random(%arg3, %arg4)
//   CHECK-SAME:     {dropout = 0.1000000{{.*}} : f64, scale = 1.000000e+00 : f64, stream = 3 : i64}
func.func @rate_on_the_left(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %seed: tensor<2xi64>, %samples: tensor<2xi64>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p0 = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %u = nn.random %seed, %samples {stream = 3 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2x4x8x8xf32>
  %rate = arith.constant dense<0.1> : tensor<2x4x8x8xf32>
  %keep = arith.cmpf ole, %rate, %u : tensor<2x4x8x8xf32>
  %scale = arith.constant dense<1.11111116> : tensor<2x4x8x8xf32>
  %zero = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %p1 = arith.mulf %p0, %scale : tensor<2x4x8x8xf32>
  %p = arith.select %keep, %p1, %zero : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

