// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-precision{spec=fp8:block target=cuda:h200}))' | FileCheck %s
// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-precision{spec=fp8:block}))' | FileCheck %s --check-prefix=CPU
// RUN: not tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-precision{spec=fp8:block target=cuda:sm_89}))' 2>&1 | FileCheck %s --check-prefix=ADA

// A card multiplies one factor in squares at most, so that a product of parameters stays in bf16;
// and so does one of 12 rows, or of a batch. The cpu takes codes of all.

// CHECK-LABEL: train.step @step
//       CHECK:   nn.matmul %{{.*}}, %{{.*}} : (tensor<32x64xbf16>, tensor<64x48xbf16>) -> tensor<32x48xbf16>
//       CHECK:   nn.matmul %{{.*}}, %{{.*}} scales(%{{.*}}, %{{.*}}) : (tensor<16x32xf8E4M3FN>, tensor<32x48xf8E4M3FN>, tensor<16x1xf32>, tensor<1x48xf32>) -> tensor<16x48xbf16>
//       CHECK:   nn.matmul %{{.*}}, %{{.*}} : (tensor<12x32xbf16>, tensor<32x48xbf16>) -> tensor<12x48xbf16>
//       CHECK:   nn.matmul %{{.*}}, %{{.*}} transpose_rhs : (tensor<2x16x32xbf16>, tensor<2x16x32xbf16>) -> tensor<2x16x16xbf16>

// CPU-COUNT-4: nn.matmul %{{.*}} scales(

// ADA: error: cuda:sm_89 (sm_89) has no products of codes with scales of blocks: fp8:block wants sm_90 or the cpu
train.step @step(%x: tensor<16x32xf32> {train.name = "x", train.role = #train.role<batch>},
                 %z: tensor<12x32xf32> {train.name = "z", train.role = #train.role<batch>},
                 %v: tensor<2x16x32xf32> {train.name = "v", train.role = #train.role<batch>},
                 %a: tensor<32x64xf32> {train.name = "a", train.role = #train.role<param>},
                 %b: tensor<64x48xf32> {train.name = "b", train.role = #train.role<param>})
    -> (tensor<f32> {train.loss, train.name = "loss"}, tensor<12x48xf32> {train.name = "u"},
        tensor<2x16x16xf32> {train.name = "t"}) {
  %w = nn.matmul %a, %b : (tensor<32x64xf32>, tensor<64x48xf32>) -> tensor<32x48xf32>
  %y = nn.matmul %x, %w : (tensor<16x32xf32>, tensor<32x48xf32>) -> tensor<16x48xf32>
  %u = nn.matmul %z, %w : (tensor<12x32xf32>, tensor<32x48xf32>) -> tensor<12x48xf32>
  %t = nn.matmul %v, %v transpose_rhs : (tensor<2x16x32xf32>, tensor<2x16x32xf32>) -> tensor<2x16x16xf32>
  %loss = nn.reduce sum %y over [0, 1] : (tensor<16x48xf32>) -> tensor<f32>
  train.return %loss, %u, %t : tensor<f32>, tensor<12x48xf32>, tensor<2x16x16xf32>
}
