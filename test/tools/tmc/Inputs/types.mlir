// f64, which no kernel takes on cpu.
func.func @forward(%w0: tensor<24x16xf64> {train.init = "normal", train.name = "w0", train.role = #train.role<param>},
                   %w1: tensor<10x24xf64> {train.init = "normal", train.name = "w1", train.role = #train.role<param>},
                   %x: tensor<4x16xf64> {train.name = "x", train.role = #train.role<batch>})
    -> (tensor<f64> {train.loss, train.name = "loss"}) {
  %steep = arith.constant dense<1.0e+02> : tensor<4x24xf64>
  %0 = nn.matmul %x, %w0 transpose_rhs : (tensor<4x16xf64>, tensor<24x16xf64>) -> tensor<4x24xf64>
  %1 = arith.mulf %0, %steep : tensor<4x24xf64>
  %2 = math.sin %1 : tensor<4x24xf64>
  %3 = arith.mulf %2, %steep : tensor<4x24xf64>
  %4 = math.sin %3 : tensor<4x24xf64>
  %5 = nn.matmul %4, %w1 transpose_rhs : (tensor<4x24xf64>, tensor<10x24xf64>) -> tensor<4x10xf64>
  %6 = arith.mulf %5, %5 : tensor<4x10xf64>
  %7 = nn.reduce sum %6 over [0, 1] : (tensor<4x10xf64>) -> tensor<f64>
  return %7 : tensor<f64>
}
