// RUN: tmc-opt %s -tmc-raise | FileCheck %s

// x * (1 + t) / 2 with t = tanh(0.79788 * (x + 0.044715 x^3)) or erf(x / sqrt(2)).

// CHECK-LABEL: func @power(
//  CHECK-NEXT:   %[[Y:.*]] = nn.gelu %arg0 {tanh}
//  CHECK-NEXT:   return %[[Y]]
func.func @power(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %half = arith.constant dense<0.5> : tensor<4x8xf32>
  %one = arith.constant dense<1.0> : tensor<4x8xf32>
  %three = arith.constant dense<3.0> : tensor<4x8xf32>
  %a = arith.constant dense<0.044714998453855515> : tensor<4x8xf32>
  %root = arith.constant dense<0.7978845834732056> : tensor<4x8xf32>
  %h = arith.mulf %x, %half : tensor<4x8xf32>
  %x3 = math.powf %x, %three : tensor<4x8xf32>
  %i0 = arith.mulf %x3, %a : tensor<4x8xf32>
  %i1 = arith.addf %x, %i0 : tensor<4x8xf32>
  %i2 = arith.mulf %i1, %root : tensor<4x8xf32>
  %t = math.tanh %i2 : tensor<4x8xf32>
  %t1 = arith.addf %t, %one : tensor<4x8xf32>
  %y = arith.mulf %h, %t1 : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// Constants on the left, the half with 1 + t.

// CHECK-LABEL: func @products(
//  CHECK-NEXT:   %[[Y:.*]] = nn.gelu %arg0 {tanh}
//  CHECK-NEXT:   return %[[Y]]
func.func @products(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %half = arith.constant dense<0.5> : tensor<4x8xf32>
  %one = arith.constant dense<1.0> : tensor<4x8xf32>
  %three = arith.constant dense<3.0> : tensor<4x8xf32>
  %a = arith.constant dense<0.044714998453855515> : tensor<4x8xf32>
  %root = arith.constant dense<0.7978845834732056> : tensor<4x8xf32>
  %x2 = arith.mulf %x, %x : tensor<4x8xf32>
  %x3 = arith.mulf %x, %x2 : tensor<4x8xf32>
  %i0 = arith.mulf %a, %x3 : tensor<4x8xf32>
  %i1 = arith.addf %i0, %x : tensor<4x8xf32>
  %i2 = arith.mulf %root, %i1 : tensor<4x8xf32>
  %t = math.tanh %i2 : tensor<4x8xf32>
  %t1 = arith.addf %one, %t : tensor<4x8xf32>
  %h = arith.mulf %half, %t1 : tensor<4x8xf32>
  %y = arith.mulf %x, %h : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// root * x * (1 + 0.044715 x^2).

// CHECK-LABEL: func @factored(
//  CHECK-NEXT:   %[[Y:.*]] = nn.gelu %arg0 {tanh}
//  CHECK-NEXT:   return %[[Y]]
func.func @factored(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %half = arith.constant dense<0.5> : tensor<4x8xf32>
  %one = arith.constant dense<1.0> : tensor<4x8xf32>
  %three = arith.constant dense<3.0> : tensor<4x8xf32>
  %a = arith.constant dense<0.044714998453855515> : tensor<4x8xf32>
  %root = arith.constant dense<0.7978845834732056> : tensor<4x8xf32>
  %x2 = arith.mulf %x, %x : tensor<4x8xf32>
  %i0 = arith.mulf %a, %x2 : tensor<4x8xf32>
  %i1 = arith.addf %one, %i0 : tensor<4x8xf32>
  %rx = arith.mulf %root, %x : tensor<4x8xf32>
  %i2 = arith.mulf %rx, %i1 : tensor<4x8xf32>
  %t = math.tanh %i2 : tensor<4x8xf32>
  %t1 = arith.addf %one, %t : tensor<4x8xf32>
  %xt = arith.mulf %t1, %x : tensor<4x8xf32>
  %y = arith.mulf %xt, %half : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// x/2 + x/2 * t.

// CHECK-LABEL: func @expanded(
//  CHECK-NEXT:   %[[Y:.*]] = nn.gelu %arg0 {tanh}
//  CHECK-NEXT:   return %[[Y]]
func.func @expanded(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %half = arith.constant dense<0.5> : tensor<4x8xf32>
  %one = arith.constant dense<1.0> : tensor<4x8xf32>
  %three = arith.constant dense<3.0> : tensor<4x8xf32>
  %a = arith.constant dense<0.044714998453855515> : tensor<4x8xf32>
  %root = arith.constant dense<0.7978845834732056> : tensor<4x8xf32>
  %x2 = arith.mulf %x, %x : tensor<4x8xf32>
  %i0 = arith.mulf %a, %x2 : tensor<4x8xf32>
  %i1 = arith.addf %one, %i0 : tensor<4x8xf32>
  %rx = arith.mulf %root, %x : tensor<4x8xf32>
  %i2 = arith.mulf %rx, %i1 : tensor<4x8xf32>
  %t = math.tanh %i2 : tensor<4x8xf32>
  %h = arith.mulf %x, %half : tensor<4x8xf32>
  %ht = arith.mulf %h, %t : tensor<4x8xf32>
  %y = arith.addf %ht, %h : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func @error_function(
//  CHECK-NEXT:   %[[Y:.*]] = nn.gelu %arg0 :
//  CHECK-NEXT:   return %[[Y]]
func.func @error_function(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %half = arith.constant dense<0.5> : tensor<4x8xf32>
  %one = arith.constant dense<1.0> : tensor<4x8xf32>
  %rt2 = arith.constant dense<1.4142135381698608> : tensor<4x8xf32>
  %irt2 = arith.constant dense<0.70710677> : tensor<4x8xf32>
  %two = arith.constant dense<2.0> : tensor<4x8xf32>
  %i = arith.divf %x, %rt2 : tensor<4x8xf32>
  %t = math.erf %i : tensor<4x8xf32>
  %t1 = arith.addf %t, %one : tensor<4x8xf32>
  %h = arith.mulf %half, %t1 : tensor<4x8xf32>
  %y = arith.mulf %x, %h : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func @error_function_otherwise(
//  CHECK-NEXT:   %[[Y:.*]] = nn.gelu %arg0 :
//  CHECK-NEXT:   return %[[Y]]
func.func @error_function_otherwise(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %half = arith.constant dense<0.5> : tensor<4x8xf32>
  %one = arith.constant dense<1.0> : tensor<4x8xf32>
  %rt2 = arith.constant dense<1.4142135381698608> : tensor<4x8xf32>
  %irt2 = arith.constant dense<0.70710677> : tensor<4x8xf32>
  %two = arith.constant dense<2.0> : tensor<4x8xf32>
  %i = arith.mulf %irt2, %x : tensor<4x8xf32>
  %t = math.erf %i : tensor<4x8xf32>
  %t1 = arith.addf %one, %t : tensor<4x8xf32>
  %xt = arith.mulf %x, %t1 : tensor<4x8xf32>
  %y = arith.divf %xt, %two : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// The input is a sum itself: the match must not look into it.

// CHECK-LABEL: func @of_a_sum(
//       CHECK:   %[[X:.*]] = arith.addf %arg0, %arg1
//  CHECK-NEXT:   nn.gelu %[[X]] {tanh}
func.func @of_a_sum(%u: tensor<4x8xf32>, %v: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %x = arith.addf %u, %v : tensor<4x8xf32>
  %half = arith.constant dense<0.5> : tensor<4x8xf32>
  %one = arith.constant dense<1.0> : tensor<4x8xf32>
  %three = arith.constant dense<3.0> : tensor<4x8xf32>
  %a = arith.constant dense<0.044714998453855515> : tensor<4x8xf32>
  %root = arith.constant dense<0.7978845834732056> : tensor<4x8xf32>
  %h = arith.mulf %x, %half : tensor<4x8xf32>
  %x3 = math.powf %x, %three : tensor<4x8xf32>
  %i0 = arith.mulf %x3, %a : tensor<4x8xf32>
  %i1 = arith.addf %x, %i0 : tensor<4x8xf32>
  %i2 = arith.mulf %i1, %root : tensor<4x8xf32>
  %t = math.tanh %i2 : tensor<4x8xf32>
  %t1 = arith.addf %t, %one : tensor<4x8xf32>
  %y = arith.mulf %h, %t1 : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// 0.0447 is another function.

// CHECK-LABEL: func @another_cubic(
//   CHECK-NOT:   nn.gelu
//       CHECK:   return
func.func @another_cubic(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %half = arith.constant dense<0.5> : tensor<4x8xf32>
  %one = arith.constant dense<1.0> : tensor<4x8xf32>
  %three = arith.constant dense<3.0> : tensor<4x8xf32>
  %a = arith.constant dense<0.0447> : tensor<4x8xf32>
  %root = arith.constant dense<0.7978845834732056> : tensor<4x8xf32>
  %h = arith.mulf %x, %half : tensor<4x8xf32>
  %x3 = math.powf %x, %three : tensor<4x8xf32>
  %i0 = arith.mulf %x3, %a : tensor<4x8xf32>
  %i1 = arith.addf %x, %i0 : tensor<4x8xf32>
  %i2 = arith.mulf %i1, %root : tensor<4x8xf32>
  %t = math.tanh %i2 : tensor<4x8xf32>
  %t1 = arith.addf %t, %one : tensor<4x8xf32>
  %y = arith.mulf %h, %t1 : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func @without_the_half(
//   CHECK-NOT:   nn.gelu
//       CHECK:   return
func.func @without_the_half(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %half = arith.constant dense<0.5> : tensor<4x8xf32>
  %one = arith.constant dense<1.0> : tensor<4x8xf32>
  %three = arith.constant dense<3.0> : tensor<4x8xf32>
  %a = arith.constant dense<0.044714998453855515> : tensor<4x8xf32>
  %root = arith.constant dense<0.7978845834732056> : tensor<4x8xf32>
  %x2 = arith.mulf %x, %x : tensor<4x8xf32>
  %i0 = arith.mulf %a, %x2 : tensor<4x8xf32>
  %i1 = arith.addf %one, %i0 : tensor<4x8xf32>
  %rx = arith.mulf %root, %x : tensor<4x8xf32>
  %i2 = arith.mulf %rx, %i1 : tensor<4x8xf32>
  %t = math.tanh %i2 : tensor<4x8xf32>
  %t1 = arith.addf %one, %t : tensor<4x8xf32>
  %y = arith.mulf %t1, %x : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// x * (1 - erf) / 2, the other tail.

// CHECK-LABEL: func @minus(
//   CHECK-NOT:   nn.gelu
//       CHECK:   return
func.func @minus(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %half = arith.constant dense<0.5> : tensor<4x8xf32>
  %one = arith.constant dense<1.0> : tensor<4x8xf32>
  %rt2 = arith.constant dense<1.4142135381698608> : tensor<4x8xf32>
  %irt2 = arith.constant dense<0.70710677> : tensor<4x8xf32>
  %two = arith.constant dense<2.0> : tensor<4x8xf32>
  %i = arith.divf %x, %rt2 : tensor<4x8xf32>
  %t = math.erf %i : tensor<4x8xf32>
  %t1 = arith.subf %one, %t : tensor<4x8xf32>
  %h = arith.mulf %half, %t1 : tensor<4x8xf32>
  %y = arith.mulf %x, %h : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// The probability without its x.

// CHECK-LABEL: func @cumulative(
//   CHECK-NOT:   nn.gelu
//       CHECK:   return
func.func @cumulative(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %half = arith.constant dense<0.5> : tensor<4x8xf32>
  %one = arith.constant dense<1.0> : tensor<4x8xf32>
  %rt2 = arith.constant dense<1.4142135381698608> : tensor<4x8xf32>
  %irt2 = arith.constant dense<0.70710677> : tensor<4x8xf32>
  %two = arith.constant dense<2.0> : tensor<4x8xf32>
  %i = arith.divf %x, %rt2 : tensor<4x8xf32>
  %t = math.erf %i : tensor<4x8xf32>
  %t1 = arith.addf %t, %one : tensor<4x8xf32>
  %y = arith.mulf %half, %t1 : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

