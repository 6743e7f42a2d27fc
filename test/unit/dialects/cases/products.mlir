// Cases of Products.cpp: matmul and convolutions. Every function is one case;
// see CaseTest.h for the attributes.

func.func @matmul(%x: tensor<4x6xf64>, %w: tensor<6x2xf64>) -> tensor<4x2xf64> {
  %0 = nn.matmul %x, %w : (tensor<4x6xf64>, tensor<6x2xf64>) -> tensor<4x2xf64>
  return %0 : tensor<4x2xf64>
}
func.func @matmul_transpose_lhs(%x: tensor<6x4xf64>, %w: tensor<6x2xf64>) -> tensor<4x2xf64> {
  %0 = nn.matmul %x, %w transpose_lhs : (tensor<6x4xf64>, tensor<6x2xf64>) -> tensor<4x2xf64>
  return %0 : tensor<4x2xf64>
}
func.func @matmul_transpose_rhs_bias(%x: tensor<4x6xf64>, %w: tensor<2x6xf64>, %b: tensor<2xf64>) -> tensor<4x2xf64> {
  %0 = nn.matmul %x, %w transpose_rhs bias(%b) : (tensor<4x6xf64>, tensor<2x6xf64>, tensor<2xf64>) -> tensor<4x2xf64>
  return %0 : tensor<4x2xf64>
}
func.func @matmul_both_acc(%x: tensor<2x6x4xf64>, %w: tensor<2x2x6xf64>, %acc: tensor<2x4x2xf64>) -> tensor<2x4x2xf64> {
  %0 = nn.matmul %x, %w transpose_lhs transpose_rhs acc(%acc) : (tensor<2x6x4xf64>, tensor<2x2x6xf64>, tensor<2x4x2xf64>) -> tensor<2x4x2xf64>
  return %0 : tensor<2x4x2xf64>
}
func.func @matmul_batched_bias_acc(%x: tensor<2x3x4xf64>, %w: tensor<2x4x5xf64>, %b: tensor<5xf64>, %acc: tensor<2x3x5xf64>) -> tensor<2x3x5xf64> {
  %0 = nn.matmul %x, %w bias(%b) acc(%acc) : (tensor<2x3x4xf64>, tensor<2x4x5xf64>, tensor<5xf64>, tensor<2x3x5xf64>) -> tensor<2x3x5xf64>
  return %0 : tensor<2x3x5xf64>
}

func.func @conv(%x: tensor<2x3x5x6xf64>, %f: tensor<4x3x3x2xf64>) -> tensor<2x4x3x5xf64> {
  %0 = nn.conv %x, %f {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x3x5x6xf64>, tensor<4x3x3x2xf64>) -> tensor<2x4x3x5xf64>
  return %0 : tensor<2x4x3x5xf64>
}
// Height: (5 + 1 + 0 - 3) / 2 + 1 = 2; width: (6 + 2 + 1 - 3) / 1 + 1 = 7.
func.func @conv_strides_padding(%x: tensor<2x2x5x6xf64>, %f: tensor<2x2x3x3xf64>) -> tensor<2x2x2x7xf64> {
  %0 = nn.conv %x, %f {strides = array<i64: 2, 1>, padding = array<i64: 1, 2, 0, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x2x5x6xf64>, tensor<2x2x3x3xf64>) -> tensor<2x2x2x7xf64>
  return %0 : tensor<2x2x2x7xf64>
}
// Height: (5 + 2 - 3) / 2 + 1 = 3; width: (6 + 2 - 3) / 3 + 1 = 2.
func.func @conv_groups_dilations_channels_last(%x: tensor<2x5x6x4xf64>, %f: tensor<6x2x2x3xf64>) -> tensor<2x3x2x6xf64> {
  %0 = nn.conv %x, %f {strides = array<i64: 2, 3>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 2, 1>, groups = 2 : i64, channels_last} : (tensor<2x5x6x4xf64>, tensor<6x2x2x3xf64>) -> tensor<2x3x2x6xf64>
  return %0 : tensor<2x3x2x6xf64>
}
// The last row and column of the input are under no window.
func.func @conv_grad_input(%g: tensor<2x4x2x2xf64>, %f: tensor<4x1x3x3xf64>) -> tensor<2x2x6x6xf64> {
  %0 = nn.conv_grad_input %g, %f {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x4x2x2xf64>, tensor<4x1x3x3xf64>) -> tensor<2x2x6x6xf64>
  return %0 : tensor<2x2x6x6xf64>
}
func.func @conv_grad_input_channels_last(%g: tensor<2x4x4x3xf64>, %f: tensor<3x2x3x3xf64>) -> tensor<2x4x4x2xf64> {
  %0 = nn.conv_grad_input %g, %f {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64, channels_last} : (tensor<2x4x4x3xf64>, tensor<3x2x3x3xf64>) -> tensor<2x4x4x2xf64>
  return %0 : tensor<2x4x4x2xf64>
}
func.func @conv_grad_filter(%x: tensor<2x2x5x6xf64>, %g: tensor<2x4x2x3xf64>) -> tensor<4x1x3x2xf64> {
  %0 = nn.conv_grad_filter %x, %g {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<2x2x5x6xf64>, tensor<2x4x2x3xf64>) -> tensor<4x1x3x2xf64>
  return %0 : tensor<4x1x3x2xf64>
}
func.func @conv_grad_filter_channels_last(%x: tensor<2x4x4x2xf64>, %g: tensor<2x4x4x3xf64>) -> tensor<3x2x3x3xf64> {
  %0 = nn.conv_grad_filter %x, %g {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64, channels_last} : (tensor<2x4x4x2xf64>, tensor<2x4x4x3xf64>) -> tensor<3x2x3x3xf64>
  return %0 : tensor<3x2x3x3xf64>
}
func.func @conv_grad_input_channels(%g: tensor<2x4x2x2xf64>, %f: tensor<4x2x3x3xf64>) -> tensor<2x2x6x6xf64> {
  %0 = nn.conv_grad_input %g, %f {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x4x2x2xf64>, tensor<4x2x3x3xf64>) -> tensor<2x2x6x6xf64>
  return %0 : tensor<2x2x6x6xf64>
}
