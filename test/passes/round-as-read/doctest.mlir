// RUN: tmc-opt %s -tmc-round-as-read -canonicalize -split-input-file | FileCheck %s

// A parameter beside a factor of 16 bits is read as it is, through a view, too. What is
// computed is there for the product alone, so its cast stays; and one factor has to say
// what the other is rounded to.

// CHECK-LABEL: @beside
//  CHECK-NEXT:   %[[Y:.*]] = nn.matmul %arg0, %arg1 : (tensor<8x4xbf16>, tensor<4x6xf32>) -> tensor<8x6xbf16>
//  CHECK-NEXT:   %[[T:.*]] = nn.matmul %arg1, %arg0 transpose_lhs transpose_rhs : (tensor<4x6xf32>, tensor<8x4xbf16>) -> tensor<6x8xf32>
//  CHECK-NEXT:   return
func.func @beside(%x: tensor<8x4xbf16>, %w: tensor<4x6xf32>) -> (tensor<8x6xbf16>, tensor<6x8xf32>) {
  %n = arith.truncf %w : tensor<4x6xf32> to tensor<4x6xbf16>
  %y = nn.matmul %x, %n : (tensor<8x4xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
  %t = nn.matmul %n, %x transpose_lhs transpose_rhs : (tensor<4x6xbf16>, tensor<8x4xbf16>) -> tensor<6x8xf32>
  return %y, %t : tensor<8x6xbf16>, tensor<6x8xf32>
}

// -----

// CHECK-LABEL: @view
//  CHECK-NEXT:   %[[W:.*]] = nn.reshape %arg1 : (tensor<24xf32>) -> tensor<4x6xf32>
//  CHECK-NEXT:   nn.matmul %arg0, %[[W]] : (tensor<8x4xf16>, tensor<4x6xf32>) -> tensor<8x6xf16>
func.func @view(%x: tensor<8x4xf16>, %w: tensor<24xf32>) -> tensor<8x6xf16> {
  %n = arith.truncf %w : tensor<24xf32> to tensor<24xf16>
  %v = nn.reshape %n : (tensor<24xf16>) -> tensor<4x6xf16>
  %y = nn.matmul %x, %v : (tensor<8x4xf16>, tensor<4x6xf16>) -> tensor<8x6xf16>
  return %y : tensor<8x6xf16>
}

// -----

// CHECK-LABEL: @both
//       CHECK:   %[[X:.*]] = arith.truncf %arg0
//  CHECK-NEXT:   nn.matmul %[[X]], %arg1 : (tensor<8x4xbf16>, tensor<4x6xf32>)
func.func @both(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>) -> tensor<8x6xbf16> {
  %m = arith.truncf %x : tensor<8x4xf32> to tensor<8x4xbf16>
  %n = arith.truncf %w : tensor<4x6xf32> to tensor<4x6xbf16>
  %y = nn.matmul %m, %n : (tensor<8x4xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
  return %y : tensor<8x6xbf16>
}

// -----

// CHECK-LABEL: @made
//       CHECK:   arith.truncf
//       CHECK:   nn.matmul %{{.*}}, %{{.*}} : (tensor<8x4xbf16>, tensor<4x6xbf16>)
func.func @made(%x: tensor<8x4xbf16>, %w: tensor<4x6xf32>) -> tensor<8x6xbf16> {
  %s = math.exp %w : tensor<4x6xf32>
  %n = arith.truncf %s : tensor<4x6xf32> to tensor<4x6xbf16>
  %y = nn.matmul %x, %n : (tensor<8x4xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
  return %y : tensor<8x6xbf16>
}

// -----

// CHECK-LABEL: @table
//  CHECK-NEXT:   nn.linear_cross_entropy %arg0, %arg1, {{.*}}: (tensor<8x4xbf16>, tensor<16x4xf32>, tensor<8xi64>, tensor<f32>)
func.func @table(%x: tensor<8x4xbf16>, %t: tensor<16x4xf32>, %l: tensor<8xi64>, %w: tensor<f32>) -> tensor<f32> {
  %n = arith.truncf %t : tensor<16x4xf32> to tensor<16x4xbf16>
  %loss, %lse = nn.linear_cross_entropy %x, %n, %l, %w {chunk = 4 : i64} : (tensor<8x4xbf16>, tensor<16x4xbf16>, tensor<8xi64>, tensor<f32>) -> (tensor<f32>, tensor<8xf32>)
  return %loss : tensor<f32>
}
