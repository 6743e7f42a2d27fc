// Cases of Math.cpp: each op once, on a small tensor.

func.func @absf(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.absf %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @atan(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.atan %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @ceil(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.ceil %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @cos(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.cos %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @cosh(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.cosh %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @erf(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.erf %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @erfc(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.erfc %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @exp(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.exp %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @exp2(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.exp2 %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @expm1(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.expm1 %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @floor(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.floor %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @log(%x: tensor<2x6xf64> {test.positive}) -> tensor<2x6xf64> {
  %0 = math.log %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @log1p(%x: tensor<2x6xf64> {test.positive}) -> tensor<2x6xf64> {
  %0 = math.log1p %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @log2(%x: tensor<2x6xf64> {test.positive}) -> tensor<2x6xf64> {
  %0 = math.log2 %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @log10(%x: tensor<2x6xf64> {test.positive}) -> tensor<2x6xf64> {
  %0 = math.log10 %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @round(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.round %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @roundeven(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.roundeven %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @rsqrt(%x: tensor<2x6xf64> {test.positive}) -> tensor<2x6xf64> {
  %0 = math.rsqrt %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @sin(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.sin %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @sinh(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.sinh %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @sqrt(%x: tensor<2x6xf64> {test.positive}) -> tensor<2x6xf64> {
  %0 = math.sqrt %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @tan(%x: tensor<2x6xf64> {test.positive}) -> tensor<2x6xf64> {
  %0 = math.tan %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @tanh(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.tanh %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @trunc(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.trunc %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @atan2(%x: tensor<2x6xf64>, %y: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.atan2 %x, %y : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @copysign(%x: tensor<2x6xf64>, %y: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.copysign %x, %y : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @powf(%x: tensor<2x6xf64> {test.positive}, %y: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.powf %x, %y : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
// A negative base has a power where the exponent is whole.
func.func @powf_constant_exponent(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = arith.constant dense<3.0> : tensor<2x6xf64>
  %1 = math.powf %x, %0 : tensor<2x6xf64>
  return %1 : tensor<2x6xf64>
}
func.func @fma(%x: tensor<2x6xf64>, %y: tensor<2x6xf64>, %z: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = math.fma %x, %y, %z : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @fpowi(%x: tensor<2x6xf64>, %n: tensor<2x6xi32>) -> tensor<2x6xf64> {
  %0 = math.fpowi %x, %n : tensor<2x6xf64>, tensor<2x6xi32>
  return %0 : tensor<2x6xf64>
}
func.func @absi(%n: tensor<2x6xi64>) -> tensor<2x6xi64> {
  %0 = math.absi %n : tensor<2x6xi64>
  return %0 : tensor<2x6xi64>
}
