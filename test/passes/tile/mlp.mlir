// RUN: tmc-opt %s -split-input-file -tmc-tile=tiles=2 -canonicalize | FileCheck %s
// RUN: tmc-opt %s -split-input-file -tmc-tile=tiles=3 -canonicalize | FileCheck %s --check-prefix=THREE
// RUN: not tmc-opt %s -split-input-file -tmc-tile=tiles=0 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: error: can't cut rows into 0 tiles

// Six rows in two tiles of three, or three of two. The input is read by the
// residual sum, too; a bias and a mask of rows are repeated for each tile.

// CHECK-LABEL: func @forward(
//  CHECK-SAME:     attributes {train.tiles = 2 : i64}
//       CHECK:   %[[FLAT:.*]] = nn.reshape %arg0 : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
//       CHECK:   %[[X0:.*]] = nn.slice %[[FLAT]] [0, 0] step [1, 1] : (tensor<6x4xf32>) -> tensor<3x4xf32>
//       CHECK:   %[[H0:.*]] = nn.matmul %[[X0]], %arg1 bias(%arg2) : {{.*}} -> tensor<3x8xf32>
//       CHECK:   %[[A0:.*]] = nn.gelu %[[H0]]
//       CHECK:   %[[M0:.*]] = nn.slice %{{.*}} [0] step [1] : (tensor<6xf32>) -> tensor<3xf32>
//       CHECK:   %[[R0:.*]] = nn.broadcast %[[M0]] to [0] : (tensor<3xf32>) -> tensor<3x8xf32>
//       CHECK:   %[[K0:.*]] = arith.mulf %[[A0]], %[[R0]] : tensor<3x8xf32>
//       CHECK:   %[[Y0:.*]] = nn.matmul %[[K0]], %arg3 : {{.*}} -> tensor<3x4xf32>
//       CHECK:   nn.slice %{{.*}} [3, 0] step [1, 1]
//       CHECK:   %[[Y1:.*]] = nn.matmul %{{.*}}, %arg3 : {{.*}} -> tensor<3x4xf32>
//       CHECK:   %[[Y:.*]] = nn.concat %[[Y0]], %[[Y1]]
//       CHECK:   nn.reshape %[[Y]] : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
// THREE-LABEL: func @forward(
// THREE-COUNT-6: nn.matmul
//       THREE:   nn.concat {{.*}} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
func.func @forward(%x: tensor<2x3x4xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>, %v: tensor<8x4xf32>,
                   %mask: tensor<2x3xf32>) -> tensor<2x3x4xf32> {
  %rows = nn.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %h = nn.matmul %rows, %w bias(%b) : (tensor<6x4xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  %deep = nn.reshape %h : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  %a = nn.gelu %deep {tanh} : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %m = nn.broadcast %mask to [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x8xf32>
  %k = arith.mulf %a, %m : tensor<2x3x8xf32>
  %flat = nn.reshape %k : (tensor<2x3x8xf32>) -> tensor<6x8xf32>
  %y = nn.matmul %flat, %v : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %out = nn.reshape %y : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %sum = arith.addf %x, %out : tensor<2x3x4xf32>
  return %sum : tensor<2x3x4xf32>
}

// -----

// Two products that meet are one region: a gated MLP. Five rows in three tiles
// are two, two and one.

// CHECK-LABEL: func @forward(
//       CHECK:   nn.concat {{.*}} : (tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<5x4xf32>
// THREE-LABEL: func @forward(
// THREE-COUNT-9: nn.matmul
//       THREE:   nn.concat {{.*}} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<5x4xf32>
func.func @forward(%x: tensor<5x4xf32>, %w: tensor<4x8xf32>, %u: tensor<4x8xf32>, %v: tensor<8x4xf32>) -> tensor<5x4xf32> {
  %gate = nn.matmul %x, %w : (tensor<5x4xf32>, tensor<4x8xf32>) -> tensor<5x8xf32>
  %g = nn.gelu %gate {tanh} : (tensor<5x8xf32>) -> tensor<5x8xf32>
  %up = nn.matmul %x, %u : (tensor<5x4xf32>, tensor<4x8xf32>) -> tensor<5x8xf32>
  %a = arith.mulf %g, %up : tensor<5x8xf32>
  %y = nn.matmul %a, %v : (tensor<5x8xf32>, tensor<8x4xf32>) -> tensor<5x4xf32>
  return %y : tensor<5x4xf32>
}

// -----

// Both halves of one product's rows.

// CHECK-LABEL: func @forward(
// CHECK-COUNT-2: nn.slice %{{.*}} [0, 4] step [1, 1] : (tensor<3x8xf32>) -> tensor<3x4xf32>
//       CHECK:   nn.concat
func.func @forward(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>, %v: tensor<4x4xf32>) -> tensor<6x4xf32> {
  %h = nn.matmul %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %one = nn.slice %h [0, 0] step [1, 1] : (tensor<6x8xf32>) -> tensor<6x4xf32>
  %two = nn.slice %h [0, 4] step [1, 1] : (tensor<6x8xf32>) -> tensor<6x4xf32>
  %a = arith.mulf %one, %two : tensor<6x4xf32>
  %y = nn.matmul %a, %v : (tensor<6x4xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}

// -----

// Near misses: long rows are a result; they are reduced over rows; another
// tensor as long comes from outside; a product reads them turned, or as its
// right factor; nothing makes rows longer.

// CHECK-LABEL: func @result(
//   CHECK-NOT:   nn.concat
func.func @result(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>, %v: tensor<8x4xf32>) -> (tensor<6x4xf32>, tensor<6x8xf32>) {
  %h = nn.matmul %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %y = nn.matmul %h, %v : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  return %y, %h : tensor<6x4xf32>, tensor<6x8xf32>
}
// CHECK-LABEL: func @reduced(
//   CHECK-NOT:   nn.concat
func.func @reduced(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>, %v: tensor<8x4xf32>) -> (tensor<6x4xf32>, tensor<8xf32>) {
  %h = nn.matmul %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %s = nn.reduce sum %h over [0] : (tensor<6x8xf32>) -> tensor<8xf32>
  %y = nn.matmul %h, %v : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  return %y, %s : tensor<6x4xf32>, tensor<8xf32>
}
// CHECK-LABEL: func @outside(
//   CHECK-NOT:   nn.concat
func.func @outside(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>, %v: tensor<8x4xf32>, %z: tensor<6x8xf32>) -> tensor<6x4xf32> {
  %h = nn.matmul %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %a = arith.mulf %h, %z : tensor<6x8xf32>
  %y = nn.matmul %a, %v : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}
// CHECK-LABEL: func @turned(
//   CHECK-NOT:   nn.concat
func.func @turned(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>, %v: tensor<6x4xf32>) -> tensor<8x4xf32> {
  %h = nn.matmul %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %y = nn.matmul %h, %v transpose_lhs : (tensor<6x8xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
// CHECK-LABEL: func @right(
//   CHECK-NOT:   nn.concat
func.func @right(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>, %v: tensor<4x6xf32>) -> tensor<4x8xf32> {
  %h = nn.matmul %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %y = nn.matmul %v, %h : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
// CHECK-LABEL: func @narrow(
//   CHECK-NOT:   nn.concat
func.func @narrow(%x: tensor<6x4xf32>, %w: tensor<4x4xf32>, %v: tensor<4x2xf32>) -> tensor<6x2xf32> {
  %h = nn.matmul %x, %w : (tensor<6x4xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
  %y = nn.matmul %h, %v : (tensor<6x4xf32>, tensor<4x2xf32>) -> tensor<6x2xf32>
  return %y : tensor<6x2xf32>
}
