// RUN: tmc-opt %s -tmc-plan -tmc-lower | FileCheck %s

// Two of three heads have 32 of 48 bytes. Both are rounded up to 64, but the
// heads lie elsewhere than in a buffer of their own, so the result has one. Of
// the whole the result takes the place.
// CHECK: %[[IN_PLACE:.*]] = mem.buffer "nn.rotary_embedding" {{.*}} : memref<1x2x3x2xf32>
// CHECK: %[[PART:.*]] = mem.buffer {{.*}}"out"{{.*}} : memref<1x2x2x2xf32>
// CHECK: mem.launch "RotaryEmbedding"(%0,{{.*}} -> (%[[IN_PLACE]] :
// CHECK: mem.launch "RotaryEmbedding"(%[[IN_PLACE]],{{.*}} -> (%[[IN_PLACE]] :
// CHECK: %[[VIEW:.*]] = mem.view %[[IN_PLACE]] {{.*}} offset: 2
// CHECK: mem.launch "RotaryEmbedding"(%[[VIEW]],{{.*}} -> (%[[PART]] :
train.step @step(%x: tensor<1x2x3x2xf32> {train.name = "x", train.role = #train.role<batch>},
                 %t: tensor<1x1x1x2xf32> {train.name = "t", train.role = #train.role<batch>})
    -> (tensor<1x2x2x2xf32> {train.name = "out"}) {
  %y = nn.rotary_embedding %x, %t, %t : (tensor<1x2x3x2xf32>, tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>) -> tensor<1x2x3x2xf32>
  %z = nn.rotary_embedding %y, %t, %t {heads = 2 : i64} : (tensor<1x2x3x2xf32>, tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>) -> tensor<1x2x3x2xf32>
  %q = nn.slice %z [0, 0, 1, 0] step [1, 1, 1, 1] : (tensor<1x2x3x2xf32>) -> tensor<1x2x2x2xf32>
  %w = nn.rotary_embedding %q, %t, %t : (tensor<1x2x2x2xf32>, tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>) -> tensor<1x2x2x2xf32>
  train.return %w : tensor<1x2x2x2xf32>
}
