// Cases of Shapes.cpp and Random.cpp.

func.func @reduce_sum(%x: tensor<2x4x6xf64>) -> tensor<2x6xf64> {
  %0 = nn.reduce sum %x over [1] : (tensor<2x4x6xf64>) -> tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @reduce_sum_all(%x: tensor<2x4xf64>) -> tensor<f64> {
  %0 = nn.reduce sum %x over [0, 1] : (tensor<2x4xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}
func.func @reduce_max(%x: tensor<2x4x6xf64>) -> tensor<4xf64> {
  %0 = nn.reduce max %x over [0, 2] : (tensor<2x4x6xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}
func.func @reduce_min(%x: tensor<2x4xf64>) -> tensor<2xf64> {
  %0 = nn.reduce min %x over [1] : (tensor<2x4xf64>) -> tensor<2xf64>
  return %0 : tensor<2xf64>
}
func.func @reduce_integers(%x: tensor<2x4xi64>) -> tensor<2xi64> {
  %0 = nn.reduce sum %x over [1] : (tensor<2x4xi64>) -> tensor<2xi64>
  return %0 : tensor<2xi64>
}
func.func @broadcast(%x: tensor<2x3xf64>) -> tensor<2x4x3x2xf64> {
  %0 = nn.broadcast %x to [0, 2] : (tensor<2x3xf64>) -> tensor<2x4x3x2xf64>
  return %0 : tensor<2x4x3x2xf64>
}
func.func @broadcast_scalar(%x: tensor<f64>) -> tensor<2x3xf64> {
  %0 = nn.broadcast %x to [] : (tensor<f64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}
func.func @transpose(%x: tensor<2x4x6xf64>) -> tensor<6x2x4xf64> {
  %0 = nn.transpose %x [2, 0, 1] : (tensor<2x4x6xf64>) -> tensor<6x2x4xf64>
  return %0 : tensor<6x2x4xf64>
}
func.func @reshape_merges(%x: tensor<4x2x3xf64>) -> tensor<8x3xf64> {
  %0 = nn.reshape %x : (tensor<4x2x3xf64>) -> tensor<8x3xf64>
  return %0 : tensor<8x3xf64>
}
func.func @reshape_splits(%x: tensor<8x6xf64>) -> tensor<4x2x2x3xf64> {
  %0 = nn.reshape %x : (tensor<8x6xf64>) -> tensor<4x2x2x3xf64>
  return %0 : tensor<4x2x2x3xf64>
}
func.func @reshape_regroups(%x: tensor<2x6xf64>) -> tensor<4x3xf64> {
  %0 = nn.reshape %x : (tensor<2x6xf64>) -> tensor<4x3xf64>
  return %0 : tensor<4x3xf64>
}
func.func @reshape_units(%x: tensor<1x4x1x2xf64>) -> tensor<4x1x2x1xf64> {
  %0 = nn.reshape %x : (tensor<1x4x1x2xf64>) -> tensor<4x1x2x1xf64>
  return %0 : tensor<4x1x2x1xf64>
}
func.func @slice(%x: tensor<2x6x5xf64>) -> tensor<2x2x3xf64> {
  %0 = nn.slice %x [0, 1, 0] step [1, 3, 2] : (tensor<2x6x5xf64>) -> tensor<2x2x3xf64>
  return %0 : tensor<2x2x3xf64>
}
func.func @pad(%x: tensor<2x3x2xf64>) -> tensor<2x6x6xf64> {
  %0 = nn.pad %x [0, 1, 0] step [1, 2, 3] : (tensor<2x3x2xf64>) -> tensor<2x6x6xf64>
  return %0 : tensor<2x6x6xf64>
}
func.func @concat(%x: tensor<2x3x2xf64>, %y: tensor<2x1x2xf64>, %z: tensor<2x2x2xf64>) -> tensor<2x6x2xf64> {
  %0 = nn.concat %x, %y, %z {dim = 1 : i64} : (tensor<2x3x2xf64>, tensor<2x1x2xf64>, tensor<2x2x2xf64>) -> tensor<2x6x2xf64>
  return %0 : tensor<2x6x2xf64>
}
func.func @concat_front(%x: tensor<2x3xf64>, %y: tensor<4x3xf64>) -> tensor<6x3xf64> {
  %0 = nn.concat %x, %y {dim = 0 : i64} : (tensor<2x3xf64>, tensor<4x3xf64>) -> tensor<6x3xf64>
  return %0 : tensor<6x3xf64>
}
func.func @copy(%x: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = nn.copy %x : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
func.func @iota() -> tensor<2x4xi64> {
  %0 = nn.iota {dim = 1 : i64} : () -> tensor<2x4xi64>
  return %0 : tensor<2x4xi64>
}
func.func @iota_floats() -> tensor<2x4xf64> {
  %0 = nn.iota {dim = 0 : i64} : () -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}
func.func @random(%seed: tensor<2xi64>, %samples: tensor<4xi64> {test.below = 100}) -> tensor<4x3xf64> {
  %0 = nn.random %seed, %samples {stream = 3 : i64} : (tensor<2xi64>, tensor<4xi64>) -> tensor<4x3xf64>
  return %0 : tensor<4x3xf64>
}
func.func @random_rows(%seed: tensor<2xi64>, %samples: tensor<4xi64> {test.below = 100}) -> tensor<8x3xf64> {
  %0 = nn.random %seed, %samples {stream = 3 : i64} : (tensor<2xi64>, tensor<4xi64>) -> tensor<8x3xf64>
  return %0 : tensor<8x3xf64>
}
func.func @fused(%x: tensor<4x6xf64>, %b: tensor<6xf64>) -> (tensor<4x6xf64>, tensor<4xf64>) {
  %0:2 = nn.fused (%a = %x, %c = %b) : (tensor<4x6xf64>, tensor<6xf64>) -> (tensor<4x6xf64>, tensor<4xf64>) {
    %1 = nn.broadcast %c to [1] : (tensor<6xf64>) -> tensor<4x6xf64>
    %2 = arith.addf %a, %1 : tensor<4x6xf64>
    %3 = arith.mulf %2, %a : tensor<4x6xf64>
    %4 = nn.reduce sum %3 over [1] : (tensor<4x6xf64>) -> tensor<4xf64>
    nn.yield %3, %4 : tensor<4x6xf64>, tensor<4xf64>
  }
  return %0#0, %0#1 : tensor<4x6xf64>, tensor<4xf64>
}
func.func @detach(%x: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %0 = nn.detach %x : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}
func.func @slice_of_columns(%x: tensor<2x3x4xf64>) -> tensor<2x3x2xf64> {
  %0 = nn.slice %x [0, 0, 1] step [1, 1, 2] : (tensor<2x3x4xf64>) -> tensor<2x3x2xf64>
  return %0 : tensor<2x3x2xf64>
}
func.func @pad_of_columns(%x: tensor<2x3x2xf64>) -> tensor<2x3x4xf64> {
  %0 = nn.pad %x [0, 0, 1] step [1, 1, 2] : (tensor<2x3x2xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}
// Half of 4 and of 6 elements is the outer part of both.
func.func @reshape_of_outer_parts(%x: tensor<4x6xf64>) -> tensor<6x4xf64> {
  %0 = nn.reshape %x : (tensor<4x6xf64>) -> tensor<6x4xf64>
  return %0 : tensor<6x4xf64>
}
