// RUN: tmc-opt %s -tmc-raise | FileCheck %s
// RUN: tmc-opt %s -tmc-raise=loss-chunk=16 | FileCheck %s --check-prefix=CHUNK
// RUN: tmc-opt %s -tmc-raise='loss-chunk=16 loss-chunk-if-free' | FileCheck %s --check-prefix=FREE

// Six rows of ten classes. The mean over the rows that count divides by their
// number, which stays an operand: a weight of 1 / count.

// CHECK-LABEL: func @mean_of_all(
//       CHECK:   %[[WEIGHT:.*]] = arith.constant dense<0.166666672> : tensor<f32>
//       CHECK:   %[[LOSS:.*]], %{{.*}} = nn.cross_entropy %arg0, %arg1, %[[WEIGHT]]
//  CHECK-NEXT:   return %[[LOSS]]
func.func @mean_of_all(%x: tensor<6x10xf32>, %labels: tensor<6xi64>) -> tensor<f32> {
  %lp = nn.softmax %x {log} : (tensor<6x10xf32>) -> tensor<6x10xf32>
  %i = nn.iota {dim = 1 : i64} : () -> tensor<6x10xi64>
  %lb = nn.broadcast %labels to [0] : (tensor<6xi64>) -> tensor<6x10xi64>
  %hit = arith.cmpi eq, %i, %lb : tensor<6x10xi64>
  %zero = arith.constant dense<0.0> : tensor<6x10xf32>
  %kept = arith.select %hit, %lp, %zero : tensor<6x10xi1>, tensor<6x10xf32>
  %picked = nn.reduce sum %kept over [1] : (tensor<6x10xf32>) -> tensor<6xf32>
  %n = arith.negf %picked : tensor<6xf32>
  %s = nn.reduce sum %n over [0] : (tensor<6xf32>) -> tensor<f32>
  %sixth = arith.constant dense<0.166666672> : tensor<f32>
  %loss = arith.mulf %s, %sixth : tensor<f32>
  return %loss : tensor<f32>
}

// As torch writes it: ignored labels made valid, chosen by GatherElements' extra
// dimension, negated, masked, summed and divided by the count.

// CHECK-LABEL: func @mean_of_those_that_count(
//       CHECK:   %[[COUNT:.*]] = nn.reduce sum
//       CHECK:   %[[WEIGHT:.*]] = arith.divf %{{.*}}, %[[COUNT]]
//       CHECK:   %[[LOSS:.*]], %{{.*}} = nn.cross_entropy %arg0, %arg1, %[[WEIGHT]] {ignore_index = -1 : i64}
//  CHECK-NEXT:   return %[[LOSS]]
func.func @mean_of_those_that_count(%x: tensor<6x10xf32>, %labels: tensor<6xi64>) -> tensor<f32> {
  %lp = nn.softmax %x {log} : (tensor<6x10xf32>) -> tensor<6x10xf32>
  %ignored = arith.constant dense<-1> : tensor<6xi64>
  %first = arith.constant dense<0> : tensor<6xi64>
  %counts = arith.cmpi ne, %labels, %ignored : tensor<6xi64>
  %safe = arith.select %counts, %labels, %first : tensor<6xi1>, tensor<6xi64>
  %j = nn.iota {dim = 2 : i64} : () -> tensor<6x1x10xi64>
  %s1 = nn.reshape %safe : (tensor<6xi64>) -> tensor<6x1x1xi64>
  %s2 = nn.reshape %s1 : (tensor<6x1x1xi64>) -> tensor<6x1xi64>
  %lb = nn.broadcast %s2 to [0, 1] : (tensor<6x1xi64>) -> tensor<6x1x10xi64>
  %hit = arith.cmpi eq, %lb, %j : tensor<6x1x10xi64>
  %x3 = nn.reshape %lp : (tensor<6x10xf32>) -> tensor<6x1x10xf32>
  %zero = arith.constant dense<0.0> : tensor<6x1x10xf32>
  %kept = arith.select %hit, %x3, %zero : tensor<6x1x10xi1>, tensor<6x1x10xf32>
  %picked = nn.reduce sum %kept over [2] : (tensor<6x1x10xf32>) -> tensor<6x1xf32>
  %p = nn.reshape %picked : (tensor<6x1xf32>) -> tensor<6xf32>
  %n = arith.negf %p : tensor<6xf32>
  %none = arith.constant dense<0.0> : tensor<6xf32>
  %c = arith.select %counts, %n, %none : tensor<6xi1>, tensor<6xf32>
  %s = nn.reduce sum %c over [0] : (tensor<6xf32>) -> tensor<f32>
  %ones = arith.uitofp %counts : tensor<6xi1> to tensor<6xf32>
  %count = nn.reduce sum %ones over [0] : (tensor<6xf32>) -> tensor<f32>
  %loss = arith.divf %s, %count : tensor<f32>
  return %loss : tensor<f32>
}

