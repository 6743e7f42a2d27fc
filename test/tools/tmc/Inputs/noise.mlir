// Numbers that are added: no mask of dropout.
func.func @forward(%w: tensor<8x16xf32> {train.init = "normal", train.name = "w", train.role = #train.role<param>},
                   %x: tensor<4x16xf32> {train.name = "x", train.role = #train.role<batch>},
                   %seed: tensor<2xi64> {train.name = "seed", train.role = #train.role<scalar>, train.feed = "seed"},
                   %samples: tensor<4xi64> {train.name = "samples", train.role = #train.role<batch>, train.feed = "samples"})
    -> (tensor<f32> {train.loss, train.name = "loss"}) {
  %0 = nn.matmul %x, %w transpose_rhs : (tensor<4x16xf32>, tensor<8x16xf32>) -> tensor<4x8xf32>
  %1 = nn.random %seed, %samples {stream = 0 : i64} : (tensor<2xi64>, tensor<4xi64>) -> tensor<4x8xf32>
  %2 = arith.addf %0, %1 : tensor<4x8xf32>
  %3 = arith.mulf %2, %2 : tensor<4x8xf32>
  %4 = nn.reduce sum %3 over [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %4 : tensor<f32>
}
