// RUN: tmc-opt %s -tmc-join-products='optimizer=adamw8bit' | FileCheck %s --check-prefixes=CHECK,CODED
// RUN: tmc-opt %s -tmc-join-products='optimizer=adamw8bit(min_size=100000)' | FileCheck %s --check-prefixes=CHECK,PLAIN
// RUN: tmc-opt %s -tmc-join-products='optimizer=adamw(no_decay=*k*)' | FileCheck %s --check-prefixes=CHECK,DECAY

// A block of moments has 256 elements with one scale. 65 rows of 64 end in the
// middle of a block, which would then hold elements of both; 68 rows don't.
// Moments that aren't coded have no blocks. A decay of one alone is no decay of
// both.
// CHECK-LABEL: func.func @forward
// CODED-NOT: "{q,k}"
// CODED-SAME: "{v,w}"
// PLAIN-SAME: "{q,k}"
// PLAIN-SAME: "{v,w}"
// DECAY-NOT: "{q,k}"
// DECAY-SAME: "{v,w}"
func.func @forward(
    %x: tensor<16x64xf32>, %y: tensor<16x64xf32>,
    %q: tensor<65x64xf32> {train.role = #train.role<param>, train.name = "q"},
    %k: tensor<65x64xf32> {train.role = #train.role<param>, train.name = "k"},
    %v: tensor<68x64xf32> {train.role = #train.role<param>, train.name = "v"},
    %w: tensor<68x64xf32> {train.role = #train.role<param>, train.name = "w"}) -> (tensor<16x1x1x65xf32>, tensor<16x1x1x68xf32>) {
  %0 = nn.matmul %x, %q transpose_rhs : (tensor<16x64xf32>, tensor<65x64xf32>) -> tensor<16x65xf32>
  %1 = nn.matmul %x, %k transpose_rhs : (tensor<16x64xf32>, tensor<65x64xf32>) -> tensor<16x65xf32>
  %2 = nn.matmul %y, %v transpose_rhs : (tensor<16x64xf32>, tensor<68x64xf32>) -> tensor<16x68xf32>
  %3 = nn.matmul %y, %w transpose_rhs : (tensor<16x64xf32>, tensor<68x64xf32>) -> tensor<16x68xf32>
  %4 = nn.reshape %0 : (tensor<16x65xf32>) -> tensor<16x1x1x65xf32>
  %5 = nn.reshape %1 : (tensor<16x65xf32>) -> tensor<16x1x1x65xf32>
  %6 = nn.reshape %2 : (tensor<16x68xf32>) -> tensor<16x1x1x68xf32>
  %7 = nn.reshape %3 : (tensor<16x68xf32>) -> tensor<16x1x1x68xf32>
  %o, %l = nn.attention %4, %5, %5 {scale = 1.0 : f64} : (tensor<16x1x1x65xf32>, tensor<16x1x1x65xf32>, tensor<16x1x1x65xf32>) -> (tensor<16x1x1x65xf32>, tensor<16x1x1xf32>)
  %p, %m = nn.attention %6, %7, %7 {scale = 1.0 : f64} : (tensor<16x1x1x68xf32>, tensor<16x1x1x68xf32>, tensor<16x1x1x68xf32>) -> (tensor<16x1x1x68xf32>, tensor<16x1x1xf32>)
  return %o, %p : tensor<16x1x1x65xf32>, tensor<16x1x1x68xf32>
}
