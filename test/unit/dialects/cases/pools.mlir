// Cases of Pools.cpp.

func.func @max_pool(%x: tensor<2x3x4x6xf64>) -> tensor<2x3x2x3xf64> {
  %0 = nn.max_pool %x {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, window = array<i64: 2, 2>} : (tensor<2x3x4x6xf64>) -> tensor<2x3x2x3xf64>
  return %0 : tensor<2x3x2x3xf64>
}
// Overlapping windows: an element may win several. (5 + 2 - 3) / 2 + 1 = 3.
func.func @max_pool_overlapping_channels_last(%x: tensor<2x5x5x2xf64>) -> tensor<2x3x3x2xf64> {
  %0 = nn.max_pool %x {strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, window = array<i64: 3, 3>, channels_last} : (tensor<2x5x5x2xf64>) -> tensor<2x3x3x2xf64>
  return %0 : tensor<2x3x3x2xf64>
}
func.func @max_pool_dilated(%x: tensor<2x1x5x5xf64>) -> tensor<2x1x3x3xf64> {
  %0 = nn.max_pool %x {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 2, 2>, window = array<i64: 2, 2>} : (tensor<2x1x5x5xf64>) -> tensor<2x1x3x3xf64>
  return %0 : tensor<2x1x3x3xf64>
}
func.func @max_pool_grad(%x: tensor<2x4x4x2xf64>, %g: tensor<2x2x2x2xf64>) -> tensor<2x4x4x2xf64> {
  %0 = nn.max_pool_grad %x, %g {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, window = array<i64: 2, 2>, channels_last} : (tensor<2x4x4x2xf64>, tensor<2x2x2x2xf64>) -> tensor<2x4x4x2xf64>
  return %0 : tensor<2x4x4x2xf64>
}
func.func @avg_pool(%x: tensor<2x3x4x6xf64>) -> tensor<2x3x2x3xf64> {
  %0 = nn.avg_pool %x {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, window = array<i64: 2, 2>} : (tensor<2x3x4x6xf64>) -> tensor<2x3x2x3xf64>
  return %0 : tensor<2x3x2x3xf64>
}
func.func @avg_pool_padding(%x: tensor<2x2x5x5xf64>) -> tensor<2x2x3x3xf64> {
  %0 = nn.avg_pool %x {strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, window = array<i64: 3, 3>} : (tensor<2x2x5x5xf64>) -> tensor<2x2x3x3xf64>
  return %0 : tensor<2x2x3x3xf64>
}
func.func @avg_pool_count_padding_channels_last(%x: tensor<2x5x5x2xf64>) -> tensor<2x3x3x2xf64> {
  %0 = nn.avg_pool %x {strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, window = array<i64: 3, 3>, channels_last, count_padding} : (tensor<2x5x5x2xf64>) -> tensor<2x3x3x2xf64>
  return %0 : tensor<2x3x3x2xf64>
}
func.func @avg_pool_grad(%g: tensor<2x2x3x3xf64>) -> tensor<2x2x5x5xf64> {
  %0 = nn.avg_pool_grad %g {strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, window = array<i64: 3, 3>} : (tensor<2x2x3x3xf64>) -> tensor<2x2x5x5xf64>
  return %0 : tensor<2x2x5x5xf64>
}
func.func @avg_pool_grad_count_padding_channels_last(%g: tensor<2x3x3x2xf64>) -> tensor<2x6x6x2xf64> {
  %0 = nn.avg_pool_grad %g {strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 0, 0>, dilations = array<i64: 1, 1>, window = array<i64: 3, 3>, channels_last, count_padding} : (tensor<2x3x3x2xf64>) -> tensor<2x6x6x2xf64>
  return %0 : tensor<2x6x6x2xf64>
}
