// RUN: tmc-opt %s -tmc-raise -split-input-file | FileCheck %s

// Rows of 64: a mean is a sum over dimension 1 times 1/64 = 0.015625.

// As opset 14 writes it: nine operations, statistics as [8, 1].

// CHECK-LABEL: func @layer_norm_in_nine(
//  CHECK-NEXT:   %[[Y:.*]] = nn.layer_norm %arg0 scale(%arg1) shift(%arg2) {epsilon = 9.9999997473787516E-6 : f64}
//  CHECK-NEXT:   return %[[Y]]
func.func @layer_norm_in_nine(%x: tensor<8x64xf32>, %w: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<8x64xf32> {
  %n = arith.constant dense<0.015625> : tensor<8xf32>
  %s = nn.reduce sum %x over [1] : (tensor<8x64xf32>) -> tensor<8xf32>
  %m = arith.mulf %s, %n : tensor<8xf32>
  %m1 = nn.reshape %m : (tensor<8xf32>) -> tensor<8x1xf32>
  %m2 = nn.reshape %m1 : (tensor<8x1xf32>) -> tensor<8xf32>
  %mb = nn.broadcast %m2 to [0] : (tensor<8xf32>) -> tensor<8x64xf32>
  %d = arith.subf %x, %mb : tensor<8x64xf32>
  %two = arith.constant dense<2.0> : tensor<8x64xf32>
  %d2 = math.powf %d, %two : tensor<8x64xf32>
  %v0 = nn.reduce sum %d2 over [1] : (tensor<8x64xf32>) -> tensor<8xf32>
  %v = arith.mulf %v0, %n : tensor<8xf32>
  %v1 = nn.reshape %v : (tensor<8xf32>) -> tensor<8x1xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<8x1xf32>
  %ve = arith.addf %v1, %eps : tensor<8x1xf32>
  %r = math.sqrt %ve : tensor<8x1xf32>
  %r1 = nn.reshape %r : (tensor<8x1xf32>) -> tensor<8xf32>
  %rb = nn.broadcast %r1 to [0] : (tensor<8xf32>) -> tensor<8x64xf32>
  %y0 = arith.divf %d, %rb : tensor<8x64xf32>
  %wb = nn.broadcast %w to [1] : (tensor<64xf32>) -> tensor<8x64xf32>
  %y1 = arith.mulf %y0, %wb : tensor<8x64xf32>
  %bb = nn.broadcast %b to [1] : (tensor<64xf32>) -> tensor<8x64xf32>
  %y = arith.addf %y1, %bb : tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

// Everything the other way: the sum divided by 64, the difference computed twice
// and squared by a product, a reciprocal root on repeated values, operands
// exchanged, three dimensions.

// CHECK-LABEL: func @layer_norm_otherwise(
//       CHECK:   %[[Y:.*]] = nn.layer_norm %arg0 scale(%arg1) shift(%arg2) {epsilon = 1.000000e-03 : f64}
//       CHECK:   return %[[Y]]
func.func @layer_norm_otherwise(%x: tensor<2x4x64xf64>, %w: tensor<64xf64>, %b: tensor<64xf64>) -> tensor<2x4x64xf64> {
  %n = arith.constant dense<64.0> : tensor<2x4xf64>
  %s = nn.reduce sum %x over [2] : (tensor<2x4x64xf64>) -> tensor<2x4xf64>
  %m = arith.divf %s, %n : tensor<2x4xf64>
  %mb = nn.broadcast %m to [0, 1] : (tensor<2x4xf64>) -> tensor<2x4x64xf64>
  %d = arith.subf %x, %mb : tensor<2x4x64xf64>
  %e = arith.subf %x, %mb : tensor<2x4x64xf64>
  %d2 = arith.mulf %e, %e : tensor<2x4x64xf64>
  %v0 = nn.reduce sum %d2 over [2] : (tensor<2x4x64xf64>) -> tensor<2x4xf64>
  %v = arith.divf %v0, %n : tensor<2x4xf64>
  %vb = nn.broadcast %v to [0, 1] : (tensor<2x4xf64>) -> tensor<2x4x64xf64>
  %eps = arith.constant dense<1.0e-3> : tensor<2x4x64xf64>
  %ve = arith.addf %eps, %vb : tensor<2x4x64xf64>
  %r = math.rsqrt %ve : tensor<2x4x64xf64>
  %y0 = arith.mulf %r, %d : tensor<2x4x64xf64>
  %wb = nn.broadcast %w to [2] : (tensor<64xf64>) -> tensor<2x4x64xf64>
  %y1 = arith.mulf %wb, %y0 : tensor<2x4x64xf64>
  %bb = nn.broadcast %b to [2] : (tensor<64xf64>) -> tensor<2x4x64xf64>
  %y = arith.addf %bb, %y1 : tensor<2x4x64xf64>
  return %y : tensor<2x4x64xf64>
}

// -----

// Without scale and shift; then a scale per row, which is none of a norm's.

// CHECK-LABEL: func @layer_norm_alone(
//       CHECK:   %[[Y:.*]] = nn.layer_norm %arg0 {epsilon = {{.*}}}
//       CHECK:   arith.mulf %[[Y]]
func.func @layer_norm_alone(%x: tensor<8x64xf32>, %w: tensor<8xf32>) -> tensor<8x64xf32> {
  %n = arith.constant dense<0.015625> : tensor<8xf32>
  %s = nn.reduce sum %x over [1] : (tensor<8x64xf32>) -> tensor<8xf32>
  %m = arith.mulf %s, %n : tensor<8xf32>
  %mb = nn.broadcast %m to [0] : (tensor<8xf32>) -> tensor<8x64xf32>
  %d = arith.subf %x, %mb : tensor<8x64xf32>
  %d2 = arith.mulf %d, %d : tensor<8x64xf32>
  %v0 = nn.reduce sum %d2 over [1] : (tensor<8x64xf32>) -> tensor<8xf32>
  %v = arith.mulf %v0, %n : tensor<8xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<8xf32>
  %ve = arith.addf %v, %eps : tensor<8xf32>
  %r = math.sqrt %ve : tensor<8xf32>
  %rb = nn.broadcast %r to [0] : (tensor<8xf32>) -> tensor<8x64xf32>
  %y0 = arith.divf %d, %rb : tensor<8x64xf32>
  %wb = nn.broadcast %w to [0] : (tensor<8xf32>) -> tensor<8x64xf32>
  %y = arith.mulf %y0, %wb : tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

// Pow, mean, add, sqrt, reciprocal, mul, mul: as a decoder at opset 18 has it.

// CHECK-LABEL: func @rms_norm(
//  CHECK-NEXT:   %[[Y:.*]] = nn.rms_norm %arg0 scale(%arg1) {epsilon = 9.9999999{{.*}}E-7 : f64}
//  CHECK-NEXT:   return %[[Y]]
func.func @rms_norm(%x: tensor<2x4x64xf32>, %w: tensor<64xf32>) -> tensor<2x4x64xf32> {
  %two = arith.constant dense<2.0> : tensor<2x4x64xf32>
  %x2 = math.powf %x, %two : tensor<2x4x64xf32>
  %s = nn.reduce sum %x2 over [2] : (tensor<2x4x64xf32>) -> tensor<2x4xf32>
  %n = arith.constant dense<0.015625> : tensor<2x4xf32>
  %m = arith.mulf %s, %n : tensor<2x4xf32>
  %m1 = nn.reshape %m : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %eps = arith.constant dense<1.0e-6> : tensor<2x4x1xf32>
  %e = arith.addf %m1, %eps : tensor<2x4x1xf32>
  %r = math.sqrt %e : tensor<2x4x1xf32>
  %one = arith.constant dense<1.0> : tensor<2x4x1xf32>
  %i = arith.divf %one, %r : tensor<2x4x1xf32>
  %i1 = nn.reshape %i : (tensor<2x4x1xf32>) -> tensor<2x4xf32>
  %ib = nn.broadcast %i1 to [0, 1] : (tensor<2x4xf32>) -> tensor<2x4x64xf32>
  %y0 = arith.mulf %x, %ib : tensor<2x4x64xf32>
  %wb = nn.broadcast %w to [2] : (tensor<64xf32>) -> tensor<2x4x64xf32>
  %y = arith.mulf %wb, %y0 : tensor<2x4x64xf32>
  return %y : tensor<2x4x64xf32>
}

// -----

// In f32 between casts: the op keeps its sums in f32 itself.

// CHECK-LABEL: func @rms_norm_of_bf16(
//  CHECK-NEXT:   nn.rms_norm %arg0 {{.*}} : (tensor<8x64xbf16>) -> tensor<8x64xbf16>
//  CHECK-NEXT:   return
func.func @rms_norm_of_bf16(%h: tensor<8x64xbf16>) -> tensor<8x64xbf16> {
  %x = arith.extf %h : tensor<8x64xbf16> to tensor<8x64xf32>
  %x2 = arith.mulf %x, %x : tensor<8x64xf32>
  %s = nn.reduce sum %x2 over [1] : (tensor<8x64xf32>) -> tensor<8xf32>
  %n = arith.constant dense<0.015625> : tensor<8xf32>
  %m = arith.mulf %s, %n : tensor<8xf32>
  %eps = arith.constant dense<1.0e-6> : tensor<8xf32>
  %e = arith.addf %m, %eps : tensor<8xf32>
  %half = arith.constant dense<-0.5> : tensor<8xf32>
  %r = math.powf %e, %half : tensor<8xf32>
  %rb = nn.broadcast %r to [0] : (tensor<8xf32>) -> tensor<8x64xf32>
  %y = arith.mulf %x, %rb : tensor<8x64xf32>
  %z = arith.truncf %y : tensor<8x64xf32> to tensor<8x64xbf16>
  return %z : tensor<8x64xbf16>
}

// -----

// The unbiased variance, 1/63: no layer norm. x less its mean, by its root of
// mean squares, is only raised with 1/64.

// CHECK-LABEL: func @unbiased_variance(
//   CHECK-NOT:   nn.layer_norm
//   CHECK-NOT:   nn.rms_norm
//       CHECK:   return
func.func @unbiased_variance(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %n = arith.constant dense<0.015625> : tensor<8xf32>
  %s = nn.reduce sum %x over [1] : (tensor<8x64xf32>) -> tensor<8xf32>
  %m = arith.mulf %s, %n : tensor<8xf32>
  %mb = nn.broadcast %m to [0] : (tensor<8xf32>) -> tensor<8x64xf32>
  %d = arith.subf %x, %mb : tensor<8x64xf32>
  %d2 = arith.mulf %d, %d : tensor<8x64xf32>
  %v0 = nn.reduce sum %d2 over [1] : (tensor<8x64xf32>) -> tensor<8xf32>
  %n1 = arith.constant dense<0.015873016> : tensor<8xf32>
  %v = arith.mulf %v0, %n1 : tensor<8xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<8xf32>
  %ve = arith.addf %v, %eps : tensor<8xf32>
  %r = math.rsqrt %ve : tensor<8xf32>
  %rb = nn.broadcast %r to [0] : (tensor<8xf32>) -> tensor<8x64xf32>
  %y = arith.mulf %d, %rb : tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

// Epsilon after the root, a length instead of a mean, and another's root.

// CHECK-LABEL: func @epsilon_outside(
//   CHECK-NOT:   nn.rms_norm
//       CHECK:   return
func.func @epsilon_outside(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %x2 = arith.mulf %x, %x : tensor<8x64xf32>
  %s = nn.reduce sum %x2 over [1] : (tensor<8x64xf32>) -> tensor<8xf32>
  %n = arith.constant dense<0.015625> : tensor<8xf32>
  %m = arith.mulf %s, %n : tensor<8xf32>
  %r = math.sqrt %m : tensor<8xf32>
  %eps = arith.constant dense<1.0e-6> : tensor<8xf32>
  %e = arith.addf %r, %eps : tensor<8xf32>
  %rb = nn.broadcast %e to [0] : (tensor<8xf32>) -> tensor<8x64xf32>
  %y = arith.divf %x, %rb : tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// CHECK-LABEL: func @unit_length(
//   CHECK-NOT:   nn.rms_norm
//       CHECK:   return
func.func @unit_length(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %x2 = arith.mulf %x, %x : tensor<8x64xf32>
  %s = nn.reduce sum %x2 over [1] : (tensor<8x64xf32>) -> tensor<8xf32>
  %r = math.rsqrt %s : tensor<8xf32>
  %rb = nn.broadcast %r to [0] : (tensor<8xf32>) -> tensor<8x64xf32>
  %y = arith.mulf %x, %rb : tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// CHECK-LABEL: func @root_of_another(
//   CHECK-NOT:   nn.rms_norm
//       CHECK:   return
func.func @root_of_another(%x: tensor<8x64xf32>, %z: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %x2 = arith.mulf %x, %x : tensor<8x64xf32>
  %s = nn.reduce sum %x2 over [1] : (tensor<8x64xf32>) -> tensor<8xf32>
  %n = arith.constant dense<0.015625> : tensor<8xf32>
  %m = arith.mulf %s, %n : tensor<8xf32>
  %r = math.rsqrt %m : tensor<8xf32>
  %rb = nn.broadcast %r to [0] : (tensor<8xf32>) -> tensor<8x64xf32>
  %y = arith.mulf %z, %rb : tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// CHECK-LABEL: func @mean_of_columns(
//   CHECK-NOT:   nn.rms_norm
//       CHECK:   return
func.func @mean_of_columns(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %x2 = arith.mulf %x, %x : tensor<64x64xf32>
  %s = nn.reduce sum %x2 over [0] : (tensor<64x64xf32>) -> tensor<64xf32>
  %n = arith.constant dense<0.015625> : tensor<64xf32>
  %m = arith.mulf %s, %n : tensor<64xf32>
  %r = math.rsqrt %m : tensor<64xf32>
  %rb = nn.broadcast %r to [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %y = arith.mulf %x, %rb : tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// CHECK-LABEL: func @repeated_along_the_wrong_dimension(
//   CHECK-NOT:   nn.rms_norm
//       CHECK:   return
func.func @repeated_along_the_wrong_dimension(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %x2 = arith.mulf %x, %x : tensor<64x64xf32>
  %s = nn.reduce sum %x2 over [1] : (tensor<64x64xf32>) -> tensor<64xf32>
  %n = arith.constant dense<0.015625> : tensor<64xf32>
  %m = arith.mulf %s, %n : tensor<64xf32>
  %r = math.rsqrt %m : tensor<64xf32>
  %rb = nn.broadcast %r to [1] : (tensor<64xf32>) -> tensor<64x64xf32>
  %y = arith.mulf %x, %rb : tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}
