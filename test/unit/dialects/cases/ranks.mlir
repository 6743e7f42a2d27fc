// Cases of Ranks.cpp. The ranks of a case have equal values.

func.func @sum_over(%x: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %0 = nn.sum_over %x over dp of 3 : tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}
// Adjoint only on a mesh, where ranks have other values (passes/CutTest.cpp).
func.func @sum_over_tensor(%x: tensor<4x2xf64>) -> tensor<4x2xf64> {
  %0 = nn.sum_over %x over tp of 1 : tensor<4x2xf64>
  return %0 : tensor<4x2xf64>
}
func.func @spread(%x: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %0 = nn.spread %x over tp of 1 : tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}
func.func @exchange(%x: tensor<128x64xf32>) -> tensor<2x4096xf32> {
  %0 = nn.exchange %x over dp of 2 : tensor<128x64xf32>
  return %0 : tensor<2x4096xf32>
}
func.func @exchange_padded(%x: tensor<4100xf32>) -> tensor<2x4096xf32> {
  %0 = nn.exchange %x over dp of 2 : tensor<4100xf32>
  return %0 : tensor<2x4096xf32>
}
func.func @sum_pieces(%x: tensor<3x4x2xbf16>) -> tensor<4x2xbf16> {
  %0 = nn.sum_pieces %x : tensor<3x4x2xbf16>
  return %0 : tensor<4x2xbf16>
}
func.func @gather(%x: tensor<6xf32>) -> tensor<4x3xf32> {
  %0 = nn.gather %x over dp of 2 : tensor<6xf32> to tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}
func.func @gather_padded(%x: tensor<4xf32>) -> tensor<5xf32> {
  %0 = nn.gather %x over dp of 2 : tensor<4xf32> to tensor<5xf32>
  return %0 : tensor<5xf32>
}
func.func @shard_of(%x: tensor<4100xf64>) -> tensor<4096xf64> {
  %0 = nn.shard_of %x over dp of 2 : tensor<4100xf64>
  return %0 : tensor<4096xf64>
}
func.func @embedding_pieces(%w: tensor<4096xf64>, %ids: tensor<2x3xi64> {test.below = 5}) -> tensor<2x4096xf64> {
  %0 = nn.embedding_pieces %w, %ids of tensor<5x1000xf64> over dp of 2 : tensor<4096xf64>, tensor<2x3xi64>
  return %0 : tensor<2x4096xf64>
}
func.func @embedding_grad_shard(%ids: tensor<2x3xi64> {test.below = 5}, %g: tensor<2x3x1000xf32>) -> tensor<4096xf32> {
  %0 = nn.embedding_grad_shard %ids, %g of tensor<5x1000xf32> over dp of 2 : tensor<2x3xi64>, tensor<2x3x1000xf32>
  return %0 : tensor<4096xf32>
}
func.func @embedding_grad_shard_acc(%ids: tensor<2x3xi64> {test.below = 5}, %g: tensor<2x3x1000xf32>, %a: tensor<4096xf32>) -> tensor<4096xf32> {
  %0 = nn.embedding_grad_shard %ids, %g acc(%a : tensor<4096xf32>) of tensor<5x1000xf32> over dp of 2 : tensor<2x3xi64>, tensor<2x3x1000xf32>
  return %0 : tensor<4096xf32>
}
