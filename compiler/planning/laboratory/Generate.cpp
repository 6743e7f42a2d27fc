#include "compiler/planning/laboratory/Generate.h"

#include "compiler/planning/model/Random.h"

#include <algorithm>

using namespace tmc::planning;

namespace {

/// Builds a forward graph; `train` appends the backward part.
class Builder {
public:
  explicit Builder(const GenerateOptions &options)
      : random(options.seed), repeats(options.repeats) {}

  /// Adds a node of this size and cost that reads `inputs`. `usesInputs` and
  /// `usesResult`: whether its derivative reads its inputs, or its own result.
  int32_t add(int64_t bytes, int64_t cost, std::vector<int32_t> inputs,
              bool usesInputs, bool usesResult) {
    auto vary = [&](int64_t x) {
      return repeats ? x
                     : std::max<int64_t>(1, x * (70 + random.below(60)) / 100);
    };
    int32_t id = int32_t(graph.nodes.size());
    graph.nodes.push_back({vary(bytes), vary(cost)});
    for (int32_t i : inputs)
      graph.edges.push_back({i, id});
    forward.push_back({std::move(inputs), usesInputs, usesResult});
    return id;
  }

  Graph train() {
    int32_t n = int32_t(graph.nodes.size());
    // Contributions to the gradient of each result, last consumer first.
    std::vector<std::vector<int32_t>> contributions(n);
    int32_t loss = int32_t(graph.nodes.size());
    graph.nodes.push_back({graph.nodes[n - 1].bytes, 1});
    graph.edges.push_back({n - 1, loss});
    contributions[n - 1] = {loss};
    for (int32_t i = n - 1; i >= 0; --i) {
      if (contributions[i].empty())
        continue;
      int32_t gradient = contributions[i].front();
      for (size_t c = 1; c < contributions[i].size(); ++c) { // Summed in order.
        int32_t sum = int32_t(graph.nodes.size());
        graph.nodes.push_back({graph.nodes[i].bytes,
                               std::max<int64_t>(1, graph.nodes[i].cost / 10)});
        graph.edges.push_back({gradient, sum});
        graph.edges.push_back({contributions[i][c], sum});
        gradient = sum;
      }
      for (int32_t input : forward[i].inputs) {
        int32_t d = int32_t(graph.nodes.size());
        graph.nodes.push_back({graph.nodes[input].bytes, graph.nodes[i].cost});
        std::vector<int32_t> reads = {gradient};
        if (forward[i].usesInputs)
          reads.insert(reads.end(), forward[i].inputs.begin(),
                       forward[i].inputs.end());
        if (forward[i].usesResult)
          reads.push_back(i);
        std::sort(reads.begin(), reads.end());
        reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
        for (int32_t r : reads)
          graph.edges.push_back({r, d});
        contributions[input].push_back(d);
      }
    }
    return std::move(graph);
  }

  Random random;
  Graph graph;

private:
  struct Node {
    std::vector<int32_t> inputs;
    bool usesInputs, usesResult;
  };
  bool repeats;
  std::vector<Node> forward;
};

void transformerBlock(Builder &b, int32_t &x, int64_t width) {
  int32_t norm = b.add(width, width, {x}, true, false);
  int32_t qkv = b.add(3 * width, 60 * width, {norm}, true, false);
  int32_t scores = b.add(4 * width, 40 * width, {qkv}, true, false);
  int32_t soft = b.add(4 * width, 6 * width, {scores}, false, true);
  int32_t mixed = b.add(width, 40 * width, {soft, qkv}, true, false);
  int32_t out = b.add(width, 20 * width, {mixed}, true, false);
  int32_t sum = b.add(width, width, {x, out}, false, false);
  int32_t norm2 = b.add(width, width, {sum}, true, false);
  int32_t up = b.add(4 * width, 80 * width, {norm2}, true, false);
  int32_t act = b.add(4 * width, 5 * width, {up}, true, false);
  int32_t down = b.add(width, 80 * width, {act}, true, false);
  x = b.add(width, width, {sum, down}, false, false);
}

void convolution(Builder &b, int32_t &x, int64_t bytes, int64_t cost) {
  int32_t conv = b.add(bytes, cost, {x}, true, false);
  int32_t norm = b.add(bytes, cost / 20 + 1, {conv}, true, false);
  x = b.add(bytes, cost / 40 + 1, {norm}, false, true);
}

} // namespace

Graph tmc::planning::generateGraph(const GenerateOptions &options) {
  Builder b(options);
  int64_t n = options.nodes;
  if (options.family == Family::Transformer) {
    int32_t x = b.add(1000, 1000, {}, false, false);
    for (int64_t block = 0; block < std::max<int64_t>(1, n / 28); ++block)
      transformerBlock(b, x, 1000);
  } else if (options.family == Family::UNet) {
    // Bytes halve per level on the way down; costs stay equal.
    int64_t levels = 5, each = std::max<int64_t>(1, n / (levels * 2 * 7));
    int32_t x = b.add(32000, 1000, {}, false, false);
    std::vector<int32_t> skips;
    for (int64_t level = 0; level < levels; ++level) {
      for (int64_t i = 0; i < each; ++i)
        convolution(b, x, 32000 >> level, 4000);
      skips.push_back(x);
      x = b.add(32000 >> (level + 1), 200, {x}, false, true);
    }
    for (int64_t level = levels; level-- > 0;) {
      x = b.add(32000 >> level, 300, {x, skips[level]}, false, false);
      for (int64_t i = 0; i < each; ++i)
        convolution(b, x, 32000 >> level, 4000);
    }
  } else {
    // Layers of about sqrt(n) nodes; each node reads one to six nodes of
    // earlier layers, mostly of the last.
    int64_t width = 1;
    while (width * width < n)
      ++width;
    for (int64_t i = 0; i < n; ++i) {
      int64_t layer = i / width;
      int32_t id = int32_t(b.graph.nodes.size());
      b.graph.nodes.push_back({1 + int64_t(b.random.below(10'000)),
                               1 + int64_t(b.random.below(100))});
      if (layer == 0)
        continue;
      std::vector<int32_t> reads;
      for (uint32_t k = 0, many = 1 + b.random.below(6); k < many; ++k) {
        int64_t from = layer - 1;
        while (from > 0 && b.random.chance(0.3))
          --from;
        reads.push_back(
            int32_t(from * width + b.random.below(uint32_t(width))));
      }
      std::sort(reads.begin(), reads.end());
      reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
      for (int32_t r : reads)
        b.graph.edges.push_back({r, id});
    }
    return std::move(b.graph);
  }
  return b.train();
}
