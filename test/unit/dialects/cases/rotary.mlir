// Cases of Rotary.cpp.

func.func @rotary_embedding(%x: tensor<2x3x2x4xf64>, %cos: tensor<1x3x1x4xf64>, %sin: tensor<1x3x1x4xf64>) -> tensor<2x3x2x4xf64> {
  %0 = nn.rotary_embedding %x, %cos, %sin : (tensor<2x3x2x4xf64>, tensor<1x3x1x4xf64>, tensor<1x3x1x4xf64>) -> tensor<2x3x2x4xf64>
  return %0 : tensor<2x3x2x4xf64>
}
func.func @rotary_embedding_per_sample(%x: tensor<2x3x6xf64>, %cos: tensor<2x1x6xf64>, %sin: tensor<2x1x6xf64>) -> tensor<2x3x6xf64> {
  %0 = nn.rotary_embedding %x, %cos, %sin {interleaved} : (tensor<2x3x6xf64>, tensor<2x1x6xf64>, tensor<2x1x6xf64>) -> tensor<2x3x6xf64>
  return %0 : tensor<2x3x6xf64>
}
// Two of six columns stay as they are.
func.func @rotary_embedding_partial(%x: tensor<2x3x6xf64>, %cos: tensor<2x3x4xf64>, %sin: tensor<2x3x4xf64>) -> tensor<2x3x6xf64> {
  %0 = nn.rotary_embedding %x, %cos, %sin {transposed} : (tensor<2x3x6xf64>, tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x6xf64>
  return %0 : tensor<2x3x6xf64>
}
func.func @rotary_embedding_interleaved_transposed(%x: tensor<2x5xf64>, %cos: tensor<1x4xf64>, %sin: tensor<1x4xf64>) -> tensor<2x5xf64> {
  %0 = nn.rotary_embedding %x, %cos, %sin {interleaved, transposed} : (tensor<2x5xf64>, tensor<1x4xf64>, tensor<1x4xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}
// The last of three heads stays as it is; two of its columns would in any case.
func.func @rotary_embedding_heads(%x: tensor<2x2x3x6xf64>, %cos: tensor<1x2x1x4xf64>, %sin: tensor<1x2x1x4xf64>) -> tensor<2x2x3x6xf64> {
  %0 = nn.rotary_embedding %x, %cos, %sin {heads = 2 : i64} : (tensor<2x2x3x6xf64>, tensor<1x2x1x4xf64>, tensor<1x2x1x4xf64>) -> tensor<2x2x3x6xf64>
  return %0 : tensor<2x2x3x6xf64>
}
// A half of the rows has all heads that are rotated: it isn't a batch to cut.
func.func @rotary_embedding_heads_transposed(%x: tensor<4x4xf64>, %cos: tensor<1x4xf64>, %sin: tensor<1x4xf64>) -> tensor<4x4xf64> {
  %0 = nn.rotary_embedding %x, %cos, %sin {heads = 2 : i64, interleaved, transposed} : (tensor<4x4xf64>, tensor<1x4xf64>, tensor<1x4xf64>) -> tensor<4x4xf64>
  return %0 : tensor<4x4xf64>
}
