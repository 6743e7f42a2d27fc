// Atoms.h - the common factors of the dimensions of a region's values.
//
// A union-find whose elements can also be split: if an atom of 768 is equated
// with 12 and 64, it becomes these two everywhere. See FusedPlan.h.

#ifndef TMC_DIALECTS_NN_ATOMS_H
#define TMC_DIALECTS_NN_ATOMS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace tmc::nn {

class Atoms {
public:
  using List = llvm::SmallVector<unsigned, 4>;

  /// A new atom; none for a size of 1, which isn't indexed.
  List make(int64_t size) {
    if (size == 1)
      return {};
    nodes.push_back({size, -1, {}});
    return {unsigned(nodes.size() - 1)};
  }

  /// The current form of `list`: atoms that are neither merged nor split.
  List resolve(llvm::ArrayRef<unsigned> list) const {
    List out;
    for (unsigned id : list)
      resolveInto(id, out);
    return out;
  }

  int64_t size(unsigned id) const { return nodes[id].size; }

  /// Equates both lists, outermost first. False if their sizes have no common
  /// refinement.
  bool unify(llvm::ArrayRef<unsigned> a, llvm::ArrayRef<unsigned> b) {
    for (;;) {
      List x = resolve(a), y = resolve(b);
      while (!x.empty() && !y.empty() && x.back() == y.back()) {
        x.pop_back();
        y.pop_back();
      }
      if (x.empty() || y.empty())
        return x.empty() && y.empty();
      unsigned p = x.back(), q = y.back();
      if (size(p) == size(q)) {
        nodes[std::max(p, q)].forward = std::min(p, q);
      } else {
        unsigned large = size(p) > size(q) ? p : q;
        int64_t inner = std::min(size(p), size(q));
        if (!split(large, inner))
          return false;
      }
    }
  }

  /// Cuts an atom into size / inner and inner. False if that isn't an integer.
  bool split(unsigned id, int64_t inner) {
    if (inner <= 0 || size(id) % inner != 0)
      return false;
    List outer = make(size(id) / inner), rest = make(inner);
    nodes[id].parts = outer;
    nodes[id].parts.append(rest.begin(), rest.end());
    return true;
  }

private:
  struct Node {
    int64_t size;
    int forward; // merged into, or -1
    List parts;  // split into
  };

  void resolveInto(unsigned id, List &out) const {
    while (nodes[id].forward >= 0)
      id = nodes[id].forward;
    if (nodes[id].parts.empty()) {
      out.push_back(id);
      return;
    }
    for (unsigned part : nodes[id].parts)
      resolveInto(part, out);
  }

  llvm::SmallVector<Node> nodes;
};

} // namespace tmc::nn

#endif // TMC_DIALECTS_NN_ATOMS_H
