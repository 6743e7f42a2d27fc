#include "compiler/emit/FusedIndex.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

Places Places::of(const FusedPlan &plan, Value value) {
  Places places;
  if (auto found = plan.place.find(value); found != plan.place.end())
    places.atoms = found->second;
  places.strides.resize(places.atoms.size());
  int64_t stride = 1;
  for (size_t i = places.atoms.size(); i-- > 0;) {
    places.strides[i] = stride;
    stride *= plan.atoms[places.atoms[i]];
  }
  return places;
}

Places Places::of(const FusedPlan &plan, const FusedAccess &access) {
  Places places = of(plan, access.value);
  if (!places.atoms.empty())
    places.strides = access.strides;
  return places;
}

/// The part of an element's index that comes from the atoms in [from, to),
/// with `coordinate` counting along them; "" if none.
static std::string offset(const FusedPlan &plan, const Places &places,
                          unsigned from, unsigned to, StringRef coordinate) {
  ArrayRef<unsigned> place = places.atoms;
  auto sizeOf = [&](unsigned first, unsigned last) {
    int64_t size = 1;
    for (unsigned a = first; a < last; ++a)
      size *= plan.atoms[a];
    return size;
  };
  // A run of adjacent atoms counts as one.
  auto goesOn = [&](unsigned j) {
    return j + 1 < place.size() && place[j + 1] == place[j] + 1 &&
           place[j + 1] < to &&
           places.strides[j] ==
               places.strides[j + 1] * plan.atoms[place[j + 1]];
  };
  std::string sum;
  for (unsigned i = 0; i < place.size();) {
    if (place[i] < from || place[i] >= to) {
      ++i;
      continue;
    }
    unsigned j = i;
    while (goesOn(j))
      ++j;
    int64_t inner = sizeOf(place[j] + 1, to), stride = places.strides[j];
    std::string term = coordinate.str();
    if (inner != 1)
      term += " / " + std::to_string(inner);
    if (place[i] != from)
      term += " % " + std::to_string(sizeOf(place[i], place[j] + 1));
    if (stride != 1)
      term = (term.find(' ') == std::string::npos ? term : "(" + term + ")") +
             " * " + std::to_string(stride);
    sum += (sum.empty() ? "" : " + ") + term;
    i = j + 1;
  }
  return sum;
}

std::string tmc::rowOffset(const FusedPlan &plan, const Places &places) {
  return offset(plan, places, 0, plan.rowAtoms, "row.index");
}
std::string tmc::rowOffset(const FusedPlan &plan, Value value) {
  return rowOffset(plan, Places::of(plan, value));
}
std::string tmc::rowOffset(const FusedPlan &plan, const FusedAccess &access) {
  std::string text = rowOffset(plan, Places::of(plan, access));
  if (access.offset == 0)
    return text;
  return (text.empty() ? "" : text + " + ") + std::to_string(access.offset);
}

std::string tmc::colOffset(const FusedPlan &plan, const Places &places) {
  std::string text =
      offset(plan, places, plan.rowAtoms, plan.atoms.size(), "c.index()");
  // A scalar operand of lanes must have the lanes' type.
  std::string typed;
  for (StringRef word : llvm::split(text, ' ')) {
    bool isNumber = !word.empty() && llvm::all_of(word, llvm::isDigit);
    StringRef bare = word.rtrim(')');
    if (!isNumber && !bare.empty() && llvm::all_of(bare, llvm::isDigit)) {
      typed += "int64_t(" + bare.str() + ")" +
               std::string(word.size() - bare.size(), ')') + " ";
      continue;
    }
    typed += (isNumber ? "int64_t(" + word.str() + ")" : word.str()) + " ";
  }
  if (!typed.empty())
    typed.pop_back();
  return typed;
}
std::string tmc::colOffset(const FusedPlan &plan, Value value) {
  return colOffset(plan, Places::of(plan, value));
}

std::string tmc::sameOffset(const FusedPlan &plan, const Places &places) {
  // The columns inside of the innermost atom of the element's index.
  constexpr int64_t kMostLanes = 16;
  int64_t inner = 1;
  for (unsigned atom = plan.atoms.size(); atom-- > plan.rowAtoms;) {
    if (llvm::is_contained(places.atoms, atom))
      break;
    inner *= plan.atoms[atom];
  }
  if (inner % kMostLanes != 0)
    return "";
  return offset(plan, places, plan.rowAtoms, plan.atoms.size(), "c.at");
}