// Another label's mask: the rows that count aren't those that are chosen.

// CHECK-LABEL: func @another_mask(
//   CHECK-NOT:   nn.cross_entropy
//       CHECK:   return
func.func @another_mask(%x: tensor<6x10xf32>, %labels: tensor<6xi64>, %others: tensor<6xi64>) -> tensor<f32> {
  %lp = nn.softmax %x {log} : (tensor<6x10xf32>) -> tensor<6x10xf32>
  %i = nn.iota {dim = 1 : i64} : () -> tensor<6x10xi64>
  %lb = nn.broadcast %labels to [0] : (tensor<6xi64>) -> tensor<6x10xi64>
  %hit = arith.cmpi eq, %i, %lb : tensor<6x10xi64>
  %zero = arith.constant dense<0.0> : tensor<6x10xf32>
  %kept = arith.select %hit, %lp, %zero : tensor<6x10xi1>, tensor<6x10xf32>
  %picked = nn.reduce sum %kept over [1] : (tensor<6x10xf32>) -> tensor<6xf32>
  %ignored = arith.constant dense<-1> : tensor<6xi64>
  %counts = arith.cmpi ne, %others, %ignored : tensor<6xi64>
  %none = arith.constant dense<0.0> : tensor<6xf32>
  %c = arith.select %counts, %picked, %none : tensor<6xi1>, tensor<6xf32>
  %s = nn.reduce sum %c over [0] : (tensor<6xf32>) -> tensor<f32>
  return %s : tensor<f32>
}

// A choice by something else than the class, and of plain probabilities.

// CHECK-LABEL: func @chosen_by_row(
//   CHECK-NOT:   nn.cross_entropy
//       CHECK:   return
func.func @chosen_by_row(%x: tensor<10x10xf32>, %labels: tensor<10xi64>) -> tensor<f32> {
  %lp = nn.softmax %x {log} : (tensor<10x10xf32>) -> tensor<10x10xf32>
  %i = nn.iota {dim = 0 : i64} : () -> tensor<10x10xi64>
  %lb = nn.broadcast %labels to [0] : (tensor<10xi64>) -> tensor<10x10xi64>
  %hit = arith.cmpi eq, %i, %lb : tensor<10x10xi64>
  %zero = arith.constant dense<0.0> : tensor<10x10xf32>
  %kept = arith.select %hit, %lp, %zero : tensor<10x10xi1>, tensor<10x10xf32>
  %picked = nn.reduce sum %kept over [1] : (tensor<10x10xf32>) -> tensor<10xf32>
  %s = nn.reduce sum %picked over [0] : (tensor<10xf32>) -> tensor<f32>
  return %s : tensor<f32>
}

