// RUN: tmc-opt %s -tmc-raise -split-input-file | FileCheck %s

// Halves. The tables keep one row for each position.

// CHECK-LABEL: func @halves(
//  CHECK-SAME:   %[[X:[a-z0-9]+]]: {{.*}}, %[[COS:[a-z0-9]+]]: tensor<3x4xf32>, %[[SIN:[a-z0-9]+]]: tensor<3x4xf32>)
//   CHECK-DAG:   %[[C:.*]] = nn.reshape %[[COS]] : (tensor<3x4xf32>) -> tensor<1x3x4xf32>
//   CHECK-DAG:   %[[S:.*]] = nn.reshape %[[SIN]] : (tensor<3x4xf32>) -> tensor<1x3x4xf32>
//       CHECK:   %[[Y:.*]] = nn.rotary_embedding %[[X]], %[[C]], %[[S]] : (
//       CHECK:   return %[[Y]]
func.func @halves(%x: tensor<2x3x4xf32>, %cos: tensor<3x4xf32>, %sin: tensor<3x4xf32>) -> tensor<2x3x4xf32> {
  %c = nn.broadcast %cos to [1, 2] : (tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %s = nn.broadcast %sin to [1, 2] : (tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %a = arith.mulf %x, %c : tensor<2x3x4xf32>
  %lo = nn.slice %x [0, 0, 0] step [1, 1, 1] : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
  %hi = nn.slice %x [0, 0, 2] step [1, 1, 1] : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
  %n = arith.negf %hi : tensor<2x3x2xf32>
  %r = nn.concat %n, %lo {dim = 2 : i64} : (tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<2x3x4xf32>
  %b = arith.mulf %r, %s : tensor<2x3x4xf32>
  %y = arith.addf %a, %b : tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// The other order of all operands; -1 as a factor; angles of each sample.

// CHECK-LABEL: func @other_order(
//  CHECK-SAME:   %[[X:[a-z0-9]+]]: {{.*}}, %[[COS:[a-z0-9]+]]: tensor<2x4xf32>, %[[SIN:[a-z0-9]+]]: tensor<2x4xf32>)
//   CHECK-DAG:   %[[C:.*]] = nn.reshape %[[COS]] : (tensor<2x4xf32>) -> tensor<2x1x4xf32>
//   CHECK-DAG:   %[[S:.*]] = nn.reshape %[[SIN]] : (tensor<2x4xf32>) -> tensor<2x1x4xf32>
//       CHECK:   nn.rotary_embedding %[[X]], %[[C]], %[[S]] : (
func.func @other_order(%x: tensor<2x3x4xf32>, %cos: tensor<2x4xf32>, %sin: tensor<2x4xf32>) -> tensor<2x3x4xf32> {
  %c = nn.broadcast %cos to [0, 2] : (tensor<2x4xf32>) -> tensor<2x3x4xf32>
  %s = nn.broadcast %sin to [0, 2] : (tensor<2x4xf32>) -> tensor<2x3x4xf32>
  %a = arith.mulf %c, %x : tensor<2x3x4xf32>
  %lo = nn.slice %x [0, 0, 0] step [1, 1, 1] : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
  %hi = nn.slice %x [0, 0, 2] step [1, 1, 1] : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
  %minus = arith.constant dense<-1.0> : tensor<2x3x2xf32>
  %n = arith.mulf %hi, %minus : tensor<2x3x2xf32>
  %r = nn.concat %n, %lo {dim = 2 : i64} : (tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<2x3x4xf32>
  %b = arith.mulf %s, %r : tensor<2x3x4xf32>
  %y = arith.addf %b, %a : tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// Neighbours, in bf16: the tables are widened.

// CHECK-LABEL: func @neighbours(
//  CHECK-SAME:   %[[X:[a-z0-9]+]]: tensor<3x4xbf16>, %[[COS:[a-z0-9]+]]: tensor<3x4xbf16>, %[[SIN:[a-z0-9]+]]: tensor<3x4xbf16>)
//   CHECK-DAG:   %[[C:.*]] = arith.extf %[[COS]]
//   CHECK-DAG:   %[[S:.*]] = arith.extf %[[SIN]]
//       CHECK:   nn.rotary_embedding %[[X]], %[[C]], %[[S]] {interleaved} : (tensor<3x4xbf16>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xbf16>
func.func @neighbours(%x: tensor<3x4xbf16>, %cos: tensor<3x4xbf16>, %sin: tensor<3x4xbf16>) -> tensor<3x4xbf16> {
  %even = nn.slice %x [0, 0] step [1, 2] : (tensor<3x4xbf16>) -> tensor<3x2xbf16>
  %odd = nn.slice %x [0, 1] step [1, 2] : (tensor<3x4xbf16>) -> tensor<3x2xbf16>
  %n = arith.negf %odd : tensor<3x2xbf16>
  %n1 = nn.reshape %n : (tensor<3x2xbf16>) -> tensor<3x2x1xbf16>
  %e1 = nn.reshape %even : (tensor<3x2xbf16>) -> tensor<3x2x1xbf16>
  %stack = nn.concat %n1, %e1 {dim = 2 : i64} : (tensor<3x2x1xbf16>, tensor<3x2x1xbf16>) -> tensor<3x2x2xbf16>
  %r = nn.reshape %stack : (tensor<3x2x2xbf16>) -> tensor<3x4xbf16>
  %a = arith.mulf %x, %cos : tensor<3x4xbf16>
  %b = arith.mulf %r, %sin : tensor<3x4xbf16>
  %y = arith.addf %a, %b : tensor<3x4xbf16>
  return %y : tensor<3x4xbf16>
}

// -----

// The first four of six columns, beside the others.

// CHECK-LABEL: func @first_columns(
//  CHECK-SAME:   %[[X:[a-z0-9]+]]: {{.*}}, %[[COS:[a-z0-9]+]]: {{.*}}, %[[SIN:[a-z0-9]+]]: {{.*}})
//  CHECK-NEXT:   %[[Y:.*]] = nn.rotary_embedding %[[X]], %[[COS]], %[[SIN]] : (tensor<3x6xf32>, tensor<3x4xf32>, tensor<3x4xf32>)
//  CHECK-NEXT:   return %[[Y]]
func.func @first_columns(%x: tensor<3x6xf32>, %cos: tensor<3x4xf32>, %sin: tensor<3x4xf32>) -> tensor<3x6xf32> {
  %rot = nn.slice %x [0, 0] step [1, 1] : (tensor<3x6xf32>) -> tensor<3x4xf32>
  %pass = nn.slice %x [0, 4] step [1, 1] : (tensor<3x6xf32>) -> tensor<3x2xf32>
  %a = arith.mulf %rot, %cos : tensor<3x4xf32>
  %lo = nn.slice %rot [0, 0] step [1, 1] : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %hi = nn.slice %rot [0, 2] step [1, 1] : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %n = arith.negf %hi : tensor<3x2xf32>
  %r = nn.concat %n, %lo {dim = 1 : i64} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x4xf32>
  %b = arith.mulf %r, %sin : tensor<3x4xf32>
  %y = arith.addf %a, %b : tensor<3x4xf32>
  %whole = nn.concat %y, %pass {dim = 1 : i64} : (tensor<3x4xf32>, tensor<3x2xf32>) -> tensor<3x6xf32>
  return %whole : tensor<3x6xf32>
}

// -----

// Of two rows of three.

// CHECK-LABEL: func @first_columns_of_heads(
//  CHECK-NEXT:   nn.rotary_embedding %arg0, %arg1, %arg1 {heads = 2 : i64} : (tensor<3x6xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
//  CHECK-NEXT:   return
func.func @first_columns_of_heads(%x: tensor<3x6xf32>, %t: tensor<1x4xf32>) -> tensor<3x6xf32> {
  %rot = nn.slice %x [0, 0] step [1, 1] : (tensor<3x6xf32>) -> tensor<3x4xf32>
  %pass = nn.slice %x [0, 4] step [1, 1] : (tensor<3x6xf32>) -> tensor<3x2xf32>
  %y = nn.rotary_embedding %rot, %t, %t {heads = 2 : i64} : (tensor<3x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
  %whole = nn.concat %y, %pass {dim = 1 : i64} : (tensor<3x4xf32>, tensor<3x2xf32>) -> tensor<3x6xf32>
  return %whole : tensor<3x6xf32>
}

// -----

// The columns beside the rotated ones are others: the first two again.

// CHECK-LABEL: func @other_columns(
//       CHECK:   nn.rotary_embedding
//       CHECK:   nn.concat
func.func @other_columns(%x: tensor<3x6xf32>, %cos: tensor<3x4xf32>, %sin: tensor<3x4xf32>) -> tensor<3x6xf32> {
  %rot = nn.slice %x [0, 0] step [1, 1] : (tensor<3x6xf32>) -> tensor<3x4xf32>
  %pass = nn.slice %x [0, 0] step [1, 1] : (tensor<3x6xf32>) -> tensor<3x2xf32>
  %y = nn.rotary_embedding %rot, %cos, %sin : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %whole = nn.concat %y, %pass {dim = 1 : i64} : (tensor<3x4xf32>, tensor<3x2xf32>) -> tensor<3x6xf32>
  return %whole : tensor<3x6xf32>
}

// -----

// The negated half is the other one: the angles would be negative.

// CHECK-LABEL: func @other_sign(
//   CHECK-NOT:   nn.rotary_embedding
func.func @other_sign(%x: tensor<3x4xf32>, %cos: tensor<3x4xf32>, %sin: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %a = arith.mulf %x, %cos : tensor<3x4xf32>
  %lo = nn.slice %x [0, 0] step [1, 1] : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %hi = nn.slice %x [0, 2] step [1, 1] : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %n = arith.negf %lo : tensor<3x2xf32>
  %r = nn.concat %hi, %n {dim = 1 : i64} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x4xf32>
  %b = arith.mulf %r, %sin : tensor<3x4xf32>
  %y = arith.addf %a, %b : tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// The halves are of another value, or in their own order.

// CHECK-LABEL: func @other_value(
//   CHECK-NOT:   nn.rotary_embedding
func.func @other_value(%x: tensor<3x4xf32>, %z: tensor<3x4xf32>, %cos: tensor<3x4xf32>, %sin: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %a = arith.mulf %x, %cos : tensor<3x4xf32>
  %lo = nn.slice %z [0, 0] step [1, 1] : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %hi = nn.slice %z [0, 2] step [1, 1] : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %n = arith.negf %hi : tensor<3x2xf32>
  %r = nn.concat %n, %lo {dim = 1 : i64} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x4xf32>
  %b = arith.mulf %r, %sin : tensor<3x4xf32>
  %y = arith.addf %a, %b : tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// CHECK-LABEL: func @own_order(
//   CHECK-NOT:   nn.rotary_embedding
func.func @own_order(%x: tensor<3x4xf32>, %cos: tensor<3x4xf32>, %sin: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %a = arith.mulf %x, %cos : tensor<3x4xf32>
  %lo = nn.slice %x [0, 0] step [1, 1] : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %hi = nn.slice %x [0, 2] step [1, 1] : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %n = arith.negf %lo : tensor<3x2xf32>
  %r = nn.concat %n, %hi {dim = 1 : i64} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x4xf32>
  %b = arith.mulf %r, %sin : tensor<3x4xf32>
  %y = arith.addf %a, %b : tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// Columns 1 and 2 of four aren't a half.

// CHECK-LABEL: func @one_off(
//   CHECK-NOT:   nn.rotary_embedding
func.func @one_off(%x: tensor<3x4xf32>, %cos: tensor<3x4xf32>, %sin: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %a = arith.mulf %x, %cos : tensor<3x4xf32>
  %lo = nn.slice %x [0, 0] step [1, 1] : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %hi = nn.slice %x [0, 1] step [1, 1] : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %n = arith.negf %hi : tensor<3x2xf32>
  %r = nn.concat %n, %lo {dim = 1 : i64} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x4xf32>
  %b = arith.mulf %r, %sin : tensor<3x4xf32>
  %y = arith.addf %a, %b : tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// Neither half is negated: a reflection.

// CHECK-LABEL: func @no_sign(
//   CHECK-NOT:   nn.rotary_embedding
func.func @no_sign(%x: tensor<3x4xf32>, %cos: tensor<3x4xf32>, %sin: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %a = arith.mulf %x, %cos : tensor<3x4xf32>
  %lo = nn.slice %x [0, 0] step [1, 1] : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %hi = nn.slice %x [0, 2] step [1, 1] : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %r = nn.concat %hi, %lo {dim = 1 : i64} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x4xf32>
  %b = arith.mulf %r, %sin : tensor<3x4xf32>
  %y = arith.addf %a, %b : tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// A transpose of rows cancels an earlier one through the rotation, whose tables
// follow, and through norms.

// CHECK-LABEL: func @transposed_rows(
//   CHECK-NOT:   nn.transpose
//       CHECK:   %[[A:.*]] = nn.rms_norm %arg0 scale(%arg1)
//       CHECK:   %[[B:.*]] = nn.layer_norm %[[A]] {
//       CHECK:   %[[T:.*]] = nn.reshape %arg2 : (tensor<1x5x4xf32>) -> tensor<5x1x4xf32>
//       CHECK:   %[[Y:.*]] = nn.rotary_embedding %[[B]], %[[T]], %[[T]] : (tensor<5x3x4xf32>, tensor<5x1x4xf32>, tensor<5x1x4xf32>)
//       CHECK:   return %[[Y]]
func.func @transposed_rows(%x: tensor<5x3x4xf32>, %scale: tensor<4xf32>, %t: tensor<1x5x4xf32>) -> tensor<5x3x4xf32> {
  %xt = nn.transpose %x [1, 0, 2] : (tensor<5x3x4xf32>) -> tensor<3x5x4xf32>
  %a = nn.rms_norm %xt scale(%scale) {epsilon = 1.0e-6 : f64} : (tensor<3x5x4xf32>, tensor<4xf32>) -> tensor<3x5x4xf32>
  %b = nn.layer_norm %a {epsilon = 1.0e-6 : f64} : (tensor<3x5x4xf32>) -> tensor<3x5x4xf32>
  %r = nn.rotary_embedding %b, %t, %t : (tensor<3x5x4xf32>, tensor<1x5x4xf32>, tensor<1x5x4xf32>) -> tensor<3x5x4xf32>
  %y = nn.transpose %r [1, 0, 2] : (tensor<3x5x4xf32>) -> tensor<5x3x4xf32>
  return %y : tensor<5x3x4xf32>
}

// -----

// Columns can't change places with rows.

// CHECK-LABEL: func @transposed_columns(
//       CHECK:   %[[X:.*]] = nn.transpose %arg0 [1, 0]
//       CHECK:   %[[R:.*]] = nn.rotary_embedding %[[X]], %arg1, %arg1
//       CHECK:   nn.transpose %[[R]] [1, 0]
func.func @transposed_columns(%x: tensor<4x4xf32>, %t: tensor<1x4xf32>) -> tensor<4x4xf32> {
  %xt = nn.transpose %x [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = nn.rotary_embedding %xt, %t, %t : (tensor<4x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
  %y = nn.transpose %r [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// Nor can rows of which only the first are rotated.

// CHECK-LABEL: func @transposed_heads(
//       CHECK:   %[[X:.*]] = nn.transpose %arg0 [1, 0, 2]
//       CHECK:   %[[R:.*]] = nn.rotary_embedding %[[X]], %arg1, %arg1 {heads = 2 : i64}
//       CHECK:   nn.transpose %[[R]] [1, 0, 2]
func.func @transposed_heads(%x: tensor<5x3x4xf32>, %t: tensor<3x1x4xf32>) -> tensor<5x3x4xf32> {
  %xt = nn.transpose %x [1, 0, 2] : (tensor<5x3x4xf32>) -> tensor<3x5x4xf32>
  %r = nn.rotary_embedding %xt, %t, %t {heads = 2 : i64} : (tensor<3x5x4xf32>, tensor<3x1x4xf32>, tensor<3x1x4xf32>) -> tensor<3x5x4xf32>
  %y = nn.transpose %r [1, 0, 2] : (tensor<3x5x4xf32>) -> tensor<5x3x4xf32>
  return %y : tensor<5x3x4xf32>
}

// -----

// CHECK-LABEL: func @transposed_norm(
//       CHECK:   %[[X:.*]] = nn.transpose %arg0 [1, 0]
//       CHECK:   %[[R:.*]] = nn.rms_norm %[[X]]
//       CHECK:   nn.transpose %[[R]] [1, 0]
func.func @transposed_norm(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %xt = nn.transpose %x [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = nn.rms_norm %xt {epsilon = 1.0e-6 : f64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = nn.transpose %r [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
