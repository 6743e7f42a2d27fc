// RUN: tmc-opt %s -tmc-layout | FileCheck %s

// A transpose that moves nothing isn't carried down: it would be met again for
// ever. It goes away.

// CHECK-LABEL: func @identity
//       CHECK-NEXT:   math.tanh %arg0
func.func @identity(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %t = nn.transpose %x [0, 1] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = math.tanh %t : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
