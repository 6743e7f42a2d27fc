// Each sine multiplies what rounding leaves by its factor: f32 can't tell the gradients to
// 1e-5.
func.func @forward(%w0: tensor<24x16xf32> {train.init = "normal", train.name = "w0", train.role = #train.role<param>},
                   %w1: tensor<10x24xf32> {train.init = "normal", train.name = "w1", train.role = #train.role<param>},
                   %x: tensor<4x16xf32> {train.name = "x", train.role = #train.role<batch>})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %steep = arith.constant dense<1.0e+02> : tensor<4x24xf32>
  %0 = nn.matmul %x, %w0 transpose_rhs : (tensor<4x16xf32>, tensor<24x16xf32>) -> tensor<4x24xf32>
  %1 = arith.mulf %0, %steep : tensor<4x24xf32>
  %2 = math.sin %1 : tensor<4x24xf32>
  %3 = arith.mulf %2, %steep : tensor<4x24xf32>
  %4 = math.sin %3 : tensor<4x24xf32>
  %5 = nn.matmul %4, %w1 transpose_rhs : (tensor<4x24xf32>, tensor<10x24xf32>) -> tensor<4x10xf32>
  %6 = arith.mulf %5, %5 : tensor<4x10xf32>
  %7 = nn.reduce sum %6 over [0, 1] : (tensor<4x10xf32>) -> tensor<f32>
  return %7 : tensor<f32>
}
