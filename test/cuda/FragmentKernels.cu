//===- FragmentKernels.cu - what the emulator runs of tensor cores, by nvcc
//===//

#include "test/cuda/FragmentKernels.h"

namespace tmc::test {

template __global__ void
oneProduct<Element::BF16, Element::BF16>(const uint32_t *, const uint32_t *,
                                         float *);
template __global__ void
oneProduct<Element::F16, Element::F16>(const uint32_t *, const uint32_t *,
                                       float *);
template __global__ void
oneProduct<Element::TF32, Element::TF32>(const uint32_t *, const uint32_t *,
                                         float *);
template __global__ void
oneProduct<Element::E4M3, Element::E4M3>(const uint32_t *, const uint32_t *,
                                         float *);
template __global__ void
oneProduct<Element::E4M3, Element::E5M2>(const uint32_t *, const uint32_t *,
                                         float *);
template __global__ void
oneProduct<Element::E5M2, Element::E4M3>(const uint32_t *, const uint32_t *,
                                         float *);
template __global__ void
oneProduct<Element::E5M2, Element::E5M2>(const uint32_t *, const uint32_t *,
                                         float *);
template __global__ void product<Element::BF16, false>(const uint16_t *,
                                                       const uint16_t *,
                                                       float *, int, int, int);
template __global__ void product<Element::BF16, true>(const uint16_t *,
                                                      const uint16_t *, float *,
                                                      int, int, int);
template __global__ void product<Element::F16, false>(const uint16_t *,
                                                      const uint16_t *, float *,
                                                      int, int, int);
template __global__ void matrices<1, false>(const uint32_t *, uint32_t *);
template __global__ void matrices<2, true>(const uint32_t *, uint32_t *);
template __global__ void matrices<4, false>(const uint32_t *, uint32_t *);

} // namespace tmc::test
