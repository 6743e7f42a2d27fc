// RUN: tmc-opt %s -tmc-adapt='lora=r=2,alpha=4,targets=q,dropout=0.25' -split-input-file | FileCheck %s
// RUN: tmc-opt %s -tmc-adapt='lora=r=1,alpha=6,targets=all-linear,init=gaussian,rslora=true,r:a.q=4 train=norm*' -split-input-file | FileCheck %s --check-prefix=ALL

// A is [2, 4], B [6, 2]; uniform in +-1/sqrt(4) = 0.5; the scale is 4 / 2 = 2.
// Elements that are kept, 3 of 4, are divided by 0.75. The step has no random
// numbers yet: the seed and the samples, 4 with two rows each, come with them.
// The matrix [in, out] of @turned gives A and B the same shapes as [out, in].

// CHECK-LABEL: @forward
// CHECK-SAME: %[[X:arg0]]: tensor<8x4xf32>
// CHECK-SAME: %[[W:arg1]]: tensor<6x4xf32> {train.frozen, train.name = "a.q.weight"
// CHECK-SAME: train.frozen, train.name = "norm.weight"
// CHECK-SAME: train.frozen, train.name = "head.weight"
// CHECK-SAME: %[[A:arg[0-9]+]]: tensor<2x4xf32> {train.adapter = "a.q", train.init = #train.draw<"uniform", 5.000000e-01 : f64>, train.name = "a.q.lora_A.weight", train.role = #train.role<param>}
// CHECK-SAME: %[[B:arg[0-9]+]]: tensor<6x2xf32> {train.adapter = "a.q", train.init = "zeros", train.name = "a.q.lora_B.weight", train.role = #train.role<param>}
// CHECK-SAME: %[[SEED:arg[0-9]+]]: tensor<2xi64> {train.name = "seed", train.role = #train.role<scalar>}
// CHECK-SAME: %[[SAMPLES:arg[0-9]+]]: tensor<4xi64> {train.name = "samples", train.role = #train.role<batch>}
// CHECK: %[[Y0:.*]] = nn.matmul %[[X]], %[[W]] transpose_rhs bias(%arg2)
// CHECK: %[[U:.*]] = nn.random %[[SEED]], %[[SAMPLES]] {stream = 0 : i64} : (tensor<2xi64>, tensor<4xi64>) -> tensor<8x4xf32>
// CHECK: %[[P:.*]] = arith.constant dense<2.500000e-01>
// CHECK: %[[KEPT:.*]] = arith.cmpf oge, %[[U]], %[[P]]
// CHECK: arith.constant dense<1.3333333
// CHECK: %[[MORE:.*]] = arith.mulf %[[X]]
// CHECK: %[[D:.*]] = arith.select %[[KEPT]], %[[MORE]]
// CHECK: %[[R:.*]] = nn.matmul %[[D]], %[[A]] transpose_rhs : (tensor<8x4xf32>, tensor<2x4xf32>) -> tensor<8x2xf32>
// CHECK: arith.constant dense<2.000000e+00> : tensor<8x2xf32>
// CHECK: %[[S:.*]] = arith.mulf %[[R]]
// CHECK: %[[V:.*]] = nn.matmul %[[S]], %[[B]] transpose_rhs : (tensor<8x2xf32>, tensor<6x2xf32>) -> tensor<8x6xf32>
// CHECK: %[[Y:.*]] = arith.addf %[[Y0]], %[[V]]
// CHECK: arith.mulf %[[Y]], %arg3
// CHECK: nn.matmul %{{.*}}, %arg4 transpose_rhs
// CHECK-NOT: nn.matmul

