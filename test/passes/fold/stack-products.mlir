// RUN: tmc-opt %s -tmc-fold-into-kernels -split-input-file | FileCheck %s

// Four products of two numbers are one of eight, in the order of the sum. The
// other term is added to it.
// CHECK-LABEL: @joined
// CHECK: %[[A:.*]] = nn.concat %arg0, %arg2, %arg4, %arg6 {dim = 0 : i64} : {{.*}} -> tensor<8x6xf32>
// CHECK: %[[B:.*]] = nn.concat %arg1, %arg3, %arg5, %arg7 {dim = 0 : i64} : {{.*}} -> tensor<8x7xf32>
// CHECK: %[[P:.*]] = nn.matmul %[[A]], %[[B]] transpose_lhs : (tensor<8x6xf32>, tensor<8x7xf32>) -> tensor<6x7xf32>
// CHECK-NOT: nn.matmul
// CHECK: %[[S:.*]] = arith.addf %[[P]], %arg8
// CHECK: return %[[S]]
func.func @joined(%a0: tensor<2x6xf32>, %b0: tensor<2x7xf32>, %a1: tensor<2x6xf32>, %b1: tensor<2x7xf32>, %a2: tensor<2x6xf32>, %b2: tensor<2x7xf32>, %a3: tensor<2x6xf32>, %b3: tensor<2x7xf32>, %c: tensor<6x7xf32>) -> tensor<6x7xf32> {
  %p0 = nn.matmul %a0, %b0 transpose_lhs : (tensor<2x6xf32>, tensor<2x7xf32>) -> tensor<6x7xf32>
  %p1 = nn.matmul %a1, %b1 transpose_lhs : (tensor<2x6xf32>, tensor<2x7xf32>) -> tensor<6x7xf32>
  %p2 = nn.matmul %a2, %b2 transpose_lhs : (tensor<2x6xf32>, tensor<2x7xf32>) -> tensor<6x7xf32>
  %p3 = nn.matmul %a3, %b3 transpose_lhs : (tensor<2x6xf32>, tensor<2x7xf32>) -> tensor<6x7xf32>
  %s1 = arith.addf %p0, %p1 : tensor<6x7xf32>
  %with = arith.addf %s1, %c : tensor<6x7xf32>
  %s2 = arith.addf %with, %p2 : tensor<6x7xf32>
  %s3 = arith.addf %s2, %p3 : tensor<6x7xf32>
  return %s3 : tensor<6x7xf32>
}

// -----

// Three aren't worth it.
// CHECK-LABEL: @few
// CHECK-NOT: nn.concat
// CHECK-COUNT-3: nn.matmul
func.func @few(%a0: tensor<2x6xf32>, %b0: tensor<2x7xf32>, %a1: tensor<2x6xf32>, %b1: tensor<2x7xf32>, %a2: tensor<2x6xf32>, %b2: tensor<2x7xf32>, %c: tensor<6x7xf32>) -> tensor<6x7xf32> {
  %p0 = nn.matmul %a0, %b0 transpose_lhs : (tensor<2x6xf32>, tensor<2x7xf32>) -> tensor<6x7xf32>
  %p1 = nn.matmul %a1, %b1 transpose_lhs : (tensor<2x6xf32>, tensor<2x7xf32>) -> tensor<6x7xf32>
  %p2 = nn.matmul %a2, %b2 transpose_lhs : (tensor<2x6xf32>, tensor<2x7xf32>) -> tensor<6x7xf32>
  %s1 = arith.addf %p0, %p1 : tensor<6x7xf32>
  %s2 = arith.addf %s1, %p2 : tensor<6x7xf32>
  return %s2 : tensor<6x7xf32>
}

// -----

// Their factors would be as large as the result: (6 + 7) * 4 > 6 * 7.
// CHECK-LABEL: @long
// CHECK-NOT: nn.concat
// CHECK-COUNT-4: nn.matmul
func.func @long(%a0: tensor<4x6xf32>, %b0: tensor<4x7xf32>, %a1: tensor<4x6xf32>, %b1: tensor<4x7xf32>, %a2: tensor<4x6xf32>, %b2: tensor<4x7xf32>, %a3: tensor<4x6xf32>, %b3: tensor<4x7xf32>, %c: tensor<6x7xf32>) -> tensor<6x7xf32> {
  %p0 = nn.matmul %a0, %b0 transpose_lhs : (tensor<4x6xf32>, tensor<4x7xf32>) -> tensor<6x7xf32>
  %p1 = nn.matmul %a1, %b1 transpose_lhs : (tensor<4x6xf32>, tensor<4x7xf32>) -> tensor<6x7xf32>
  %p2 = nn.matmul %a2, %b2 transpose_lhs : (tensor<4x6xf32>, tensor<4x7xf32>) -> tensor<6x7xf32>
  %p3 = nn.matmul %a3, %b3 transpose_lhs : (tensor<4x6xf32>, tensor<4x7xf32>) -> tensor<6x7xf32>
  %s1 = arith.addf %p0, %p1 : tensor<6x7xf32>
  %s2 = arith.addf %s1, %p2 : tensor<6x7xf32>
  %s3 = arith.addf %s2, %p3 : tensor<6x7xf32>
  return %s3 : tensor<6x7xf32>
}

// -----

// A sum of 65 numbers is as fast alone.
// CHECK-LABEL: @deep
// CHECK-NOT: nn.concat
// CHECK-COUNT-4: nn.matmul
func.func @deep(%a0: tensor<65x200xf32>, %b0: tensor<65x200xf32>, %a1: tensor<65x200xf32>, %b1: tensor<65x200xf32>, %a2: tensor<65x200xf32>, %b2: tensor<65x200xf32>, %a3: tensor<65x200xf32>, %b3: tensor<65x200xf32>, %c: tensor<200x200xf32>) -> tensor<200x200xf32> {
  %p0 = nn.matmul %a0, %b0 transpose_lhs : (tensor<65x200xf32>, tensor<65x200xf32>) -> tensor<200x200xf32>
  %p1 = nn.matmul %a1, %b1 transpose_lhs : (tensor<65x200xf32>, tensor<65x200xf32>) -> tensor<200x200xf32>
  %p2 = nn.matmul %a2, %b2 transpose_lhs : (tensor<65x200xf32>, tensor<65x200xf32>) -> tensor<200x200xf32>
  %p3 = nn.matmul %a3, %b3 transpose_lhs : (tensor<65x200xf32>, tensor<65x200xf32>) -> tensor<200x200xf32>
  %s1 = arith.addf %p0, %p1 : tensor<200x200xf32>
  %s2 = arith.addf %s1, %p2 : tensor<200x200xf32>
  %s3 = arith.addf %s2, %p3 : tensor<200x200xf32>
  return %s3 : tensor<200x200xf32>
}
