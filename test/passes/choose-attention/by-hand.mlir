// RUN: not tmc-opt %s -pass-pipeline='builtin.module(tmc-verify-kernels{target=cuda:h200})' 2>&1 | FileCheck %s
// RUN: tmc-opt %s -pass-pipeline='builtin.module(tmc-verify-kernels{target=cpu:v3})'

// The attribute by hand, on an op that the library would compute without its groups. The cpu ignores it.
// CHECK: error: cuda has no kernel for 'nn.attention' on (bf16, bf16, bf16, i64) -> bf16, f32
train.step @grouped(%q: tensor<2x64x4x64xbf16> {train.name = "q", train.role = #train.role<state>},
                    %i: tensor<2x64xi64> {train.name = "i", train.role = #train.role<batch>})
    -> (tensor<2x64x4x64xbf16> {train.name = "q", train.updates = 0 : i64}) {
  %o, %l = nn.attention %q, %q, %q groups(%i) {nn.cudnn, scale = 0.125} : (tensor<2x64x4x64xbf16>, tensor<2x64x4x64xbf16>, tensor<2x64x4x64xbf16>, tensor<2x64xi64>) -> (tensor<2x64x4x64xbf16>, tensor<2x4x64xf32>)
  train.return %o : tensor<2x64x4x64xbf16>
}
