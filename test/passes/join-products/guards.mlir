// RUN: tmc-opt %s -tmc-join-products -split-input-file | FileCheck %s

// A gated MLP: its kernel of pointwise ops walks over the columns of both at
// once.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: "{gate,up}.weight"
// CHECK: %[[Y:.*]] = nn.matmul %arg0, %arg1 transpose_rhs : {{.*}} -> tensor<4x32xf32>
// CHECK: nn.slice %[[Y]] [0, 0] step [1, 1] : {{.*}} -> tensor<4x16xf32>
// CHECK: nn.slice %[[Y]] [0, 16] step [1, 1] : {{.*}} -> tensor<4x16xf32>
func.func @forward(
    %x: tensor<4x8xf32>,
    %a: tensor<16x8xf32> {train.role = #train.role<param>, train.name = "gate.weight"},
    %b: tensor<16x8xf32> {train.role = #train.role<param>, train.name = "up.weight"}) -> tensor<4x16xf32> {
  %g = nn.matmul %x, %a transpose_rhs : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %u = nn.matmul %x, %b transpose_rhs : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %y = arith.mulf %g, %u : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// -----

// Parts of different widths aren't walked over at once.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: train.parts
// CHECK-COUNT-2: nn.matmul
func.func @forward(
    %x: tensor<4x8xf32>,
    %a: tensor<16x8xf32> {train.role = #train.role<param>, train.name = "a"},
    %b: tensor<24x8xf32> {train.role = #train.role<param>, train.name = "b"}) -> (tensor<4x16xf32>, tensor<4x24xf32>) {
  %g = nn.matmul %x, %a transpose_rhs : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %u = nn.matmul %x, %b transpose_rhs : (tensor<4x8xf32>, tensor<24x8xf32>) -> tensor<4x24xf32>
  %y = arith.negf %g : tensor<4x16xf32>
  %z = arith.negf %u : tensor<4x24xf32>
  return %y, %z : tensor<4x16xf32>, tensor<4x24xf32>
}

// -----

// A frozen parameter isn't updated, a parameter with two names or two readers
// is more than rows of this product, and a product reads no columns.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: train.parts
// CHECK-COUNT-6: nn.matmul
func.func @forward(
    %x: tensor<4x16xf32>,
    %a: tensor<16x16xf32> {train.role = #train.role<param>, train.name = "trained"},
    %b: tensor<16x16xf32> {train.role = #train.role<param>, train.name = "frozen", train.frozen},
    %c: tensor<16x16xf32> {train.role = #train.role<param>, train.name = "tied", train.aliases = ["other"]},
    %d: tensor<16x16xf32> {train.role = #train.role<param>, train.name = "twice"},
    %e: tensor<16x16xf32> {train.role = #train.role<param>, train.name = "deep"}) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %0 = nn.matmul %x, %a transpose_rhs : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  %1 = nn.matmul %x, %b transpose_rhs : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  %2 = nn.matmul %x, %c transpose_rhs : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  %3 = nn.matmul %x, %d transpose_rhs : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  %4 = nn.matmul %x, %e transpose_rhs : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  %5 = nn.matmul %4, %d transpose_rhs : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  %6 = arith.mulf %0, %1 : tensor<4x16xf32>
  %7 = arith.mulf %2, %3 : tensor<4x16xf32>
  %8 = arith.addf %6, %7 : tensor<4x16xf32>
  return %8, %5 : tensor<4x16xf32>, tensor<4x16xf32>
}

// -----

// The end of a batch that isn't a multiple reads the parameters in a function of
// its own, whose arguments are those of the first one.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: train.parts
// CHECK-COUNT-2: nn.matmul
func.func @forward(
    %x: tensor<4x8xf32>,
    %a: tensor<16x8xf32> {train.role = #train.role<param>, train.name = "gate"},
    %b: tensor<16x8xf32> {train.role = #train.role<param>, train.name = "up"}) -> tensor<4x16xf32> {
  %g = nn.matmul %x, %a transpose_rhs : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %u = nn.matmul %x, %b transpose_rhs : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %y = arith.mulf %g, %u : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}
func.func @rest(
    %x: tensor<2x8xf32>,
    %a: tensor<16x8xf32> {train.role = #train.role<param>, train.name = "gate"},
    %b: tensor<16x8xf32> {train.role = #train.role<param>, train.name = "up"}) -> tensor<2x16xf32> {
  %g = nn.matmul %x, %a transpose_rhs : (tensor<2x8xf32>, tensor<16x8xf32>) -> tensor<2x16xf32>
  return %g : tensor<2x16xf32>
}
