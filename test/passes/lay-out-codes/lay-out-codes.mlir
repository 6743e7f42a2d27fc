// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-lay-out-codes))' | FileCheck %s

// Both products sum along what lies together. What is read both ways is written both ways, by one
// kernel, in the shape in which it is read; what is read one way is left alone.

// CHECK-LABEL: train.step @both
//       CHECK:   %[[XV:.*]] = nn.reshape %arg0 : (tensor<2x16x64xf32>) -> tensor<32x64xf32>
//       CHECK:   %[[Q:.*]], %[[S:.*]], %[[T:.*]], %[[A:.*]], %[[N:.*]] = nn.quantize_both %[[XV]] history(%arg2) : (tensor<32x64xf32>, tensor<16xf32>) -> (tensor<32x64xf8E4M3FN>, tensor<f32>, tensor<64x32xf8E4M3FN>, tensor<f32>, tensor<i64>)
//       CHECK:   %[[W:.*]], %[[R:.*]], %[[U:.*]] = nn.quantize_both %arg1 : (tensor<64x16xf32>) -> (tensor<64x16xf8E4M3FN>, tensor<f32>, tensor<16x64xf8E4M3FN>)
//       CHECK:   %[[Y:.*]] = nn.matmul %[[Q]], %[[U]] transpose_rhs scales(%[[S]], %[[R]])
//       CHECK:   %[[D:.*]], %[[E:.*]], %[[V:.*]] = nn.quantize_both %[[Y]]
//       CHECK:   nn.matmul %[[D]], %[[W]] transpose_rhs scales(%[[E]], %[[R]])
//       CHECK:   nn.matmul %[[T]], %[[V]] transpose_rhs scales(%[[S]], %[[E]])
//       CHECK:   train.return %{{.*}}, %{{.*}}, %{{.*}}, %[[A]], %[[N]]
train.step @both(%x: tensor<2x16x64xf32> {train.name = "x", train.role = #train.role<batch>},
                 %w: tensor<64x16xf32> {train.name = "w", train.role = #train.role<param>},
                 %h: tensor<16xf32> {train.name = "h", train.role = #train.role<state>, train.slot = ""})
    -> (tensor<f32> {train.loss, train.name = "loss"}, tensor<32x64xbf16> {train.name = "dx"},
        tensor<64x16xf32> {train.name = "dw"}, tensor<f32> {train.name = "amax"}, tensor<i64> {train.name = "count"}) {
  %q, %s, %amax, %count = nn.quantize %x history(%h) : (tensor<2x16x64xf32>, tensor<16xf32>) -> (tensor<2x16x64xf8E4M3FN>, tensor<f32>, tensor<f32>, tensor<i64>)
  %v = nn.reshape %q : (tensor<2x16x64xf8E4M3FN>) -> tensor<32x64xf8E4M3FN>
  %c, %r = nn.quantize %w : (tensor<64x16xf32>) -> (tensor<64x16xf8E4M3FN>, tensor<f32>)
  %y = nn.matmul %v, %c scales(%s, %r) : (tensor<32x64xf8E4M3FN>, tensor<64x16xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<32x16xbf16>
  %d, %e = nn.quantize %y : (tensor<32x16xbf16>) -> (tensor<32x16xf8E5M2>, tensor<f32>)
  %dx = nn.matmul %d, %c transpose_rhs scales(%e, %r) : (tensor<32x16xf8E5M2>, tensor<64x16xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<32x64xbf16>
  %dw = nn.matmul %v, %d transpose_lhs scales(%s, %e) : (tensor<32x64xf8E4M3FN>, tensor<32x16xf8E5M2>, tensor<f32>, tensor<f32>) -> tensor<64x16xf32>
  %wide = arith.extf %y : tensor<32x16xbf16> to tensor<32x16xf32>
  %loss = nn.reduce sum %wide over [0, 1] : (tensor<32x16xf32>) -> tensor<f32>
  train.return %loss, %dx, %dw, %amax, %count : tensor<f32>, tensor<32x64xbf16>, tensor<64x16xf32>, tensor<f32>, tensor<i64>
}

// What isn't fresh from a quantization is transposed.

// CHECK-LABEL: train.step @moved
//       CHECK:   %[[M:.*]] = nn.transpose %{{.*}} [1, 0, 2] : (tensor<4x16x32xf8E4M3FN>) -> tensor<16x4x32xf8E4M3FN>
//       CHECK:   %[[T:.*]] = nn.transpose %[[M]] [0, 2, 1] : (tensor<16x4x32xf8E4M3FN>) -> tensor<16x32x4xf8E4M3FN>
//       CHECK:   nn.matmul %[[T]], %{{.*}} transpose_rhs
train.step @moved(%x: tensor<4x16x32xf32> {train.name = "x", train.role = #train.role<batch>},
                  %b: tensor<16x8x4xf8E4M3FN> {train.name = "b", train.role = #train.role<batch>},
                  %r: tensor<f32> {train.name = "r", train.role = #train.role<batch>})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %q, %s = nn.quantize %x : (tensor<4x16x32xf32>) -> (tensor<4x16x32xf8E4M3FN>, tensor<f32>)
  %m = nn.transpose %q [1, 0, 2] : (tensor<4x16x32xf8E4M3FN>) -> tensor<16x4x32xf8E4M3FN>
  %y = nn.matmul %m, %b transpose_lhs transpose_rhs scales(%s, %r) : (tensor<16x4x32xf8E4M3FN>, tensor<16x8x4xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<16x32x8xf32>
  %loss = nn.reduce sum %y over [0, 1, 2] : (tensor<16x32x8xf32>) -> tensor<f32>
  train.return %loss : tensor<f32>
}

// In blocks every order has codes of its own, made by one kernel; a parameter's squares are the
// same in both. Scales are packed: 3 x 64 and 1 x 272 of x, 4 of the squares in a row of w.

// CHECK-LABEL: train.step @blocks
//   CHECK-DAG:   %[[X:.*]], %[[XS:.*]], %[[XT:.*]], %[[XTS:.*]] = nn.quantize_blocks %arg0 : (tensor<64x272xbf16>) -> (tensor<64x272xf8E4M3FN>, tensor<192xf32>, tensor<272x64xf8E4M3FN>, tensor<272xf32>)
//   CHECK-DAG:   %[[W:.*]], %[[WS:.*]], %[[WT:.*]], %[[WTS:.*]] = nn.quantize_blocks %arg1 : (tensor<144x272xf32>) -> (tensor<144x272xf8E4M3FN>, tensor<8xf32>, tensor<272x144xf8E4M3FN>, tensor<12xf32>)
//   CHECK-NOT:   nn.quantize %
//       CHECK:   %[[Y:.*]] = nn.matmul %[[X]], %[[W]] transpose_rhs scales(%[[XS]], %[[WS]])
//   CHECK-DAG:   %[[D:.*]], %[[DS:.*]], %[[DT:.*]], %[[DTS:.*]] = nn.quantize_blocks %[[Y]] :
//       CHECK:   nn.matmul %[[D]], %[[WT]] transpose_rhs scales(%[[DS]], %[[WTS]])
//       CHECK:   nn.matmul %[[DT]], %[[XT]] transpose_rhs scales(%[[DTS]], %[[XTS]])
train.step @blocks(%x: tensor<64x272xbf16> {train.name = "x", train.role = #train.role<batch>},
                   %w: tensor<144x272xf32> {train.name = "w", train.role = #train.role<param>})
    -> (tensor<f32> {train.loss, train.name = "loss"}, tensor<64x272xbf16> {train.name = "dx"},
        tensor<144x272xf32> {train.name = "dw"}) {
  %q, %s = nn.quantize %x : (tensor<64x272xbf16>) -> (tensor<64x272xf8E4M3FN>, tensor<64x3xf32>)
  %p, %o = nn.quantize %x : (tensor<64x272xbf16>) -> (tensor<64x272xf8E4M3FN>, tensor<1x272xf32>)
  %c, %r = nn.quantize %w : (tensor<144x272xf32>) -> (tensor<144x272xf8E4M3FN>, tensor<2x3xf32>)
  %y = nn.matmul %q, %c transpose_rhs scales(%s, %r) : (tensor<64x272xf8E4M3FN>, tensor<144x272xf8E4M3FN>, tensor<64x3xf32>, tensor<2x3xf32>) -> tensor<64x144xbf16>
  %d, %e = nn.quantize %y : (tensor<64x144xbf16>) -> (tensor<64x144xf8E4M3FN>, tensor<64x2xf32>)
  %f, %g = nn.quantize %y : (tensor<64x144xbf16>) -> (tensor<64x144xf8E4M3FN>, tensor<1x144xf32>)
  %dx = nn.matmul %d, %c scales(%e, %r) : (tensor<64x144xf8E4M3FN>, tensor<144x272xf8E4M3FN>, tensor<64x2xf32>, tensor<2x3xf32>) -> tensor<64x272xbf16>
  %dw = nn.matmul %f, %p transpose_lhs scales(%g, %o) : (tensor<64x144xf8E4M3FN>, tensor<64x272xf8E4M3FN>, tensor<1x144xf32>, tensor<1x272xf32>) -> tensor<144x272xf32>
  %wide = arith.extf %y : tensor<64x144xbf16> to tensor<64x144xf32>
  %loss = nn.reduce sum %wide over [0, 1] : (tensor<64x144xf32>) -> tensor<f32>
  train.return %loss, %dx, %dw : tensor<f32>, tensor<64x272xbf16>, tensor<144x272xf32>
}

// What is read in one order is made in one.

// CHECK-LABEL: train.step @one_order
//   CHECK-DAG:   %[[X:.*]], %[[XS:.*]], %{{.*}}, %{{.*}} = nn.quantize_blocks %arg0 {unread = array<i64: 2>}
//   CHECK-DAG:   %{{.*}}, %{{.*}}, %[[W:.*]], %[[WS:.*]] = nn.quantize_blocks %arg1 {unread = array<i64: 0>}
//       CHECK:   nn.matmul %[[X]], %[[W]] transpose_rhs scales(%[[XS]], %[[WS]])
train.step @one_order(%x: tensor<16x32xf32> {train.name = "x", train.role = #train.role<batch>},
                      %w: tensor<32x64xf32> {train.name = "w", train.role = #train.role<param>})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %q, %s = nn.quantize %x : (tensor<16x32xf32>) -> (tensor<16x32xf8E4M3FN>, tensor<16x1xf32>)
  %c, %r = nn.quantize %w : (tensor<32x64xf32>) -> (tensor<32x64xf8E4M3FN>, tensor<1x1xf32>)
  %y = nn.matmul %q, %c scales(%s, %r) : (tensor<16x32xf8E4M3FN>, tensor<32x64xf8E4M3FN>, tensor<16x1xf32>, tensor<1x1xf32>) -> tensor<16x64xf32>
  %loss = nn.reduce sum %y over [0, 1] : (tensor<16x64xf32>) -> tensor<f32>
  train.return %loss : tensor<f32>
}

// Blocks that no card multiplies are left alone: codes that aren't fresh, two squares, 12 rows.

// CHECK-LABEL: train.step @left
//   CHECK-NOT:   nn.quantize_blocks
//       CHECK:   nn.matmul %{{.*}}, %arg1 transpose_lhs scales
//       CHECK:   nn.matmul %{{.*}}, %{{.*}} transpose_lhs scales
//       CHECK:   nn.matmul %{{.*}}, %{{.*}} transpose_rhs scales
train.step @left(%x: tensor<128x32xf32> {train.name = "x", train.role = #train.role<batch>},
                 %b: tensor<128x16xf8E4M3FN> {train.name = "b", train.role = #train.role<batch>},
                 %r: tensor<1x16xf32> {train.name = "r", train.role = #train.role<batch>},
                 %z: tensor<12x32xf32> {train.name = "z", train.role = #train.role<batch>})
    -> (tensor<f32> {train.loss, train.name = "loss"}, tensor<32x32xf32> {train.name = "v"},
        tensor<12x128xf32> {train.name = "u"}) {
  %q, %s = nn.quantize %x : (tensor<128x32xf32>) -> (tensor<128x32xf8E4M3FN>, tensor<1x32xf32>)
  %y = nn.matmul %q, %b transpose_lhs scales(%s, %r) : (tensor<128x32xf8E4M3FN>, tensor<128x16xf8E4M3FN>, tensor<1x32xf32>, tensor<1x16xf32>) -> tensor<32x16xf32>
  %c, %t = nn.quantize %x : (tensor<128x32xf32>) -> (tensor<128x32xf8E4M3FN>, tensor<1x1xf32>)
  %v = nn.matmul %c, %c transpose_lhs scales(%t, %t) : (tensor<128x32xf8E4M3FN>, tensor<128x32xf8E4M3FN>, tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<32x32xf32>
  %d, %e = nn.quantize %z : (tensor<12x32xf32>) -> (tensor<12x32xf8E4M3FN>, tensor<12x1xf32>)
  %u = nn.matmul %d, %c transpose_rhs scales(%e, %t) : (tensor<12x32xf8E4M3FN>, tensor<128x32xf8E4M3FN>, tensor<12x1xf32>, tensor<1x1xf32>) -> tensor<12x128xf32>
  %loss = nn.reduce sum %y over [0, 1] : (tensor<32x16xf32>) -> tensor<f32>
  train.return %loss, %v, %u : tensor<f32>, tensor<32x32xf32>, tensor<12x128xf32>
}
