// Rounds.h - how often a test repeats what it draws.

#ifndef TMC_TEST_UNIT_ROUNDS_H
#define TMC_TEST_UNIT_ROUNDS_H

#include <cstdint>
#include <cstdlib>

namespace tmc::test {

/// `few` show what a change breaks; `all` are drawn where TMC_TEST_FULL is set,
/// as `tools/check --full` does.
inline int64_t rounds(int64_t few, int64_t all) {
  return std::getenv("TMC_TEST_FULL") ? all : few;
}

} // namespace tmc::test

#endif // TMC_TEST_UNIT_ROUNDS_H
