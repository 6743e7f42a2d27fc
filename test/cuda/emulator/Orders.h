//===- Orders.h - orders drawn from a seed ----------------------*- C++ -*-===//
//
// Seed 0 is first to last, seed 1 last to first; every other one is random.
// TMC_EMULATOR_SEED sets it.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_ORDERS_H
#define TMC_TEST_CUDA_EMULATOR_ORDERS_H

#include <cstdint>

namespace tmc::emulator {

void setSeed(uint64_t seed);
uint64_t seed();
/// Below `n`, from the seed's stream.
uint64_t draw(uint64_t n);

/// Numbers [0, n) in an order of the seed: a permutation i -> a * i + b mod n.
class Order {
public:
  explicit Order(uint64_t n);
  uint64_t operator[](uint64_t i) const { return (a_ * i + b_) % n_; }

private:
  uint64_t n_, a_ = 1, b_ = 0;
};

} // namespace tmc::emulator

#endif // TMC_TEST_CUDA_EMULATOR_ORDERS_H
