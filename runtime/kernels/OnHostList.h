//===- OnHostList.h - the kernels that run on the host, too -----*- C++ -*-===//
//
// The classes of Optimizer.h and Adafactor.h, for what a backend says of all.
// No other header is included: cuda's text for the host puts those into a
// namespace of its own.
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
