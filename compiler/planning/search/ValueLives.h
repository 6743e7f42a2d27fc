// ValueLives.h - the uses of each value in a schedule, and its instances.
//
// An instance is alive from the moment that writes it through its last use.
// Each change of a use or of a write adds to the live bytes of the moments
// between.

#ifndef TMC_COMPILER_PLANNING_SEARCH_VALUELIVES_H
#define TMC_COMPILER_PLANNING_SEARCH_VALUELIVES_H

#include "compiler/planning/search/StageMoments.h"

namespace tmc::planning {

class ValueLives {
public:
  struct Instance {
    Key key;
    Key last;
  };

  /// `overwrites`: ops may overwrite their operands, so `touched` is kept.
  ValueLives(const LinearProblem &linear, bool overwrites)
      : linear(linear), overwrites(overwrites), values(linear.bytes.size()) {}

  /// Adds the instances of `timeline`, without recomputations.
  void start(const Timeline &timeline);

  const std::vector<Instance> &instances(ValueId v) const {
    return values[v].instances;
  }
  const std::vector<Key> &uses(ValueId v) const { return values[v].uses; }
  /// Index of the last instance of `v` with a key below `key`, or -1.
  int32_t instanceBefore(ValueId v, Key key) const;

  void addUse(StageMoments &moments, ValueId v, Key key);
  void dropUse(StageMoments &moments, ValueId v, Key key);
  void addWrite(StageMoments &moments, ValueId v, Key key);
  void dropWrite(StageMoments &moments, ValueId v, Key key);

  /// Moments at which an instance began or stopped to end. The owner clears it.
  std::vector<Key> touched;

private:
  struct ValueState {
    std::vector<Instance> instances;
    std::vector<Key> uses;
  };
  void touch(Key key) {
    if (overwrites)
      touched.push_back(key);
  }

  const LinearProblem &linear;
  const bool overwrites;
  std::vector<ValueState> values;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_VALUELIVES_H
