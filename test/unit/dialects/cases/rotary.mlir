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
