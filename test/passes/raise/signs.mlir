// RUN: tmc-opt %s -tmc-raise | FileCheck %s

// Rows of four rotated by a table [2, 4]: the first half of each row of the
// table takes the sign. 1 2 3 4 becomes -1 -2 3 4.

// CHECK-LABEL: func @rotation(
//   CHECK-DAG:   %[[TABLE:.*]] = arith.constant dense<{{\[\[}}-1.{{[0e+]*}}, -2.{{[0e+]*}}, 3.{{[0e+]*}}, 4.{{[0e+]*}}], [-5.{{[0e+]*}}, 6.{{[0e+]*}}, 7.{{[0e+]*}}, 8.{{[0e+]*}}]]>
//   CHECK-NOT:   arith.negf
//       CHECK:   %[[SINES:.*]] = nn.broadcast %[[TABLE]] to [0, 2]
//       CHECK:   %[[WHOLE:.*]] = nn.concat %{{.*}}, %{{.*}} {dim = 2 : i64}
//       CHECK:   arith.mulf %[[WHOLE]], %[[SINES]]
func.func @rotation(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %lo = nn.slice %x [0, 0, 0] step [1, 1, 1] : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
  %hi = nn.slice %x [0, 0, 2] step [1, 1, 1] : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
  %n = arith.negf %hi : tensor<2x3x2xf32>
  %r = nn.concat %n, %lo {dim = 2 : i64} : (tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<2x3x4xf32>
  %table = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, -6.0, 7.0, 8.0]]> : tensor<2x4xf32>
  %sines = nn.broadcast %table to [0, 2] : (tensor<2x4xf32>) -> tensor<2x3x4xf32>
  %y = arith.mulf %r, %sines : tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// A table that doesn't run along the parts can't take the sign of one, nor can
// a negation be left out that something else reads with the parts.

// CHECK-LABEL: func @along_rows(
//       CHECK:   arith.negf
func.func @along_rows(%a: tensor<2x2xf32>, %b: tensor<2x2xf32>) -> tensor<2x4xf32> {
  %n = arith.negf %a : tensor<2x2xf32>
  %r = nn.concat %n, %b {dim = 1 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
  %table = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %rows = nn.broadcast %table to [0] : (tensor<2xf32>) -> tensor<2x4xf32>
  %y = arith.mulf %r, %rows : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-LABEL: func @read_elsewhere(
//       CHECK:   arith.negf
func.func @read_elsewhere(%a: tensor<2x2xf32>, %b: tensor<2x2xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %n = arith.negf %a : tensor<2x2xf32>
  %r = nn.concat %n, %b {dim = 1 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
  %table = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %rows = nn.broadcast %table to [1] : (tensor<4xf32>) -> tensor<2x4xf32>
  %y = arith.mulf %r, %rows : tensor<2x4xf32>
  return %y, %r : tensor<2x4xf32>, tensor<2x4xf32>
}