// CHECK-LABEL: func @no_logarithm(
//   CHECK-NOT:   nn.cross_entropy
//       CHECK:   return
func.func @no_logarithm(%x: tensor<6x10xf32>, %labels: tensor<6xi64>) -> tensor<f32> {
  %lp = nn.softmax %x : (tensor<6x10xf32>) -> tensor<6x10xf32>
  %i = nn.iota {dim = 1 : i64} : () -> tensor<6x10xi64>
  %lb = nn.broadcast %labels to [0] : (tensor<6xi64>) -> tensor<6x10xi64>
  %hit = arith.cmpi eq, %i, %lb : tensor<6x10xi64>
  %zero = arith.constant dense<0.0> : tensor<6x10xf32>
  %kept = arith.select %hit, %lp, %zero : tensor<6x10xi1>, tensor<6x10xf32>
  %picked = nn.reduce sum %kept over [1] : (tensor<6x10xf32>) -> tensor<6xf32>
  %s = nn.reduce sum %picked over [0] : (tensor<6xf32>) -> tensor<f32>
  return %s : tensor<f32>
}

// A product with a table before the loss, in chunks of 16 rows if asked. The
// logits may still be returned.

// CHECK-LABEL: func @linear(
//       CHECK:   nn.matmul %arg0, %arg1 transpose_rhs
//       CHECK:   nn.cross_entropy
// CHUNK-LABEL: func @linear(
//       CHUNK:   %[[LOGITS:.*]] = nn.matmul %arg0, %arg1 transpose_rhs
//       CHUNK:   %[[LOSS:.*]], %{{.*}} = nn.linear_cross_entropy %arg0, %arg1, %arg2, %arg3 {chunk = 16 : i64}
//       CHUNK:   return %[[LOSS]], %[[LOGITS]]
func.func @linear(%x: tensor<64x32xf32>, %table: tensor<10x32xf32>, %labels: tensor<64xi64>, %weight: tensor<f32>) -> (tensor<f32>, tensor<64x10xf32>) {
  %t = nn.transpose %table [1, 0] : (tensor<10x32xf32>) -> tensor<32x10xf32>
  %logits = nn.matmul %x, %t : (tensor<64x32xf32>, tensor<32x10xf32>) -> tensor<64x10xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %weight : (tensor<64x10xf32>, tensor<64xi64>, tensor<f32>) -> (tensor<f32>, tensor<64xf32>)
  return %loss, %logits : tensor<f32>, tensor<64x10xf32>
}

// Logits that something else reads stay whole.

// CHUNK-LABEL: func @read_elsewhere(
//       CHUNK:   nn.cross_entropy
func.func @read_elsewhere(%x: tensor<64x32xf32>, %table: tensor<10x32xf32>, %labels: tensor<64xi64>, %weight: tensor<f32>) -> (tensor<f32>, tensor<64x10xf32>) {
  %logits = nn.matmul %x, %table transpose_rhs : (tensor<64x32xf32>, tensor<10x32xf32>) -> tensor<64x10xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %weight : (tensor<64x10xf32>, tensor<64xi64>, tensor<f32>) -> (tensor<f32>, tensor<64xf32>)
  %e = math.exp %logits : tensor<64x10xf32>
  return %loss, %e : tensor<f32>, tensor<64x10xf32>
}

// A bias goes along, the product's own or one that is added to rows of another
// shape, and on either side.

// CHUNK-LABEL: func @with_bias(
//       CHUNK:   nn.linear_cross_entropy %arg0, %arg1, %arg3, %arg4 bias(%arg2) {chunk = 16 : i64}
func.func @with_bias(%x: tensor<64x32xf32>, %table: tensor<10x32xf32>, %bias: tensor<10xf32>, %labels: tensor<64xi64>, %weight: tensor<f32>) -> tensor<f32> {
  %logits = nn.matmul %x, %table transpose_rhs bias(%bias) : (tensor<64x32xf32>, tensor<10x32xf32>, tensor<10xf32>) -> tensor<64x10xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %weight : (tensor<64x10xf32>, tensor<64xi64>, tensor<f32>) -> (tensor<f32>, tensor<64xf32>)
  return %loss : tensor<f32>
}

