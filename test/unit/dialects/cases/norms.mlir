// Cases of Norms.cpp.

func.func @layer_norm(%x: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %0 = nn.layer_norm %x {epsilon = 1.0e-5} : (tensor<4x6xf64>) -> tensor<4x6xf64>
  return %0 : tensor<4x6xf64>
}
func.func @layer_norm_scale_shift(%x: tensor<2x3x4xf64>, %s: tensor<4xf64>, %b: tensor<4xf64>) -> tensor<2x3x4xf64> {
  %0 = nn.layer_norm %x scale(%s) shift(%b) {epsilon = 0.1} : (tensor<2x3x4xf64>, tensor<4xf64>, tensor<4xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}
func.func @layer_norm_scale(%x: tensor<4x3xf64>, %s: tensor<3xf64>) -> tensor<4x3xf64> {
  %0 = nn.layer_norm %x scale(%s) {epsilon = 0.1} : (tensor<4x3xf64>, tensor<3xf64>) -> tensor<4x3xf64>
  return %0 : tensor<4x3xf64>
}
func.func @layer_norm_shift(%x: tensor<4x3xf64>, %b: tensor<3xf64>) -> tensor<4x3xf64> {
  %0 = nn.layer_norm %x shift(%b) {epsilon = 0.1} : (tensor<4x3xf64>, tensor<3xf64>) -> tensor<4x3xf64>
  return %0 : tensor<4x3xf64>
}
func.func @rms_norm(%x: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  %0 = nn.rms_norm %x {epsilon = 1.0e-5} : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}
func.func @rms_norm_scale(%x: tensor<4x6xf64>, %s: tensor<6xf64>) -> tensor<4x6xf64> {
  %0 = nn.rms_norm %x scale(%s) {epsilon = 0.1} : (tensor<4x6xf64>, tensor<6xf64>) -> tensor<4x6xf64>
  return %0 : tensor<4x6xf64>
}
func.func @softmax(%x: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  %0 = nn.softmax %x : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}
func.func @softmax_vector(%x: tensor<6xf64>) -> tensor<6xf64> {
  %0 = nn.softmax %x : (tensor<6xf64>) -> tensor<6xf64>
  return %0 : tensor<6xf64>
}
func.func @softmax_log(%x: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %0 = nn.softmax %x {log} : (tensor<4x6xf64>) -> tensor<4x6xf64>
  return %0 : tensor<4x6xf64>
}
func.func @gelu(%x: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %0 = nn.gelu %x : (tensor<4x6xf64>) -> tensor<4x6xf64>
  return %0 : tensor<4x6xf64>
}
func.func @gelu_tanh(%x: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  %0 = nn.gelu %x {tanh} : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}
// The running statistics and what is saved for the gradient carry none.
func.func @batch_norm(%x: tensor<4x3x2x2xf64>, %s: tensor<3xf64>, %b: tensor<3xf64>, %m: tensor<3xf64> {test.constant}, %v: tensor<3xf64> {test.constant})
    -> (tensor<4x3x2x2xf64>, tensor<3xf64> {test.constant}, tensor<3xf64> {test.constant}, tensor<3xf64> {test.constant}, tensor<3xf64> {test.constant}) {
  %0:5 = nn.batch_norm %x, %s, %b, %m, %v {epsilon = 1.0e-5, momentum = 0.1} : (tensor<4x3x2x2xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<4x3x2x2xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>)
  return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<4x3x2x2xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>
}
func.func @batch_norm_channels_last(%x: tensor<4x2x3xf64>, %s: tensor<3xf64>, %b: tensor<3xf64>, %m: tensor<3xf64> {test.constant}, %v: tensor<3xf64> {test.constant})
    -> (tensor<4x2x3xf64>, tensor<3xf64> {test.constant}, tensor<3xf64> {test.constant}, tensor<3xf64> {test.constant}, tensor<3xf64> {test.constant}) {
  %0:5 = nn.batch_norm %x, %s, %b, %m, %v {epsilon = 0.1, momentum = 0.1, channels_last} : (tensor<4x2x3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<4x2x3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>)
  return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<4x2x3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>
}
func.func @batch_norm_grad(%x: tensor<4x3xf64>, %s: tensor<3xf64>, %m: tensor<3xf64>, %r: tensor<3xf64>, %g: tensor<4x3xf64>) -> (tensor<4x3xf64>, tensor<3xf64>, tensor<3xf64>) {
  %0:3 = nn.batch_norm_grad %x, %s, %m, %r, %g : (tensor<4x3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<4x3xf64>) -> (tensor<4x3xf64>, tensor<3xf64>, tensor<3xf64>)
  return %0#0, %0#1, %0#2 : tensor<4x3xf64>, tensor<3xf64>, tensor<3xf64>
}
func.func @batch_statistics(%x: tensor<4x3xf64>, %m: tensor<3xf64>, %v: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %0:4 = nn.batch_statistics %x, %m, %v {epsilon = 0.1, momentum = 0.1} : (tensor<4x3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>)
  return %0#2, %0#3 : tensor<3xf64>, tensor<3xf64>
}
