// RUN: tmc-opt %s -tmc-fuse | FileCheck %s

// The gradient of a group norm of images. The gradients of scale and shift are sums over an image's
// pixels: the first kernel has rows of 256. The product of the gradient with the normalized values
// is in rows of 1024, and the last kernel computes it again. The first kernel then has an op that
// nothing reads, in rows that aren't its own. Such an op isn't part of a kernel, and doesn't take it
// apart into single ops.

// CHECK-LABEL: func.func @group_norm(
// CHECK-COUNT-4: nn.fused
// CHECK-NOT:     nn.fused
func.func @group_norm(%dy: tensor<2x8x16x16xf32>, %e: tensor<2x8x16x16xf32>, %x: tensor<2x2x1024xf32>, %scale: tensor<8xf32>)
    -> (tensor<2x2x1024xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {
  %c = arith.constant dense<9.765625e-04> : tensor<2x2xf32>
  %sum = nn.reduce sum %x over [2] : (tensor<2x2x1024xf32>) -> tensor<2x2xf32>
  %mean = arith.mulf %sum, %c : tensor<2x2xf32>
  %means = nn.broadcast %mean to [0, 1] : (tensor<2x2xf32>) -> tensor<2x2x1024xf32>
  %apart = arith.subf %x, %means : tensor<2x2x1024xf32>
  %squares = arith.mulf %apart, %apart : tensor<2x2x1024xf32>
  %around = nn.reduce sum %squares over [2] : (tensor<2x2x1024xf32>) -> tensor<2x2xf32>
  %inverse = math.rsqrt %around : tensor<2x2xf32>
  %inverses = nn.broadcast %inverse to [0, 1] : (tensor<2x2xf32>) -> tensor<2x2x1024xf32>
  %n = arith.mulf %apart, %inverses : tensor<2x2x1024xf32>
  %image = nn.reshape %n : (tensor<2x2x1024xf32>) -> tensor<2x8x16x16xf32>
  %g = arith.mulf %dy, %e : tensor<2x8x16x16xf32>
  %dshift = nn.reduce sum %g over [2, 3] : (tensor<2x8x16x16xf32>) -> tensor<2x8xf32>
  %scales = nn.broadcast %scale to [1] : (tensor<8xf32>) -> tensor<2x8x16x16xf32>
  %gs = arith.mulf %g, %scales : tensor<2x8x16x16xf32>
  %gn = arith.mulf %g, %image : tensor<2x8x16x16xf32>
  %dscale = nn.reduce sum %gn over [2, 3] : (tensor<2x8x16x16xf32>) -> tensor<2x8xf32>
  %d = nn.reshape %gs : (tensor<2x8x16x16xf32>) -> tensor<2x2x1024xf32>
  %dsum = nn.reduce sum %d over [2] : (tensor<2x2x1024xf32>) -> tensor<2x2xf32>
  %dmean = arith.mulf %dsum, %c : tensor<2x2xf32>
  %dmeans = nn.broadcast %dmean to [0, 1] : (tensor<2x2xf32>) -> tensor<2x2x1024xf32>
  %dn = arith.mulf %d, %n : tensor<2x2x1024xf32>
  %dot = nn.reduce sum %dn over [2] : (tensor<2x2x1024xf32>) -> tensor<2x2xf32>
  %mdot = arith.mulf %dot, %c : tensor<2x2xf32>
  %dots = nn.broadcast %mdot to [0, 1] : (tensor<2x2xf32>) -> tensor<2x2x1024xf32>
  %back = arith.mulf %n, %dots : tensor<2x2x1024xf32>
  %a = arith.subf %d, %dmeans : tensor<2x2x1024xf32>
  %b = arith.subf %a, %back : tensor<2x2x1024xf32>
  %dx = arith.mulf %b, %inverses : tensor<2x2x1024xf32>
  return %dx, %dshift, %dscale : tensor<2x2x1024xf32>, tensor<2x8xf32>, tensor<2x8xf32>
}
