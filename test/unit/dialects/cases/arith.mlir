// Cases of Arith.cpp: each op once, on a small tensor.

func.func @addf(%x: tensor<2x6xf64>, %y: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = arith.addf %x, %y : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @subf(%x: tensor<2x6xf64>, %y: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = arith.subf %x, %y : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @mulf(%x: tensor<2x6xf64>, %y: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = arith.mulf %x, %y : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @divf(%x: tensor<2x6xf64>, %y: tensor<2x6xf64> {test.positive}) -> tensor<2x6xf64> {
  %0 = arith.divf %x, %y : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @remf(%x: tensor<2x6xf64>, %y: tensor<2x6xf64> {test.positive}) -> tensor<2x6xf64> {
  %0 = arith.remf %x, %y : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @maximumf(%x: tensor<2x6xf64>, %y: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = arith.maximumf %x, %y : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @minimumf(%x: tensor<2x6xf64>, %y: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = arith.minimumf %x, %y : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @maxnumf(%x: tensor<2x6xf64>, %y: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = arith.maxnumf %x, %y : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @minnumf(%x: tensor<2x6xf64>, %y: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = arith.minnumf %x, %y : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @negf(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = arith.negf %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @addf_of_one_value(%x: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = arith.addf %x, %x : tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @select(%c: tensor<2x6xi1>, %x: tensor<2x6xf64>, %y: tensor<2x6xf64>) -> tensor<2x6xf64> {
  %0 = arith.select %c, %x, %y : tensor<2x6xi1>, tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
// In double the casts are exact, and so are their derivatives.
func.func @extf(%x: tensor<2x6xf32>) -> tensor<2x6xf64> {
  %0 = arith.extf %x : tensor<2x6xf32> to tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @truncf(%x: tensor<2x6xf64>) -> tensor<2x6xf32> {
  %0 = arith.truncf %x : tensor<2x6xf64> to tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}
func.func @constant() -> tensor<2x2xf64> {
  %0 = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf64>
  return %0 : tensor<2x2xf64>
}
func.func @cmpf(%x: tensor<2x6xf64>, %y: tensor<2x6xf64>) -> tensor<2x6xi1> {
  %0 = arith.cmpf olt, %x, %y : tensor<2x6xf64>
  return %0 : tensor<2x6xi1>
}
func.func @cmpi(%x: tensor<2x6xi64>, %y: tensor<2x6xi64>) -> tensor<2x6xi1> {
  %0 = arith.cmpi sle, %x, %y : tensor<2x6xi64>
  return %0 : tensor<2x6xi1>
}
func.func @addi(%x: tensor<2x6xi64>, %y: tensor<2x6xi64>) -> tensor<2x6xi64> {
  %0 = arith.addi %x, %y : tensor<2x6xi64>
  return %0 : tensor<2x6xi64>
}
func.func @subi(%x: tensor<2x6xi64>, %y: tensor<2x6xi64>) -> tensor<2x6xi64> {
  %0 = arith.subi %x, %y : tensor<2x6xi64>
  return %0 : tensor<2x6xi64>
}
func.func @muli(%x: tensor<2x6xi64>, %y: tensor<2x6xi64>) -> tensor<2x6xi64> {
  %0 = arith.muli %x, %y : tensor<2x6xi64>
  return %0 : tensor<2x6xi64>
}
func.func @andi(%x: tensor<2x6xi64>, %y: tensor<2x6xi64>) -> tensor<2x6xi64> {
  %0 = arith.andi %x, %y : tensor<2x6xi64>
  return %0 : tensor<2x6xi64>
}
func.func @ori(%x: tensor<2x6xi64>, %y: tensor<2x6xi64>) -> tensor<2x6xi64> {
  %0 = arith.ori %x, %y : tensor<2x6xi64>
  return %0 : tensor<2x6xi64>
}
func.func @xori(%x: tensor<2x6xi64>, %y: tensor<2x6xi64>) -> tensor<2x6xi64> {
  %0 = arith.xori %x, %y : tensor<2x6xi64>
  return %0 : tensor<2x6xi64>
}
func.func @maxsi(%x: tensor<2x6xi64>, %y: tensor<2x6xi64>) -> tensor<2x6xi64> {
  %0 = arith.maxsi %x, %y : tensor<2x6xi64>
  return %0 : tensor<2x6xi64>
}
func.func @minsi(%x: tensor<2x6xi64>, %y: tensor<2x6xi64>) -> tensor<2x6xi64> {
  %0 = arith.minsi %x, %y : tensor<2x6xi64>
  return %0 : tensor<2x6xi64>
}
func.func @maxui(%x: tensor<2x6xi64>, %y: tensor<2x6xi64>) -> tensor<2x6xi64> {
  %0 = arith.maxui %x, %y : tensor<2x6xi64>
  return %0 : tensor<2x6xi64>
}
func.func @minui(%x: tensor<2x6xi64>, %y: tensor<2x6xi64>) -> tensor<2x6xi64> {
  %0 = arith.minui %x, %y : tensor<2x6xi64>
  return %0 : tensor<2x6xi64>
}
func.func @divsi(%x: tensor<2x6xi64>) -> tensor<2x6xi64> {
  %0 = arith.constant dense<3> : tensor<2x6xi64>
  %1 = arith.divsi %x, %0 : tensor<2x6xi64>
  return %1 : tensor<2x6xi64>
}
func.func @remsi(%x: tensor<2x6xi64>) -> tensor<2x6xi64> {
  %0 = arith.constant dense<3> : tensor<2x6xi64>
  %1 = arith.remsi %x, %0 : tensor<2x6xi64>
  return %1 : tensor<2x6xi64>
}
func.func @floordivsi(%x: tensor<2x6xi64>) -> tensor<2x6xi64> {
  %0 = arith.constant dense<3> : tensor<2x6xi64>
  %1 = arith.floordivsi %x, %0 : tensor<2x6xi64>
  return %1 : tensor<2x6xi64>
}
func.func @ceildivsi(%x: tensor<2x6xi64>) -> tensor<2x6xi64> {
  %0 = arith.constant dense<3> : tensor<2x6xi64>
  %1 = arith.ceildivsi %x, %0 : tensor<2x6xi64>
  return %1 : tensor<2x6xi64>
}
func.func @divui(%x: tensor<2x6xi64>) -> tensor<2x6xi64> {
  %0 = arith.constant dense<3> : tensor<2x6xi64>
  %1 = arith.divui %x, %0 : tensor<2x6xi64>
  return %1 : tensor<2x6xi64>
}
func.func @remui(%x: tensor<2x6xi64>) -> tensor<2x6xi64> {
  %0 = arith.constant dense<3> : tensor<2x6xi64>
  %1 = arith.remui %x, %0 : tensor<2x6xi64>
  return %1 : tensor<2x6xi64>
}
func.func @sitofp(%x: tensor<2x6xi64>) -> tensor<2x6xf64> {
  %0 = arith.sitofp %x : tensor<2x6xi64> to tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @uitofp(%x: tensor<2x6xi1>) -> tensor<2x6xf64> {
  %0 = arith.uitofp %x : tensor<2x6xi1> to tensor<2x6xf64>
  return %0 : tensor<2x6xf64>
}
func.func @fptosi(%x: tensor<2x6xf64>) -> tensor<2x6xi64> {
  %0 = arith.fptosi %x : tensor<2x6xf64> to tensor<2x6xi64>
  return %0 : tensor<2x6xi64>
}
func.func @fptoui(%x: tensor<2x6xf64> {test.positive}) -> tensor<2x6xi64> {
  %0 = arith.fptoui %x : tensor<2x6xf64> to tensor<2x6xi64>
  return %0 : tensor<2x6xi64>
}
func.func @extsi(%x: tensor<2x6xi32>) -> tensor<2x6xi64> {
  %0 = arith.extsi %x : tensor<2x6xi32> to tensor<2x6xi64>
  return %0 : tensor<2x6xi64>
}
func.func @extui(%x: tensor<2x6xi1>) -> tensor<2x6xi64> {
  %0 = arith.extui %x : tensor<2x6xi1> to tensor<2x6xi64>
  return %0 : tensor<2x6xi64>
}
func.func @trunci(%x: tensor<2x6xi64>) -> tensor<2x6xi32> {
  %0 = arith.trunci %x : tensor<2x6xi64> to tensor<2x6xi32>
  return %0 : tensor<2x6xi32>
}
