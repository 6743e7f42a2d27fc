// Cases of Lookups.cpp.

func.func @embedding(%t: tensor<5x3xf64>, %i: tensor<2x4xi64> {test.below = 5}) -> tensor<2x4x3xf64> {
  %0 = nn.embedding %t, %i : (tensor<5x3xf64>, tensor<2x4xi64>) -> tensor<2x4x3xf64>
  return %0 : tensor<2x4x3xf64>
}
// More positions than rows: some row is read twice.
func.func @embedding_of_numbers(%t: tensor<3xf64>, %i: tensor<8xi32> {test.below = 3}) -> tensor<8xf64> {
  %0 = nn.embedding %t, %i : (tensor<3xf64>, tensor<8xi32>) -> tensor<8xf64>
  return %0 : tensor<8xf64>
}
func.func @embedding_grad(%i: tensor<4x2xi64> {test.below = 3}, %g: tensor<4x2x5xf64>) -> tensor<3x5xf64> {
  %0 = nn.embedding_grad %i, %g : (tensor<4x2xi64>, tensor<4x2x5xf64>) -> tensor<3x5xf64>
  return %0 : tensor<3x5xf64>
}
func.func @embedding_grad_acc(%i: tensor<4xi64> {test.below = 3}, %g: tensor<4x5xf64>, %acc: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %0 = nn.embedding_grad %i, %g acc(%acc) : (tensor<4xi64>, tensor<4x5xf64>, tensor<3x5xf64>) -> tensor<3x5xf64>
  return %0 : tensor<3x5xf64>
}
