//===- OnHostList.h - kernels that also run on the host ---------*- C++ -*-===//
//
// The classes of Optimizer.h and Adafactor.h, for code that handles each of
// them. This file includes no other header: cuda's host code includes those
// inside its own namespace.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_ONHOSTLIST_H
#define TMC_RUNTIME_KERNELS_ONHOSTLIST_H

#define TMC_FOR_EACH_ON_HOST(DO)                                               \
  DO(Adafactor)                                                                \
  DO(AdamW)                                                                    \
  DO(AdamW4bit)                                                                \
  DO(AdamW8bit)                                                                \
  DO(Lion)                                                                     \
  DO(Sgd)                                                                      \
  DO(SquareSum)                                                                \
  DO(GradNorm)                                                                 \
  DO(LossScale)

#endif // TMC_RUNTIME_KERNELS_ONHOSTLIST_H
