// RUN: tmc-opt %s -tmc-fold-into-kernels | FileCheck %s

// A loss and its gradient look at the logits together. The scale is made before.

// CHECK-LABEL: @both
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xbf16>, %[[L:.*]]: tensor<4xi64>, %[[W:.*]]: tensor<f32>)
// CHECK: %[[S:.*]] = arith.mulf %[[W]], %[[W]]
// CHECK-NEXT: %[[LOSS:.*]], %[[GRAD:.*]] = nn.cross_entropy_with_grad %[[X]], %[[L]], %[[W]], %[[S]] {vocabulary = 5 : i64}
// CHECK-NEXT: return %[[LOSS]], %[[GRAD]]
func.func @both(%x: tensor<4x8xbf16>, %l: tensor<4xi64>, %w: tensor<f32>) -> (tensor<f32>, tensor<4x8xbf16>) {
  %loss, %lse = nn.cross_entropy %x, %l, %w {vocabulary = 5 : i64} : (tensor<4x8xbf16>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %s = arith.mulf %w, %w : tensor<f32>
  %g = nn.cross_entropy_grad %x, %l, %lse, %s {vocabulary = 5 : i64} : (tensor<4x8xbf16>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> tensor<4x8xbf16>
  return %loss, %g : tensor<f32>, tensor<4x8xbf16>
}

// Widened logits and a rounded gradient come first.

// CHECK-LABEL: @rounded
// CHECK: nn.cross_entropy_with_grad %{{.*}} : (tensor<4x8xbf16>, tensor<4xi64>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<4x8xbf16>)
// CHECK-NOT: arith.truncf
func.func @rounded(%x: tensor<4x8xbf16>, %l: tensor<4xi64>, %w: tensor<f32>) -> (tensor<f32>, tensor<4x8xbf16>) {
  %wide = arith.extf %x : tensor<4x8xbf16> to tensor<4x8xf32>
  %loss, %lse = nn.cross_entropy %wide, %l, %w : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %g = nn.cross_entropy_grad %wide, %l, %lse, %w : (tensor<4x8xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> tensor<4x8xf32>
  %n = arith.truncf %g : tensor<4x8xf32> to tensor<4x8xbf16>
  return %loss, %n : tensor<f32>, tensor<4x8xbf16>
}

// A gradient whose scale depends on the loss runs after it.

// CHECK-LABEL: @depends
// CHECK-NOT: with_grad
func.func @depends(%x: tensor<4x8xf32>, %l: tensor<4xi64>, %w: tensor<f32>) -> (tensor<f32>, tensor<4x8xf32>) {
  %loss, %lse = nn.cross_entropy %x, %l, %w : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %s = arith.mulf %loss, %w : tensor<f32>
  %g = nn.cross_entropy_grad %x, %l, %lse, %s : (tensor<4x8xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %loss, %g : tensor<f32>, tensor<4x8xf32>
}

// So does one of other labels, or one whose log-sum-exps something else reads.

// CHECK-LABEL: @others
// CHECK-NOT: with_grad
func.func @others(%x: tensor<4x8xf32>, %l: tensor<4xi64>, %m: tensor<4xi64>, %w: tensor<f32>) -> (tensor<f32>, tensor<4x8xf32>, tensor<4xf32>, tensor<4x8xf32>) {
  %loss, %lse = nn.cross_entropy %x, %l, %w : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %g = nn.cross_entropy_grad %x, %m, %lse, %w : (tensor<4x8xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> tensor<4x8xf32>
  %loss2, %lse2 = nn.cross_entropy %x, %l, %w : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %h = nn.cross_entropy_grad %x, %l, %lse2, %w : (tensor<4x8xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %loss, %g, %lse2, %h : tensor<f32>, tensor<4x8xf32>, tensor<4xf32>, tensor<4x8xf32>
}
