// RUN: tmc-opt %s -tmc-expand-composites -canonicalize -tmc-fold-into-kernels -canonicalize -tmc-fuse -split-input-file | FileCheck %s

// A batch norm and the ReLU behind it are one kernel. The gradient asks the
// norm's input where the ReLU's operand was above zero. Neither of its kernels reads
// the result, and the first one hands the masked gradient on in 16 bits.
// CHECK-LABEL: @relu
// CHECK: %{{.*}}, %{{.*}}, %[[MEAN:[a-z_]*]], %[[RSTD:[a-z_]*]] = nn.batch_statistics %arg0
// CHECK: %[[Y:.*]] = nn.fused ({{.*}} = %arg0, {{.*}} = %[[MEAN]], {{.*}} = %[[RSTD]], {{.*}} = %arg1, {{.*}} = %arg2)
// CHECK: arith.maximumf
// CHECK: nn.yield {{.*}} : tensor<64x8xbf16>
// CHECK: %[[DY:.*]] = nn.matmul %[[Y]], %arg5
// CHECK: %[[SUMS:.*]]:{{[23]}} = nn.fused
// CHECK-NOT: = %[[Y]]
// CHECK: nn.reduce sum
// CHECK: nn.reduce sum
// CHECK: %[[DX:.*]] = nn.fused
// CHECK-NOT: = %[[Y]]
// CHECK-NOT: tensor<64x8xf32>,
// CHECK: nn.yield {{.*}} : tensor<64x8xbf16>
// CHECK: return %[[Y]], %[[DX]]
func.func @relu(%x: tensor<64x8xbf16>, %s: tensor<8xf32>, %b: tensor<8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>, %w: tensor<8x8xbf16>) -> (tensor<64x8xbf16>, tensor<64x8xbf16>, tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant dense<0.0> : tensor<64x8xf32>
  %0:5 = nn.batch_norm %x, %s, %b, %m, %v {channels_last, epsilon = 1.0e-5 : f64, momentum = 0.1 : f64} : (tensor<64x8xbf16>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<64x8xbf16>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  %wide = arith.extf %0#0 : tensor<64x8xbf16> to tensor<64x8xf32>
  %relu = arith.maximumf %wide, %zero : tensor<64x8xf32>
  %y = arith.truncf %relu : tensor<64x8xf32> to tensor<64x8xbf16>
  %dy = nn.matmul %y, %w : (tensor<64x8xbf16>, tensor<8x8xbf16>) -> tensor<64x8xbf16>
  %mask = arith.cmpf ogt, %wide, %zero : tensor<64x8xf32>
  %grad = arith.extf %dy : tensor<64x8xbf16> to tensor<64x8xf32>
  %masked = arith.select %mask, %grad, %zero : tensor<64x8xi1>, tensor<64x8xf32>
  %g = arith.truncf %masked : tensor<64x8xf32> to tensor<64x8xbf16>
  %1:3 = nn.batch_norm_grad %x, %s, %0#3, %0#4, %g {channels_last} : (tensor<64x8xbf16>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<64x8xbf16>) -> (tensor<64x8xbf16>, tensor<8xf32>, tensor<8xf32>)
  return %y, %1#0, %1#1, %1#2 : tensor<64x8xbf16>, tensor<64x8xbf16>, tensor<8xf32>, tensor<8xf32>
}

// -----

// A widened value that another kernel reads leaves its own kernel narrow.
// CHECK-LABEL: @widened
// CHECK: %[[N:.*]] = nn.fused
// CHECK: nn.yield {{.*}} : tensor<64x8xbf16>
// CHECK: %[[M:.*]] = nn.matmul %[[N]]
// CHECK: nn.fused ({{.*}}%[[N]]
func.func @widened(%x: tensor<64x8xf32>, %w: tensor<8x8xbf16>) -> tensor<64x8xf32> {
  %square = arith.mulf %x, %x : tensor<64x8xf32>
  %narrow = arith.truncf %square : tensor<64x8xf32> to tensor<64x8xbf16>
  %wide = arith.extf %narrow : tensor<64x8xbf16> to tensor<64x8xf32>
  %product = nn.matmul %narrow, %w : (tensor<64x8xbf16>, tensor<8x8xbf16>) -> tensor<64x8xbf16>
  %other = arith.extf %product : tensor<64x8xbf16> to tensor<64x8xf32>
  %sum = arith.addf %wide, %other : tensor<64x8xf32>
  return %sum : tensor<64x8xf32>
}
