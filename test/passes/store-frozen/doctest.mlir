// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-store-frozen{spec=nf4}))' | FileCheck %s
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-store-frozen{spec=nf4:plain,head=int8,small=bf16}))' | FileCheck %s --check-prefix=NAMED
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-store-frozen))' | FileCheck %s --check-prefix=NONE

// %w has 64 * 64 = 4,096 numbers: 2,048 bytes of codes, 64 maxima, one nested
// maximum and the offset. Each product gets its numbers of its own, in its own
// block, of the type that it reads. %small has fewer numbers, %t is trained, and
// %head makes logits: all stay.

// CHECK-LABEL: train.step @step
//  CHECK-SAME:   %[[W:[a-z0-9]+]]: tensor<2048xi8> {train.frozen, train.name = "w", train.role = #train.role<param>, train.stored = #train.stored<tensor<64x64xf32>, "w.absmax", "w.nested_absmax">}
//  CHECK-SAME:   %[[SMALL:[a-z0-9]+]]: tensor<32x64xf32>
//  CHECK-SAME:   tensor<64x64xf32> {train.name = "t"
//  CHECK-SAME:   %[[HEAD:[a-z0-9]+]]: tensor<96x64xf32>
//  CHECK-SAME:   %[[A:[a-z0-9]+]]: tensor<64xi8> {train.frozen, train.init = "zeros", train.maxima_of = "w", train.name = "w.absmax", train.role = #train.role<param>}
//  CHECK-SAME:   %[[S:[a-z0-9]+]]: tensor<2xf32> {train.frozen, train.init = "zeros", train.maxima_of = "w", train.name = "w.nested_absmax", train.role = #train.role<param>}
//   CHECK-NOT:   arith.truncf
//       CHECK:   train.micro_batch
//       CHECK:     %[[D:.*]] = nn.dequantize %[[W]], %[[A]] nested(%[[S]]) : (tensor<2048xi8>, tensor<64xi8>, tensor<2xf32>) -> tensor<64x64xbf16>
//  CHECK-NEXT:     nn.matmul %{{.*}}, %[[D]] transpose_rhs
//       CHECK:     %[[E:.*]] = nn.dequantize {{.*}} -> tensor<64x64xbf16>
//  CHECK-NEXT:     nn.matmul %{{.*}}, %[[E]] :
//       CHECK:     nn.matmul %{{.*}}, %[[SMALL]] transpose_rhs
//       CHECK:     nn.matmul %{{.*}}, %[[HEAD]] transpose_rhs

// NAMED-LABEL: train.step @step
//  NAMED-SAME:   tensor<2048xi8> {train.frozen, train.name = "w", train.role = #train.role<param>, train.stored = #train.stored<tensor<64x64xf32>, "w.absmax">}
//  NAMED-SAME:   %[[SMALL:[a-z0-9]+]]: tensor<32x64xbf16>
//  NAMED-SAME:   %[[HEAD:[a-z0-9]+]]: tensor<96x64xi8> {train.frozen, train.name = "head", train.role = #train.role<param>, train.stored = #train.stored<tensor<96x64xf32>, "head.SCB">}
//  NAMED-SAME:   tensor<64xf32> {train.frozen, train.init = "zeros", train.maxima_of = "w", train.name = "w.absmax"
//  NAMED-SAME:   %[[A:[a-z0-9]+]]: tensor<96xf32> {train.frozen, train.init = "zeros", train.maxima_of = "head", train.name = "head.SCB"
//       NAMED:   %[[WIDE:.*]] = arith.extf %[[SMALL]]
//  NAMED-NEXT:   nn.matmul %{{.*}}, %[[WIDE]] transpose_rhs
//       NAMED:   %[[H:.*]] = nn.dequantize %[[HEAD]], %[[A]] : (tensor<96x64xi8>, tensor<96xf32>) -> tensor<96x64xf32>
//  NAMED-NEXT:   nn.matmul %{{.*}}, %[[H]] transpose_rhs

// NONE-NOT: nn.dequantize
train.step @step(%xs: tensor<8x64xbf16> {train.name = "x", train.role = #train.role<batch>},
                 %ys: tensor<8xi64> {train.name = "y", train.role = #train.role<batch>},
                 %weights: tensor<4xf32> {train.name = "weights", train.role = #train.role<scalar>},
                 %one: tensor<f32> {train.name = "one", train.role = #train.role<scalar>},
                 %w: tensor<64x64xf32> {train.frozen, train.name = "w", train.role = #train.role<param>},
                 %small: tensor<32x64xf32> {train.frozen, train.name = "small", train.role = #train.role<param>},
                 %t: tensor<64x64xf32> {train.name = "t", train.role = #train.role<param>},
                 %head: tensor<96x64xf32> {train.frozen, train.name = "head", train.role = #train.role<param>})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %n = arith.truncf %w : tensor<64x64xf32> to tensor<64x64xbf16>
  %loss = train.micro_batch 2 slices(%xs, %ys : tensor<8x64xbf16>, tensor<8xi64>) -> tensor<f32> {
  ^bb0(%x: tensor<4x64xbf16>, %y: tensor<4xi64>, %sum: tensor<f32>):
    %0 = nn.matmul %x, %n transpose_rhs : (tensor<4x64xbf16>, tensor<64x64xbf16>) -> tensor<4x64xbf16>
    %1 = nn.matmul %0, %n : (tensor<4x64xbf16>, tensor<64x64xbf16>) -> tensor<4x64xbf16>
    %2 = arith.extf %1 : tensor<4x64xbf16> to tensor<4x64xf32>
    %3 = nn.matmul %2, %small transpose_rhs : (tensor<4x64xf32>, tensor<32x64xf32>) -> tensor<4x32xf32>
    %4 = nn.matmul %3, %small : (tensor<4x32xf32>, tensor<32x64xf32>) -> tensor<4x64xf32>
    %5 = nn.matmul %4, %t transpose_rhs : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
    %6 = nn.matmul %5, %head transpose_rhs : (tensor<4x64xf32>, tensor<96x64xf32>) -> tensor<4x96xf32>
    %l, %lse = nn.cross_entropy %6, %y, %one : (tensor<4x96xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
    %7 = arith.addf %sum, %l : tensor<f32>
    train.yield %7 : tensor<f32>
  }
  train.return %loss : tensor<f32>
}
