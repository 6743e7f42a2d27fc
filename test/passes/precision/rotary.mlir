// RUN: tmc-opt %s -pass-pipeline='builtin.module(train.step(tmc-precision{spec=bf16}))' | FileCheck %s

// A rotation between products reads and writes bf16, and its tables are f32. One
// of an input of the model, which no product made, is f32 and rounded for the
// product behind it.

// CHECK-LABEL: train.step @step
//       CHECK:   %[[Y:.*]] = nn.matmul {{.*}} -> tensor<4x4xbf16>
//       CHECK:   %[[R:.*]] = nn.rotary_embedding %[[Y]], %arg2, %arg2 : (tensor<4x4xbf16>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xbf16>
//       CHECK:   %[[X:.*]] = nn.rotary_embedding %arg0, %arg2, %arg2 : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
//       CHECK:   %[[N:.*]] = arith.truncf %[[X]] : tensor<4x4xf32> to tensor<4x4xbf16>
//       CHECK:   nn.matmul %[[R]], %[[N]] : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
train.step @step(%x: tensor<4x4xf32> {train.name = "x", train.role = #train.role<batch>},
                 %w: tensor<4x4xf32> {train.name = "w", train.role = #train.role<param>},
                 %t: tensor<4x4xf32> {train.name = "t", train.role = #train.role<batch>})
    -> (tensor<4x4xf32> {train.name = "out"}) {
  %y = nn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = nn.rotary_embedding %y, %t, %t : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = nn.rotary_embedding %x, %t, %t : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %o = nn.matmul %r, %s : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  train.return %o : tensor<4x4xf32>
}