// CHUNK-LABEL: func @with_a_bias_added(
//       CHUNK:   nn.linear_cross_entropy %arg0, %arg1, %arg3, %arg4 bias(%arg2) {chunk = 16 : i64}
func.func @with_a_bias_added(%x: tensor<64x32xf32>, %table: tensor<10x32xf32>, %bias: tensor<10xf32>, %labels: tensor<64xi64>, %weight: tensor<f32>) -> (tensor<f32>, tensor<4x16x10xf32>) {
  %product = nn.matmul %x, %table transpose_rhs : (tensor<64x32xf32>, tensor<10x32xf32>) -> tensor<64x10xf32>
  %rows = nn.reshape %product : (tensor<64x10xf32>) -> tensor<4x16x10xf32>
  %b = nn.broadcast %bias to [2] : (tensor<10xf32>) -> tensor<4x16x10xf32>
  %logits = arith.addf %b, %rows : tensor<4x16x10xf32>
  %flat = nn.reshape %logits : (tensor<4x16x10xf32>) -> tensor<64x10xf32>
  %loss, %lse = nn.cross_entropy %flat, %labels, %weight : (tensor<64x10xf32>, tensor<64xi64>, tensor<f32>) -> (tensor<f32>, tensor<64xf32>)
  return %loss, %logits : tensor<f32>, tensor<4x16x10xf32>
}

// What is added along rows instead is no bias, and neither is one whose sum is
// read elsewhere.

// CHUNK-LABEL: func @added_along_rows(
//       CHUNK:   nn.cross_entropy
func.func @added_along_rows(%x: tensor<10x32xf32>, %table: tensor<10x32xf32>, %bias: tensor<10xf32>, %labels: tensor<10xi64>, %weight: tensor<f32>) -> tensor<f32> {
  %product = nn.matmul %x, %table transpose_rhs : (tensor<10x32xf32>, tensor<10x32xf32>) -> tensor<10x10xf32>
  %b = nn.broadcast %bias to [0] : (tensor<10xf32>) -> tensor<10x10xf32>
  %logits = arith.addf %b, %product : tensor<10x10xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %weight : (tensor<10x10xf32>, tensor<10xi64>, tensor<f32>) -> (tensor<f32>, tensor<10xf32>)
  return %loss : tensor<f32>
}

// CHUNK-LABEL: func @sum_read_elsewhere(
//       CHUNK:   nn.cross_entropy
func.func @sum_read_elsewhere(%x: tensor<64x32xf32>, %table: tensor<10x32xf32>, %bias: tensor<10xf32>, %labels: tensor<64xi64>, %weight: tensor<f32>) -> (tensor<f32>, tensor<64x10xf32>) {
  %product = nn.matmul %x, %table transpose_rhs : (tensor<64x32xf32>, tensor<10x32xf32>) -> tensor<64x10xf32>
  %b = nn.broadcast %bias to [1] : (tensor<10xf32>) -> tensor<64x10xf32>
  %logits = arith.addf %product, %b : tensor<64x10xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %weight : (tensor<64x10xf32>, tensor<64xi64>, tensor<f32>) -> (tensor<f32>, tensor<64xf32>)
  %e = math.exp %logits : tensor<64x10xf32>
  return %loss, %e : tensor<f32>, tensor<64x10xf32>
}

// Chunks only where they cost nothing. A factor is part of the loss.

// FREE-LABEL: func @free(
//       FREE:   nn.linear_cross_entropy %{{.*}}, %arg1, %arg3, %{{.*}} bias(%arg2) {chunk = 16 : i64}
func.func @free(%x: tensor<64x32xf32>,
                %table: tensor<10x32xf32>,
                %bias: tensor<10xf32>,
                %labels: tensor<64xi64>) -> tensor<f32> {
  %one = arith.constant dense<1.0> : tensor<f32>
  %half = arith.constant dense<0.5> : tensor<f32>
  %logits = nn.matmul %x, %table transpose_rhs bias(%bias) : (tensor<64x32xf32>, tensor<10x32xf32>, tensor<10xf32>) -> tensor<64x10xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %one : (tensor<64x10xf32>, tensor<64xi64>, tensor<f32>) -> (tensor<f32>, tensor<64xf32>)
  %scaled = arith.mulf %loss, %half : tensor<f32>
  return %scaled : tensor<f32>
}

