// RUN: tmc-opt -tmc-fuse %s | FileCheck %s

// Kernels are generated for f32: what computes in f64 stays as it is.
// CHECK-LABEL: @double_precision
// CHECK-NOT: nn.fused
func.func @double_precision(%x: tensor<8x4xf64>) -> tensor<8x4xf64> {
  %0 = arith.addf %x, %x : tensor<8x4xf64>
  %1 = math.tanh %0 : tensor<8x4xf64>
  return %1 : tensor<8x4xf64>
}
