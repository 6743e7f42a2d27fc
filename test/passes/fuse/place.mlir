// RUN: tmc-opt -tmc-fuse %s | FileCheck %s

// The statistics of a norm's gradient first join the kernel of the norm, which
// reads the same rows. Then the gradient's kernel computes them again. The
// norm's kernel stays where the norm was: behind the dead ops, it would take
// all that depends on it behind the other product.
// CHECK-LABEL: @dead_ops_of_the_gradient
// CHECK: nn.fused
// CHECK: nn.matmul {{.*}} transpose_rhs
// CHECK: nn.matmul %arg2, %arg3 :
// CHECK: nn.matmul
// CHECK: nn.fused
// CHECK-NOT: nn.fused
func.func @dead_ops_of_the_gradient(%a: tensor<64x256xf32>, %b: tensor<64x256xf32>, %p: tensor<256x256xf32>, %w: tensor<256x256xf32>) -> (tensor<64x256xf32>, tensor<64x256xf32>, tensor<64x256xf32>) {
  %h = arith.addf %a, %b : tensor<64x256xf32>
  %0 = arith.mulf %h, %h : tensor<64x256xf32>
  %1 = nn.reduce sum %0 over [1] : (tensor<64x256xf32>) -> tensor<64xf32>
  %2 = math.rsqrt %1 : tensor<64xf32>
  %3 = nn.broadcast %2 to [0] : (tensor<64xf32>) -> tensor<64x256xf32>
  %4 = arith.mulf %h, %3 : tensor<64x256xf32>
  %y = nn.matmul %4, %w transpose_rhs : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
  %u = nn.matmul %p, %w : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %q = nn.matmul %y, %u : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
  %10 = arith.mulf %h, %h : tensor<64x256xf32>
  %11 = nn.reduce sum %10 over [1] : (tensor<64x256xf32>) -> tensor<64xf32>
  %12 = math.rsqrt %11 : tensor<64xf32>
  %13 = nn.broadcast %12 to [0] : (tensor<64xf32>) -> tensor<64x256xf32>
  %14 = arith.mulf %h, %13 : tensor<64x256xf32>
  %15 = arith.mulf %q, %14 : tensor<64x256xf32>
  %16 = nn.reduce sum %15 over [1] : (tensor<64x256xf32>) -> tensor<64xf32>
  %17 = nn.broadcast %16 to [0] : (tensor<64xf32>) -> tensor<64x256xf32>
  %18 = arith.mulf %14, %17 : tensor<64x256xf32>
  %19 = arith.subf %q, %18 : tensor<64x256xf32>
  %20 = arith.mulf %19, %13 : tensor<64x256xf32>
  return %y, %20, %h : tensor<64x256xf32>, tensor<64x256xf32>, tensor<64x256xf32>
}
