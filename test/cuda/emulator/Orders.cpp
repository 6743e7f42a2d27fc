//===- Orders.cpp - orders drawn from a seed ------------------------------===//

#include "test/cuda/emulator/Orders.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace tmc::emulator {

namespace {
uint64_t seedValue = 0, stream = 0;
bool seeded = false;
} // namespace

void setSeed(uint64_t value) {
  seeded = true;
  seedValue = value;
  stream = value * 0x9e3779b97f4a7c15u;
}

uint64_t seed() {
  if (!seeded)
    if (const char *text = std::getenv("TMC_EMULATOR_SEED"))
      setSeed(std::strtoull(text, nullptr, 10));
  seeded = true;
  return seedValue;
}

uint64_t draw(uint64_t n) { // splitmix64
  uint64_t z = stream += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (z ^ (z >> 31)) % n;
}

Order::Order(uint64_t n) : n_(n) {
  if (seed() == 1) {
    a_ = n - 1;
    b_ = n - 1;
  } else if (seed() > 1 && n > 1) {
    do
      a_ = 1 + draw(std::min<uint64_t>(n - 1, 0xffffffffu));
    while (std::gcd(a_, n) != 1);
    b_ = draw(n);
  }
}

} // namespace tmc::emulator
