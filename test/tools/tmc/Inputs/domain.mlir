// The input is under a logarithm: half of random numbers are outside its domain.
func.func @forward(%w: tensor<10x16xf32> {train.init = "normal", train.name = "w", train.role = #train.role<param>},
                   %x: tensor<4x16xf32> {train.name = "x", train.role = #train.role<batch>})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %0 = math.log %x : tensor<4x16xf32>
  %1 = nn.matmul %0, %w transpose_rhs : (tensor<4x16xf32>, tensor<10x16xf32>) -> tensor<4x10xf32>
  %2 = arith.mulf %1, %1 : tensor<4x10xf32>
  %3 = nn.reduce sum %2 over [0, 1] : (tensor<4x10xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}