// Not of a loss that something else reads: its gradient may have to wait for
// that, and make the logits again.

// FREE-LABEL: func @part_of_another(
//   FREE-NOT:   linear_cross_entropy
func.func @part_of_another(%x: tensor<64x32xf32>,
                           %table: tensor<10x32xf32>,
                           %labels: tensor<64xi64>) -> tensor<f32> {
  %one = arith.constant dense<1.0> : tensor<f32>
  %logits = nn.matmul %x, %table transpose_rhs : (tensor<64x32xf32>, tensor<10x32xf32>) -> tensor<64x10xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %one : (tensor<64x10xf32>, tensor<64xi64>, tensor<f32>) -> (tensor<f32>, tensor<64xf32>)
  %square = arith.mulf %loss, %loss : tensor<f32>
  return %square : tensor<f32>
}

// Not of rows that fit in one chunk.

// FREE-LABEL: func @one_chunk(
//   FREE-NOT:   linear_cross_entropy
func.func @one_chunk(%x: tensor<16x32xf32>,
                     %table: tensor<10x32xf32>,
                     %labels: tensor<16xi64>) -> tensor<f32> {
  %one = arith.constant dense<1.0> : tensor<f32>
  %logits = nn.matmul %x, %table transpose_rhs : (tensor<16x32xf32>, tensor<10x32xf32>) -> tensor<16x10xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %one : (tensor<16x10xf32>, tensor<16xi64>, tensor<f32>) -> (tensor<f32>, tensor<16xf32>)
  return %loss : tensor<f32>
}

// Not of fewer rows than channels: the gradient of the table is larger than the
// logits are, and can wait until the end if they are kept.

