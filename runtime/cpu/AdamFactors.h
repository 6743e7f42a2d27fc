//===- AdamFactors.h - AdamW's factors in every lane ------------*- C++ -*-===//
//
// Also AdamW's update of a vector with coded moments.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_ADAMFACTORS_H
#define TMC_RUNTIME_CPU_ADAMFACTORS_H

#include "runtime/cpu/Simd.h"
#include "runtime/cpu/Updates.h"
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

/// Updates `count` elements from `at` on, at most one vector, and their moments
/// `m` and `v`, which are complete vectors. If a gradient isn't finite, the
/// element and its moments don't change.
template <typename Chance, typename Grad, typename Param>
inline void updateFinite(const AdamFactors &f, Chance &chance, const Grad *grad,
                         Param *param, const RoundedCopy &copy, int64_t at,
                         int64_t count, float *m, float *v) {
  chance.moveTo(at);
  const V g = loadSome(grad + at, count);
  const V p = loadSome(param + at, count);
  const V oldM = simd::load(m), oldV = simd::load(v);
  V newM = oldM, newV = oldV;
  const V moved = adam::update(f, g, p, newM, newV, simd::sqrt);
  const auto moves = g - g == V{}; // as adam::isFinite
  const V kept = moves ? moved : p;
  chance.store(0, param + at, kept, count);
  if constexpr (!isNarrow<Param>)
    storeSome(copy, at, kept, count);
  simd::store(m, moves ? newM : oldM);
  simd::store(v, moves ? newV : oldV);
}

} // namespace tmc::updates

#endif // TMC_RUNTIME_CPU_ADAMFACTORS_H
