// RUN: not tmc-opt %s -tmc-autodiff=loss-scale=none 2>&1 | FileCheck %s
// RUN: tmc-opt %s -tmc-autodiff=loss-scale=dynamic | FileCheck %s --check-prefix=SCALED

// Of a graph in fp16 gradients are fp16, too.

// CHECK: error: fp16 gradients without a loss scale: small ones would be zeros, in {{.*}}
// CHECK: note: --loss-scale dynamic finds a scale; bf16 needs none
// SCALED: train.loss_scale
func.func @forward(
    %x: tensor<2x3xf16> {train.role = #train.role<batch>, train.name = "x"},
    %w: tensor<3x4xf16> {train.role = #train.role<param>, train.name = "w"})
    -> (tensor<f32> {train.name = "loss", train.loss}) {
  %y = nn.matmul %x, %w : (tensor<2x3xf16>, tensor<3x4xf16>) -> tensor<2x4xf16>
  %z = arith.extf %y : tensor<2x4xf16> to tensor<2x4xf32>
  %loss = nn.reduce sum %z over [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