// FREE-LABEL: func @wide(
//   FREE-NOT:   linear_cross_entropy
func.func @wide(%x: tensor<31x32xf32>,
                %table: tensor<10x32xf32> {train.role = #train.role<param>},
                %labels: tensor<31xi64>) -> tensor<f32> {
  %one = arith.constant dense<1.0> : tensor<f32>
  %logits = nn.matmul %x, %table transpose_rhs : (tensor<31x32xf32>, tensor<10x32xf32>) -> tensor<31x10xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %one : (tensor<31x10xf32>, tensor<31xi64>, tensor<f32>) -> (tensor<f32>, tensor<31xf32>)
  return %loss : tensor<f32>
}

// A frozen table has no gradient.

// FREE-LABEL: func @frozen_table(
//       FREE:   nn.linear_cross_entropy %arg0, %arg1
func.func @frozen_table(%x: tensor<31x32xf32>,
                        %table: tensor<10x32xf32> {train.role = #train.role<param>, train.frozen},
                        %labels: tensor<31xi64>) -> tensor<f32> {
  %one = arith.constant dense<1.0> : tensor<f32>
  %logits = nn.matmul %x, %table transpose_rhs : (tensor<31x32xf32>, tensor<10x32xf32>) -> tensor<31x10xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %one : (tensor<31x10xf32>, tensor<31xi64>, tensor<f32>) -> (tensor<f32>, tensor<31xf32>)
  return %loss : tensor<f32>
}

// Logits of 16 bits that the loss reads as f32: each chunk is in f32. They are
// held twice, so that fewer rows are enough.

// CHUNK-LABEL: func @widened(
//       CHUNK:   nn.linear_cross_entropy %arg0, %arg1, %arg2, %{{.*}} {chunk = 16 : i64} : (tensor<30x32xbf16>, tensor<10x32xbf16>
//  FREE-LABEL: func @widened(
//        FREE:   nn.linear_cross_entropy %arg0, %arg1, %arg2
func.func @widened(%x: tensor<30x32xbf16>,
                   %table: tensor<10x32xbf16> {train.role = #train.role<param>},
                   %labels: tensor<30xi64>) -> tensor<f32> {
  %one = arith.constant dense<1.0> : tensor<f32>
  %logits = nn.matmul %x, %table transpose_rhs : (tensor<30x32xbf16>, tensor<10x32xbf16>) -> tensor<30x10xbf16>
  %wide = arith.extf %logits : tensor<30x10xbf16> to tensor<30x10xf32>
  %loss, %lse = nn.cross_entropy %wide, %labels, %one : (tensor<30x10xf32>, tensor<30xi64>, tensor<f32>) -> (tensor<f32>, tensor<30xf32>)
  return %loss : tensor<f32>
}

// The last token's logits have no label: its row of x goes.

// CHUNK-LABEL: func @shifted(
//       CHUNK:   %[[ROWS:.*]] = nn.reshape %arg0 : (tensor<64x32xbf16>) -> tensor<4x16x32xbf16>
//       CHUNK:   %[[KEPT:.*]] = nn.slice %[[ROWS]] [0, 0, 0] step [1, 1, 1] : (tensor<4x16x32xbf16>) -> tensor<4x15x32xbf16>
//       CHUNK:   %[[X:.*]] = nn.reshape %[[KEPT]] : (tensor<4x15x32xbf16>) -> tensor<60x32xbf16>
//       CHUNK:   nn.linear_cross_entropy %[[X]], %arg1, %arg3, %{{.*}} bias(%{{.*}}) {chunk = 16 : i64}
//  FREE-LABEL: func @shifted(
//        FREE:   nn.linear_cross_entropy
func.func @shifted(%x: tensor<64x32xbf16>,
                   %table: tensor<10x32xbf16> {train.role = #train.role<param>},
                   %bias: tensor<10xbf16> {train.role = #train.role<param>},
                   %labels: tensor<60xi64>) -> tensor<f32> {
  %one = arith.constant dense<1.0> : tensor<f32>
  %product = nn.matmul %x, %table transpose_rhs bias(%bias) : (tensor<64x32xbf16>, tensor<10x32xbf16>, tensor<10xbf16>) -> tensor<64x10xbf16>
  %rows = nn.reshape %product : (tensor<64x10xbf16>) -> tensor<4x16x10xbf16>
  %wide = arith.extf %rows : tensor<4x16x10xbf16> to tensor<4x16x10xf32>
  %kept = nn.slice %wide [0, 0, 0] step [1, 1, 1] : (tensor<4x16x10xf32>) -> tensor<4x15x10xf32>
  %flat = nn.reshape %kept : (tensor<4x15x10xf32>) -> tensor<60x10xf32>
  %loss, %lse = nn.cross_entropy %flat, %labels, %one : (tensor<60x10xf32>, tensor<60xi64>, tensor<f32>) -> (tensor<f32>, tensor<60xf32>)
  return %loss : tensor<f32>
}

// A slice of classes is another table.

// CHUNK-LABEL: func @fewer_classes(
//       CHUNK:   nn.cross_entropy
func.func @fewer_classes(%x: tensor<64x32xf32>, %table: tensor<12x32xf32>, %labels: tensor<64xi64>, %weight: tensor<f32>) -> tensor<f32> {
  %all = nn.matmul %x, %table transpose_rhs : (tensor<64x32xf32>, tensor<12x32xf32>) -> tensor<64x12xf32>
  %logits = nn.slice %all [0, 2] step [1, 1] : (tensor<64x12xf32>) -> tensor<64x10xf32>
  %loss, %lse = nn.cross_entropy %logits, %labels, %weight : (tensor<64x10xf32>, tensor<64xi64>, tensor<f32>) -> (tensor<f32>, tensor<64xf32>)
  return %loss : tensor<f32>
}