// Only the loss follows the head, so that all-linear leaves it out. With r = 4
// and alpha = 6 the scale is 6 / sqrt(4) = 3; A has the deviation 1 / 4.
// ALL-LABEL: @forward
// ALL-SAME: train.name = "norm.weight", train.role
// ALL-SAME: tensor<4x4xf32> {train.adapter = "a.q", train.init = #train.draw<"normal", 2.500000e-01 : f64>
// ALL-NOT: head.lora
// ALL: arith.constant dense<3.000000e+00> : tensor<8x4xf32>
func.func @forward(
    %x: tensor<8x4xf32> {train.role = #train.role<batch>, train.name = "x"},
    %w: tensor<6x4xf32> {train.role = #train.role<param>, train.name = "a.q.weight"},
    %b: tensor<6xf32> {train.role = #train.role<param>, train.name = "a.q.bias"},
    %n: tensor<8x6xf32> {train.role = #train.role<param>, train.name = "norm.weight"},
    %h: tensor<3x6xf32> {train.role = #train.role<param>, train.name = "head.weight"},
    %l: tensor<4xi64> {train.role = #train.role<batch>, train.name = "labels"},
    %c: tensor<f32> {train.role = #train.role<scalar>, train.name = "weight"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %y = nn.matmul %x, %w transpose_rhs bias(%b) : (tensor<8x4xf32>, tensor<6x4xf32>, tensor<6xf32>) -> tensor<8x6xf32>
  %z = arith.mulf %y, %n : tensor<8x6xf32>
  %some = nn.slice %z [0, 0] step [2, 1] : (tensor<8x6xf32>) -> tensor<4x6xf32>
  %logits = nn.matmul %some, %h transpose_rhs : (tensor<4x6xf32>, tensor<3x6xf32>) -> tensor<4x3xf32>
  %loss, %lse = nn.cross_entropy %logits, %l, %c : (tensor<4x3xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}

// -----

// A matrix [in, out] = [4, 6] of 16 bits, in a model that draws already.
// CHECK-LABEL: @forward
// CHECK-SAME: tensor<2x4xf32> {train.adapter = "a.q", train.fan_in_fan_out, train.init
// CHECK-SAME: tensor<6x2xf32> {train.adapter = "a.q", train.fan_in_fan_out, train.init
// CHECK-NOT: train.name = "seed"
// CHECK: %[[Y0:.*]] = nn.matmul %[[X:.*]], %arg1 : (tensor<8x4xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
// CHECK: %[[WIDE:.*]] = arith.extf %[[X]] : tensor<8x4xbf16> to tensor<8x4xf32>
// CHECK: nn.random %arg2, %arg3 {stream = 8 : i64}
// CHECK: %[[V:.*]] = nn.matmul {{.*}} -> tensor<8x6xf32>
// CHECK: %[[W0:.*]] = arith.extf %[[Y0]]
// CHECK: %[[SUM:.*]] = arith.addf %[[W0]], %[[V]]
// CHECK: %[[Y:.*]] = arith.truncf %[[SUM]] : tensor<8x6xf32> to tensor<8x6xbf16>
// CHECK: arith.mulf %[[Y]], %arg4
// ALL: @forward
func.func @forward(
    %x: tensor<8x4xbf16> {train.role = #train.role<batch>, train.name = "x"},
    %w: tensor<4x6xbf16> {train.role = #train.role<param>, train.name = "a.q.weight"},
    %seed: tensor<2xi64> {train.role = #train.role<scalar>, train.name = "its seed"},
    %samples: tensor<4xi64> {train.role = #train.role<batch>, train.name = "its samples"},
    %n: tensor<8x6xbf16> {train.role = #train.role<param>, train.name = "norm.weight"},
    %h: tensor<6x6xbf16> {train.role = #train.role<param>, train.name = "h.weight"})
    -> (tensor<8x6xbf16> {train.loss}) {
  %u = nn.random %seed, %samples {stream = 7 : i64} : (tensor<2xi64>, tensor<4xi64>) -> tensor<8x4xbf16>
  %z = arith.mulf %x, %u : tensor<8x4xbf16>
  %y = nn.matmul %z, %w : (tensor<8x4xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
  %s = arith.mulf %y, %n : tensor<8x6xbf16>
  %t = nn.matmul %s, %h transpose_rhs : (tensor<8x6xbf16>, tensor<6x6xbf16>) -> tensor<8x6xbf16>
  return %t : tensor<8x6xbf16>
}
