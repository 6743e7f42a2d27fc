//===- AdamFactors.h - AdamW's factors in every lane -------------*- C++
//-*-===//
#ifndef TMC_RUNTIME_CPU_ADAMFACTORS_H
#define TMC_RUNTIME_CPU_ADAMFACTORS_H

#include "runtime/cpu/Simd.h"
#include "runtime/kernels/Adam.h"

namespace tmc::updates {

/// adam::Factors in every lane.
struct AdamFactors {
  simd::V decay, w1, b2, w2, root, epsilon, size, scale;

  explicit AdamFactors(const adam::Factors &f)
      : decay(simd::splat(f.decay)), w1(simd::splat(f.w1)),
        b2(simd::splat(f.b2)), w2(simd::splat(f.w2)), root(simd::splat(f.root)),
        epsilon(simd::splat(f.epsilon)), size(simd::splat(f.size)),
        scale(simd::splat(f.scale)) {}
};
} // namespace tmc::updates

#endif // TMC_RUNTIME_CPU_ADAMFACTORS_H
