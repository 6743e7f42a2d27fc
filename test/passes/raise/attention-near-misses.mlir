// RUN: tmc-opt %s -tmc-raise -split-input-file -verify-diagnostics | FileCheck %s --implicit-check-not=nn.attention

// What looks like attention and isn't, or isn't what nn.attention computes.


// A cap lifts what minus infinity forbids.

// CHECK-LABEL: func @masked_before_the_cap(
//       CHECK:   nn.softmax
func.func @masked_before_the_cap(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
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
  %c0 = arith.select %m, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %cap = arith.constant dense<30.0> : tensor<2x4x8x8xf32>
  %t0 = arith.divf %c0, %cap : tensor<2x4x8x8xf32>
  %t1 = math.tanh %t0 : tensor<2x4x8x8xf32>
  %t = arith.mulf %t1, %cap : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  // expected-warning @below {{looks like attention, but stays in pieces: its scores are masked before they are capped}}
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// -----

// What is trained multiplies the scores, and isn't added.

// CHECK-LABEL: func @learned_temperature(
//       CHECK:   nn.softmax
func.func @learned_temperature(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %by: tensor<4xf32> {train.role = #train.role<param>}) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %b = nn.broadcast %by to [1] : (tensor<4xf32>) -> tensor<2x4x8x8xf32>
  %t = arith.mulf %scores, %b : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  // expected-warning @below {{looks like attention, but stays in pieces: its scores are more than a product, a factor and a mask}}
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// -----

// The cap is of the scores and their bias.

// CHECK-LABEL: func @learned_bias_before_the_cap(
//       CHECK:   nn.softmax
func.func @learned_bias_before_the_cap(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %bias: tensor<4x8x8xf32> {train.role = #train.role<param>}) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %b = nn.broadcast %bias to [1, 2, 3] : (tensor<4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %a = arith.addf %scores, %b : tensor<2x4x8x8xf32>
  %cap = arith.constant dense<30.0> : tensor<2x4x8x8xf32>
  %t0 = arith.divf %a, %cap : tensor<2x4x8x8xf32>
  %t1 = math.tanh %t0 : tensor<2x4x8x8xf32>
  %t = arith.mulf %t1, %cap : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  // expected-warning @below {{looks like attention, but stays in pieces: its scores are masked before they are capped}}
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// -----

// The factor of scores and bias together isn't positive.

// CHECK-LABEL: func @turned_around(
//       CHECK:   nn.softmax
func.func @turned_around(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %bias: tensor<4x8x8xf32> {train.role = #train.role<param>}) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %b = nn.broadcast %bias to [1, 2, 3] : (tensor<4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %a = arith.addf %scores, %b : tensor<2x4x8x8xf32>
  %by = arith.constant dense<-2.0> : tensor<2x4x8x8xf32>
  %t = arith.mulf %a, %by : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  // expected-warning @below {{looks like attention, but stays in pieces: the masked scores are multiplied by a number that isn't positive}}
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// -----


// CHECK-LABEL: func @mild_fill(
//       CHECK:   nn.softmax
func.func @mild_fill(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %pad: tensor<2x8xi1>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %b = nn.broadcast %pad to [0, 3] : (tensor<2x8xi1>) -> tensor<2x4x8x8xi1>
  %low = arith.constant dense<-1.0e+02> : tensor<2x4x8x8xf32>
  %t = arith.select %b, %scores, %low : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  // expected-warning @below {{looks like attention, but stays in pieces: scores are replaced by -100.000000, which doesn't forbid a key}}
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// -----


// CHECK-LABEL: func @random_compared_strictly(
//       CHECK:   nn.softmax
func.func @random_compared_strictly(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %seed: tensor<2xi64>, %samples: tensor<2xi64>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p0 = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %u = nn.random %seed, %samples {stream = 3 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2x4x8x8xf32>
  %rate = arith.constant dense<0.1> : tensor<2x4x8x8xf32>
  %keep = arith.cmpf ogt, %u, %rate : tensor<2x4x8x8xf32>
  %scale = arith.constant dense<1.11111116> : tensor<2x4x8x8xf32>
  %zero = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %p1 = arith.mulf %p0, %scale : tensor<2x4x8x8xf32>
  %p = arith.select %keep, %p1, %zero : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  // expected-warning @below {{looks like attention, but stays in pieces: its dropout isn't that of a uniform number at least its rate}}
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// -----


// CHECK-LABEL: func @wrong_scale_of_what_is_kept(
//       CHECK:   nn.softmax
func.func @wrong_scale_of_what_is_kept(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %seed: tensor<2xi64>, %samples: tensor<2xi64>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p0 = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %u = nn.random %seed, %samples {stream = 3 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2x4x8x8xf32>
  %rate = arith.constant dense<0.1> : tensor<2x4x8x8xf32>
  %keep = arith.cmpf oge, %u, %rate : tensor<2x4x8x8xf32>
  %scale = arith.constant dense<1.2> : tensor<2x4x8x8xf32>
  %zero = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %p1 = arith.mulf %p0, %scale : tensor<2x4x8x8xf32>
  %p = arith.select %keep, %p1, %zero : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  // expected-warning @below {{looks like attention, but stays in pieces: its dropout doesn't scale by one over the rate it keeps}}
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// -----


// CHECK-LABEL: func @scaled_probabilities(
//       CHECK:   nn.softmax
func.func @scaled_probabilities(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p0 = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %c = arith.constant dense<0.5> : tensor<2x4x8x8xf32>
  %p = arith.mulf %p0, %c : tensor<2x4x8x8xf32>
  // expected-warning @below {{looks like attention, but stays in pieces: its probabilities are multiplied by a number}}
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// -----


// CHECK-LABEL: func @probabilities_plus(
//       CHECK:   nn.softmax
func.func @probabilities_plus(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %more: tensor<2x4x8x8xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p0 = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %p = arith.addf %p0, %more : tensor<2x4x8x8xf32>
  // expected-warning @below {{looks like attention, but stays in pieces: between its softmax and its last product stands what isn't dropout}}
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// -----

// One sample of two rows each numbers its elements otherwise.

// CHECK-LABEL: func @samples_of_another_batch(
//       CHECK:   nn.softmax
func.func @samples_of_another_batch(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>, %seed: tensor<2xi64>, %samples: tensor<1xi64>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %t = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %p0 = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %u = nn.random %seed, %samples {stream = 3 : i64} : (tensor<2xi64>, tensor<1xi64>) -> tensor<2x4x8x8xf32>
  %rate = arith.constant dense<0.1> : tensor<2x4x8x8xf32>
  %keep = arith.cmpf oge, %u, %rate : tensor<2x4x8x8xf32>
  %scale = arith.constant dense<1.11111116> : tensor<2x4x8x8xf32>
  %zero = arith.constant dense<0.0> : tensor<2x4x8x8xf32>
  %p1 = arith.mulf %p0, %scale : tensor<2x4x8x8xf32>
  %p = arith.select %keep, %p1, %zero : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  // expected-warning @below {{looks like attention, but stays in pieces: its dropout doesn't count samples as its batch does}}
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// -----

// Values with longer heads than keys.

// CHECK-LABEL: func @longer_values(
//       CHECK:   nn.softmax
func.func @longer_values(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x32xf32>) -> tensor<2x4x8x32xf32> {
  %s = nn.matmul %q, %k transpose_rhs : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x8xf32>
  %p = nn.softmax %s : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  // expected-warning @below {{its values have heads of 32, its keys of 16}}
  %o = nn.matmul %p, %v : (tensor<2x4x8x8xf32>, tensor<2x4x8x32xf32>) -> tensor<2x4x8x32xf32>
  return %o : tensor<2x4x8x32xf32>
}

// -----

// A softmax over something else than a product is no attention: no warning.

// CHECK-LABEL: func @weighted_sum(
//       CHECK:   nn.softmax
func.func @weighted_sum(%s: tensor<2x4x8x8xf32>, %v: tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32> {
  %p = nn.softmax %s : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %o = nn.matmul %p, %v : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %o : tensor<2x4x8x16xf32>
}

// -----

// A mask that is finer than what nn.attention takes beside bf16.

// CHECK-LABEL: func @wide_mask(
//       CHECK:   nn.softmax
func.func @wide_mask(%q: tensor<2x4x8x16xbf16>, %m: tensor<8x8xf32>) -> tensor<2x4x8x16xbf16> {
  %s = nn.matmul %q, %q transpose_rhs : (tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>) -> tensor<2x4x8x8xbf16>
  %w = arith.extf %s : tensor<2x4x8x8xbf16> to tensor<2x4x8x8xf32>
  %mb = nn.broadcast %m to [2, 3] : (tensor<8x8xf32>) -> tensor<2x4x8x8xf32>
  %t = arith.addf %w, %mb : tensor<2x4x8x8xf32>
  %pw = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %p = arith.truncf %pw : tensor<2x4x8x8xf32> to tensor<2x4x8x8xbf16>
  // expected-warning @below {{its mask has elements of f32, its products of bf16}}
  %o = nn.matmul %p, %q : (tensor<2x4x8x8xbf16>, tensor<2x4x8x16xbf16>) -> tensor<2x4x8x16xbf16>
  return %o : tensor<2x4x8x16xbf16>
}

// -----

// The largest score becomes the smallest.

// CHECK-LABEL: func @turned_cap(
//       CHECK:   nn.softmax
func.func @turned_cap(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x8x4x16xf32> {
  %qt = nn.transpose %q [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %kt = nn.transpose %k [0, 2, 3, 1] : (tensor<2x8x4x16xf32>) -> tensor<2x4x16x8xf32>
  %vt = nn.transpose %v [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %scores = nn.matmul %qt, %kt : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  %cap = arith.constant dense<-30.0> : tensor<2x4x8x8xf32>
  %t0 = arith.divf %scores, %cap : tensor<2x4x8x8xf32>
  %t1 = math.tanh %t0 : tensor<2x4x8x8xf32>
  %m30 = arith.constant dense<-1.0> : tensor<2x4x8x8xf32>
  %t = arith.mulf %t1, %m30 : tensor<2x4x8x8xf32>
  %p = nn.softmax %t : (tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  // expected-warning @below {{looks like attention, but stays in pieces: its scores are more than a product, a factor and a mask}}
  %o = nn.matmul %p, %vt : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  %r = nn.transpose %o [0, 2, 1, 3] : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}
