// RUN: tmc-opt %s -tmc-dequantize-as-read | FileCheck %s

// Forward and back, with a bias and onto a sum: no weight is made.

// CHECK-LABEL: func.func @both
//   CHECK-NOT:   nn.dequantize
//       CHECK:   nn.matmul_codes %arg0, %arg1, %arg2 nested(%arg3) transpose_rhs bias(%arg4)
//  CHECK-SAME:     : (tensor<8x128xbf16>, tensor<4096xi8>, tensor<128xi8>, tensor<2xf32>, tensor<64xbf16>) -> tensor<8x64xbf16>
//       CHECK:   nn.matmul_codes %{{.*}}, %arg1, %arg2 nested(%arg3) acc(%arg5)
//  CHECK-SAME:     : (tensor<8x64xbf16>, tensor<4096xi8>, tensor<128xi8>, tensor<2xf32>, tensor<8x128xbf16>) -> tensor<8x128xbf16>
func.func @both(%x: tensor<8x128xbf16>, %q: tensor<4096xi8>, %a: tensor<128xi8>, %s: tensor<2xf32>,
                %b: tensor<64xbf16>, %c: tensor<8x128xbf16>) -> tensor<8x128xbf16> {
  %w = nn.dequantize %q, %a nested(%s) : (tensor<4096xi8>, tensor<128xi8>, tensor<2xf32>) -> tensor<64x128xbf16>
  %y = nn.matmul %x, %w transpose_rhs bias(%b) : (tensor<8x128xbf16>, tensor<64x128xbf16>, tensor<64xbf16>) -> tensor<8x64xbf16>
  %d = nn.matmul %y, %w acc(%c) : (tensor<8x64xbf16>, tensor<64x128xbf16>, tensor<8x128xbf16>) -> tensor<8x128xbf16>
  return %d : tensor<8x128xbf16>
}

// As a left factor, or beside another type, a weight is read from memory; then
// every product reads it there.

// CHECK-LABEL: func.func @kept
//   CHECK-NOT:   nn.matmul_codes
//       CHECK:   %[[W:.*]] = nn.dequantize
//       CHECK:   nn.matmul %arg0, %[[W]] transpose_rhs
//       CHECK:   nn.matmul %[[W]], %arg0 transpose_rhs
func.func @kept(%x: tensor<8x128xf32>, %q: tensor<64x128xi8>, %a: tensor<64xf32>) -> (tensor<8x64xf32>, tensor<64x8xf32>) {
  %w = nn.dequantize %q, %a : (tensor<64x128xi8>, tensor<64xf32>) -> tensor<64x128xf32>
  %y = nn.matmul %x, %w transpose_rhs : (tensor<8x128xf32>, tensor<64x128xf32>) -> tensor<8x64xf32>
  %z = nn.matmul %w, %x transpose_rhs : (tensor<64x128xf32>, tensor<8x128xf32>) -> tensor<64x8xf32>
  return %y, %z : tensor<8x64xf32>, tensor<64x8xf32>
}

// CHECK-LABEL: func.func @other_type
//   CHECK-NOT:   nn.matmul_codes
func.func @other_type(%x: tensor<8x128xf32>, %q: tensor<64x128xi8>, %a: tensor<64xf32>) -> tensor<8x64xf32> {
  %w = nn.dequantize %q, %a : (tensor<64x128xi8>, tensor<64xf32>) -> tensor<64x128xbf16>
  %y = nn.matmul %x, %w transpose_rhs : (tensor<8x128xf32>, tensor<64x128xbf16>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}
