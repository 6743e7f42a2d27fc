// RUN: tmc-opt %s -tmc-lower | FileCheck %s

// The loss is written over the product that it is computed from. The buffer has
// the shape of the loss, which the program's caller reads.

// CHECK: %[[LOSS:.*]] = mem.buffer {{.*}}train.loss{{.*}} : memref<f32>
// CHECK: %[[Y:.*]] = mem.view %[[LOSS]] : memref<f32> to memref<1x1xf32>
// CHECK: mem.launch "Matmul"({{.*}}) -> (%[[Y]] : memref<1x1xf32>)
// CHECK: %[[X:.*]] = mem.view %[[LOSS]] : memref<f32> to memref<1x1xf32>
// CHECK: mem.launch "fused_0"(%[[X]] : memref<1x1xf32>) -> (%[[LOSS]] : memref<f32>)
train.step @step(%x: tensor<1x4xf32> {train.name = "x", train.role = #train.role<batch>})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %y = nn.matmul %x, %x transpose_rhs : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x1xf32>
  %loss = nn.fused (%a = %y) : (tensor<1x1xf32>) -> tensor<f32> {
    %0 = nn.reduce sum %a over [0, 1] : (tensor<1x1xf32>) -> tensor<f32>
    nn.yield %0 : tensor<f32>
  }
  train.return %loss : tensor<f32>
}
